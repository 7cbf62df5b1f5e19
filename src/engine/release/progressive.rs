//! Waves of clusters or decision groups, as OCM's rollout strategies have them.

use super::turn::{Has, Step, Turn};
use berth_base::model::Timestamp;
use berth_base::model::rollout::Rollout;

/// Says who may go on now. `turns` ascend by name, and hold the picked clusters of one placement.
pub fn step<'a>(_rollout: &Rollout, turns: &[Turn<'a>], _now: Timestamp) -> Step<'a> {
    let new = turns.iter().filter(|turn| turn.picked && turn.has != Has::New);
    Step { give: new.map(|turn| turn.cluster).collect(), ..Step::default() }
}
