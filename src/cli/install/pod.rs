//! The Deployment of either role, with no right that it does not need, and what goes with it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::parameters::{Hub, Install, Member, Remote, Role};
use super::secrets::own_secrets;

/// The user of the image, who is nobody's.
const USER: u32 = 65532;

/// The folders in which the pod finds its Secrets' content, and its ConfigMap's.
const CREDENTIALS: &str = "/etc/berth/git";
const TRUST: &str = "/etc/berth/trust";

/// The ports of the metrics page, of webhooks and of members' statuses.
const METRICS: u16 = 9090;
const WEBHOOK: u16 = 8080;
const STATUS: u16 = 8081;

/// The folder of caches, and the one in it that is berth's own.
const CACHES: &str = "/var/cache";
const CACHE: &str = "/var/cache/berth";

/// The differences of the two roles.
struct Shape {
    container: &'static str,
    command: &'static str,
    replicas: u8,
    strategy: &'static str,
    /// The time in seconds for a clean end.
    grace: u16,
    cpu: &'static str,
    memory: [&'static str; 2],
    cache: &'static str,
}

/// Two daemons without a lease would compute everything twice and race for the branch, so that the old one ends before the new one
/// begins. A pass in progress is finished first. Memory: docs/performance.md has 129 MiB for 100,000 manifests.
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

/// Two daemons with a lease: the other waits to take its place, and an upgrade too hands over.
const DAEMON_WITH_STANDBY: Shape = Shape { replicas: 2, strategy: "RollingUpdate", ..DAEMON };

/// Two replicas: one works, the other waits to take its place. Memory: docs/performance.md has 48 MiB for 10,000
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

pub fn about(install: &Install) -> Vec<String> {
    let mut lines = Vec::new();
    let mut create = |secret: &str, what: &str, keys: &[&str]| {
        let from: Vec<String> = keys.iter().map(|key| format!("--from-file={key}=FILE")).collect();
        lines.push(format!("Needs a Secret, which no manifest holds, with {what}:"));
        lines.push(format!(
            "  kubectl create secret generic {secret} -n {} {}",
            install.namespace,
            from.join(" ")
        ));
    };
    if let Some(secret) = install.remote.secret.as_ref().filter(|_| !install.remote.deploy_key) {
        create(secret, "the credentials for the repository", &secret_keys(install));
    }
    for own in own_secrets(install) {
        create(own.secret, own.about, &[own.key]);
    }
    if let Role::Hub(Hub { signing_secret: None, .. }) = &install.role {
        lines.push(
            "Its disk is empty when it starts, so that it trusts the newest commits anew: --signing-secret signs them."
                .to_owned(),
        );
    }
    lines
}

/// The keys that the Secret for the repository needs.
fn secret_keys(install: &Install) -> Vec<&'static str> {
    let remote = &install.remote;
    let mut keys = if remote.ssh { vec!["key"] } else { vec!["token"] };
    keys.extend((remote.ssh && remote.known_hosts.is_none()).then_some("known_hosts"));
    keys.extend(remote.own_authority.then_some("ca.crt"));
    keys
}

/// Returns the ConfigMap of trusted hosts and keys, if there are some, the Deployment, its Service for webhooks and
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
    // Of one replica too, one may always be away: no drain of a node waits for berth, whose state is in Git.
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

/// Returns the texts of the ConfigMap by the names of their files.
fn trust(install: &Install) -> BTreeMap<&'static str, &String> {
    let files = [("allowed_signers", &install.allowed_signers), ("known_hosts", &install.remote.known_hosts)];
    files.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?))).collect()
}

