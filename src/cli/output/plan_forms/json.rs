//! A plan for programs. `docs/schemas/plan.json` describes it, as docs/results.md says.

use serde_json::{Value as Json, json};

use super::PlanReport;
use crate::output::changes::{counts_json, plan_json};
use crate::output::held::{deadlines_json, held_json};
use crate::output::results::diagnostics_json;
use crate::process::exit::CommandError;
use berth_base::diag::Pos;
use berth_base::model::Key;
use berth_engine::causes::{How, InputChange, InputKind};
use berth_engine::consequences::folded::{Consequence, Move, ObjectDetail, ReplicaMove, Section};
use berth_engine::consequences::risks::Risk;

use super::branches::together_json;
use super::policy::policy_json;
use super::reasons::Reasons;
use super::rollouts::rollouts_json;

/// The whole report as JSON.
pub(crate) fn report_json(report: &PlanReport<'_>, reasons: &Reasons) -> Json {
    let mut form = plan_json(report.wanted);
    form["counts"] = counts_json(report.published.counts());
    form["now"] = report.now.map_or(Json::Null, |now| counts_json(now.counts()));
    form["earlier"] = counts_json(report.earlier.counts());
    let is_held = |key: &Key| report.held.iter().any(|held| held.key == *key && !held.goes_on);
    mark(&mut form["workloads"], report.wanted.workloads.keys(), |workload, key| {
        workload["held"] = json!(is_held(key));
    });
    mark(&mut form["placements"], report.wanted.placements.keys(), |placement, key| {
        placement["held"] = json!(is_held(key));
        placement["reasons"] = json!(reasons.of_placement(key));
    });
    form["title"] = json!(report.title());
    form["causes"] = report.causes.inputs.iter().enumerate().map(|(id, input)| cause(id, input)).collect();
    form["sections"] = report.folded.sections.iter().map(section_json).collect();
    let clusters = report.causes.of_fleet(report.fleet);
    form["fleet"] = json!({"joined": clusters.gained, "left": clusters.lost});
    form["held"] = held_json(report.held);
    form["policyTests"] = policy_json(report.policy);
    form["together"] = report.together.map_or(Json::Null, together_json);
    form["rollouts"] = rollouts_json(report.rollouts);
    form["deadlines"] = deadlines_json(report.deadlines);
    form["refused"] = refusals_json(report.refused);
    form["diagnostics"] = diagnostics_json(report.diagnostics)["diagnostics"].take();
    let items = form["diagnostics"].as_array_mut().into_iter().flatten();
    for (item, diagnostic) in items.zip(report.diagnostics.iter()) {
        item["new"] = json!(!report.is_standing(diagnostic));
    }
    form
}

/// Adds to each item of a list that stands in the order of its keys.
fn mark<'k>(list: &mut Json, keys: impl Iterator<Item = &'k Key>, add: impl Fn(&mut Json, &Key)) {
    for (item, key) in list.as_array_mut().into_iter().flatten().zip(keys) {
        add(item, key);
    }
}

fn cause(id: usize, input: &InputChange) -> Json {
    let (kind, cluster) = match &input.kind {
        InputKind::Edit => ("edit", None),
        InputKind::Report { cluster } => ("report", Some(cluster)),
        InputKind::Time => ("time", None),
    };
    json!({"id": id, "kind": kind, "cluster": cluster, "at": input.at.as_ref().map(place), "words": input.words})
}

fn place(at: &Pos) -> Json {
    let number = |number: u32| (number > 0).then_some(number);
    json!({"file": &*at.file, "line": number(at.line), "column": number(at.column)})
}

fn key_json(key: &Key) -> Json {
    json!({"kind": &*key.kind, "namespace": &*key.namespace, "name": &*key.name})
}

fn section_json(section: &Section) -> Json {
    let how = section.how.map(|how| match how {
        How::Alone => "alone",
        How::Together => "together",
        How::Parts => "parts",
        How::Each => "each",
        How::Earlier => "earlier",
        How::Imported => "imported",
        How::Untraced => "untraced",
    });
    json!({
        "how": how,
        "causes": section.inputs,
        "consequences": section.consequences.iter().map(consequence).collect::<Vec<_>>(),
        "replicas": section.replicas.iter().map(replicas).collect::<Vec<_>>(),
        "risks": section.risks.iter().map(risk).collect::<Vec<_>>(),
    })
}

fn consequence(one: &Consequence) -> Json {
    let move_ = match one.move_ {
        Move::Leaves => "leaves",
        Move::Changes => "changes",
        Move::Joins => "joins",
    };
    json!({
        "move": move_,
        "held": one.is_held,
        "orphaned": one.is_orphaning,
        "copies": counts_json(one.copies),
        "places": one.places.iter().map(|(keys, clusters)| json!({
            "workloads": keys.iter().map(key_json).collect::<Vec<_>>(), "clusters": clusters,
        })).collect::<Vec<_>>(),
        "reasons": one.reasons.iter().map(|(reason, clusters)| json!({"reason": reason, "clusters": clusters})).collect::<Vec<_>>(),
        "objects": one.objects.iter().map(object).collect::<Vec<_>>(),
    })
}

fn object(detail: &ObjectDetail) -> Json {
    let fields = detail.fields.as_ref().map(|fields| {
        let one =
            fields.iter().map(|one| json!({"path": one.path, "before": one.before, "after": one.after}));
        one.collect::<Vec<_>>()
    });
    json!({
        "change": detail.change.word(),
        "kind": &*detail.kind,
        "object": detail.object.as_ref().map(ToString::to_string),
        "fields": fields,
    })
}

fn replicas(moved: &ReplicaMove) -> Json {
    let mut form = key_json(&moved.key);
    form["held"] = json!(moved.is_held);
    form["before"] = json!(moved.before);
    form["after"] = json!(moved.after);
    let clusters = moved.clusters.iter();
    form["clusters"] = clusters
        .map(|(cluster, before, after)| json!({"cluster": cluster, "before": before, "after": after}))
        .collect();
    form
}

fn risk(risk: &Risk) -> Json {
    match risk {
        Risk::TakesAlong { object } => json!({"risk": "takesAlong", "object": object.to_string()}),
        Risk::LastCopy { key } => json!({"risk": "lastCopy", "workload": key_json(key)}),
        Risk::LeavesData { key, object } => {
            json!({"risk": "leavesData", "workload": key_json(key), "object": object.to_string()})
        }
        Risk::Immutable { object, field } => {
            json!({"risk": "immutableField", "object": object.to_string(), "field": field})
        }
        Risk::SecretKeys { object, keys } => {
            json!({"risk": "secretKeys", "object": object.to_string(), "keys": keys})
        }
        Risk::Emptied { clusters } => json!({"risk": "emptiesClusters", "clusters": clusters}),
        Risk::Share { clusters, of } => json!({"risk": "largeShare", "clusters": clusters, "of": of}),
    }
}

/// Returns the refusals as JSON.
fn refusals_json(refusals: &[CommandError]) -> Json {
    let one = |refusal: &CommandError| json!({"message": refusal.message, "hint": refusal.hint});
    refusals.iter().map(one).collect()
}
