//! Warnings of changes that others made to the files of the rendered branch that are berth's own.

use berth_base::diag::{Diagnostic, Pos};
use berth_engine::state::layout;

/// Files of others that are named. All of them are left out.
pub(super) const MOST_FOREIGN: usize = 1_000;

/// Warns of a file that berth did not write.
pub(super) fn foreign(path: &str) -> Diagnostic {
    Diagnostic::warning(Pos::file(path), "berth did not write this file; it is left out and will be removed")
        .hint(format!(
            "use another folder of the branch: only berth writes to {}/",
            layout::OWNED.join("/, ")
        ))
}

/// Warns of a change by hand to a file of berth's own.
pub(super) fn undone(path: &str, done: &str) -> Diagnostic {
    let message = format!("this was {done} by hand; the next publication restores it");
    Diagnostic::warning(Pos::file(path), message).hint("change the source branch instead")
}
