//! A plan as JSON. docs/results.md and `docs/schemas/plan.json` describe it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;

use super::PlanReport;
use crate::output::changes::{KeyForm, PlanForm};
use crate::output::held::{DeadlineForm, HeldForm};
use crate::output::results::DiagnosticForm;
use crate::process::exit::CommandError;
use berth_base::diag::Pos;
use berth_base::model::Key;
use berth_engine::causes::{How, InputChange, InputKind};
use berth_engine::consequences::field_changes::FieldChange;
use berth_engine::consequences::folded::{Consequence, Move, ObjectDetail, ReplicaMove, Section};
use berth_engine::consequences::risks::Risk;
use berth_engine::plan::Counts;

use super::reasons::Reasons;
use super::sections::{FindingForm, RolloutForm, TogetherForm};

/// A plan's report as JSON.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReportForm<'a> {
    #[serde(flatten)]
    pub(crate) plan: PlanForm<'a>,
    /// The counts of the first step, and of edits before the change.
    now: Option<Counts>,
    earlier: Counts,
    title: String,
    causes: Vec<CauseForm<'a>>,
    sections: Vec<SectionForm<'a>>,
    fleet: FleetForm,
    held: Vec<HeldForm<'a>>,
    policy_tests: Vec<FindingForm<'a>>,
    together: Option<TogetherForm<'a>>,
    rollouts: Vec<RolloutForm<'a>>,
    deadlines: Vec<DeadlineForm<'a>>,
    refused: Vec<RefusalForm<'a>>,
    diagnostics: Vec<DiagnosticForm<'a>>,
}

#[derive(Debug, Serialize)]
struct FleetForm {
    joined: Vec<Arc<str>>,
    left: Vec<Arc<str>>,
}

#[derive(Debug, Serialize)]
struct RefusalForm<'a> {
    message: &'a str,
    hint: Option<&'a str>,
}

impl<'a> ReportForm<'a> {
    pub(crate) fn of(report: &'a PlanReport<'_>, reasons: &'a Reasons) -> ReportForm<'a> {
        let is_held = |key: &Key| report.held.iter().any(|held| held.key == *key && !held.goes_on);
        let mut plan = PlanForm::of(report.wanted);
        plan.counts = report.published.counts();
        for (form, key) in plan.workloads.iter_mut().zip(report.wanted.workloads.keys()) {
            form.held = Some(is_held(key));
        }
        for (form, key) in plan.placements.iter_mut().zip(report.wanted.placements.keys()) {
            (form.held, form.reasons) = (Some(is_held(key)), Some(reasons.of_placement(key)));
        }
        let clusters = report.causes.of_fleet(report.fleet);
        let diagnostic = |one| {
            let mut form = DiagnosticForm::of(one);
            form.new = Some(!report.is_standing(one));
            form
        };
        ReportForm {
            plan,
            now: report.now.map(|now| now.counts()),
            earlier: report.earlier.counts(),
            title: report.title(),
            causes: report.causes.inputs.iter().enumerate().map(CauseForm::of).collect(),
            sections: report.folded.sections.iter().map(SectionForm::of).collect(),
            fleet: FleetForm { joined: clusters.gained, left: clusters.lost },
            held: report.held.iter().map(HeldForm::of).collect(),
            policy_tests: FindingForm::all(report.policy),
            together: report.together.map(TogetherForm::of),
            rollouts: report.rollouts.iter().map(RolloutForm::of).collect(),
            deadlines: report.deadlines.iter().map(DeadlineForm::of).collect(),
            refused: report.refused.iter().map(RefusalForm::of).collect(),
            diagnostics: report.diagnostics.iter().map(diagnostic).collect(),
        }
    }
}

impl<'a> RefusalForm<'a> {
    fn of(refusal: &'a CommandError) -> RefusalForm<'a> {
        RefusalForm { message: &refusal.message, hint: refusal.hint.as_deref() }
    }
}

#[derive(Debug, Serialize)]
struct CauseForm<'a> {
    id: usize,
    kind: &'static str,
    cluster: Option<&'a str>,
    at: Option<PlaceForm<'a>>,
    words: &'a str,
}

impl<'a> CauseForm<'a> {
    fn of((id, input): (usize, &'a InputChange)) -> CauseForm<'a> {
        let (kind, cluster) = match &input.kind {
            InputKind::Edit => ("edit", None),
            InputKind::Report { cluster } => ("report", Some(cluster.as_str())),
            InputKind::Time => ("time", None),
        };
        CauseForm { id, kind, cluster, at: input.at.as_ref().map(PlaceForm::of), words: &input.words }
    }
}

#[derive(Debug, Serialize)]
struct PlaceForm<'a> {
    file: &'a str,
    line: Option<u32>,
    column: Option<u32>,
}

impl<'a> PlaceForm<'a> {
    fn of(at: &'a Pos) -> PlaceForm<'a> {
        let number = |number: u32| (number > 0).then_some(number);
        PlaceForm { file: &at.file, line: number(at.line), column: number(at.column) }
    }
}

#[derive(Debug, Serialize)]
struct SectionForm<'a> {
    how: Option<How>,
    causes: &'a BTreeSet<usize>,
    consequences: Vec<ConsequenceForm<'a>>,
    replicas: Vec<ReplicaMoveForm<'a>>,
    risks: Vec<RiskForm<'a>>,
}

impl<'a> SectionForm<'a> {
    fn of(section: &'a Section) -> SectionForm<'a> {
        SectionForm {
            how: section.how,
            causes: &section.inputs,
            consequences: section.consequences.iter().map(ConsequenceForm::of).collect(),
            replicas: section.replicas.iter().map(ReplicaMoveForm::of).collect(),
            risks: section.risks.iter().map(RiskForm::of).collect(),
        }
    }
}

#[derive(Debug, Serialize)]
struct ConsequenceForm<'a> {
    #[serde(rename = "move")]
    move_: Move,
    held: bool,
    orphaned: bool,
    copies: Counts,
    places: Vec<PlacesForm<'a>>,
    reasons: Vec<ReasonForm<'a>>,
    objects: Vec<ObjectForm<'a>>,
}

#[derive(Debug, Serialize)]
struct PlacesForm<'a> {
    workloads: Vec<KeyForm<'a>>,
    clusters: &'a [String],
}

#[derive(Debug, Serialize)]
struct ReasonForm<'a> {
    reason: &'a str,
    clusters: usize,
}

