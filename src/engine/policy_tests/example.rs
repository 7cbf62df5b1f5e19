//! Examples of a policy test: a given fleet before and after a change, and the expected verdict.
//!
//! A fleet is given in the form that rules see, or as a folder of the repository with a fleet's own
//! documents.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use super::findings::{Item, PolicyFinding, judge};
use super::policy_test::PolicyTest;
use super::view::Side;
use berth_base::diag::{Diagnostics, Pos};
use berth_base::model::cluster::{Cluster, Effect, Taint};
use berth_base::model::{Decision, Fleet, Key, Map, Object, ObjectId, Pick, PickDetails, Template, Workload};
use berth_base::packed::Packed;
use berth_base::yaml::node::Value;
use berth_base::yaml::{Fields, Form, Node, Scope};

/// An example with its expected verdict.
#[derive(Debug)]
pub struct Example {
    pub name: String,
    pub at: Pos,
    /// The fleet after the change.
    pub after: Given,
    /// The fleet before the change; the same fleet if none is given.
    pub before: Option<Given>,
    fails: Vec<Expected>,
}

/// The fleet of an example.
#[derive(Debug)]
pub enum Given {
    Fleet(Box<GivenFleet>),
    /// A folder of the repository, with its place in the example.
    Folder(String, Pos),
}

/// A fleet with its decisions.
#[derive(Clone, Debug, Default)]
pub struct GivenFleet {
    pub fleet: Fleet,
    pub decisions: Map<Key, Decision>,
}

/// An expected failure.
#[derive(Debug)]
struct Expected {
    /// The item, as a finding names it; `None` for the only item.
    item: Option<String>,
    message: Option<String>,
    at: Pos,
}

/// An expectation that a test did not meet, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    pub at: Pos,
    pub message: String,
}

/// The outcome of an example: without a mismatch, the test works as expected.
#[derive(Debug)]
pub struct ExampleVerdict<'t> {
    pub example: &'t Example,
    pub mismatches: Vec<Mismatch>,
}

/// Runs the examples of a test. `read` reads a folder of the repository as a fleet.
pub fn check<'t>(
    test: &'t Arc<PolicyTest>,
    read: &dyn Fn(&str) -> Result<GivenFleet, Diagnostics>,
) -> Vec<ExampleVerdict<'t>> {
    let one = |example: &'t Example| {
        let mismatches =
            match (example.after.resolve(read), example.before.as_ref().map(|one| one.resolve(read))) {
                (Err(fault), _) | (_, Some(Err(fault))) => vec![fault],
                (Ok(after), before) => {
                    let before = match before {
                        Some(Ok(before)) => before,
                        _ => after.clone(),
                    };
                    example.mismatches(&judge([test], &before.side(), &after.side()))
                }
            };
        ExampleVerdict { example, mismatches }
    };
    test.examples.iter().map(one).collect()
}

impl Example {
    fn mismatches(&self, found: &[PolicyFinding]) -> Vec<Mismatch> {
        let mut missing: Vec<&PolicyFinding> = found.iter().collect();
        let mut mismatches = Vec::new();
        for expected in &self.fails {
            let place = missing.iter().position(|finding| expected.names(&finding.item));
            let message = match (place.map(|place| missing.remove(place)), &expected.message) {
                (None, _) => match &expected.item {
                    Some(item) => format!("`{item}` must fail, but passes"),
                    None => "the test must fail, but passes".to_owned(),
                },
                (Some(finding), Some(wanted)) if finding.message != *wanted => {
                    format!("the message is `{}`, not `{wanted}`", finding.message)
                }
                _ => continue,
            };
            mismatches.push(Mismatch { at: expected.at.clone(), message });
        }
        mismatches.extend(missing.into_iter().map(|finding| Mismatch {
            at: self.at.clone(),
            message: format!("{} must pass, but fails: {}", finding.item, finding.message),
        }));
        mismatches
    }
}

impl Expected {
    /// Reports whether this item is meant: by its whole name, or by its last word.
    fn names(&self, item: &Item) -> bool {
        let Some(wanted) = &self.item else { return true };
        let all = item.to_string();
        *wanted == all || all.rsplit(' ').next() == Some(wanted)
    }
}

impl Given {
    fn resolve(
        &self,
        read: &dyn Fn(&str) -> Result<GivenFleet, Diagnostics>,
    ) -> Result<Cow<'_, GivenFleet>, Mismatch> {
        match self {
            Given::Fleet(fleet) => Ok(Cow::Borrowed(fleet)),
            Given::Folder(folder, at) => read(folder).map(Cow::Owned).map_err(|faults| {
                let first = faults.errors().next().map(ToString::to_string).unwrap_or_default();
                Mismatch { at: at.clone(), message: format!("the folder `{folder}` has a fault: {first}") }
            }),
        }
    }
}

impl GivenFleet {
    fn side(&self) -> Side<'_> {
        let clusters = self.fleet.clusters.values().map(|cluster| Cow::Borrowed(&**cluster)).collect();
        Side::new(clusters, &self.fleet, &self.decisions)
    }
}

