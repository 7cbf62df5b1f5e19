//! `MemberCluster` → [`Cluster`].
//!
//! Of the status, only the parts that decisions use are read: the member agent's conditions, properties,
//! resource usage and namespaces. A status without an agent or conditions gives no health.

use std::collections::{BTreeMap, BTreeSet};

use crate::dialects::clusters;
use berth_base::meta;
use berth_base::meta::names::{is_label_key, is_label_value};
use berth_base::model::cluster::{Agent, Readiness, Report};
use berth_base::model::{Cluster, Effect, Quantity, Taint, Timestamp};
use berth_base::yaml::fields::{Fields, Scope};
use berth_base::yaml::node::{Node, Value};

const LONGEST_NAME: usize = 63;

/// Reads a MemberCluster. Faults go to the scope; if there are any, the result must not be used.
pub fn read(scope: &Scope, root: &Node) -> Option<Cluster> {
    let (mut fields, metadata) = meta::open(scope, root)?;
    if metadata.name.len() > LONGEST_NAME {
        let message = format!("metadata.name must not be longer than {LONGEST_NAME} characters");
        scope.error(metadata.name_at, message);
    }
    let mut cluster = Cluster {
        name: metadata.name.into(),
        origins: vec![scope.pos(root.at)],
        labels: metadata.labels,
        leaving: metadata.deleting,
        applier: clusters::read_applier(scope, root),
        ..Cluster::default()
    };
    if let Some(mut spec) = fields.required_fields("spec") {
        identity(&mut spec);
        spec.int_in("heartbeatPeriodSeconds", 1..=600);
        cluster.taints = taints(&mut spec);
        if let Some(mut options) = spec.fields("deleteOptions") {
            options.choice("validationMode", &["Strict", "Skip"]);
            options.finish();
        }
        spec.finish();
    }
    if let Some(mut status) = fields.fields("status") {
        read_status(&mut status, &mut cluster);
    }
    fields.finish();
    Some(cluster)
}

fn identity(spec: &mut Fields<'_>) {
    if let Some(mut identity) = spec.required_fields("identity") {
        identity.required_str("kind");
        identity.required_str("name");
        identity.str("namespace");
        identity.str("apiGroup");
        identity.finish();
    }
}

fn taints(spec: &mut Fields<'_>) -> Vec<Taint> {
    if spec.list("taints").is_some_and(|taints| taints.len() > 100) {
        spec.error_at("taints", "spec.taints must not have more than 100 entries");
    }
    let mut taints: Vec<Taint> = Vec::new();
    for mut fields in spec.each("taints") {
        let key = fields.required_str("key").unwrap_or_default();
        if !key.is_empty() && !is_label_key(key) {
            fields.error_at("key", format!("{}: `{key}` is not a valid taint key", fields.path_of("key")));
        }
        let value = fields.str("value").unwrap_or_default();
        if !is_label_value(value) {
            let message = format!("{}: `{value}` is not a valid taint value", fields.path_of("value"));
            fields.error_at("value", message);
        }
        fields.require("effect");
        let effect = fields.choice("effect", &["NoSchedule"]).unwrap_or_default();
        let taint = Taint {
            key: key.to_owned(),
            value: value.to_owned(),
            effect: Effect::RefuseNew,
            effect_word: effect.to_owned(),
            since: None,
            frozen: None,
        };
        if taints.contains(&taint) {
            fields.scope().error(fields.at(), format!("{} repeats an earlier taint", fields.path()));
        }
        taints.push(taint);
        fields.finish();
    }
    taints
}

/// Reads a status. Its unknown fields are allowed, because a server writes them.
fn read_status(status: &mut Fields<'_>, cluster: &mut Cluster) {
    let says_health = status.node("conditions").is_some() || status.node("agentStatus").is_some();
    if says_health {
        let agent = Some(member_agent(status).unwrap_or_default());
        cluster.standing = Readiness::Reported(Report { agent, ..Report::default() });
    }
    for (name, mut property) in status.fields("properties").map(each_entry).unwrap_or_default() {
        if let Some(value) = property.str("value") {
            cluster.properties.insert(name, value.to_owned());
        }
    }
    if let Some(mut usage) = status.fields("resourceUsage") {
        cluster.capacity = resources(&mut usage, "capacity");
        cluster.allocatable = resources(&mut usage, "allocatable");
        cluster.available = resources(&mut usage, "available");
    }
    let collected = status
        .each("conditions")
        .iter_mut()
        .any(|condition| condition.str("type") == Some("NamespaceCollectionSucceeded"));
    if collected {
        let names = status.fields("namespaces");
        let names: Option<BTreeSet<String>> =
            names.map(|names| names.entries().iter().map(|entry| entry.key.clone()).collect());
        cluster.namespaces = Some(names.unwrap_or_default());
    }
}

fn each_entry<'a>(fields: Fields<'a>) -> Vec<(String, Fields<'a>)> {
    let open = |entry: &'a berth_base::yaml::node::Entry| {
        let inner = fields.scope().fields(&entry.value, &fields.path_of(&entry.key))?;
        Some((entry.key.clone(), inner))
    };
    fields.entries().iter().filter_map(open).collect()
}

fn member_agent(status: &mut Fields<'_>) -> Option<Agent> {
    let mut agents = status.each("agentStatus").into_iter();
    let mut agent =
        agents.find_map(|mut agent| (agent.str("type") == Some("MemberAgent")).then_some(agent))?;
    let mut account = Agent { heartbeat: timestamp(&mut agent, "lastReceivedHeartbeat"), ..Agent::default() };
    for mut condition in agent.each("conditions") {
        let since = timestamp(&mut condition, "lastTransitionTime");
        match (condition.str("type"), condition.str("status")) {
            (Some("Joined"), Some("True")) => account.joined = Some(true),
            (Some("Joined"), Some("False")) => account.joined = Some(false),
            (Some("Healthy"), Some(word)) => account.healthy = Some((word == "True", since)),
            _ => {}
        }
    }
    Some(account)
}

fn timestamp(fields: &mut Fields<'_>, key: &'static str) -> Option<Timestamp> {
    let text = fields.str(key)?;
    let time = text.parse().ok();
    if time.is_none() {
        let message =
            format!("{} is `{text}`, but must be a time such as `2025-06-01T12:00:00Z`", fields.path_of(key));
        fields.error_at(key, message);
    }
    time
}

fn resources(usage: &mut Fields<'_>, key: &'static str) -> BTreeMap<String, String> {
    let Some(amounts) = usage.fields(key) else { return BTreeMap::new() };
    let mut resources = BTreeMap::new();
    for entry in amounts.entries() {
        let text = match &entry.value.value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => String::new(),
        };
        if let Err(fault) = text.parse::<Quantity>() {
            let message = format!("{} is {fault}", amounts.path_of(&entry.key));
            amounts.scope().error(entry.value.at, message);
            continue;
        }
        resources.insert(entry.key.clone(), text);
    }
    resources
}
