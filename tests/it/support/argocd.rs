//! Argo CD for tests: its published kinds on a test's control plane, and a player of its application-controller, in the few
//! steps that berth looks at. The real programs are in `argocd_bed`. Finding none is a skipped test, or under `CI=true` a
//! failed one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use super::kube::ControlPlane;
use super::remote::Fleet;
use super::{Ran, programs};
use berth_base::yaml;

const TRACKING: &str = "argocd.argoproj.io/tracking-id";
const OPTIONS: &str = "argocd.argoproj.io/sync-options";

/// A control plane with the kinds of Argo CD.
#[derive(Debug)]
pub struct ArgoCd<'p> {
    plane: &'p ControlPlane,
}

/// The namespace of Argo CD.
pub const NAMESPACE: &str = "argocd";

/// Returns the folder of the programs and kinds. Without the means for them, says so loudly and gives nothing, and the
/// test returns; under `CI=true` the test fails.
pub fn made() -> Option<PathBuf> {
    let made = programs::made(&["ready", "argocd"], "argocd");
    made.map_err(|why| programs::skipped("Argo CD", &why)).ok()
}

/// Adds the kinds and the namespace of Argo CD.
pub fn install(folder: &Path, plane: &ControlPlane) {
    let kubectl = |args: &[&str]| Ran::of(plane.kubectl().args(args));
    let folder = folder.to_str().expect("a text path");
    kubectl(&["apply", "--server-side", "-f", folder]).expect(0);
    // `kubectl wait` fails on a definition that has no conditions yet.
    let kinds = "applications.argoproj.io,applicationsets.argoproj.io,appprojects.argoproj.io";
    super::wait::until("the kinds are served", || kubectl(&["get", kinds, "-A"]).code == 0);
    kubectl(&["create", "namespace", NAMESPACE]).expect(0);
}

impl<'p> ArgoCd<'p> {
    pub fn on(plane: &'p ControlPlane) -> Option<ArgoCd<'p>> {
        install(&made()?, plane);
        Some(ArgoCd { plane })
    }

    /// Applies manifests as the API server would refuse them where a field is unknown.
    #[track_caller]
    pub fn apply(&self, manifests: &str) {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), manifests).expect("a file");
        let path = file.path().to_str().expect("a text path");
        self.kubectl(&["apply", "--server-side", "--validate=strict", "-f", path]).expect(0);
    }

    /// Writes the status of an Application, as Argo CD's controller does.
    #[track_caller]
    pub fn set_status(&self, name: &str, status: &Json) {
        let patch = json!([{"op": "add", "path": "/status", "value": status}]).to_string();
        let args = ["patch", "applications.argoproj.io", name, "-n", "argocd", "--type=json", "-p", &patch];
        self.kubectl(&args).expect(0);
    }

    /// Applies the folder of a cluster's branch, prunes what it no longer has and what is not guarded on the live
    /// object, and says so in the status of the Application. Returns the revision.
    #[track_caller]
    pub fn sync(&self, name: &str, fleet: &Fleet, cluster: &str) -> String {
        let branch = format!("refs/heads/berth/clusters/{cluster}");
        let revision = fleet.bare(&["rev-parse", &branch]);
        let files = fleet.bare(&["ls-tree", "-r", "--name-only", &revision]);
        let mut objects: Vec<Json> = files
            .lines()
            .map(|path| {
                let text = fleet.bare(&["show", &format!("{revision}:{path}")]);
                yaml::read(text.as_bytes(), &yaml::Limits::of_a_part()).documents[0].root.to_json()
            })
            .filter(|object| object["metadata"]["annotations"]["argocd.argoproj.io/hook"] != "Skip")
            .collect();
        objects.sort_by_key(|object| (object["kind"] != "Namespace", wave(object)));
        let mut wanted = BTreeSet::new();
        for object in &mut objects {
            let mark = tracking(name, object);
            object["metadata"]["annotations"][TRACKING] = mark.clone().into();
            wanted.insert(mark);
        }
        let file = tempfile::NamedTempFile::new().expect("a file");
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        std::fs::write(file.path(), list.to_string()).expect("a file");
        let path = file.path().to_str().expect("a text path");
        let manager = "--field-manager=argocd-controller";
        self.kubectl(&["apply", "--server-side", "--force-conflicts", manager, "-f", path]).expect(0);
        let all =
            self.kubectl(&["get", "namespaces,configmaps,deployments", "-A", "-o", "json"]).expect(0).json();
        for live in all["items"].as_array().expect("objects") {
            let annotation = |name: &str| live["metadata"]["annotations"][name].as_str().unwrap_or_default();
            let is_ours = annotation(TRACKING).starts_with(&format!("{name}:"));
            let is_guarded = annotation(OPTIONS).split(',').any(|option| option == "Prune=false");
            if is_ours && !is_guarded && !wanted.contains(annotation(TRACKING)) {
                let text = |value: &Json| value.as_str().unwrap_or_default().to_lowercase();
                let (kind, namespace) = (text(&live["kind"]), text(&live["metadata"]["namespace"]));
                self.kubectl(&["delete", &kind, &text(&live["metadata"]["name"]), "-n", &namespace])
                    .expect(0);
            }
        }
        self.set_status(name, &synced(&revision));
        revision
    }

    pub fn kubectl(&self, args: &[&str]) -> Ran {
        Ran::of(self.plane.kubectl().args(args))
    }

    /// An object of the namespace `shop`, or one without a namespace.
    pub fn get(&self, kind: &str, name: &str) -> Option<Json> {
        let ran = self.kubectl(&["get", kind, name, "-n", "shop", "-o", "json"]);
        (ran.code == 0).then(|| ran.json())
    }
}

/// The status of an Application that is synced to a revision.
pub fn synced(revision: &str) -> Json {
    json!({"sync": {"status": "Synced", "revision": revision}, "health": {"status": "Healthy"},
        "reconciledAt": "2026-01-01T00:00:00Z", "operationState": operation("Succeeded", revision, "successfully synced")})
}

/// The state of a sync to a revision.
pub fn operation(phase: &str, revision: &str, message: &str) -> Json {
    json!({"phase": phase, "message": message, "startedAt": "2026-01-01T00:00:00Z",
        "operation": {"sync": {"revision": revision}}, "syncResult": {"revision": revision}})
}

fn wave(object: &Json) -> i64 {
    let wave = object["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"].as_str();
    wave.and_then(|wave| wave.parse().ok()).unwrap_or(0)
}

/// Argo CD's mark of an object: `app:group/Kind:namespace/name`.
fn tracking(application: &str, object: &Json) -> String {
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let api_version = text(&object["apiVersion"]);
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    let metadata = &object["metadata"];
    let kind = text(&object["kind"]);
    format!("{application}:{group}/{kind}:{}/{}", text(&metadata["namespace"]), text(&metadata["name"]))
}
