//! `ClusterStatus` of `berth.dev/v1alpha1`: the stored form of members' statuses, and of the facts that
//! decisions read from them.
//!
//! The writer leaves out empty parts, and the reader treats absent parts as empty, so that older and newer
//! members understand each other.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use crate::diag::{Diagnostic, Severity};
use crate::model::cluster::{AddOnScore, WorkloadName, WorkloadReport};
use crate::model::release::{CopyReport, Health};
use crate::model::selector::Labels;
use crate::model::status::{Applied, Failing, Problem, ProblemKind, Suspension, TaintName};
use crate::model::{API_VERSION, ClusterStatus, ObjectId, Timestamp};
use crate::yaml::{self, Fields, Node, Scope};

/// Returns the text of a status.
pub fn write_status(status: &ClusterStatus) -> String {
    yaml::emit(&to_json(status))
}

/// Reads a status. Fields that a newer member added are ignored.
pub fn read_status(bytes: &[u8]) -> Result<ClusterStatus, String> {
    let scope = Scope::new(Arc::from("status"), Severity::Note);
    let root = yaml::read_stored(bytes)?;
    if root.get("kind").and_then(Node::as_str) != Some(KIND) {
        return Err(format!("its kind is not `{KIND}`"));
    }
    let status = from_node(&scope, &root);
    let found = scope.into_diagnostics();
    match (status, found.errors().next()) {
        (Some(status), None) => Ok(status),
        (_, fault) => Err(fault.map_or_else(|| "it names no cluster".to_owned(), said)),
    }
}

fn said(fault: &Diagnostic) -> String {
    match &fault.at {
        Some(at) if at.line > 0 => format!("line {}: {}", at.line, fault.message),
        _ => fault.message.clone(),
    }
}

/// The kind's name.
pub const KIND: &str = "ClusterStatus";

/// Returns the stored form of a status.
pub fn to_json(status: &ClusterStatus) -> Json {
    let mut root = Map::new();
    root.insert("apiVersion".to_owned(), json!(API_VERSION));
    root.insert("kind".to_owned(), json!(KIND));
    root.insert("metadata".to_owned(), json!({ "name": status.cluster }));
    for (key, labels) in
        [("labels", &status.labels), ("claims", &status.claims), ("properties", &status.properties)]
    {
        if !labels.is_empty() {
            root.insert(key.to_owned(), json!(labels));
        }
    }
    for (key, moment) in [("reported", status.reported), ("nextDue", status.next_due)] {
        if let Some(moment) = moment {
            root.insert(key.to_owned(), json!(moment.to_string()));
        }
    }
    if !status.scores.is_empty() {
        let mut scores: Vec<_> = status.scores.iter().collect();
        scores.sort_by_key(|((resource, _), score)| (resource, score.index));
        root.insert("scores".to_owned(), scores.into_iter().map(score_to_json).collect());
    }
    if !status.workloads.is_empty() {
        root.insert("workloads".to_owned(), status.workloads.iter().map(workload_to_json).collect());
    }
    if !status.copies.is_empty() {
        root.insert("copies".to_owned(), status.copies.iter().map(copy_to_json).collect());
    }
    for (key, moment) in [("silent", status.silent), ("frozen", status.frozen)] {
        if let Some(moment) = moment {
            root.insert(key.to_owned(), json!(moment.to_string()));
        }
    }
    if status.heard {
        root.insert("heard".to_owned(), json!(true));
    }
    if !status.taints.is_empty() {
        root.insert("taints".to_owned(), status.taints.iter().map(taint_to_json).collect());
    }
    if let Some(applied) = &status.applied {
        root.insert("applied".to_owned(), applied_to_json(applied));
    }
    Json::Object(root)
}

fn applied_to_json(applied: &Applied) -> Json {
    let mut form = json!({
        "sequence": applied.sequence,
        "tree": applied.tree,
        "objects": applied.objects,
    });
    for (key, list) in [("problems", &applied.problems), ("differences", &applied.differences)] {
        if !list.is_empty() {
            form[key] = list.iter().map(problem_to_json).collect();
        }
    }
    if !applied.notes.is_empty() {
        form["notes"] = applied.notes.iter().map(problem_to_json).collect();
    }
    if applied.left_out > 0 {
        form["leftOut"] = json!(applied.left_out);
    }
    if let Some(suspended) = &applied.suspended {
        form["suspended"] = json!({ "reason": suspended.reason });
        if let Some(until) = suspended.until {
            form["suspended"]["until"] = json!(until.to_string());
        }
    }
    if applied.progressing {
        form["progressing"] = json!(true);
    }
    if !applied.waiting.is_empty() {
        form["waiting"] = applied.waiting.iter().map(|id| Json::Object(object_to_json(id))).collect();
    }
    if !applied.removing.is_empty() {
        form["removing"] = applied.removing.iter().map(|id| Json::Object(object_to_json(id))).collect();
    }
    if applied.more_removing > 0 {
        form["moreRemoving"] = json!(applied.more_removing);
    }
    if let Some(failing) = &applied.failing {
        form["failing"] = json!({ "since": failing.since.to_string(), "message": failing.message });
    }
    form
}

