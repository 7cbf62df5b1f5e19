//! An approval request → a person's answer in its status.

use berth_base::diag::{Diagnostic, Pos};
use berth_base::meta::Metadata;
use berth_base::model::Key;
use berth_base::model::staged::{Side, StageApproval, StageGate};
use berth_base::yaml::fields::Fields;
use berth_base::yaml::node::{Node, Value};

use super::beside;

/// The conditions that mean approval; one of them must be True.
const APPROVED: [&str; 2] = ["Approved", "ApprovalAccepted"];

pub(super) fn read(
    spec: &mut Fields<'_>,
    status: Option<&Node>,
    metadata: &Metadata,
    (key, origin): (&Key, Pos),
) -> Option<StageApproval> {
    let run = spec.required_str("parentStageRollout");
    let stage = spec.required_str("targetStage");
    let (run, stage) = (run?, stage?);
    let names = [("before", Side::Before), ("after", Side::After)];
    let side = names.iter().find(|(word, _)| metadata.name == format!("{run}-{word}-{stage}"));
    let Some((_, side)) = side else {
        let message = format!(
            "metadata.name is `{}`, but must be `{run}-before-{stage}` or `{run}-after-{stage}`",
            metadata.name
        );
        let at = spec.scope().pos(metadata.name_at);
        let hint = "the name says whether the approval is for the beginning or the end of the stage";
        spec.scope().report(Diagnostic::error(at, message).hint(hint));
        return None;
    };
    Some(StageApproval {
        key: key.clone(),
        origin,
        run: beside(key, "ClusterStagedUpdateRun", "StagedUpdateRun", run),
        gate: StageGate { stage: stage.to_owned(), side: *side },
        approved: status.is_some_and(is_approved),
    })
}

fn is_approved(status: &Node) -> bool {
    let Some(Value::List(conditions)) = status.get("conditions").map(|node| &node.value) else {
        return false;
    };
    conditions.iter().any(|condition| {
        let text = |key: &str| condition.get(key).and_then(Node::as_str).unwrap_or_default();
        APPROVED.contains(&text("type")) && text("status") == "True"
    })
}
