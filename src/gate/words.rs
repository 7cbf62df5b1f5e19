//! What people read: why a workload is held, what it would lose, and what to paste to let it go.

use super::{Cause, Held, Why};
use crate::diag::{Diagnostic, Pos};

/// The trailer of a source commit that approves a removal.
pub const ALLOW_DELETE: &str = "Berth-Allow-Delete";

/// How many clusters and objects are named one by one.
const LONGEST_LIST: usize = 5;

impl Held {
    /// The exact line that approves it.
    pub fn approval(&self) -> String {
        format!("{ALLOW_DELETE}: {}", self.digest)
    }

    /// In a log, a commit message and on a screen.
    pub fn diagnostic(&self) -> Diagnostic {
        let why: Vec<String> = self.why.iter().map(Why::words).collect();
        let mut message = format!("{} is held back: {}", self.key, why.join("; "));
        for digest in &self.spent {
            message.push_str(&format!("; the approval `{digest}` was used already"));
        }
        let hint = match (self.is_approvable(), self.cause) {
            (false, _) => "it passes together with the other workload".to_owned(),
            (true, Cause::Source) => format!(
                "undo the change, or approve it with this as the last line of a commit's message: {}",
                self.approval()
            ),
            (true, Cause::Itself) => format!(
                "it goes on when the clusters are back; to let it go now, approve it with this as the last \
                 line of a commit's message: {}",
                self.approval()
            ),
        };
        Diagnostic::warning(Pos::file(self.source.as_str()), message).hint(hint)
    }

    /// What it would lose, in one line.
    pub fn losses(&self) -> String {
        let mut shown: Vec<String> = self
            .pairs
            .iter()
            .take(LONGEST_LIST)
            .map(|(cluster, object)| format!("{cluster}: {object}"))
            .collect();
        if let Some(more @ 1..) = self.pairs.len().checked_sub(LONGEST_LIST) {
            shown.push(format!("and {more} more"));
        }
        shown.join(", ")
    }
}

impl Why {
    pub fn words(&self) -> String {
        match self {
            Why::Clusters { lost, of } => format!("it would leave {lost} of its {of} clusters"),
            Why::Objects { cluster, lost, of } => {
                format!("cluster `{cluster}` would lose {lost} of its {of} objects")
            }
            Why::Risky { object } => format!("it would remove {object}, and what depends on it"),
            Why::Still => "the same removal was held before, together with others".to_owned(),
            Why::Evictions { clusters, of } => {
                format!("{clusters} of {of} clusters would lose something at once, though no file changed")
            }
            Why::HandsOver { to } => format!("it hands an object over to {to}, which is held"),
        }
    }
}