fn score_to_json(((resource, name), score): (&(String, String), &AddOnScore)) -> Json {
    if name.is_empty() {
        return json!({ "resource": resource });
    }
    let mut form = json!({ "resource": resource, "name": name, "value": score.value });
    if let Some(until) = score.valid_until {
        form["validUntil"] = json!(until.to_string());
    }
    form
}

fn workload_to_json((name, report): (&WorkloadName, &WorkloadReport)) -> Json {
    let mut form = Map::new();
    let parts = [("kind", &name.kind), ("namespace", &name.namespace), ("name", &name.name)];
    for (key, text) in parts.into_iter().filter(|(_, text)| !text.is_empty()) {
        form.insert(key.to_owned(), json!(text));
    }
    if let Some(capacity) = report.capacity {
        form.insert("capacity".to_owned(), json!(capacity));
    }
    Json::Object(form)
}

fn copy_to_json((name, report): (&WorkloadName, &CopyReport)) -> Json {
    let mut form = Map::new();
    let digest = report.digest.to_string();
    let since = report.since.map(|since| since.to_string()).unwrap_or_default();
    let parts = [
        ("kind", name.kind.as_str()),
        ("namespace", &name.namespace),
        ("name", &name.name),
        ("digest", &digest),
        ("health", report.health.word()),
        ("since", &since),
        ("message", &report.message),
    ];
    for (key, text) in parts.into_iter().filter(|(_, text)| !text.is_empty()) {
        form.insert(key.to_owned(), json!(text));
    }
    Json::Object(form)
}

fn taint_to_json((name, since): (&TaintName, &Timestamp)) -> Json {
    let mut form = json!({ "key": name.key, "effect": name.effect, "since": since.to_string() });
    if !name.value.is_empty() {
        form["value"] = json!(name.value);
    }
    form
}

fn problem_to_json(problem: &Problem) -> Json {
    let mut form = object_to_json(&problem.object);
    if problem.kind != ProblemKind::default() {
        form.insert("problem".to_owned(), json!(problem.kind.word()));
    }
    if !problem.paths.is_empty() {
        form.insert("paths".to_owned(), json!(problem.paths));
    }
    if !problem.message.is_empty() {
        form.insert("message".to_owned(), json!(problem.message));
    }
    Json::Object(form)
}

fn object_to_json(id: &ObjectId) -> Map<String, Json> {
    let parts =
        [("group", &*id.group), ("kind", &*id.kind), ("namespace", &*id.namespace), ("name", &*id.name)];
    let parts = parts.into_iter().filter(|(_, text)| !text.is_empty());
    parts.map(|(key, text)| (key.to_owned(), json!(text))).collect()
}

/// Reads a status. `None` without a cluster's name; other faults are reported and skipped.
pub fn from_node(scope: &Scope, root: &Node) -> Option<ClusterStatus> {
    let mut fields = scope.fields(root, "")?;
    fields.accept(&["apiVersion", "kind", "resources"]);
    let cluster = name(&mut fields);
    let status = ClusterStatus {
        cluster: cluster.clone().unwrap_or_default(),
        reported: moment(&mut fields, "reported"),
        next_due: moment(&mut fields, "nextDue"),
        applied: fields.fields("applied").map(applied),
        labels: texts(&mut fields, "labels"),
        claims: texts(&mut fields, "claims"),
        properties: texts(&mut fields, "properties"),
        scores: fields.each("scores").into_iter().enumerate().filter_map(score).collect(),
        workloads: fields.each("workloads").into_iter().filter_map(workload).collect(),
        copies: fields.each("copies").into_iter().filter_map(copy).collect(),
        silent: moment(&mut fields, "silent"),
        frozen: moment(&mut fields, "frozen"),
        heard: fields.bool("heard").unwrap_or_default(),
        taints: fields.each("taints").into_iter().filter_map(taint).collect(),
    };
    fields.finish();
    cluster.map(|_| status)
}

fn name(fields: &mut Fields<'_>) -> Option<String> {
    // Other metadata from a server is ignored.
    fields.required_fields("metadata")?.required_str("name").map(str::to_owned)
}

fn texts(fields: &mut Fields<'_>, key: &'static str) -> Labels {
    fields.string_map(key).unwrap_or_default()
}

fn moment(fields: &mut Fields<'_>, key: &'static str) -> Option<Timestamp> {
    let text = fields.str(key)?;
    let moment = text.parse().ok();
    if moment.is_none() {
        let path = fields.path_of(key);
        fields.error_at(key, format!("{path} is `{text}`, but must be a time such as 2026-01-31T12:00:00Z"));
    }
    moment
}