/// Reads one example and reports its faults.
pub(super) fn read(scope: &Scope, mut fields: Fields<'_>) -> Option<Example> {
    let at = scope.pos(fields.at());
    let name = fields.required_str("name").map(str::to_owned);
    fields.require("after");
    let [after, before] = ["after", "before"].map(|key| {
        let path = fields.path_of(key);
        [Form::Mapping, Form::Text].into_iter().for_each(|form| fields.takes(key, form));
        let node = fields.node(key)?;
        match &node.value {
            Value::String(folder) => Some(Given::Folder(folder.clone(), scope.pos(node.at))),
            _ => given(scope, node, &path).map(|fleet| Given::Fleet(fleet.into())),
        }
    });
    let fails = fields.each("fails").into_iter().map(|mut fields| {
        let [item, message] = ["item", "message"].map(|key| fields.str(key).map(str::to_owned));
        let at = scope.pos(fields.at());
        fields.finish();
        Expected { item, message, at }
    });
    let fails = fails.collect();
    fields.finish();
    Some(Example { name: name?, at, after: after?, before, fails })
}

fn given(scope: &Scope, node: &Node, path: &str) -> Option<GivenFleet> {
    let mut fields = scope.fields(node, path)?;
    let mut given = GivenFleet::default();
    for mut fields in fields.each("clusters") {
        let cluster = cluster(&mut fields);
        fields.finish();
        if let Some(cluster) = cluster {
            given.fleet.clusters.insert(cluster.name.to_string(), cluster.into());
        }
    }
    let names: BTreeSet<String> = given.fleet.clusters.keys().cloned().collect();
    for mut fields in fields.each("workloads") {
        workload(scope, &mut fields, &names, &mut given);
        fields.finish();
    }
    fields.finish();
    Some(given)
}

fn cluster(fields: &mut Fields<'_>) -> Option<Cluster> {
    let name = fields.required_str("name").map(str::to_owned);
    let [labels, claims, properties] =
        ["labels", "claims", "properties"].map(|key| fields.string_map(key).unwrap_or_default());
    let taints = fields.each("taints").into_iter().map(|mut fields| {
        let [key, value, effect_word] =
            ["key", "value", "effect"].map(|key| fields.str(key).unwrap_or_default().to_owned());
        fields.finish();
        // Rules see only the word of the effect.
        Taint { key, value, effect: Effect::Prefer, effect_word, since: None, frozen: None }
    });
    let taints = taints.collect();
    Some(Cluster { name: name?.into(), labels, claims, properties, taints, ..Cluster::default() })
}

fn workload(scope: &Scope, fields: &mut Fields<'_>, clusters: &BTreeSet<String>, given: &mut GivenFleet) {
    let at = scope.pos(fields.at());
    let kind = fields.str("kind").unwrap_or("Workload");
    let [group, namespace] = ["group", "namespace"].map(|key| fields.str(key).unwrap_or_default());
    let name = fields.required_str("name").unwrap_or_default();
    let key = Key::new(group, kind, namespace, name);
    let labels = fields.string_map("labels").unwrap_or_default();
    let objects = fields.each("objects").into_iter().map(|mut fields| {
        let [kind, group, namespace, name] =
            ["kind", "group", "namespace", "name"].map(|key| fields.str(key).unwrap_or_default());
        let id = ObjectId::new(group, kind, namespace, name);
        let content = json!({"metadata": {"labels": fields.string_map("labels").unwrap_or_default()}});
        let object = Object { id, origin: scope.pos(fields.at()), content: Packed::of(&content) };
        fields.finish();
        Template {
            object: object.into(),
            final_labels: Arc::default(),
            sync_annotations: Arc::default(),
            retained: Vec::new(),
        }
    });
    let templates = objects.collect();
    [Form::Mapping, Form::Text].into_iter().for_each(|form| fields.takes("clusters[0]", form));
    let path = fields.path_of("clusters");
    let nodes = fields.list("clusters").unwrap_or_default().iter().enumerate();
    let mut picks: Vec<Pick> =
        nodes.filter_map(|(index, node)| pick(scope, &format!("{path}[{index}]"), node, clusters)).collect();
    picks.sort_by(|a, b| a.cluster.cmp(&b.cluster));
    let decision = Decision { picks: picks.into(), ..Decision::new(key.clone(), &*at.file) };
    given.decisions.insert(key.clone(), decision);
    given.fleet.labels.insert(key.clone(), labels);
    given.fleet.workloads.insert(key.clone(), Workload::new(key, at, templates).into());
}

/// Reads a cluster's name, or a mapping with its name and replicas.
fn pick(scope: &Scope, path: &str, node: &Node, clusters: &BTreeSet<String>) -> Option<Pick> {
    let (name, at, replicas) = match &node.value {
        Value::String(name) => (name.as_str(), node.at, None),
        _ => {
            let mut fields = scope.fields(node, path)?;
            let (name, replicas) = (fields.required_str("name"), fields.int("replicas"));
            let at = fields.place_of("name");
            fields.finish();
            (name?, at, replicas)
        }
    };
    if !clusters.contains(name) {
        scope.error(at, format!("no cluster of this fleet is named `{name}`"));
        return None;
    }
    Some(Pick::new(name, PickDetails { replicas, ..PickDetails::default() }))
}
