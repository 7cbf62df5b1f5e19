//! The ports of the process: those on which it listens, and those to which it connects.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::parameters::{Install, Remote, Role};

/// The ports of the metrics page, of webhooks and of members' statuses.
pub const METRICS: u16 = 9090;
pub const WEBHOOK: u16 = 8080;
pub const STATUS: u16 = 8081;

/// The label of namespaces from which metrics are scraped, as in operator-sdk and kubebuilder.
pub const METRICS_LABEL: &str = "metrics";

/// Returns the ports on which the process listens, by name.
pub fn ports(install: &Install) -> Vec<(&'static str, u16)> {
    let served = served(install).into_iter().map(|(name, _, port)| (name, port));
    std::iter::once(("metrics", METRICS)).chain(served).collect()
}

/// Returns the ports of the Service: the name of each, its number in the Service, and in the daemon.
fn served(install: &Install) -> Vec<(&'static str, u16, u16)> {
    let Role::Hub(hub) = &install.role else { return Vec::new() };
    let webhook = hub.webhook_secret.as_ref().map(|_| ("webhook", 80, WEBHOOK));
    let status = hub.status_secret.as_ref().map(|_| ("status", STATUS, STATUS));
    webhook.into_iter().chain(status).collect()
}

/// Returns the Service for webhooks and statuses, to be used by an ingress.
pub fn service(install: &Install) -> Option<Json> {
    let served = served(install);
    let port = |(name, port, _): &(&str, u16, u16)| json!({"name": name, "port": port, "targetPort": name, "protocol": "TCP"});
    let ports: Vec<Json> = served.iter().map(port).collect();
    (!ports.is_empty()).then(|| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": install.metadata(), "spec": {
            "selector": install.labels(),
            "ports": ports,
        }})
    })
}

/// Returns the NetworkPolicy. Incoming: metrics from namespaces with the label, and the Service's ports from
/// anywhere. Probes come from the node, which no policy blocks. Outgoing: DNS, the Git servers, the API server if the
/// process uses it, the registry, the ports of message and status addresses, and the collector. A policy cannot
/// restrict these to hosts, because it knows no host names.
pub fn network_policy(install: &Install, more: &BTreeSet<u16>) -> Json {
    let port = |protocol: &str, port: u16| json!({"protocol": protocol, "port": port});
    let api: &[u16] = if install.asks_the_api_server() { &[443, 6443] } else { &[] };
    let (source, messages) = match &install.role {
        Role::Hub(hub) => (hub.source_remote.as_ref(), hub.notify_secret.as_ref().map(|_| 443)),
        Role::Member(member) => (None, member.statuses.as_ref().map(|statuses| statuses.port)),
    };
    let registry = install.registry.as_ref().map(|registry| registry.port);
    let git = std::iter::once(&install.remote).chain(source).map(Remote::port);
    let collector = install.collector.as_ref().map(|collector| collector.port);
    let out: BTreeSet<u16> = more
        .iter()
        .chain(api)
        .copied()
        .chain([53])
        .chain(git)
        .chain(messages)
        .chain(collector)
        .chain(registry)
        .collect();
    let metrics = json!({"from": [{"namespaceSelector": {"matchLabels": {METRICS_LABEL: "enabled"}}}], "ports": [port("TCP", METRICS)]});
    let served: Vec<Json> = served(install).iter().map(|(_, _, one)| port("TCP", *one)).collect();
    let served = Some(json!({"ports": served})).filter(|rule| rule["ports"] != json!([]));
    let inward: Vec<Json> = std::iter::once(metrics).chain(served).collect();
    let out = std::iter::once(port("UDP", 53)).chain(out.into_iter().map(|one| port("TCP", one)));
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": install.metadata(),
        "spec": {
            "podSelector": {"matchLabels": install.labels()},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": inward,
            "egress": [{"ports": out.collect::<Vec<Json>>()}],
        },
    })
}
