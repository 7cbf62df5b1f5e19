//! Machine-readable results, and the formats to choose from. Each result has a version, a kind and a schema in
//! `docs/schemas`.

use std::fmt::Display;

use serde::{Serialize, Serializer};
use serde_json::Value as Json;

use super::ui::Ui;
use berth_base::diag::{Diagnostic, Diagnostics};
use berth_base::edit::Found;
use berth_base::model::{API_VERSION, Fleet, Key};
use berth_engine::plan::{Mention, mentions};

/// The kind of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultKind {
    ArtifactProof,
    ChartValues,
    DecisionList,
    DescriptionList,
    Diagnosis,
    DisableResult,
    ExplanationList,
    FileList,
    FleetStatus,
    History,
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
    Simulation,
    StageList,
    StateDifference,
    SyncPlan,
    UnjoinResult,
    Validation,
    Why,
}

impl ResultKind {
    /// Returns a report with its version and kind.
    pub fn of(self, report: &impl Serialize) -> Json {
        let mut form = serde_json::to_value(report).expect("its keys are texts");
        form["apiVersion"] = API_VERSION.into();
        form["kind"] = format!("{self:?}").into();
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
    /// Prints a result for programs.
    pub fn write(self, kind: ResultKind, data: &impl Serialize, ui: &Ui) {
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

/// An object that names a cluster, for programs.
#[derive(Debug, Serialize)]
pub(crate) struct MentionForm {
    #[serde(flatten)]
    by: NameForm,
    #[serde(rename = "in")]
    how: String,
    file: String,
    line: u32,
}

impl MentionForm {
    /// Lists the objects that name a cluster.
    pub(crate) fn all(fleet: &Fleet, cluster: &str) -> Vec<MentionForm> {
        let one = |mention: Mention| MentionForm {
            by: NameForm::of(&mention.by),
            how: mention.how.to_string(),
            file: mention.at.file.to_string(),
            line: mention.at.line,
        };
        mentions(fleet, cluster).into_iter().map(one).collect()
    }
}

/// The kind and the name of an object, for programs.
#[derive(Debug, Serialize)]
pub(crate) struct NameForm {
    kind: String,
    namespace: String,
    name: String,
}

impl NameForm {
    /// Returns the kind and the name of a document.
    pub(crate) fn found(found: &Found) -> NameForm {
        let Found { kind, namespace, name, .. } = found;
        NameForm { kind: kind.to_string(), namespace: namespace.to_string(), name: name.to_string() }
    }

    pub(crate) fn of(key: &Key) -> NameForm {
        let Key { kind, namespace, name, .. } = key;
        NameForm { kind: kind.to_string(), namespace: namespace.to_string(), name: name.to_string() }
    }
}

/// Serializes a value as people see it.
pub(crate) fn as_text<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// Serializes a value that may be missing as people see it.
pub(crate) fn as_text_or_null<T: Display, S: Serializer>(
    value: &Option<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    value.as_ref().map(ToString::to_string).serialize(serializer)
}
