//! `berth review`: reports a pull request's plan where people review it.
//!
//! - [`pull_request`]: the pull request and its revisions, from flags and the environment of a CI run. [`verdict`]:
//!   the verdict on a plan or on an error, in all its forms. [`delivery`]: delivers the verdict to the forge, the
//!   runner and files.

mod delivery;
mod pull_request;
mod verdict;

use crate::flags::fleet::RepoArg;
use crate::output::ui::Ui;
use crate::planning::planned::{Asked, FailOn, Planned, StepArgs};
use crate::process::exit::{CommandError, Exit, Outcome};
use berth_base::diag::{Diagnostic, Pos};
use berth_engine::load::CONFIG_PATH;
use berth_forge::PullRequest;
use berth_git::Repo;
use berth_git::protocol::Refs;
use berth_git::source_tree::read_file_at;
use berth_hub::inputs::current_state::short;
use delivery::DeliveryArgs;
use pull_request::{ForgeArgs, Found};
use verdict::Verdict;

/// Review a pull request in CI: plan it, comment on it, and set a status
///
/// Needs a clone with the base's history and the rendered branch.
/// Finds base and head in the environment of GitHub Actions, GitLab CI, or Gitea and Forgejo Actions, and shows the
/// step from the state that the base gives to the state after a merge, as `plan --base` does. One comment is kept
/// up to date, and the status `berth` is set on the head: success, pending while a removal waits for an approval,
/// or failure. Faults stand on the lines they are about. Without a token, or with one that may not write, as in a
/// pull request from a fork, all is printed and the exit code is the same. Outside CI, nothing is written to a
/// forge unless flags name the pull request. --fleet tells the comments and statuses of several fleets in one
/// repository apart.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth review\n  berth review --base main --head my-change\n  berth review --fail-on errors --report review.md --sarif review.sarif\n\nWorkflow files for each forge are in docs/pull-requests.md."
)]
pub(crate) struct ReviewArgs {
    #[command(flatten)]
    repo: RepoArg,
    #[command(flatten)]
    forge: ForgeArgs,
    #[command(flatten)]
    delivery: DeliveryArgs,
    /// Fail where there is any of these, separated by commas
    #[arg(long, value_name = "WHAT", value_enum, value_delimiter = ',', default_value = "errors,held")]
    fail_on: Vec<FailOn>,
    /// Link the preview that `berth run --preview` makes of the pull request's branch
    #[arg(long, env = "BERTH_PREVIEWS")]
    previews: bool,
    #[command(flatten)]
    step: StepArgs,
}

pub(crate) fn cmd_review(args: &ReviewArgs, ui: &Ui, verbose: u8) -> Outcome {
    let found = args.forge.find(&args.repo.path, ui.environment())?;
    let verdict = match plan(args, &found, ui, verbose) {
        Ok(verdict) => verdict,
        Err(error) => {
            ui.error(&error);
            Verdict::of_error(&error)
        }
    };
    let verdict = verdict.with_line(found.pull_request.as_ref().filter(|_| args.previews).and_then(preview));
    let key = args.step.trust.fleet().unwrap_or_default();
    let failures = delivery::deliver(&args.delivery, &found, &verdict, &key, ui);
    // The verdict matters more than an unreachable forge.
    Ok(if verdict.exit == Exit::Done { failures } else { verdict.exit })
}

/// Returns the name of a branch's preview. A fork's branch has none.
fn preview(pull_request: &PullRequest) -> Option<String> {
    let branch = pull_request.head_branch.as_ref().filter(|_| !pull_request.is_fork)?;
    let refs = Refs::default();
    let (rendered, preview) = (short(&refs.rendered), format!("{}{branch}", short(&refs.preview)));
    let page = pull_request.comparison(rendered, &preview)?;
    Some(format!("[Preview]({page}): all files that the merge would publish, a moment after each push"))
}

fn plan(args: &ReviewArgs, found: &Found, ui: &Ui, verbose: u8) -> Result<Verdict, CommandError> {
    let repo = Repo::rehearsal(&args.repo.path)?.watched(ui.progress());
    let located = args.step.locate(&args.repo.path, &repo, ui)?;
    let revisions = args.forge.revisions(found, &repo, &located)?;
    let asked = Asked::gather(located, revisions, &repo, |_| {})?;
    let words = asked.words();
    ui.status(&words);
    let rehearsed = ui.watching("reading the fleet", || asked.rehearse(&args.step, &repo, ui.now()))?;
    let mut planned = Planned::of(&args.step, &repo, &asked, rehearsed, ui)?;
    planned.diagnostics.extend(edited_settings(&repo, &asked)?);
    planned.show_diagnostics(verbose > 0, ui);
    let report = planned.report(&words);
    ui.out(&report.text(verbose > 0, ui));
    Ok(Verdict::of(&planned, &report, &args.fail_on))
}

/// Warns about a change of the fleet's settings, which define the files to read and how strictly.
fn edited_settings(repo: &Repo, asked: &Asked) -> Result<Option<Diagnostic>, CommandError> {
    let Some(base) = &asked.base else { return Ok(None) };
    let before = read_file_at(repo, base.commit, CONFIG_PATH)?;
    let after = read_file_at(repo, asked.change.source, CONFIG_PATH)?;
    let at = Pos { file: CONFIG_PATH.into(), line: 1, column: 1 };
    let message = "the change edits the fleet's settings, which decide what berth reads and how strictly";
    Ok((before != after).then(|| Diagnostic::warning(at, message.to_owned())))
}