#[derive(Debug, Serialize)]
struct ObjectForm<'a> {
    change: &'static str,
    kind: &'a str,
    object: Option<String>,
    fields: Option<&'a [FieldChange]>,
}

impl<'a> ConsequenceForm<'a> {
    fn of(one: &'a Consequence) -> ConsequenceForm<'a> {
        let places = |(keys, clusters): &'a (Vec<Key>, Vec<String>)| PlacesForm {
            workloads: keys.iter().map(KeyForm::of).collect(),
            clusters,
        };
        let reason = |(reason, clusters): &'a (String, usize)| ReasonForm { reason, clusters: *clusters };
        ConsequenceForm {
            move_: one.move_,
            held: one.is_held,
            orphaned: one.is_orphaning,
            copies: one.copies,
            places: one.places.iter().map(places).collect(),
            reasons: one.reasons.iter().map(reason).collect(),
            objects: one.objects.iter().map(ObjectForm::of).collect(),
        }
    }
}

impl<'a> ObjectForm<'a> {
    fn of(detail: &'a ObjectDetail) -> ObjectForm<'a> {
        ObjectForm {
            change: detail.change.word(),
            kind: &detail.kind,
            object: detail.object.as_ref().map(ToString::to_string),
            fields: detail.fields.as_deref(),
        }
    }
}

#[derive(Debug, Serialize)]
struct ReplicaMoveForm<'a> {
    #[serde(flatten)]
    key: KeyForm<'a>,
    held: bool,
    before: i64,
    after: i64,
    clusters: Vec<ClusterReplicas<'a>>,
}

#[derive(Debug, Serialize)]
struct ClusterReplicas<'a> {
    cluster: &'a str,
    before: Option<i64>,
    after: Option<i64>,
}

impl<'a> ReplicaMoveForm<'a> {
    fn of(moved: &'a ReplicaMove) -> ReplicaMoveForm<'a> {
        let clusters = moved.clusters.iter();
        let clusters = clusters.map(|(cluster, before, after)| ClusterReplicas {
            cluster,
            before: *before,
            after: *after,
        });
        ReplicaMoveForm {
            key: KeyForm::of(&moved.key),
            held: moved.is_held,
            before: moved.before,
            after: moved.after,
            clusters: clusters.collect(),
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(tag = "risk", rename_all = "camelCase")]
enum RiskForm<'a> {
    TakesAlong { object: String },
    LastCopy { workload: KeyForm<'a> },
    LeavesData { workload: KeyForm<'a>, object: String },
    ImmutableField { object: String, field: &'a str },
    SecretKeys { object: String, keys: &'a BTreeSet<String> },
    EmptiesClusters { clusters: &'a BTreeSet<String> },
    LargeShare { clusters: usize, of: usize },
}

impl<'a> RiskForm<'a> {
    fn of(risk: &'a Risk) -> RiskForm<'a> {
        match risk {
            Risk::TakesAlong { object } => RiskForm::TakesAlong { object: object.to_string() },
            Risk::LastCopy { key } => RiskForm::LastCopy { workload: KeyForm::of(key) },
            Risk::LeavesData { key, object } => {
                RiskForm::LeavesData { workload: KeyForm::of(key), object: object.to_string() }
            }
            Risk::Immutable { object, field } => {
                RiskForm::ImmutableField { object: object.to_string(), field }
            }
            Risk::SecretKeys { object, keys } => RiskForm::SecretKeys { object: object.to_string(), keys },
            Risk::Emptied { clusters } => RiskForm::EmptiesClusters { clusters },
            Risk::Share { clusters, of } => RiskForm::LargeShare { clusters: *clusters, of: *of },
        }
    }
}
