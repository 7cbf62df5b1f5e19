//! One cluster of the summary: its workloads, and the problems of its objects.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{FleetSummary, with_objects};
use crate::dialects::Placed;
use berth_base::model::status::Problem;
use berth_base::model::{Decision, Key, MemberState, MemberView, Pick};

/// A workload's copies in one cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlacedLine {
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub objects: usize,
    pub state: &'static str,
}

/// The state of a workload's copies in one cluster, with its inputs.
#[derive(Clone, Debug)]
pub struct CopyLine<'s> {
    pub pick: &'s Pick,
    pub state: CopyState,
    /// `None` for a cluster without a folder and a report.
    pub member: Option<MemberView<'s>>,
}

/// The state of a workload's copies in one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyState {
    InSync,
    /// Some copies may still become correct by themselves.
    Progressing,
    /// An object differs from its wanted form.
    WithProblems,
    /// The member has applied another folder than the published one, or is silent.
    NotApplied,
    /// Its turn in the rollout has not come.
    Waiting,
    /// The cluster's copy could not be made.
    Unmade,
}

impl CopyState {
    /// Returns the state of the copies in a cluster; `is_unmade`: the decision has a failure for it.
    pub(super) fn of(decision: &Decision, placed: &Placed<'_>, is_unmade: bool) -> CopyState {
        let Placed { member, waits, .. } = placed;
        let Some(member) = member else { return CopyState::NotApplied };
        // A member may have applied its whole folder without this workload, if the copy could not be made.
        if member.problem_of(&decision.objects).is_some() {
            CopyState::WithProblems
        } else if *waits {
            CopyState::Waiting
        } else if is_unmade {
            CopyState::Unmade
        } else if !member.has(&decision.objects) {
            CopyState::NotApplied
        } else if member.awaits(&decision.objects) {
            CopyState::Progressing
        } else {
            CopyState::InSync
        }
    }

    /// Returns the state in the words for a whole cluster, if there are such words.
    fn word(self) -> &'static str {
        match self {
            CopyState::InSync => MemberState::InSync.word(),
            CopyState::Progressing => MemberState::Progressing.word(),
            CopyState::WithProblems => MemberState::WithProblems.word(),
            CopyState::NotApplied => "not applied",
            CopyState::Waiting => "waits for its turn",
            CopyState::Unmade => "failed to render",
        }
    }
}

impl FleetSummary {
    /// Returns the workloads with objects that are placed on a cluster, by key.
    pub fn placed_on(&self, cluster: &str) -> Vec<PlacedLine> {
        let decisions = self.inputs.decisions.values().filter_map(|decision| with_objects(Some(decision)));
        decisions.filter_map(|decision| self.placed_line(decision, cluster)).collect()
    }

    fn placed_line(&self, decision: &Decision, cluster: &str) -> Option<PlacedLine> {
        let pick = decision.picks.iter().find(|pick| *pick.cluster == *cluster)?;
        let releases = self.inputs.releases.get(&decision.key);
        let view: Option<MemberView<'_>> = self.inputs.view(cluster);
        let waits = releases.is_some_and(|releases| releases.is_waiting(pick));
        let is_unmade = decision.failures.iter().any(|failure| failure.cluster == cluster);
        let placed = Placed { cluster, member: view.as_ref(), waits };
        let state = CopyState::of(decision, &placed, is_unmade);
        let key = &decision.key;
        Some(PlacedLine {
            kind: key.kind.to_string(),
            namespace: key.namespace.to_string(),
            name: key.name.to_string(),
            objects: decision.objects.len(),
            state: state.word(),
        })
    }

    /// Returns the state of a workload's copies in each of its clusters. Empty for a placement without objects.
    pub fn copies(&self, key: &Key) -> Vec<CopyLine<'_>> {
        let Some(decision) = with_objects(self.inputs.decisions.get(key)) else { return Vec::new() };
        let members = self.members(&decision.picks);
        let reported = self.reported(decision, &members);
        let unmade: BTreeSet<&str> = decision.failures.iter().map(|one| one.cluster.as_str()).collect();
        let state = |placed: &Placed<'_>| CopyState::of(decision, placed, unmade.contains(placed.cluster));
        let states: Vec<CopyState> = reported.placed.iter().map(state).collect();
        let copies = decision.picks.iter().zip(states).zip(members);
        copies.map(|((pick, state), member)| CopyLine { pick, state, member }).collect()
    }

    /// Returns the problems of objects on a cluster.
    pub fn problems_on(&self, cluster: &str) -> &[Problem] {
        self.inputs.view(cluster).map(|view| view.problems).unwrap_or_default()
    }
}
