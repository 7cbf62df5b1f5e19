//! The past of a placement, a cluster or an object.
//!
//! - [`log`]: lists the publications that changed it. [`why`]: names those that made it what it is.
//! - [`subject`]: finds it by its name. [`entry`]: a publication with its change, its causes and its people.

mod entry;
mod log;
mod subject;
mod why;

use crate::flags::fleet::RepoArg;
use crate::flags::state::{Located, StateArgs, find_publication, read_publication};
use crate::output::results::Format;
use crate::output::ui::Ui;
use crate::process::exit::CommandError;
use berth_base::diag::harmless_line;
use berth_base::model::Timestamp;
use berth_git::{CommitId, Repo};
use berth_hub::history::Subject;
use berth_hub::publish::{CurrentState, claimed};

pub(crate) use log::{LogArgs, cmd_log};
pub(crate) use why::{WhyArgs, cmd_why};

/// The record to read, and its moment
#[derive(Debug, clap::Args)]
struct HistoryArgs {
    /// Look back from this publication or moment: a number, a commit, any revision of the rendered branch, or a
    /// moment in RFC 3339
    #[arg(long, value_name = "PUBLICATION|TIME")]
    at: Option<String>,
    #[command(flatten)]
    repo: RepoArg,
    #[command(flatten)]
    state: StateArgs,
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
}

impl HistoryArgs {
    fn open(&self, ui: &Ui) -> Result<Located, CommandError> {
        Located::open(&self.repo, &self.state, ui)
    }

    /// Reads the state to look back from.
    fn current(&self, located: &Located) -> Result<CurrentState, CommandError> {
        let Some(newest) = &located.state.current else {
            let error = CommandError::usage("nothing is published yet");
            return Err(error.hint("publish with `berth run --once`"));
        };
        let Some(at) = &self.at else { return Ok(newest.clone()) };
        let repo = located.repo();
        let commit = match at.parse::<Timestamp>() {
            Ok(moment) => published_at(repo, newest.commit, moment)?,
            Err(_) => find_publication(repo, newest.commit, at)?,
        };
        read_publication(repo, &located.state.refs.rendered, commit)
    }
}

/// Finds the publication that was the newest at a moment.
fn published_at(repo: &Repo, newest: CommitId, moment: Timestamp) -> Result<CommitId, CommandError> {
    for commit in repo.first_parents(newest).filter(|commit| commit.seconds <= moment.as_second()) {
        if claimed(repo, &commit)?.is_some() {
            return Ok(commit.id);
        }
    }
    Err(CommandError::usage(format!("nothing was published before {moment}")))
}

/// Names a subject as people write it.
fn title(subject: &Subject) -> String {
    let within = |cluster: &Option<String>| match cluster {
        Some(cluster) => format!(" in {cluster}"),
        None => String::new(),
    };
    let text = match subject {
        Subject::Placement { key, cluster } => format!("{key}{}", within(cluster)),
        Subject::Cluster(name) => format!("cluster {name}"),
        Subject::Object { object, cluster } => format!("{object}{}", within(cluster)),
    };
    harmless_line(&text).into_owned()
}
