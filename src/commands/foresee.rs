//! What `berth run` would refuse of a revision, for `berth plan`: every refusal at once, in run's words.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::exit::CommandError;
use super::ui::{Tone, Ui};
use crate::daemon::{PassError, refuse_rewind};
use crate::diag::{Diagnostic, Diagnostics, Severity};
use crate::dialects::kubefleet;
use crate::git::source::read_source;
use crate::git::{CommitId, Repo};
use crate::publish::{self, Previous, PublishError, Refs};
use crate::source::SourceTree;
use crate::state::State;

/// A revision, with what would become of it.
#[derive(Debug)]
pub struct Foreseen<'a> {
    /// The revision in its user's words, and its commit.
    pub revision: &'a str,
    pub source: CommitId,
    /// What the plan compares with, and what it leads to.
    pub previous: &'a State,
    pub next: &'a State,
    /// The rendered branch as it is.
    pub rendered: Option<&'a Previous>,
    /// The source processed last, unless the plan compares with another revision.
    pub since: Option<CommitId>,
}

impl Foreseen<'_> {
    /// Why run would write nothing.
    pub fn refusals(&self, repo: &Repo, refs: &Refs) -> Result<Vec<CommandError>, CommandError> {
        let mut refusals: Vec<CommandError> = Vec::new();
        if self.rendered.is_none()
            && let Err(error) = publish::refuse_gone(repo, refs)
        {
            refusals.push(error.into());
        }
        if let Some(rendered) = self.rendered {
            let processed = publish::read_processed(repo, refs)?;
            match publish::refuse_rewritten(repo, refs, rendered, processed.as_ref()) {
                Err(error @ PublishError::Rewritten { .. }) => refusals.push(error.into()),
                // The plan is about the branch as it was read.
                Err(PublishError::Raced { .. }) => {}
                rest => rest?,
            }
        }
        match refuse_rewind(repo, self.revision, self.source, self.since) {
            Err(PassError::Rewound { name, source_commit, last }) => {
                let error = PassError::Rewound { name, source_commit, last };
                let hint = format!(
                    "a branch under review: this plan takes back what the source got since; rebase it, or \
                     compare with `--base`; the source itself: somebody force-pushed, so bring back {last} \
                     (git merge {last}), or allow it for one run with --allow-rewind"
                );
                refusals.push(CommandError::from(error).hint(hint));
            }
            rest => rest?,
        }
        if let Err(error) = publish::refuse_empty(self.previous, self.next) {
            refusals.push(error.into());
        }
        Ok(refusals)
    }
}

/// Says that a revision lacks what its base has, which the plan then shows as taken back.
pub fn lacks_base(
    repo: &Repo,
    (base, base_commit): (&str, CommitId),
    (head, head_commit): (&str, CommitId),
) -> Result<Option<Diagnostic>, CommandError> {
    if repo.is_same_or_after(head_commit, base_commit)? {
        return Ok(None);
    }
    let message = format!("`{base}` has commits that `{head}` lacks; the plan shows them as taken back");
    let hint =
        format!("rebase it, or compare with where they parted: --base $(git merge-base {base} {head})");
    let warning = Diagnostic { severity: Severity::Warning, ..Diagnostic::note(message) };
    Ok(Some(warning.hint(hint)))
}

/// What a hub would refuse of the change from another commit's files, where that commit is at hand.
pub fn refused_by_hubs(
    repo: &Repo,
    base: Option<CommitId>,
    head: &SourceTree,
) -> Result<Diagnostics, CommandError> {
    let Some(base) = base.filter(|base| repo.has_commit(*base)) else { return Ok(Diagnostics::new()) };
    let base = read_source(repo, base)?;
    let before: BTreeMap<_, _> = base.files.iter().map(|file| (&file.path, &file.bytes)).collect();
    let after: BTreeMap<_, _> = head.files.iter().map(|file| (&file.path, &file.bytes)).collect();
    let differ = |(path, _): &(&&Arc<str>, &&Arc<[u8]>)| before.get(**path) != after.get(**path);
    let only = |side: &BTreeMap<&Arc<str>, &Arc<[u8]>>| -> Vec<(Arc<str>, Arc<[u8]>)> {
        let own = |(path, bytes): (&&Arc<str>, &&Arc<[u8]>)| ((*path).clone(), (*bytes).clone());
        side.iter().filter(differ).map(own).collect()
    };
    let (before, after) = (only(&before), only(&after));
    Ok(kubefleet::refused_by_the_hub(
        before.iter().map(|(path, bytes)| (path, bytes)),
        after.iter().map(|(path, bytes)| (path, bytes)),
    ))
}

/// Refusals for people, before anything else of the plan.
pub fn refusals_text(refusals: &[CommandError], ui: &Ui) -> String {
    let one = |refusal: &CommandError| {
        let hint = refusal.hint.as_ref().map_or_else(String::new, |hint| format!("  hint: {hint}\n"));
        let title = ui.tint("berth run would refuse this and write nothing:", Tone::Bad);
        format!("{title} {}\n{hint}\n", refusal.message)
    };
    refusals.iter().map(one).collect()
}

/// The same for programs.
pub fn refusals_json(refusals: &[CommandError]) -> Json {
    let one = |refusal: &CommandError| json!({"message": refusal.message, "hint": refusal.hint});
    refusals.iter().map(one).collect()
}
