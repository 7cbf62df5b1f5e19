//! The Deployment of either role, with the least rights, and its accompanying objects; and the ports of the process:
//! those on which it listens, and those to which it connects.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::environment::{environment, own_secrets};
use super::parameters::{Hub, Install, Member, Remote, Role};

/// The user in the image, without any rights.
const USER: u32 = 65532;

/// The folders where the pod's Secrets and ConfigMap are mounted.
pub const CREDENTIALS: &str = "/etc/berth/git";
pub const TRUST: &str = "/etc/berth/trust";

/// The folder of caches, and berth's own folder in it.
pub const CACHES: &str = "/var/cache";
const CACHE: &str = "/var/cache/berth";

/// The differences of the two roles.
struct Shape {
    container: &'static str,
    command: &'static str,
    replicas: u8,
    strategy: &'static str,
    /// The time in seconds for a graceful end.
    grace: u16,
    cpu: &'static str,
    memory: [&'static str; 2],
    cache: &'static str,
}

/// Two daemons without a lease would compute everything twice and race for the branch, so the old one must end before
/// the new one begins. It first finishes a pass in progress. Memory: docs/performance.md measured 129 MiB for 100,000
/// manifests.
const DAEMON: Shape = Shape {
    container: "run",
    command: "run",
    replicas: 1,
    strategy: "Recreate",
    grace: 120,
    cpu: "100m",
    memory: ["128Mi", "1Gi"],
    cache: "8Gi",
};

/// Two daemons with a lease: one waits to take over, also during an upgrade.
const DAEMON_WITH_STANDBY: Shape = Shape { replicas: 2, strategy: "RollingUpdate", ..DAEMON };

/// Two replicas: one works, the other waits to take over. Memory: docs/performance.md measured 48 MiB for 10,000
/// objects.
const SYNCER: Shape = Shape {
    container: "sync",
    command: "sync",
    replicas: 2,
    strategy: "RollingUpdate",
    grace: 30,
    cpu: "50m",
    memory: ["64Mi", "512Mi"],
    cache: "2Gi",
};

/// One replica: a reporter writes nothing, and so takes no lease.
const REPORTER: Shape = Shape { replicas: 1, strategy: "Recreate", ..SYNCER };

pub fn about(install: &Install) -> Vec<String> {
    let mut lines = Vec::new();
    let mut create = |sort: &str, secret: &str, what: &str, keys: &[&str]| {
        let from: Vec<String> = keys.iter().map(|key| format!("--from-file={key}=FILE")).collect();
        lines.push(format!("Needs a Secret, which no manifest holds, with {what}:"));
        lines.push(format!(
            "  kubectl create secret {sort} {secret} -n {} {}",
            install.namespace,
            from.join(" ")
        ));
    };
    if let Some(secret) = install.remote.secret.as_ref().filter(|_| !install.remote.deploy_key) {
        create("generic", secret, "the credentials for the repository", &secret_keys(install));
    }
    for own in own_secrets(install) {
        create(own.sort(), own.secret, own.about, &own.keys());
    }
    if let Role::Hub(Hub { signing_secret: None, .. }) = &install.role {
        lines.push(
            "Each new pod starts without stored trust and trusts the newest commits. Sign commits with --signing-secret."
                .to_owned(),
        );
    }
    lines
}

/// Returns the keys required in the repository's Secret.
fn secret_keys(install: &Install) -> Vec<&'static str> {
    let remote = &install.remote;
    let mut keys = if remote.ssh { vec!["key"] } else { vec!["token"] };
    keys.extend((remote.ssh && remote.known_hosts.is_none()).then_some("known_hosts"));
    keys.extend(remote.own_authority.then_some("ca.crt"));
    keys
}

/// Returns the ConfigMap of trusted hosts and keys, if there are any, the Deployment, its Service for webhooks and
/// statuses, and its disruption budget.
pub fn objects(install: &Install) -> Vec<Json> {
    let mut objects = Vec::new();
    let trust = trust(install);
    if !trust.is_empty() {
        objects.push(json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": install.metadata_of(&trust_name(install)), "data": trust}));
    }
    objects.push(deployment(install));
    objects.extend(service(install));
    // Even a single replica may be evicted: draining a node must not wait for berth, whose state is in Git.
    objects.push(
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": install.metadata(),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": install.labels()},
            "unhealthyPodEvictionPolicy": "AlwaysAllow"}}),
    );
    objects
}

