//! Budgets of unavailable and surplus copies, as KubeFleet's RollingUpdate has them.

use super::turn::{Has, Step, Turn};
use berth_base::model::Timestamp;
use berth_base::model::rollout::Rolling;

/// Says who may go on now. `turns` ascend by name.
pub fn step<'a>(_rolling: &Rolling, turns: &[Turn<'a>], _now: Timestamp) -> Step<'a> {
    let new = turns.iter().filter(|turn| turn.picked && turn.has != Has::New);
    let gone = turns.iter().filter(|turn| !turn.picked);
    Step {
        give: new.map(|turn| turn.cluster).collect(),
        remove: gone.map(|turn| turn.cluster).collect(),
        ..Step::default()
    }
}
