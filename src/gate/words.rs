//! What people read: why a workload is held, what it would lose, and what to paste to let it go.

use std::collections::BTreeMap;

use super::{Cause, Held, Why};
use crate::diag::{Diagnostic, Pos};

/// The trailer of a source commit that approves a removal.
pub const ALLOW_DELETE: &str = "Berth-Allow-Delete";

/// How many clusters, and how many objects, are named one by one.
const LONGEST_LIST: usize = 5;

impl Held {
    /// The exact line that approves it.
    pub fn approval(&self) -> String {
        format!("{ALLOW_DELETE}: {}", self.digest)
    }

    /// In a log, a commit message and on a screen.
    pub fn diagnostic(&self) -> Diagnostic {
        let mut why: Vec<String> = self.why.iter().map(Why::words).collect();
        why.extend(self.failed_approvals());
        let message = format!("{} is held back: {}", self.key, why.join("; "));
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

    /// Approvals that were given and did not help.
    pub fn failed_approvals(&self) -> Vec<String> {
        let spent = self.spent.iter().map(|digest| format!("the approval `{digest}` was used already"));
        spent.chain(self.expired.map(|expired| format!("its approval expired at {expired}"))).collect()
    }

    /// What it would lose, in one line: `ConfigMap shop/web in a, b, c`.
    pub fn losses(&self) -> String {
        let mut objects: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (cluster, object) in &self.pairs {
            objects.entry(object.to_string()).or_default().push(cluster);
        }
        let lost = objects.iter().map(|(object, clusters)| {
            let names = clusters.iter().take(LONGEST_LIST).copied().collect::<Vec<_>>().join(", ");
            format!("{object} in {names}{}", and_more(clusters.len(), ""))
        });
        let lost = lost.take(LONGEST_LIST).collect::<Vec<_>>().join("; ");
        format!("{lost}{}", and_more(objects.len(), " objects"))
    }
}

/// ` and 3 more` where a list is cut short.
fn and_more(count: usize, what: &str) -> String {
    match count.checked_sub(LONGEST_LIST) {
        Some(more @ 1..) => format!(" and {more} more{what}"),
        _ => String::new(),
    }
}

impl Why {
    pub fn words(&self) -> String {
        match self {
            Why::Clusters { lost, of } if lost == of => {
                format!("it would be removed from all of its clusters ({of})")
            }
            Why::Clusters { lost, of } => format!("it would be removed from {lost} of its {of} clusters"),
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
