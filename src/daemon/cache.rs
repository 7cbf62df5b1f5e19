//! What a pass leaves for the next one: files as parsed, objects as rendered, the state in force.
//! Losing it costs time only.

use super::pass::PassError;
use crate::git::Repo;
use crate::publish::{self, Previous, cluster_refs};
use crate::reading::Known;

/// Carried from pass to pass.
#[derive(Debug, Default)]
pub struct Cache {
    pub(super) known: Known,
    /// The state in force when the last pass ended.
    previous: Option<Previous>,
    pub(super) cluster_refs: cluster_refs::Known,
}

impl Cache {
    /// How many files were parsed since this began.
    pub fn parsed(&self) -> usize {
        self.known.parsed()
    }

    /// What the branch holds; read again only where it is not what was left.
    pub(super) fn take_previous(
        &mut self,
        repo: &Repo,
        rendered: &str,
    ) -> Result<Option<Previous>, PassError> {
        let now = repo.read_ref(rendered)?;
        match self.previous.take().filter(|previous| Some(previous.commit) == now) {
            Some(previous) => Ok(Some(previous)),
            None => {
                self.known.built = None;
                Ok(publish::read_previous(repo, rendered)?)
            }
        }
    }

    /// Keeps what a pass ended with, `rendered` being in force then.
    pub(super) fn keep(&mut self, mut known: Known, rendered: Option<Previous>) {
        if let (Some(memo), Some(rendered)) = (&mut known.built, &rendered) {
            memo.rendered.keep_published(&rendered.state.folders);
        }
        self.known = known;
        self.previous = rendered;
    }
}
