//! A staged update run → its rollout.

use berth_base::diag::{Diagnostic, Pos};
use berth_base::model::Key;
use berth_base::model::staged::{Run, RunState};
use berth_base::yaml::fields::Fields;

use super::{LONGEST_PLACEMENT, beside};

pub(super) fn read(spec: &mut Fields<'_>, key: &Key, origin: Pos) -> Option<Run> {
    let placement = spec.required_str("placementName");
    if placement.is_some_and(|name| name.len() > LONGEST_PLACEMENT) {
        let message = format!(
            "{} must not be longer than {LONGEST_PLACEMENT} characters",
            spec.path_of("placementName")
        );
        spec.error_at("placementName", message);
    }
    let workload_at = spec.scope().pos(spec.place_of("placementName"));
    let strategy = spec.required_str("stagedRolloutStrategyName");
    let strategy_at = spec.scope().pos(spec.place_of("stagedRolloutStrategyName"));
    let release = release(spec);
    let state = match spec.choice("state", &["Initialize", "Run", "Stop"]) {
        Some("Run") => RunState::Run,
        Some("Stop") => RunState::Stop,
        _ => RunState::Initialize,
    };
    Some(Run {
        key: key.clone(),
        origin,
        workload: beside(key, "ClusterResourcePlacement", "ResourcePlacement", placement?),
        workload_at,
        strategy: beside(key, "ClusterStagedUpdateStrategy", "StagedUpdateStrategy", strategy?),
        strategy_at,
        release,
        state,
    })
}

/// Reads the number of the content to roll out; an empty text means the newest.
fn release(spec: &mut Fields<'_>) -> Option<u64> {
    let text = spec.str("resourceSnapshotIndex").filter(|text| !text.is_empty())?;
    let number = text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
    if number.is_none() {
        let path = spec.path_of("resourceSnapshotIndex");
        let message = format!("{path} is `{text}`, but must be a whole number from 0, in quotes");
        let at = spec.scope().pos(spec.place_of("resourceSnapshotIndex"));
        let hint = "name a release by its number, or leave the field out to roll out the newest content";
        spec.scope().report(Diagnostic::error(at, message).hint(hint));
    }
    number
}
