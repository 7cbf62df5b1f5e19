//! Machine-readable results, and the formats to choose from. Each result has a version, a kind and a schema in
//! `docs/schemas`.

use serde::Serialize;
use serde_json::{Value as Json, json};

use super::ui::Ui;
use berth_base::diag::{Diagnostic, Diagnostics};
use berth_base::model::{API_VERSION, Fleet};
use berth_engine::plan::{Mention, mentions};

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
    /// Returns a report of this kind, with more fields.
    pub fn of_report(self, report: &impl Serialize, more: Json) -> Json {
        let mut form = serde_json::to_value(report).expect("its keys are texts");
        if let (Some(form), Json::Object(more)) = (form.as_object_mut(), more) {
            form.extend(more);
        }
        self.of(form)
    }

    /// Adds version and kind to a form.
    pub fn of(self, mut form: Json) -> Json {
        form["apiVersion"] = json!(API_VERSION);
        form["kind"] = json!(format!("{self:?}"));
        form
    }
}

/// The output format of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people
    #[value(alias = "table")]
    Text,
    Json,
    Yaml,
}

impl Format {
    /// Prints a machine-readable result.
    pub fn write(self, kind: ResultKind, data: Json, ui: &Ui) {
        let data = kind.of(data);
        if self == Format::Yaml { ui.yaml(&data) } else { ui.json(&data) }
    }
}

/// The output format of documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DocumentFormat {
    Yaml,
    Json,
}

/// A diagnostic as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct DiagnosticForm<'a> {
    severity: &'static str,
    file: Option<&'a str>,
    line: Option<u32>,
    column: Option<u32>,
    message: &'a str,
    hint: Option<&'a str>,
    /// True if it did not exist before the change. Only in reports of plans.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) new: Option<bool>,
}

impl<'a> DiagnosticForm<'a> {
    pub(crate) fn of(diagnostic: &'a Diagnostic) -> DiagnosticForm<'a> {
        let at = diagnostic.at.as_ref();
        DiagnosticForm {
            severity: diagnostic.severity.word(),
            file: at.map(|at| &*at.file),
            line: at.map(|at| at.line).filter(|line| *line > 0),
            column: at.map(|at| at.column).filter(|column| *column > 0),
            message: &diagnostic.message,
            hint: diagnostic.hint.as_deref(),
            new: None,
        }
    }

    pub(crate) fn all(diagnostics: &'a Diagnostics) -> Vec<DiagnosticForm<'a>> {
        diagnostics.iter().map(DiagnosticForm::of).collect()
    }
}

/// Lists the objects that name a cluster.
pub(crate) fn mentions_text(fleet: &Fleet, cluster: &str) -> String {
    let lines = mentions(fleet, cluster);
    lines.iter().map(|one| format!("  {}: {} ({})\n", one.at, one.by, one.how)).collect()
}

/// Returns the objects that name a cluster as JSON.
pub(crate) fn mentions_json(fleet: &Fleet, cluster: &str) -> Json {
    let one = |mention: Mention| {
        json!({
            "kind": &*mention.by.kind, "namespace": &*mention.by.namespace, "name": &*mention.by.name,
            "in": mention.how, "file": &*mention.at.file, "line": mention.at.line,
        })
    };
    mentions(fleet, cluster).into_iter().map(one).collect()
}
