//! The inputs of a verdict of the gate: the step that it is about, and its basis.
//!
//! A daemon has the basis from the last pass, and a proof of a rendered commit has it from that commit's
//! trailers.

use std::collections::BTreeMap;

use super::error::InputError;
use crate::publish::{CurrentState, Processed, Trailers};
use berth_base::model::{Approval, Decision, Fleet, Key, LabelKeys, Map, Timestamp};
use berth_engine::gate::{Limits, Outlook};
use berth_engine::policy_tests::Failed;
use berth_engine::state::{Comparison, State};
use berth_git::CommitId;
use berth_git::protocol::trailers::{GATE, PROCESSED, RULES};

/// The inputs of a verdict besides the source and the rendered branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Basis {
    pub limits: Limits,
    /// The source commit that was processed last.
    pub since: Option<CommitId>,
    /// The commit whose access rules held then.
    pub rules: Option<CommitId>,
}

/// The step that a verdict is about.
#[derive(Clone, Copy)]
pub struct Step<'a> {
    pub source: CommitId,
    /// The current state, and the desired one.
    pub states: &'a Comparison<'a>,
    /// The first step towards the desired state.
    pub first: &'a State,
    /// The workloads whose new placement makes policy tests fail.
    pub failing: &'a BTreeMap<Key, Failed>,
    /// The approvals among the source's files.
    pub files: &'a [Approval],
    pub now: Timestamp,
    /// The rendered branch, where earlier states are looked up.
    pub rendered: &'a CurrentState,
    /// Decides with the edit alone, to tell causes apart. Asked only where something is removed.
    pub edit_alone: &'a dyn Fn() -> Vec<Map<Key, Decision>>,
    /// Looks ahead to a moment for the deadlines of the source, and of the one before it.
    /// Asked only where there may be any.
    pub outlook: Option<&'a dyn Fn(Timestamp) -> Result<Outlook, InputError>>,
    pub fleet: &'a Fleet,
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
        let (since, rules) = match (processed.filter(|processed| processed.rendered == commit), rendered) {
            (Some(processed), _) => (Some(processed.source), processed.rules),
            (None, Some(rendered)) => {
                let (source, trailers) = (rendered.trailers.source, &rendered.trailers);
                (source, source.and_then(|source| rules_of(trailers, source)))
            }
            (None, None) => (None, None),
        };
        Basis { limits: limits.clone(), since, rules }
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
            rules: one(RULES).and_then(|id| id.parse().ok()),
        })
    }
}

/// The labels that members may report, by what a rendered commit says.
pub fn labels_of(trailers: &Trailers) -> LabelKeys {
    Basis::of_trailers(trailers).map(|basis| basis.limits.labels).unwrap_or_default()
}

/// The commit whose access rules a rendered commit was made under.
pub fn rules_of(trailers: &Trailers, source: CommitId) -> Option<CommitId> {
    Basis::of_trailers(trailers)?.rules_for(source)
}

fn all(trailers: &Trailers, name: &str) -> Vec<String> {
    trailers.others.iter().filter(|(found, _)| found == name).map(|(_, value)| value.clone()).collect()
}
