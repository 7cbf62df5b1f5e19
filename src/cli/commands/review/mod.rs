//! `berth review`: reports a pull request's plan where people review it.
//!
//! Finds the pull request, its forge's token and the revisions to plan, from flags and the environment of a CI run, and
//! makes the verdict on the plan, or on an error without one, in all its forms.
//!
//! - [`delivery`]: delivers the verdict to the forge, the runner and files.

mod delivery;

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use crate::commands::site::{ChangePageArgs, ToShow};
use crate::flags::fleet::RepoArg;
use crate::output::plan_forms::{PlanReport, failure_markdown};
use crate::output::ui::Ui;
use crate::planning::planned::{FailOn, PlanRequest, Planned, Revisions, StepArgs};
use crate::planning::rehearsal::{Revision, source_tip};
use crate::process::exit::{CommandError, Exit, Outcome};
use crate::process::shell::Environment;
use berth_base::diag::{Diagnostic, Pos};
use berth_engine::load::CONFIG_PATH;
use berth_forge::ci_run::{self, Variables};
use berth_forge::{Forge, Given, PullRequest, State, Token};
use berth_git::Repo;
use berth_git::shared_refs::Refs;
use berth_git::source_tree::read_file_at;
use berth_hub::inputs::LocatedState;
use berth_hub::inputs::current_state::{self, short};
use delivery::DeliveryArgs;

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
    page: ChangePageArgs,
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

/// Returns the place where people find the page of the change: the files that the CI run keeps.
fn page(pull_request: &PullRequest) -> Option<String> {
    let run = pull_request.run_page()?;
    Some(format!(
        "[Page]({run}): its first step beside its end, and the fleet as it is, in the files of this CI run"
    ))
}

fn plan(args: &ReviewArgs, found: &Found, ui: &Ui, verbose: u8) -> Result<Verdict, CommandError> {
    let repo = Repo::rehearsal(&args.repo.path)?.watched(ui.progress());
    let located = args.step.locate(&args.repo.path, &repo, ui)?;
    let revisions = args.forge.revisions(found, &repo, &located)?;
    let asked = PlanRequest::gather(located, revisions, &repo, |_| {})?;
    let words = asked.words();
    ui.status(&words);
    let rehearsed = ui.watching("reading the fleet", || asked.rehearse(&args.step, &repo, ui.now()))?;
    let mut planned = Planned::of(&args.step, &repo, &asked, rehearsed, ui)?;
    planned.diagnostics.extend(edited_settings(&repo, &asked)?);
    planned.show_diagnostics(verbose > 0, ui);
    let report = planned.report(&words);
    ui.out(&report.text(verbose > 0, ui));
    let verdict = Verdict::of(&planned, &report, &args.fail_on);
    let to_show = ToShow {
        repo: &repo,
        path: &args.repo.path,
        state: &args.step.state,
        request: &asked,
        planned: &planned,
        report: &report,
    };
    Ok(match args.page.write(&to_show, ui) {
        Ok(folder) => verdict.with_line(folder.and_then(|_| page(found.pull_request.as_ref()?))),
        // The verdict matters more than its page.
        Err(error) => {
            ui.error(&error);
            Verdict { exit: verdict.exit.worst(error.exit), ..verdict }
        }
    })
}

/// Warns about a change of the fleet's settings, which define the files to read and how strictly.
fn edited_settings(repo: &Repo, asked: &PlanRequest) -> Result<Option<Diagnostic>, CommandError> {
    let Some(base) = &asked.base else { return Ok(None) };
    let before = read_file_at(repo, base.commit, CONFIG_PATH)?;
    let after = read_file_at(repo, asked.change.source, CONFIG_PATH)?;
    let at = Pos { file: CONFIG_PATH.into(), line: 1, column: 1 };
    let message = "the change edits the fleet's settings, which decide what berth reads and how strictly";
    Ok((before != after).then(|| Diagnostic::warning(at, message.to_owned())))
}

/// The flags that name a pull request. Each replaces what the environment says.
#[derive(Debug, clap::Args)]
struct ForgeArgs {
    /// Revision to merge into, whose state comes before the change; default: the pull request's base branch
    #[arg(long, value_name = "REV")]
    base: Option<String>,
    /// Revision to review; default: the pull request's head, or HEAD
    #[arg(long, value_name = "REV")]
    head: Option<String>,
    /// The forge's kind: github, gitlab, gitea or forgejo
    #[arg(long, value_name = "KIND")]
    forge: Option<Forge>,
    /// Address of the forge's API, such as `https://git.example.com/api/v1`
    #[arg(long, value_name = "URL")]
    api: Option<String>,
    /// The repository at the forge: `owner/name`, or GitLab's number of the project
    #[arg(long, value_name = "NAME")]
    repository: Option<String>,
    /// Number of the pull request
    #[arg(long, value_name = "NUMBER")]
    pull_request: Option<u64>,
    /// File with the token for the forge's API; or set BERTH_FORGE_TOKEN, or the forge's usual variable
    #[arg(long, value_name = "FILE", env = "BERTH_FORGE_TOKEN_FILE")]
    token_file: Option<PathBuf>,
}

/// The values from flags and environment.
#[derive(Debug)]
struct Found {
    pub variables: Variables,
    /// The pull request of this CI run, or the one that flags name.
    pub pull_request: Option<PullRequest>,
    pub token: Option<Token>,
}

