//! The published record of a repository, and the step that a pass would make now, for commands that tell about them.

use std::path::PathBuf;

use super::fleet::moment;
use super::repo_path;
use super::state::{StateArgs, StateRepo};
use crate::output::results::Format;
use crate::output::ui::Ui;
use crate::process::exit::CommandError;
use berth_base::model::Timestamp;
use berth_engine::pipeline::Built;
use berth_engine::state::State;
use berth_git::{GitContents, Repo};
use berth_hub::inputs::{LocatedState, PassInputs, Search};

/// The record to read
#[derive(Clone, Debug, clap::Args)]
pub(super) struct RecordArgs {
    /// The fleet repository
    #[arg(long, value_name = "PATH", default_value = ".", value_parser = repo_path::parser(), env = "BERTH_REPO")]
    pub repo: PathBuf,
    #[command(flatten)]
    pub state: StateArgs,
    /// Judge reports, waits and silent members at this moment (RFC 3339), in place of now
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub now: Option<Timestamp>,
    #[arg(short, long, value_enum, default_value = "text")]
    pub output: Format,
}

/// The place of the record in a repository.
pub(super) struct Located {
    opened: StateRepo,
    pub state: LocatedState,
    search: Search,
}

/// The record, and the step that a pass would make now.
pub(super) struct Record {
    pub current: State,
    pub built: Built,
    pub now: Timestamp,
}

impl Located {
    pub fn find(args: &RecordArgs, ui: &Ui) -> Result<Located, CommandError> {
        let opened = args.state.open(&args.repo)?;
        let search = args.state.search(&opened.path)?;
        let state = LocatedState::find(&opened.repo, &search)?;
        ui.status(&format!("reading {}", state.words()));
        Ok(Located { opened, state, search })
    }

    pub fn repo(&self) -> &Repo {
        &self.opened.repo
    }

    /// Makes the step that a pass would make.
    pub fn build(&self, now: Timestamp, ui: &Ui) -> Result<Built, CommandError> {
        // A source that changes nothing makes no publication, and may pause or pin all the same.
        let processed = self.state.processed.as_ref().map(|processed| processed.source);
        let published = self.state.current.as_ref().and_then(|current| current.trailers.source);
        let mut sources = processed.into_iter().chain(published);
        let Some(source) = sources.find(|source| self.repo().has_commit(*source)) else {
            let error = CommandError::usage("the source of the current state is not in this clone");
            return Err(error.hint("fetch the branch that people edit"));
        };
        let source = source.to_string();
        let inputs = ui.watching("reading the fleet", || {
            PassInputs::revision(&self.opened.path, &source, Some(now), None, &self.search)
        })?;
        ui.diagnostics(&inputs.odd_reports);
        // Copies are compared with the published ones, so that they need Git's ids.
        Ok(inputs.build(&mut GitContents::remembering(self.repo())?)?)
    }
}

impl Record {
    pub fn read(args: &RecordArgs, ui: &Ui) -> Result<Record, CommandError> {
        let located = Located::find(args, ui)?;
        if located.state.current.is_none() {
            let error = CommandError::usage("nothing is published yet");
            return Err(error.hint("publish with `berth run --once`"));
        }
        let now = args.now.unwrap_or_else(Timestamp::now);
        let built = located.build(now, ui)?;
        let current = located.state.current.map(|current| current.state).unwrap_or_default();
        Ok(Record { current, built, now })
    }
}
