//! Flux: a source, a Kustomization, and optionally a Provider and an Alert that wake the daemon.

use serde_json::{Value as Json, json};

/// The parameters of Flux's objects for one cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FluxMember {
    pub cluster: String,
    /// The namespace of Flux's objects.
    pub namespace: String,
    pub source: Source,
    /// The interval of looking for a new folder, in Flux's notation. Each look is a small request to the source.
    pub source_interval: String,
    /// The Secret with credentials for the source.
    pub credentials: Option<String>,
    /// The Secret with the certificate of the source's authority.
    pub authority: Option<String>,
    /// The account as which Flux applies the folder; its own if unset.
    pub account: Option<String>,
    /// Kustomizations of the cluster that must be ready before.
    pub depends_on: Vec<String>,
    /// The Secret with keys for values that SOPS encrypted.
    pub decryption: Option<String>,
    pub wakes: Option<Wakes>,
}

/// The source of the folder for Flux.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A branch with only this cluster's folder.
    Git { url: String, branch: String },
    /// The cluster's repository in a registry. With `keys`, its artifacts must be signed by a key in this Secret.
    Registry { url: String, keys: Option<String>, is_insecure: bool },
}

impl Default for Source {
    fn default() -> Source {
        Source::Git { url: String::new(), branch: String::new() }
    }
}

/// The daemon that Flux wakes by its events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wakes {
    pub url: String,
    /// The Secret whose `token` signs the events.
    pub secret: String,
}

const SOURCE: &str = "source.toolkit.fluxcd.io/v1";
const KUSTOMIZE: &str = "kustomize.toolkit.fluxcd.io/v1";
const NOTIFICATION: &str = "notification.toolkit.fluxcd.io/v1beta3";

/// The intervals of correcting drift, and of retrying after a failure.
const INTERVAL: &str = "10m";
const RETRY_INTERVAL: &str = "1m";
/// The time that objects may take to become healthy.
const TIMEOUT: &str = "5m";

/// The usual namespace of Flux.
pub const NAMESPACE: &str = "flux-system";

/// Returns the name of all objects for one cluster.
pub fn name_of(cluster: &str) -> String {
    format!("berth-{cluster}")
}

/// Returns Flux's objects for a cluster.
pub fn objects(member: &FluxMember) -> Vec<Json> {
    let mut objects = vec![source(member), kustomization(member)];
    if let Some(wakes) = &member.wakes {
        objects.extend(notification(member, wakes));
    }
    objects
}

fn metadata(member: &FluxMember) -> Json {
    json!({"name": name_of(&member.cluster), "namespace": member.namespace})
}

fn source(member: &FluxMember) -> Json {
    let (kind, mut spec) = match &member.source {
        Source::Git { url, branch } => ("GitRepository", json!({"url": url, "ref": {"branch": branch}})),
        Source::Registry { url, keys, is_insecure } => {
            let mut spec = json!({"url": url, "ref": {"tag": "current"}});
            if let Some(keys) = keys {
                spec["verify"] = json!({"provider": "cosign", "secretRef": {"name": keys}});
            }
            if *is_insecure {
                spec["insecure"] = true.into();
            }
            ("OCIRepository", spec)
        }
    };
    spec["interval"] = member.source_interval.clone().into();
    if let Some(secret) = &member.credentials {
        spec["secretRef"] = json!({"name": secret});
    }
    if let Some(secret) = member.authority.as_ref().filter(|_| kind == "OCIRepository") {
        spec["certSecretRef"] = json!({"name": secret});
    }
    json!({"apiVersion": SOURCE, "kind": kind, "metadata": metadata(member), "spec": spec})
}