impl ForgeArgs {
    pub fn find(&self, folder: &Path, environment: &Environment) -> Result<Found, CommandError> {
        let variables: Variables = environment.texts();
        let is_named = self.forge.is_some() || self.repository.is_some() || self.pull_request.is_some();
        if ci_run::forge_of(&variables).is_none() && !is_named {
            return Ok(Found { variables, pull_request: None, token: None });
        }
        let event = ci_run::event_file(&variables).map(|path| {
            std::fs::read_to_string(path).map_err(|error| CommandError::io(format!("reading {path}"), &error))
        });
        let pull_request = ci_run::read(&variables, event.transpose()?.as_deref(), &self.given(folder)?)?;
        let token = match &self.token_file {
            Some(file) => {
                let token = std::fs::read_to_string(file);
                let token =
                    token.map_err(|error| CommandError::io(format!("reading {}", file.display()), &error))?;
                Some(token).filter(|token| !token.trim().is_empty()).map(|token| Token::new(&token))
            }
            None => ci_run::token(&variables, pull_request.forge),
        };
        Ok(Found { variables, pull_request: Some(pull_request), token })
    }

    fn given(&self, folder: &Path) -> Result<Given, CommandError> {
        let commit = |name: &String| Repo::open(folder)?.require(name);
        Ok(Given {
            forge: self.forge,
            api: self.api.clone(),
            repository: self.repository.clone(),
            number: self.pull_request,
            base: self.base.clone(),
            head_commit: self.head.as_ref().map(commit).transpose()?.map(|id| id.to_string()),
            ..Given::default()
        })
    }

    /// Finds both sides of the pull request in the clone.
    pub fn revisions(
        &self,
        found: &Found,
        repo: &Repo,
        located: &LocatedState,
    ) -> Result<Revisions<'static>, CommandError> {
        let named = |name: &str| {
            Ok::<_, CommandError>(Revision { name: name.to_owned(), commit: repo.require(name)? })
        };
        let base = match (&self.base, &found.pull_request) {
            (Some(base), _) => Some(named(base)?),
            (None, Some(pull_request)) => Some(branch(repo, located, &pull_request.base)?),
            (None, None) => source_tip(repo, located, None)?,
        };
        let head = match (&self.head, &found.pull_request) {
            (None, Some(pull_request)) => head(repo, located, pull_request)?,
            (head, _) => named(head.as_deref().unwrap_or("HEAD"))?,
        };
        Ok(Revisions { base, head, source: None, is_merged: true })
    }
}

/// Returns the base branch, as fetched from the clone's remote.
fn branch(repo: &Repo, located: &LocatedState, branch: &str) -> Result<Revision, CommandError> {
    let usual = repo.remote_for(repo.head_branch()?.as_deref())?;
    let remote = located.remote.clone().or(usual);
    let full = format!("refs/heads/{branch}");
    let tracking = remote.as_ref().map(|remote| repo.tracking_ref(remote, &full)).transpose()?;
    for place in tracking.into_iter().chain([full]) {
        if let Some(commit) = repo.read_ref(&place)? {
            return Ok(Revision { name: short(&place).to_owned(), commit });
        }
    }
    Err(current_state::cut_off(repo, remote.as_deref(), branch)?.into())
}

/// Returns the pull request's head. Its files are read from Git and never checked out.
fn head(repo: &Repo, located: &LocatedState, pull_request: &PullRequest) -> Result<Revision, CommandError> {
    let sign = if pull_request.forge == Forge::GitLab { '!' } else { '#' };
    let name = format!("{sign}{}", pull_request.number);
    match repo.resolve(&pull_request.head_commit)? {
        Some(commit) => Ok(Revision { name, commit }),
        None => Err(current_state::cut_off(repo, located.remote.as_deref(), &name)?.into()),
    }
}

/// The result of a review.
#[derive(Debug)]
struct Verdict {
    pub exit: Exit,
    pub state: State,
    /// A title of one line.
    pub title: String,
    pub markdown: String,
    /// The forms that exist only with a plan.
    pub lines: Option<Lines>,
}

/// Problems and effects at the lines that they concern.
#[derive(Debug)]
struct Lines {
    pub workflow_commands: String,
    pub sarif: Json,
    pub code_quality: Json,
}

impl Verdict {
    pub fn of(planned: &Planned, report: &PlanReport<'_>, fail_on: &[FailOn]) -> Verdict {
        let exit = planned.exit(fail_on);
        let state = match exit {
            Exit::Done => State::Success,
            // Only an approval is missing.
            Exit::Held if planned.refused.is_empty() => State::Pending,
            _ => State::Failure,
        };
        let title = match planned.refused.is_empty() {
            false => format!("`berth run` would refuse it; {}", report.title()),
            true => report.title(),
        };
        let lines = Lines {
            workflow_commands: report.workflow_commands(),
            sarif: report.sarif(),
            code_quality: report.code_quality(),
        };
        Verdict { exit, state, title, markdown: report.markdown(), lines: Some(lines) }
    }

    /// Adds a last line to the comment.
    #[must_use]
    pub fn with_line(mut self, line: Option<String>) -> Verdict {
        self.markdown.extend(line.map(|line| format!("\n{line}\n")));
        self
    }

    /// Makes a verdict from an error, because an earlier commit's comment must not stay.
    pub fn of_error(error: &CommandError) -> Verdict {
        let state = if error.exit == Exit::Faulty { State::Failure } else { State::Error };
        let title = error.message.lines().next().unwrap_or_default().to_owned();
        Verdict { exit: error.exit, state, title, markdown: failure_markdown(error), lines: None }
    }
}