fn applied(mut fields: Fields<'_>) -> Applied {
    let count = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok()).unwrap_or_default();
    let applied = Applied {
        sequence: count(fields.int_in("sequence", 0..=i64::MAX)),
        tree: fields.str("tree").unwrap_or_default().to_owned(),
        objects: usize::try_from(count(fields.int_in("objects", 0..=i64::MAX))).unwrap_or(usize::MAX),
        problems: fields.each("problems").into_iter().filter_map(problem).collect(),
        differences: fields.each("differences").into_iter().filter_map(problem).collect(),
        notes: fields.each("notes").into_iter().filter_map(problem).collect(),
        left_out: usize::try_from(count(fields.int_in("leftOut", 0..=i64::MAX))).unwrap_or(usize::MAX),
        suspended: fields.fields("suspended").map(suspension),
        progressing: fields.bool("progressing").unwrap_or_default(),
        waiting: fields.each("waiting").into_iter().filter_map(object).collect(),
        removing: fields.each("removing").into_iter().filter_map(object).collect(),
        more_removing: usize::try_from(count(fields.int_in("moreRemoving", 0..=i64::MAX)))
            .unwrap_or(usize::MAX),
        failing: fields.fields("failing").and_then(failing),
    };
    fields.finish();
    applied
}

fn suspension(mut fields: Fields<'_>) -> Suspension {
    let reason = fields.str("reason").unwrap_or_default().to_owned();
    let until = moment(&mut fields, "until");
    fields.finish();
    Suspension { reason, until }
}

fn failing(mut fields: Fields<'_>) -> Option<Failing> {
    let message = fields.str("message").unwrap_or_default().to_owned();
    let since = moment(&mut fields, "since");
    fields.finish();
    Some(Failing { since: since?, message })
}

fn score((index, mut fields): (usize, Fields<'_>)) -> Option<((String, String), AddOnScore)> {
    let resource = fields.required_str("resource");
    if fields.node("name").is_none() && fields.node("value").is_none() {
        fields.finish();
        return Some(((resource?.to_owned(), String::new()), AddOnScore::default()));
    }
    let name = fields.required_str("name");
    let value = fields.require("value").then(|| fields.int_in("value", -100..=100)).flatten();
    let valid_until = moment(&mut fields, "validUntil");
    fields.finish();
    Some(((resource?.to_owned(), name?.to_owned()), AddOnScore { value: value?, index, valid_until }))
}

fn workload(mut fields: Fields<'_>) -> Option<(WorkloadName, WorkloadReport)> {
    let namespace = fields.str("namespace").unwrap_or_default().to_owned();
    let (kind, name) = (fields.required_str("kind"), fields.required_str("name"));
    let capacity = fields.int_in("capacity", 0..=i64::MAX);
    fields.finish();
    let name = WorkloadName { kind: kind?.to_owned(), namespace, name: name?.to_owned() };
    Some((name, WorkloadReport { capacity }))
}

fn copy(mut fields: Fields<'_>) -> Option<(WorkloadName, CopyReport)> {
    let namespace = fields.str("namespace").unwrap_or_default().to_owned();
    let (kind, name) = (fields.required_str("kind"), fields.required_str("name"));
    let digest = fields.required_str("digest").and_then(|text| {
        let digest = text.parse().ok();
        if digest.is_none() {
            let path = fields.path_of("digest");
            fields.error_at("digest", format!("{path} is `{text}`, but must be 32 hexadecimal digits"));
        }
        digest
    });
    let health = fields.choice("health", &Health::WORDS).and_then(Health::of_word);
    let message = fields.str("message").unwrap_or_default().to_owned();
    let since = moment(&mut fields, "since");
    fields.finish();
    let name = WorkloadName { kind: kind?.to_owned(), namespace, name: name?.to_owned() };
    Some((name, CopyReport { digest: digest?, health: health?, since, message }))
}

fn taint(mut fields: Fields<'_>) -> Option<(TaintName, Timestamp)> {
    let (key, effect) = (fields.required_str("key"), fields.required_str("effect"));
    let value = fields.str("value").unwrap_or_default().to_owned();
    let since = moment(&mut fields, "since");
    fields.finish();
    Some((TaintName { key: key?.to_owned(), value, effect: effect?.to_owned() }, since?))
}

fn problem(mut fields: Fields<'_>) -> Option<Problem> {
    let message = fields.str("message").unwrap_or_default().to_owned();
    let kind = fields.str("problem").map(ProblemKind::of_word).unwrap_or_default();
    let paths = fields.strings("paths").unwrap_or_default().into_iter().map(str::to_owned).collect();
    Some(Problem { object: object(fields)?, kind, paths, message })
}

fn object(mut fields: Fields<'_>) -> Option<ObjectId> {
    let mut text = |key| fields.str(key).unwrap_or_default().to_owned();
    let (group, namespace) = (text("group"), text("namespace"));
    let (kind, name) = (fields.required_str("kind"), fields.required_str("name"));
    fields.finish();
    Some(ObjectId::new(&group, kind?, &namespace, name?))
}
