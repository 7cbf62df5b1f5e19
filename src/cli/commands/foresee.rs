//! The refusals that `berth run` would make, for `berth plan`: all at once, in the words of `run`.

use serde_json::{Value as Json, json};

use super::ui::{Tone, Ui};
use crate::process::exit::CommandError;
use berth_base::diag::Diagnostics;
use berth_base::source::{SourceFile, SourceTree};
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
    let (mut before, mut after): (Vec<FileText>, Vec<FileText>) = Default::default();
    let text = |file: &SourceFile| (file.path.clone(), (*file.bytes).clone());
    for change in base.files.changes_by(&head.files, |base, head| base.id == head.id) {
        before.extend(change.before.map(text));
        after.extend(change.after.map(text));
    }
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
