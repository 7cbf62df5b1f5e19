//! The refusals that `berth run` would make, for `berth plan`: all at once, in the words of `run`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::exit::CommandError;
use super::ui::{Tone, Ui};
use berth_base::diag::Diagnostics;
use berth_base::source::SourceTree;
use berth_engine::dialects::{DIALECTS, FileText};
use berth_git::source_tree::read_source;
use berth_git::{CommitId, Repo};

/// Returns the changes since another commit's files that a hub would refuse, where that commit is available.
pub(crate) fn refused_by_hubs(
    repo: &Repo,
    base: Option<CommitId>,
    head: &SourceTree,
) -> Result<Diagnostics, CommandError> {
    let Some(base) = base.filter(|base| repo.has_commit(*base)) else { return Ok(Diagnostics::new()) };
    let base = read_source(repo, base)?;
    let before: BTreeMap<_, _> = base.files.iter().map(|file| (&file.path, &*file.bytes)).collect();
    let after: BTreeMap<_, _> = head.files.iter().map(|file| (&file.path, &*file.bytes)).collect();
    let differ = |(path, _): &(&&Arc<str>, &&Arc<[u8]>)| before.get(**path) != after.get(**path);
    let only = |side: &BTreeMap<&Arc<str>, &Arc<[u8]>>| -> Vec<FileText> {
        let own = |(path, bytes): (&&Arc<str>, &&Arc<[u8]>)| ((*path).clone(), (*bytes).clone());
        side.iter().filter(differ).map(own).collect()
    };
    let (before, after) = (only(&before), only(&after));
    let mut refused = Diagnostics::new();
    for dialect in DIALECTS {
        refused.extend((dialect.refused_by_hub)(&before, &after));
    }
    Ok(refused)
}

/// Refusals for people, before anything else of the plan.
pub(crate) fn refusals_text(refusals: &[CommandError], ui: &Ui) -> String {
    let one = |refusal: &CommandError| {
        let hint = refusal.hint.as_ref().map_or_else(String::new, |hint| format!("  hint: {hint}\n"));
        let title = ui.tint("berth run would refuse this commit and publish nothing:", Tone::Bad);
        format!("{title} {}\n{hint}\n", refusal.message)
    };
    refusals.iter().map(one).collect()
}

/// Returns the refusals as JSON.
pub(crate) fn refusals_json(refusals: &[CommandError]) -> Json {
    let one = |refusal: &CommandError| json!({"message": refusal.message, "hint": refusal.hint});
    refusals.iter().map(one).collect()
}
