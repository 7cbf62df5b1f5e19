//! What the reading commands share: where the fleet is, which revision, and for which moment.

use std::path::PathBuf;

use super::exit::{CommandError, Exit};
use super::run::refusal;
use super::ui::Ui;
use crate::diag::Diagnostics;
use crate::model::{ContentError, Timestamp};
use crate::reading::{Reading, ReadingError};
use crate::state;

#[derive(Clone, Debug, clap::Args)]
pub struct FleetArgs {
    /// The fleet repository, or a folder that looks like one
    #[arg(long, value_name = "PATH", default_value = ".", env = "BERTH_REPO")]
    pub repo: PathBuf,
    /// Read this revision from Git, in place of the working tree
    #[arg(long, value_name = "REV")]
    pub rev: Option<String>,
    /// Take the decisions in force from a file in the form of `decide -o json`, in place of the rendered branch
    #[arg(long, value_name = "FILE")]
    pub previous: Option<PathBuf>,
    /// Decide for this moment (RFC 3339), in place of now or the revision's date
    #[arg(long, value_name = "TIME")]
    pub now: Option<Timestamp>,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people
    #[value(alias = "table")]
    Text,
    Json,
    Yaml,
}

impl FleetArgs {
    /// Gathers everything, and says on stderr what was read.
    pub fn read(&self, ui: &Ui) -> Result<Reading, CommandError> {
        let mut reading = match &self.rev {
            Some(revision) => Reading::revision(&self.repo, revision, self.now)?,
            None => Reading::folder(&self.repo, self.now.unwrap_or_else(Timestamp::now))?,
        };
        if let Some(path) = &self.previous {
            let text = std::fs::read_to_string(path)
                .map_err(|error| CommandError::io(format!("reading {}", path.display()), &error))?;
            let decisions = serde_json::from_str(&text)
                .map_err(|error| error.to_string())
                .and_then(|value| state::decisions_from_json(&value))
                .map_err(|error| CommandError::usage(format!("{}: {error}", path.display())))?;
            reading.take_previous(decisions);
        }
        ui.status(&format!("reading {}", reading.label));
        Ok(reading)
    }
}

/// A fleet with errors ends with its own exit code.
pub fn exit_for(diagnostics: &Diagnostics) -> Exit {
    if diagnostics.has_errors() { Exit::Faulty } else { Exit::Done }
}

impl From<ContentError> for CommandError {
    fn from(error: ContentError) -> CommandError {
        CommandError::new(Exit::Unreachable, error.to_string())
    }
}

impl From<ReadingError> for CommandError {
    fn from(error: ReadingError) -> CommandError {
        let exit = match &error {
            ReadingError::Publish(error) => refusal(error),
            _ => Exit::Unreachable,
        };
        let hint = error.hint();
        CommandError { exit, message: error.to_string(), hint }
    }
}

impl From<crate::publish::PublishError> for CommandError {
    fn from(error: crate::publish::PublishError) -> CommandError {
        let hint = error.hint();
        CommandError { exit: refusal(&error), message: error.to_string(), hint }
    }
}
