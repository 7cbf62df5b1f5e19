//! `berth verify COMMIT --statement`: what a daemon would sign about the artifacts of a commit.

use crate::flags::signing::origin;
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit, Outcome};
use berth_git::Repo;
use berth_hub::attestation::{Publication, statements_of};

/// Prints the statements of a commit.
pub(super) fn print(repo: &Repo, commit: &str, ui: &Ui) -> Outcome {
    let commit = repo.require(commit)?;
    let Some(publication) = Publication::read(repo, commit)? else {
        let message = format!("berth did not make the commit {commit}, so it has no statement");
        return Err(CommandError::usage(message).hint("name a commit of the rendered branch"));
    };
    for statement in statements_of(repo, &publication, &origin(None))? {
        ui.out(&String::from_utf8_lossy(&statement.bytes()));
    }
    Ok(Exit::Done)
}