fn deployment(install: &Install) -> Json {
    let shape = match install.role {
        Role::Hub(Hub { standby: true, .. }) => DAEMON_WITH_STANDBY,
        Role::Hub(_) => DAEMON,
        Role::Member(_) => SYNCER,
    };
    let labels = install.labels();
    let (mounts, volumes) = volumes(install, &shape);
    let limit = |own: &Option<String>, usual: &str| own.clone().unwrap_or_else(|| usual.to_owned());
    let [memory, most_memory] = shape.memory;
    let container = json!({
        "name": shape.container,
        "image": install.image,
        "args": [shape.command],
        "env": environment(install),
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        },
        // A process that waits for the lease is as ready as its holder.
        "ports": ports(install)
            .iter()
            .map(|(name, port)| json!({"name": name, "containerPort": port}))
            .collect::<Vec<Json>>(),
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "metrics"}, "initialDelaySeconds": 30, "periodSeconds": 30},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "metrics"}, "periodSeconds": 10},
        "resources": {
            "requests": {"cpu": shape.cpu, "memory": memory},
            "limits": {"memory": limit(&install.memory_limit, most_memory)},
        },
        "volumeMounts": mounts,
    });
    let mut pod = json!({
        "serviceAccountName": install.name,
        "automountServiceAccountToken": install.asks_the_api_server(),
        // Variables by the names of Services could look like settings.
        "enableServiceLinks": false,
        "terminationGracePeriodSeconds": shape.grace,
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
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

/// Returns the mounts of the container and the volumes of the pod.
fn volumes(install: &Install, shape: &Shape) -> (Vec<Json>, Vec<Json>) {
    let cache = install.cache_limit.as_deref().unwrap_or(shape.cache);
    let mut mounts =
        vec![json!({"name": "cache", "mountPath": CACHE}), json!({"name": "tmp", "mountPath": "/tmp"})];
    let mut volumes = vec![
        // The working copy may hold what the fleet's Secrets hold; it is a cache.
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

/// Returns the settings as environment variables, with those that people add.
fn environment(install: &Install) -> Vec<Json> {
    let own = own_environment(install).into_iter().map(|(name, value)| (name.to_owned(), value));
    let all: BTreeMap<String, String> = install.env.clone().into_iter().chain(own).collect();
    all.into_iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
}

/// Returns the settings that the parameters give: each flag has a variable.
pub fn own_environment(install: &Install) -> BTreeMap<&'static str, String> {
    let remote = &install.remote;
    let mut set = BTreeMap::from([
        ("BERTH_REMOTE", remote.url.clone()),
        ("BERTH_METRICS", format!("0.0.0.0:{METRICS}")),
        ("XDG_CACHE_HOME", CACHES.to_owned()),
    ]);
    if remote.secret.is_some() {
        if remote.ssh {
            set.insert("BERTH_SSH_KEY", format!("{CREDENTIALS}/key"));
            set.insert("BERTH_KNOWN_HOSTS", format!("{CREDENTIALS}/known_hosts"));
        } else {
            set.insert("BERTH_TOKEN_FILE", format!("{CREDENTIALS}/token"));
        }
        if remote.own_authority {
            set.insert("BERTH_CA_FILE", format!("{CREDENTIALS}/ca.crt"));
        }
    }
    if remote.known_hosts.is_some() {
        set.insert("BERTH_KNOWN_HOSTS", format!("{TRUST}/known_hosts"));
    }
    if let Some(collector) = &install.collector {
        set.insert("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.clone());
    }
    let secrets = own_secrets(install).into_iter();
    set.extend(secrets.map(|own| (own.variable, format!("{}/{}", own.folder(), own.key))));
    if install.allowed_signers.is_some() {
        set.insert("BERTH_ALLOWED_SIGNERS", format!("{TRUST}/allowed_signers"));
    }
    match &install.role {
        Role::Hub(hub) => {
            let events = hub.events.then(|| format!("deployment/{}/{}", install.namespace, install.name));
            let standby = hub.standby.then(|| format!("lease/{}/{}", install.namespace, install.name));
            let webhook = hub.webhook_secret.is_some().then(|| format!("0.0.0.0:{WEBHOOK}"));
            let status = hub.status_secret.is_some().then(|| format!("0.0.0.0:{STATUS}"));
            let given = [
                ("BERTH_SOURCE_REMOTE", hub.source_remote.as_ref().map(|remote| remote.url.clone())),
                ("BERTH_SOURCE", hub.source.clone()),
                ("BERTH_FLEET", hub.fleet.clone()),
                ("BERTH_EVENTS", events),
                ("BERTH_STANDBY", standby),
                ("BERTH_WEBHOOK", webhook),
                ("BERTH_STATUS_LISTEN", status),
            ];
            set.extend(given.into_iter().filter_map(|(name, value)| Some((name, value?))));
        }
        Role::Member(member) => set.extend(of_member(install, member)),
    }
    set
}

fn of_member(install: &Install, member: &Member) -> Vec<(&'static str, String)> {
    let mut set = vec![
        ("BERTH_CLUSTER", member.cluster.clone()),
        ("BERTH_FLEET", member.fleet.clone()),
        ("BERTH_NAMESPACE", install.namespace.clone()),
        ("BERTH_TARGET", "kube".to_owned()),
    ];
    set.extend(member.tenant_account.clone().map(|account| ("BERTH_TENANT_SERVICE_ACCOUNT", account)));
    if !member.overrides.is_empty() {
        let from: Vec<&str> = member.overrides.iter().map(|from| from.text.as_str()).collect();
        set.push(("BERTH_OVERRIDES_FROM", from.join(",")));
    }
    set
}

/// Returns the ports on which the process listens, by name.
fn ports(install: &Install) -> Vec<(&'static str, u16)> {
    let served = served(install).into_iter().map(|(name, _, port)| (name, port));
    std::iter::once(("metrics", METRICS)).chain(served).collect()
}

/// Returns the ports that a Service serves: the name of each, its number there, and the daemon's.
fn served(install: &Install) -> Vec<(&'static str, u16, u16)> {
    let Role::Hub(hub) = &install.role else { return Vec::new() };
    let webhook = hub.webhook_secret.as_ref().map(|_| ("webhook", 80, WEBHOOK));
    let status = hub.status_secret.as_ref().map(|_| ("status", STATUS, STATUS));
    webhook.into_iter().chain(status).collect()
}

/// Returns the Service through which webhooks and statuses come, for an ingress before it.
fn service(install: &Install) -> Option<Json> {
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

/// Returns the NetworkPolicy: in, the ports on which the process listens; out, DNS, the Git servers, the API server where
/// the process asks it, https where messages go, and the collector. To which hosts, no policy can say: it knows no names.
pub fn network_policy(install: &Install, more: &BTreeSet<u16>) -> Json {
    let port = |protocol: &str, port: u16| json!({"protocol": protocol, "port": port});
    let api: &[u16] = if install.asks_the_api_server() { &[443, 6443] } else { &[] };
    let (source, messages) = match &install.role {
        Role::Hub(hub) => (hub.source_remote.as_ref(), hub.notify_secret.as_ref().map(|_| 443)),
        Role::Member(_) => (None, None),
    };
    let git = std::iter::once(&install.remote).chain(source).map(Remote::port);
    let collector = install.collector.as_ref().map(|collector| collector.port);
    let out: BTreeSet<u16> =
        more.iter().chain(api).copied().chain([53]).chain(git).chain(messages).chain(collector).collect();
    let out = std::iter::once(port("UDP", 53)).chain(out.into_iter().map(|one| port("TCP", one)));
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": install.metadata(),
        "spec": {
            "podSelector": {"matchLabels": install.labels()},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"ports": ports(install).iter().map(|(_, one)| port("TCP", *one)).collect::<Vec<Json>>()}],
            "egress": [{"ports": out.collect::<Vec<Json>>()}],
        },
    })
}
