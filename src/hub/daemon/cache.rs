//! What a pass leaves for the next one: files as parsed, objects as rendered, the state in force.
//! Losing it costs time only.

use super::pass::{PassError, Settings};
use super::stored;
use crate::inputs::Known;
use crate::publish::{self, Previous, cluster_refs};
use crate::verify::trust::Untrusted;
use berth_engine::pipeline;
use berth_git::{CommitId, Repo};

/// Carried from pass to pass.
#[derive(Debug, Default)]
pub struct Cache {
    pub(super) known: Known,
    /// The state in force when the last pass ended.
    previous: Option<Previous>,
    pub(super) cluster_refs: cluster_refs::Known,
    /// A tip of the rendered branch that is not trusted, with the source that it was compared with.
    pub(super) refused: Option<((CommitId, CommitId), Untrusted)>,
    /// What another process left was looked for.
    begun: bool,
    /// The state that what is stored is for.
    stored: Option<CommitId>,
}

impl Cache {
    /// A cache that begins with nothing, whatever other processes left.
    pub fn forgetful() -> Cache {
        Cache { begun: true, ..Cache::default() }
    }

    /// How many files were parsed since this began.
    pub fn parsed(&self) -> usize {
        self.known.parsed()
    }

    /// Leaves for the next process what it would take long to make again.
    pub fn store(&mut self, settings: &Settings) {
        let Some(previous) = &self.previous else { return };
        if self.stored == Some(previous.commit) {
            return;
        }
        let Ok(repo) = Repo::open(&settings.repo) else { return };
        let rendered = self.known.built.as_ref().and_then(|memo| memo.to_stored(&previous.state.folders));
        if stored::save(&repo, self.known.files(), previous, rendered.as_ref()).is_some() {
            self.stored = Some(previous.commit);
        }
    }

    /// What the branch holds; read again only where it is not what was left.
    pub(super) fn take_previous(
        &mut self,
        repo: &Repo,
        rendered: &str,
    ) -> Result<Option<Previous>, PassError> {
        let now = repo.read_ref(rendered)?;
        if !std::mem::replace(&mut self.begun, true)
            && let Some(left) = stored::load(repo, now)
        {
            self.known = Known::of_files(left.parsed);
            if let Some((previous, rendered)) = left.rendered {
                self.stored = Some(previous.commit);
                self.previous = Some(previous);
                self.known.built = rendered.map(pipeline::Memo::stored);
            }
        }
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
            memo.keep_published(&rendered.state.folders);
        }
        self.known = known;
        self.previous = rendered;
    }
}
