//! The results that programs read. Each has a version and a kind, and a schema in `docs/schemas`.

use serde_json::{Value as Json, json};

use berth_base::model::API_VERSION;

/// The kind of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultKind {
    ArtifactProof,
    DecisionList,
    DescriptionList,
    Diagnosis,
    DisableResult,
    ExplanationList,
    FileList,
    FleetStatus,
    ImportResult,
    MarkResult,
    MergeConflict,
    OrphanResult,
    Plan,
    PolicyTestResult,
    ProofList,
    RolloutForecast,
    RolloutList,
    RolloutOrder,
    StageList,
    StateDifference,
    SyncPlan,
    UnjoinResult,
    Validation,
}

impl ResultKind {
    /// Returns a form with its version and kind.
    pub fn of(self, mut form: Json) -> Json {
        form["apiVersion"] = json!(API_VERSION);
        form["kind"] = json!(format!("{self:?}"));
        form
    }
}