fn kustomization(member: &FluxMember) -> Json {
    let kind = match member.source {
        Source::Git { .. } => "GitRepository",
        Source::Registry { .. } => "OCIRepository",
    };
    let mut spec = json!({
        "interval": INTERVAL,
        "retryInterval": RETRY_INTERVAL,
        "timeout": TIMEOUT,
        "sourceRef": {"kind": kind, "name": name_of(&member.cluster)},
        "path": "./",
        "prune": true,
        "wait": true,
        // Removing the Kustomization must not remove the objects.
        "deletionPolicy": "Orphan",
    });
    if let Some(account) = &member.account {
        spec["serviceAccountName"] = account.clone().into();
    }
    if !member.depends_on.is_empty() {
        let names = member.depends_on.iter().map(|name| json!({"name": name}));
        spec["dependsOn"] = names.collect::<Vec<Json>>().into();
    }
    if let Some(secret) = &member.decryption {
        spec["decryption"] = json!({"provider": "sops", "secretRef": {"name": secret}});
    }
    json!({"apiVersion": KUSTOMIZE, "kind": "Kustomization", "metadata": metadata(member), "spec": spec})
}

/// Returns the Provider and the Alert. The Alert names the cluster, because nothing else in an event does.
fn notification(member: &FluxMember, wakes: &Wakes) -> [Json; 2] {
    let name = name_of(&member.cluster);
    let provider = json!({"type": "generic-hmac", "address": wakes.url, "secretRef": {"name": wakes.secret}});
    let alert = json!({
        "providerRef": {"name": name},
        "eventSeverity": "info",
        "eventSources": [{"kind": "Kustomization", "name": name}],
        "eventMetadata": {"cluster": member.cluster},
    });
    [("Provider", provider), ("Alert", alert)].map(|(kind, spec)| {
        json!({"apiVersion": NOTIFICATION, "kind": kind, "metadata": metadata(member), "spec": spec})
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(source: Source) -> FluxMember {
        FluxMember {
            cluster: "oslo".to_owned(),
            namespace: "flux-system".to_owned(),
            source,
            ..FluxMember::default()
        }
    }

    #[test]
    fn a_registry_s_artifact_is_verified_where_keys_are_named() {
        let registry = |keys: Option<&str>| Source::Registry {
            url: "oci://r/fleet/clusters/oslo".to_owned(),
            keys: keys.map(str::to_owned),
            is_insecure: false,
        };
        let plain = &objects(&member(registry(None)))[0];
        assert_eq!(plain["spec"]["ref"], json!({"tag": "current"}));
        assert_eq!((&plain["spec"]["verify"], &plain["spec"]["insecure"]), (&Json::Null, &Json::Null));
        let verified = &objects(&member(registry(Some("keys"))))[0];
        assert_eq!(verified["spec"]["verify"], json!({"provider": "cosign", "secretRef": {"name": "keys"}}));
    }

    #[test]
    fn nothing_that_would_change_the_objects_is_ever_set() {
        let source =
            Source::Git { url: "https://g/fleet.git".to_owned(), branch: "berth/clusters/oslo".to_owned() };
        let whole = FluxMember {
            credentials: Some("pull".to_owned()),
            account: Some("applier".to_owned()),
            depends_on: vec!["infra".to_owned()],
            decryption: Some("age".to_owned()),
            wakes: Some(Wakes { url: "https://hub/webhook".to_owned(), secret: "hook".to_owned() }),
            ..member(source)
        };
        let objects = objects(&whole);
        let spec = &objects[1]["spec"];
        for field in
            ["targetNamespace", "namePrefix", "nameSuffix", "postBuild", "patches", "commonMetadata", "force"]
        {
            assert_eq!(spec[field], Json::Null, "{field}");
        }
        assert_eq!(spec["dependsOn"], json!([{"name": "infra"}]));
        assert_eq!(
            (&spec["prune"], &spec["wait"], &spec["deletionPolicy"]),
            (&true.into(), &true.into(), &"Orphan".into())
        );
        let kinds: Vec<&str> = objects.iter().filter_map(|object| object["kind"].as_str()).collect();
        assert_eq!(kinds, ["GitRepository", "Kustomization", "Provider", "Alert"]);
        assert_eq!(objects[3]["spec"]["eventMetadata"], json!({"cluster": "oslo"}));
    }
}
