//! A workload's releases, people's orders and its stages → the state of its rollout in a word, and the reason.

use berth_base::model::Timestamp;
use berth_base::model::release::Releases;
use berth_base::model::staged::Standing;
use berth_base::text::some_of;

use super::policy::Orders;

/// The state of a workload's rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RolloutState {
    Done,
    Rolling,
    /// Waits for the tasks of a stage.
    Waiting,
    /// Clusters of its stage have been unfinished for long.
    Stuck,
    Halted,
    TakenBack,
    /// Stopped by a pause or a freeze.
    Held,
    /// Its stages cannot be computed.
    Faulty,
    /// People stopped its run.
    Stopped,
}

impl RolloutState {
    pub const ALL: [RolloutState; 9] = [
        RolloutState::Done,
        RolloutState::Rolling,
        RolloutState::Waiting,
        RolloutState::Stuck,
        RolloutState::Halted,
        RolloutState::TakenBack,
        RolloutState::Held,
        RolloutState::Faulty,
        RolloutState::Stopped,
    ];

    pub fn word(self) -> &'static str {
        match self {
            RolloutState::Done => "done",
            RolloutState::Rolling => "rolling",
            RolloutState::Waiting => "waiting",
            RolloutState::Stuck => "stuck",
            RolloutState::Halted => "halted",
            RolloutState::TakenBack => "taken back",
            RolloutState::Held => "held",
            RolloutState::Faulty => "faulty",
            RolloutState::Stopped => "stopped",
        }
    }

    /// Returns the state at a moment, with its reason; the reason may be empty. Calls `orders` only for an
    /// unfinished rollout.
    pub fn of<'f>(
        releases: &Releases,
        orders: impl FnOnce() -> Orders<'f>,
        standing: Option<&Standing>,
        now: Timestamp,
    ) -> (RolloutState, String) {
        if releases.is_proven() && releases.assigned.is_empty() {
            return (RolloutState::Done, String::new());
        }
        let halted = releases.halted.as_ref().map(|halt| halt.reason.clone());
        if releases.taken_back {
            let aborted = orders().aborted(releases.current.number).map(|abort| abort.reason.clone());
            return (RolloutState::TakenBack, aborted.or(halted).unwrap_or_default());
        }
        if let Some(reason) = halted {
            return (RolloutState::Halted, reason);
        }
        if let Some(closed) = orders().closed(now) {
            return (RolloutState::Held, closed.reason);
        }
        match standing {
            Some(Standing::Waiting { gate }) => {
                let reason = format!("for the tasks {} the stage `{}`", gate.side.word(), gate.stage);
                (RolloutState::Waiting, reason)
            }
            Some(Standing::Faulty(faults)) => (RolloutState::Faulty, some_of(faults, 3)),
            Some(Standing::Stopping { .. } | Standing::Stopped) => (RolloutState::Stopped, String::new()),
            Some(Standing::Stuck { stage, clusters }) => {
                (RolloutState::Stuck, format!("{} in the stage `{stage}`", some_of(clusters, 3)))
            }
            Some(Standing::Going { stage }) => (RolloutState::Rolling, format!("stage `{stage}`")),
            _ => (RolloutState::Rolling, String::new()),
        }
    }
}
