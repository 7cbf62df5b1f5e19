//! The changes that a hub would refuse.

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