pub fn trust_name(install: &Install) -> String {
    format!("{}-trust", install.name)
}

/// Returns the ConfigMap's texts by file name.
fn trust(install: &Install) -> BTreeMap<&'static str, &String> {
    let files = [("allowed_signers", &install.allowed_signers), ("known_hosts", &install.remote.known_hosts)];
    files.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?))).collect()
}

fn deployment(install: &Install) -> Json {
    let shape = match install.role {
        Role::Hub(Hub { standby: true, .. }) => DAEMON_WITH_STANDBY,
        Role::Hub(_) => DAEMON,
        Role::Member(Member { reporter: Some(_), .. }) => REPORTER,
        Role::Member(_) => SYNCER,
    };
    let labels = install.labels();
    let (mounts, volumes) = volumes(install, &shape);
    let mut pod = json!({
        "serviceAccountName": install.name,
        "automountServiceAccountToken": install.asks_the_api_server(),
        // Variables named after Services could be mistaken for settings.
        "enableServiceLinks": false,
        "terminationGracePeriodSeconds": shape.grace,
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container(install, &shape, mounts)],
        "volumes": volumes,
    });
    if let Some(secret) = &install.pull_secret {
        pod["imagePullSecrets"] = json!([{"name": secret}]);
    }
    if shape.replicas > 1 {
        pod["topologySpreadConstraints"] = json!([{
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": labels},
        }]);
    }
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": install.metadata(),
        "spec": {
            "replicas": shape.replicas,
            "strategy": {"type": shape.strategy},
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    })
}

fn container(install: &Install, shape: &Shape, mounts: Vec<Json>) -> Json {
    let [memory, most_memory] = shape.memory;
    let limit = install.memory_limit.as_deref().unwrap_or(most_memory);
    let port = |(name, port): &(&str, u16)| json!({"name": name, "containerPort": port});
    json!({
        "name": shape.container,
        "image": install.image,
        "args": [shape.command],
        "env": environment(install),
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        },
        "ports": ports(install).iter().map(port).collect::<Vec<Json>>(),
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "metrics"}, "initialDelaySeconds": 30, "periodSeconds": 30},
        // A process that waits for the lease is as ready as the holder.
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "metrics"}, "periodSeconds": 10},
        "resources": {
            "requests": {"cpu": shape.cpu, "memory": memory},
            "limits": {"memory": limit},
        },
        "volumeMounts": mounts,
    })
}

/// Returns the mounts of the container and the volumes of the pod.
fn volumes(install: &Install, shape: &Shape) -> (Vec<Json>, Vec<Json>) {
    let cache = install.cache_limit.as_deref().unwrap_or(shape.cache);
    let mut mounts =
        vec![json!({"name": "cache", "mountPath": CACHE}), json!({"name": "tmp", "mountPath": "/tmp"})];
    let mut volumes = vec![
        // The working copy is a cache, and may contain the fleet's Secrets.
        json!({"name": "cache", "emptyDir": {"sizeLimit": cache}}),
        json!({"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}}),
    ];
    let mut mount = |name: &str, path: &str, mut volume: Json| {
        mounts.push(json!({"name": name, "mountPath": path, "readOnly": true}));
        volume["name"] = json!(name);
        volumes.push(volume);
    };
    let secret = |name: &str| json!({"secret": {"secretName": name, "defaultMode": 0o440}});
    if let Some(name) = &install.remote.secret {
        mount("git", CREDENTIALS, secret(name));
    }
    for own in own_secrets(install) {
        mount(own.volume, &own.folder(), secret(own.secret));
    }
    if !trust(install).is_empty() {
        mount("trust", TRUST, json!({"configMap": {"name": trust_name(install)}}));
    }
    (mounts, volumes)
}

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
