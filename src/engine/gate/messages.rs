//! The messages of the gate: why a workload is held, its losses, and the line that approves them.

use std::collections::BTreeMap;

use super::verdict::{Held, Why};
use crate::state::ledger::Places;
use berth_base::diag::{Diagnostic, Pos};
use berth_base::model::{ObjectId, Timestamp};
use berth_base::text::some_of;

/// The trailer of a source commit that approves a removal.
pub const ALLOW_DELETE: &str = "Berth-Allow-Delete";

/// The message for a workload of which only the removals are held.
const GOES_ON: &str = "its other copies are published without waiting for the removals";

/// Returns the message on how much of the held workloads stays unchanged.
pub fn stays(held: &[Held]) -> &'static str {
    match held.iter().all(|one| one.goes_on) {
        true => "only the removals are held",
        false => "each stays unchanged in every cluster",
    }
}

/// The maximal number of clusters, and of objects, in a list.
const LONGEST_LIST: usize = 5;

impl Held {
    /// Returns the exact line that approves only this removal.
    pub fn approval(&self) -> String {
        format!("{ALLOW_DELETE}: {}", self.digest)
    }

    /// Returns the exact line that approves everything held.
    pub fn approval_of_all(&self) -> String {
        format!("{ALLOW_DELETE}: {}", self.all)
    }

    /// Returns the diagnostic for logs, commit messages and screens.
    pub fn diagnostic(&self) -> Diagnostic {
        let mut why: Vec<String> = self.why.iter().map(Why::words).collect();
        why.extend(self.failed_approvals());
        let what = if self.goes_on { ": its removals are held back" } else { " is held back" };
        let message = format!("{}{what}: {}", self.key, why.join("; "));
        let hint = match (self.has_own_reason(), self.is_of_edit()) {
            _ if self.goes_on => {
                format!("{GOES_ON}; to approve them, end a commit's message with {}", self.approval_of_all())
            }
            (false, _) => "approve the other workload: both are held together".to_owned(),
            (true, true) => format!(
                "undo the change, or approve it: end a commit's message with {}",
                self.approval_of_all()
            ),
            (true, false) => format!(
                "wait until the clusters are back, or approve the removal: end a commit's message with {}",
                self.approval_of_all()
            ),
        };
        Diagnostic::warning(Pos::file(self.source.as_str()), message).hint(hint)
    }

    /// Returns notes beside the reasons: the workload is published without its removals, or an approval did
    /// not help.
    pub fn notes(&self) -> Vec<String> {
        let goes_on = self.goes_on.then(|| format!("only its removals are held; {GOES_ON}"));
        goes_on.into_iter().chain(self.failed_approvals()).collect()
    }

    /// Returns the approvals that were given and did not help, with the reason.
    pub fn failed_approvals(&self) -> Vec<String> {
        let spent = self.spent.iter().map(|digest| format!("the approval `{digest}` was used already"));
        spent.chain(self.expired.map(|expired| format!("its approval expired at {expired}"))).collect()
    }

    /// Returns the later losses, a line for each moment.
    pub fn deadlines(&self) -> Vec<String> {
        let mut by_moment: BTreeMap<Timestamp, Places> = BTreeMap::new();
        for (place, at) in &self.due {
            by_moment.entry(*at).or_default().insert(place.clone());
        }
        by_moment.iter().map(|(at, places)| format!("of these, at {at}: {}", in_words(places))).collect()
    }

    /// Lists the losses in one line: `ConfigMap shop/web in a, b, c`.
    pub fn losses(&self) -> String {
        in_words(&self.places)
    }
}

fn in_words(places: &Places) -> String {
    let mut objects: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (cluster, object) in places {
        objects.entry(object.to_string()).or_default().push(cluster);
    }
    let lost =
        objects.iter().map(|(object, clusters)| format!("{object} in {}", some_of(clusters, LONGEST_LIST)));
    let lost = lost.take(LONGEST_LIST).collect::<Vec<_>>().join("; ");
    match objects.len().saturating_sub(LONGEST_LIST) {
        0 => lost,
        more => format!("{lost} and {more} more objects"),
    }
}

/// Returns the suffix for earlier removals that also count.
fn counting(lately: usize) -> String {
    if lately == 0 { String::new() } else { format!(", including {lately} lost earlier within the window") }
}

/// Returns the objects or the data that disappear together with a risky object.
fn taken_along(object: &ObjectId) -> &'static str {
    match &*object.kind {
        "Namespace" => "every object in it",
        "PersistentVolumeClaim" => "its data",
        _ => "every object of its kind",
    }
}

impl Why {
    pub fn words(&self) -> String {
        match self {
            Why::Clusters { lost, of, lately: 0 } if lost == of => {
                format!("it would be removed from all of its clusters ({of})")
            }
            Why::Clusters { lost, of, lately } => {
                format!("it would be removed from {lost} of its {of} clusters{}", counting(*lately))
            }
            Why::Objects { cluster, lost, of, lately } => {
                format!("cluster `{cluster}` would lose {lost} of its {of} objects{}", counting(*lately))
            }
            Why::Risky { object } => format!("it would remove {object} and {}", taken_along(object)),
            Why::Still => "this change was held before and is not approved yet".to_owned(),
            Why::Evictions { clusters, of } => {
                format!(
                    "{clusters} of {of} clusters would lose objects or placements at once, without an edit"
                )
            }
            Why::Policy { test, message } => format!("policy {test}: {message}"),
            Why::Along { with } => format!("it is held together with {with}"),
        }
    }
}
