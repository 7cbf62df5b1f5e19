//! Delivers a review's verdict: the forge's comment and status, annotations, the runner's summary, and files.

use std::io::Write as _;
use std::path::PathBuf;

use super::{Found, Verdict};
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit};
use berth_forge::ci_run::{self, Variables};
use berth_forge::{Client, Forge, ForgeError, Marker, PullRequest, Status, Written};

/// The flags that say where a review is told.
#[derive(Debug, clap::Args)]
pub(crate) struct DeliveryArgs {
    /// Write no comment
    #[arg(long)]
    no_comment: bool,
    /// Set no commit status
    #[arg(long)]
    no_status: bool,
    /// Print annotations as workflow commands
    #[arg(long, value_name = "WHEN", value_enum, default_value = "auto")]
    annotations: Annotations,
    /// Write the comment's Markdown to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write a SARIF log to this file
    #[arg(long, value_name = "FILE")]
    sarif: Option<PathBuf>,
    /// Write GitLab's code quality report to this file
    #[arg(long, value_name = "FILE")]
    code_quality: Option<PathBuf>,
}

/// The use of workflow commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Annotations {
    /// In Actions of GitHub, Gitea and Forgejo
    Auto,
    /// Wherever it runs
    Always,
    /// Nowhere
    Never,
}

/// The size limit of a step's summary. GitHub refuses a longer one completely.
const LONGEST_SUMMARY: u64 = 1 << 20;

/// Delivers a review to all places. A failed delivery is reported and does not stop the others.
pub(super) fn deliver(args: &DeliveryArgs, found: &Found, verdict: &Verdict, fleet: &str, ui: &Ui) -> Exit {
    if let Some(lines) = &verdict.lines
        && args.wants_commands(&found.variables)
    {
        ui.workflow_commands(&lines.workflow_commands);
    }
    let lines = verdict.lines.as_ref();
    let files = [
        (&args.report, Some(verdict.markdown.clone())),
        (&args.sarif, lines.map(|lines| format!("{:#}\n", lines.sarif))),
        (&args.code_quality, lines.map(|lines| format!("{:#}\n", lines.code_quality))),
    ];
    let mut failures = Vec::new();
    for (file, text) in files {
        if let (Some(file), Some(text)) = (file, text) {
            let written = std::fs::write(file, text);
            failures.extend(
                written.err().map(|error| CommandError::io(format!("writing {}", file.display()), &error)),
            );
        }
    }
    failures.extend(summarise(&found.variables, &verdict.markdown, ui).err());
    if let Some(pull_request) = &found.pull_request {
        failures.extend(args.tell_forge(pull_request, found, verdict, fleet, ui));
    }
    failures.iter().for_each(|error| ui.error(error));
    failures.iter().fold(Exit::Done, |worst, error| worst.worst(error.exit))
}

impl DeliveryArgs {
    fn wants_commands(&self, variables: &Variables) -> bool {
        match self.annotations {
            Annotations::Always => true,
            Annotations::Never => false,
            Annotations::Auto => ci_run::forge_of(variables).is_some_and(|forge| forge != Forge::GitLab),
        }
    }

    fn tell_forge(
        &self,
        pull_request: &PullRequest,
        found: &Found,
        verdict: &Verdict,
        fleet: &str,
        ui: &Ui,
    ) -> Vec<CommandError> {
        if self.no_comment && self.no_status {
            return Vec::new();
        }
        let Some(token) = found.token.clone() else {
            let why = if pull_request.is_fork { " (pull requests from forks get no token)" } else { "" };
            ui.status(&format!("posted no comment and no status: no token for {}{why}", pull_request.forge));
            return Vec::new();
        };
        let client = Client::new(pull_request, token);
        let mut failures = Vec::new();
        let mut link = pull_request.links.run.clone();
        if !self.no_comment && !has_later(&client, pull_request, ui) {
            match client.put_comment(&Marker::new(fleet), &verdict.markdown) {
                Ok(comment) => {
                    let url = comment.url.as_ref().map_or_else(String::new, |url| format!(": {url}"));
                    ui.status(&format!("comment {}{url}", words(comment.written)));
                    link = comment.url.or(link);
                }
                Err(error) => failures.extend(failure("comment", error, ui)),
            }
        }
        if !self.no_status {
            let context = if fleet.is_empty() { "berth".to_owned() } else { format!("berth/{fleet}") };
            let status = Status { context, ..Status::new(verdict.state, &verdict.title) }.link(link);
            match client.set_status(&pull_request.head_commit, &status) {
                Ok(()) => ui.status(&format!("status `{}` set", status.context)),
                Err(error) => failures.extend(failure("status", error, ui)),
            }
        }
        failures
    }
}

/// Reports whether a later commit was pushed, whose own review must not be overwritten. If the forge does not answer,
/// the requests for the comment fail with a reason.
fn has_later(client: &Client, pull_request: &PullRequest, ui: &Ui) -> bool {
    let has_later = client.head_commit().is_ok_and(|head| head != pull_request.head_commit);
    if has_later {
        ui.status("no comment: the pull request has a later commit, which has a review of its own");
    }
    has_later
}

fn words(written: Written) -> &'static str {
    match written {
        Written::Created => "created",
        Written::Updated => "updated",
        Written::Unchanged => "is up to date",
    }
}

/// Reports a failed delivery. A missing right is no failure, since nothing in a CI run can grant it.
fn failure(what: &str, error: ForgeError, ui: &Ui) -> Option<CommandError> {
    if matches!(error, ForgeError::NoRight { .. }) {
        ui.status(&format!("no {what}: {error}"));
        return None;
    }
    let error = CommandError::from(error);
    Some(CommandError { message: format!("the {what} is not written: {}", error.message), ..error })
}

/// Appends to the summary of the job's step, which GitHub, Gitea and Forgejo show next to its log.
fn summarise(variables: &Variables, markdown: &str, ui: &Ui) -> Result<(), CommandError> {
    let Some(path) = variables.get("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) else {
        return Ok(());
    };
    let failed =
        |error: &std::io::Error| CommandError::io(format!("writing the step's summary, {path}"), error);
    let mut file =
        std::fs::OpenOptions::new().append(true).create(true).open(path).map_err(|error| failed(&error))?;
    let length = file.metadata().map_err(|error| failed(&error))?.len();
    if length + markdown.len() as u64 + 2 > LONGEST_SUMMARY {
        ui.status("the step's summary has no room for the review");
        return Ok(());
    }
    writeln!(file, "{markdown}\n").map_err(|error| failed(&error))
}
