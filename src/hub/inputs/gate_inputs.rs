//! The inputs of a verdict of the gate: the step that it is about, and its basis.
//!
//! A daemon has the basis from the last pass, and a proof of a rendered commit has it from that commit's
//! trailers.

use std::collections::BTreeMap;

use super::error::InputError;
use crate::publish::{CurrentState, Processed, Trailers};
use berth_base::model::{Approval, Key, LabelKeys, Timestamp};
use berth_engine::gate::{EditAlone, HeldRecord, Limits, Outlook};
use berth_engine::policy_tests::Failed;
use berth_engine::state::Comparison;
use berth_git::CommitId;
use berth_git::protocol::trailers::{GATE, HELD, PROCESSED, RETRIED, RULES};

/// The inputs of a verdict besides the source and the rendered branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Basis {
    pub limits: Limits,
    /// The source commit that was processed last.
    pub since: Option<CommitId>,
    /// The removals held then.
    pub retried: Vec<HeldRecord>,
    /// The commit whose access rules held then.
    pub rules: Option<CommitId>,
}

/// The step that a verdict is about.
#[derive(Clone, Copy)]
pub struct Step<'a> {
    pub source: CommitId,
    pub states: &'a Comparison<'a>,
    /// The workloads whose new placement makes policy tests fail.
    pub failing: &'a BTreeMap<Key, Failed>,
    /// The approvals among the source's files.
    pub files: &'a [Approval],
    pub now: Timestamp,
    /// The rendered branch, where earlier approvals and states are looked up.
    pub rendered: Option<&'a CurrentState>,
    /// Decides with the edit alone, to tell causes apart. Asked only where something is removed.
    pub edit_alone: Option<&'a dyn Fn() -> EditAlone>,
    /// Looks ahead to a moment for the deadlines of the source, and where the source is new for those of the
    /// one before it. Asked only where there may be any.
    pub outlook: Option<&'a dyn Fn(Timestamp) -> Result<Outlook, InputError>>,
}

impl std::fmt::Debug for Step<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Step").field("source", &self.source).field("now", &self.now).finish()
    }
}

impl Basis {
    /// Returns the basis of the daemon's next verdict. Where the last pass was cut short, the rendered branch is
    /// newer than the processed ref, so the branch decides.
    pub fn in_force(
        limits: &Limits,
        rendered: Option<&CurrentState>,
        processed: Option<&Processed>,
    ) -> Basis {
        let commit = rendered.map(|rendered| rendered.commit);
        let (since, lines, rules) =
            match (processed.filter(|processed| processed.rendered == commit), rendered) {
                (Some(processed), _) => (Some(processed.source), processed.held.clone(), processed.rules),
                (None, Some(rendered)) => {
                    let (source, trailers) = (rendered.trailers.source, &rendered.trailers);
                    (source, all(trailers, HELD), source.and_then(|source| rules_of(trailers, source)))
                }
                (None, None) => (None, Vec::new(), None),
            };
        Basis { limits: limits.clone(), since, retried: records(&lines), rules }
    }

    /// The commit whose access rules hold for a source: the one before it, and as long as it is the newest,
    /// the same. `None` where nothing came before.
    pub fn rules_for(&self, source: CommitId) -> Option<CommitId> {
        if self.since == Some(source) { self.rules } else { self.since }
    }

    /// Reads the basis from a rendered commit's trailers. `None` where the gate was not asked.
    pub fn of_trailers(trailers: &Trailers) -> Option<Basis> {
        let one = |name| all(trailers, name).into_iter().next();
        Some(Basis {
            limits: one(GATE)?.parse().ok()?,
            since: one(PROCESSED).and_then(|id| id.parse().ok()),
            retried: records(&all(trailers, RETRIED)),
            rules: one(RULES).and_then(|id| id.parse().ok()),
        })
    }
}

/// The labels that members may report, by what a rendered commit says.
pub fn labels_of(trailers: &Trailers) -> LabelKeys {
    let recall = Basis::of_trailers(trailers).and_then(|basis| basis.limits.recall);
    recall.map(|recall| recall.labels).unwrap_or_default()
}

/// The commit whose access rules a rendered commit was made under.
pub fn rules_of(trailers: &Trailers, source: CommitId) -> Option<CommitId> {
    Basis::of_trailers(trailers)?.rules_for(source)
}

/// Returns the removals held when a rendered commit was made.
pub(crate) fn held_in(trailers: &Trailers) -> Vec<HeldRecord> {
    records(&all(trailers, HELD))
}

fn all(trailers: &Trailers, name: &str) -> Vec<String> {
    trailers.others.iter().filter(|(found, _)| found == name).map(|(_, value)| value.clone()).collect()
}

fn records(lines: &[String]) -> Vec<HeldRecord> {
    lines.iter().filter_map(|line| line.parse().ok()).collect()
}
