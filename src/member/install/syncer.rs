//! The syncer's Deployment, with no right that it does not need, and its NetworkPolicy.

use serde_json::{Map, Value as Json, json};

use super::parameters::Install;

/// The user of the image, who is nobody's.
const USER: u32 = 65532;

/// The folder in which the pod finds its Secret's content.
const CREDENTIALS: &str = "/etc/berth/git";

/// The port of the metrics page.
const METRICS: u16 = 9090;

/// The folder in which the image keeps the working copy.
const CACHE: &str = "/var/cache/berth";

pub fn about(install: &Install) -> Vec<String> {
    let Some(secret) = &install.remote.secret else { return Vec::new() };
    let mut keys = if install.remote.ssh { vec!["key", "known_hosts"] } else { vec!["token"] };
    keys.extend(install.remote.own_authority.then_some("ca.crt"));
    let from: Vec<String> = keys.iter().map(|key| format!("--from-file={key}=FILE")).collect();
    vec![
        "Needs the credentials for the repository, which are in no manifest:".to_owned(),
        format!("  kubectl create secret generic {secret} -n {} {}", install.namespace, from.join(" ")),
    ]
}

pub fn deployment(install: &Install) -> Json {
    let labels = install.labels();
    let mut mounts =
        vec![json!({"name": "cache", "mountPath": CACHE}), json!({"name": "tmp", "mountPath": "/tmp"})];
    let mut volumes = vec![
        // The working copy may hold what the fleet's Secrets hold; it is a cache.
        json!({"name": "cache", "emptyDir": {"sizeLimit": "2Gi"}}),
        json!({"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}}),
    ];
    if let Some(secret) = &install.remote.secret {
        mounts.push(json!({"name": "git", "mountPath": CREDENTIALS, "readOnly": true}));
        volumes.push(json!({"name": "git", "secret": {"secretName": secret, "defaultMode": 0o440}}));
    }
    let container = json!({
        "name": "sync",
        "image": install.image,
        "args": ["sync"],
        "env": environment(install),
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        },
        // A syncer that waits for the lease is as ready as its holder.
        "ports": [{"name": "metrics", "containerPort": METRICS}],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "metrics"}, "initialDelaySeconds": 30, "periodSeconds": 30},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "metrics"}, "periodSeconds": 10},
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
        "volumeMounts": mounts,
    });
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": install.metadata(),
        "spec": {
            // Two replicas: one works, the other waits to take its place.
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": install.name,
                    "securityContext": {
                        "runAsNonRoot": true,
                        "runAsUser": USER,
                        "runAsGroup": USER,
                        "fsGroup": USER,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [container],
                    "volumes": volumes,
                    "topologySpreadConstraints": [{
                        "maxSkew": 1,
                        "topologyKey": "kubernetes.io/hostname",
                        "whenUnsatisfiable": "ScheduleAnyway",
                        "labelSelector": {"matchLabels": labels},
                    }],
                },
            },
        },
    })
}

/// Returns the settings as environment variables: each flag has one.
fn environment(install: &Install) -> Vec<Json> {
    let mut set = Map::new();
    let mut put = |name: &str, value: &str| drop(set.insert(name.to_owned(), json!(value)));
    put("BERTH_CLUSTER", &install.cluster);
    put("BERTH_FLEET", &install.fleet);
    put("BERTH_NAMESPACE", &install.namespace);
    put("BERTH_TARGET", "kube");
    put("BERTH_REMOTE", &install.remote.url);
    if install.remote.secret.is_some() {
        if install.remote.ssh {
            put("BERTH_SSH_KEY", &format!("{CREDENTIALS}/key"));
            put("BERTH_KNOWN_HOSTS", &format!("{CREDENTIALS}/known_hosts"));
        } else {
            put("BERTH_TOKEN_FILE", &format!("{CREDENTIALS}/token"));
        }
        if install.remote.own_authority {
            put("BERTH_CA_FILE", &format!("{CREDENTIALS}/ca.crt"));
        }
    }
    put("BERTH_METRICS", &format!("0.0.0.0:{METRICS}"));
    if let Some(account) = &install.tenant_account {
        put("BERTH_TENANT_SERVICE_ACCOUNT", account);
    }
    if !install.overrides.is_empty() {
        let from: Vec<&str> = install.overrides.iter().map(|from| from.text.as_str()).collect();
        put("BERTH_OVERRIDES_FROM", &from.join(","));
    }
    set.into_iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
}

/// Returns the NetworkPolicy: in, the metrics port only; out, DNS, the API server and the Git server.
pub fn network_policy(install: &Install) -> Json {
    let port = |protocol: &str, port: u16| json!({"protocol": protocol, "port": port});
    let mut ports = vec![port("UDP", 53), port("TCP", 53), port("TCP", 443), port("TCP", 6443)];
    let git = install.remote.port.or_else(|| install.remote.ssh.then_some(22));
    ports.extend(git.filter(|git| ![53, 443, 6443].contains(git)).map(|git| port("TCP", git)));
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": install.metadata(),
        "spec": {
            "podSelector": {"matchLabels": install.labels()},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"ports": [port("TCP", METRICS)]}],
            "egress": [{"ports": ports}],
        },
    })
}
