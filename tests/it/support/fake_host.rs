//! An API server that only answers questions, from lists by plural: for hosts that no real server would let
//! be. It notes what it was asked for.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde_json::{Value as Json, json};

use super::kubefed::SYSTEM;

pub type Lists = BTreeMap<&'static str, Vec<Json>>;

/// A running server, for as long as the test's process.
pub struct FakeHost {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
    folder: tempfile::TempDir,
}

impl FakeHost {
    pub fn serving(lists: Lists) -> FakeHost {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (lists, notes) = (Arc::new(lists), asked.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (lists, notes) = (lists.clone(), notes.clone());
                std::thread::spawn(move || answer(&stream, &lists, &notes));
            }
        });
        FakeHost { port, asked, folder: tempfile::tempdir().expect("a folder") }
    }

    /// Its address, with what stands before the host.
    pub fn url(&self, credentials: &str) -> String {
        format!("http://{credentials}127.0.0.1:{}", self.port)
    }

    pub fn kubeconfig(&self, credentials: &str) -> PathBuf {
        let path = self.folder.path().join("kubeconfig");
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: h\ncontexts: [{{name: h, context: {{cluster: h, user: u}}}}]\n\
             clusters: [{{name: h, cluster: {{server: \"{}\"}}}}]\nusers: [{{name: u, user: {{}}}}]\n",
            self.url(credentials)
        );
        std::fs::write(&path, text).expect("a file");
        path
    }

    /// The paths that were asked for, without queries.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no one panicked").clone()
    }
}

fn answer(mut stream: &TcpStream, lists: &Lists, asked: &Mutex<Vec<String>>) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let Some(first) = lines.next() else { return };
    let _headers: Vec<String> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    let target = first.split(' ').nth(1).unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default().to_owned();
    let (code, body) = body_of(&path, lists);
    asked.lock().expect("no one panicked").push(path);
    let body = body.to_string();
    let head = "Content-Type: application/json\r\nConnection: close";
    let _ = write!(stream, "HTTP/1.1 {code} X\r\n{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
}

fn body_of(path: &str, lists: &Lists) -> (u16, Json) {
    if path.trim_end_matches('/') == "/apis" {
        let group = |name: &str| {
            let version = json!({"groupVersion": format!("{name}/v1"), "version": "v1"});
            json!({"name": name, "versions": [version], "preferredVersion": version})
        };
        let groups = ["core.kubefed.io", "scheduling.kubefed.io", "types.kubefed.io"].map(group);
        return (200, json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}));
    }
    let parts: Vec<&str> = path.split('/').collect();
    let plural = parts.last().copied().unwrap_or_default();
    let namespace = parts.iter().rev().skip(1).take(2).copied().collect::<Vec<_>>();
    let Some(objects) = lists.get(plural) else {
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "reason": "NotFound", "code": 404});
        return (404, status);
    };
    let is_asked_for = |object: &&Json| match namespace[..] {
        [name, "namespaces"] => object["metadata"]["namespace"] == name,
        _ => true,
    };
    let items: Vec<&Json> = objects.iter().filter(is_asked_for).collect();
    (200, json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items}))
}

fn side(group: &str, version: &str, kind: &str, plural: &str, scope: &str) -> Json {
    json!({"group": group, "version": version, "kind": kind, "pluralName": plural, "scope": scope})
}

/// A type config as the chart has it.
pub fn type_config(kind: &str, plural: &str, group: &str) -> Json {
    let name = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
    let scope = if kind == "Namespace" { "Cluster" } else { "Namespaced" };
    let federated = (format!("Federated{kind}"), format!("federated{plural}"));
    json!({
        "apiVersion": "core.kubefed.io/v1beta1", "kind": "FederatedTypeConfig",
        "metadata": {"name": name, "namespace": SYSTEM},
        "spec": {
            "propagation": "Enabled", "targetType": side(group, "v1", kind, plural, scope),
            "federatedType": side("types.kubefed.io", "v1beta1", &federated.0, &federated.1, "Namespaced"),
        },
    })
}

pub fn settings(name: &str, scope: &str) -> Json {
    json!({
        "apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedConfig",
        "metadata": {"name": name, "namespace": SYSTEM}, "spec": {"scope": scope},
    })
}

/// A Federated object in `shop` that goes everywhere, and is on both clusters.
pub fn federated(kind: &str, name: &str, template: Json) -> Json {
    json!({
        "apiVersion": "types.kubefed.io/v1beta1", "kind": format!("Federated{kind}"),
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"template": template, "placement": {"clusterSelector": {}}},
        "status": {"clusters": [{"name": "a"}, {"name": "b"}]},
    })
}

/// Two clusters, a namespace on both, and a config map.
pub fn small_host() -> Lists {
    let cluster = |name: &str| {
        json!({
            "apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
            "metadata": {"name": name, "namespace": SYSTEM},
            "spec": {"apiEndpoint": format!("https://{name}.example.com"), "secretRef": {"name": name}},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        })
    };
    let types = [("Namespace", "namespaces", ""), ("ConfigMap", "configmaps", ""), ("Secret", "secrets", "")];
    BTreeMap::from([
        ("kubefedconfigs", vec![settings("kubefed", "Cluster")]),
        ("federatedtypeconfigs", types.map(|(kind, plural, group)| type_config(kind, plural, group)).into()),
        ("kubefedclusters", vec![cluster("a"), cluster("b")]),
        ("federatednamespaces", vec![federated("Namespace", "shop", json!({}))]),
        ("federatedconfigmaps", vec![federated("ConfigMap", "settings", json!({"data": {"mode": "fast"}}))]),
        ("federatedsecrets", Vec::new()),
        ("replicaschedulingpreferences", Vec::new()),
        ("namespaces", vec![json!({"metadata": {"name": "shop"}})]),
    ])
}
