//! A member cluster for tests: a control plane that the tests of one run share, and a repository with
//! the folder that is to be applied there. Each member has a fleet of its own, so that none sees another.

use std::cell::{Cell, OnceCell};
use std::sync::{Arc, OnceLock};

use serde_json::{Value as Json, json};

use super::kube::{ControlPlane, Wanted};
use super::wait::pause;
use super::{Ran, Repo, berth, hermetic};

/// The control plane of all members, until the test process ends.
fn shared() -> Option<Arc<ControlPlane>> {
    static RUNNING: OnceLock<Option<Arc<ControlPlane>>> = OnceLock::new();
    RUNNING.get_or_init(|| ControlPlane::start_beside(Wanted::AUDITED).map(Arc::new)).clone()
}

pub struct Member {
    pub plane: Arc<ControlPlane>,
    pub repo: Repo,
    /// The fleet, the cluster and the namespace are all called so.
    pub name: String,
    sequence: Cell<u64>,
    set: OnceCell<String>,
}

impl Member {
    /// A member with a namespace of its own; nothing where there is no Kubernetes.
    pub fn new(name: &str) -> Option<Member> {
        Some(Member::of(shared()?, name))
    }

    /// The same, of a control plane of one's own.
    pub fn of(plane: Arc<ControlPlane>, name: &str) -> Member {
        let member = Member {
            plane,
            repo: Repo::new(),
            name: name.to_owned(),
            sequence: Cell::new(0),
            set: OnceCell::new(),
        };
        member.kubectl(&["create", "namespace", name]);
        member
    }

    /// Publishes a folder as the daemon does.
    pub fn publish(&self, objects: &[Json]) {
        self.publish_with(objects, &[]);
    }

    /// The same, with paths that an approval lets go.
    pub fn publish_with(&self, objects: &[Json], allow_prune: &[&str]) {
        let files: Vec<(String, Vec<u8>)> =
            objects.iter().map(|object| (place(object), object.to_string().into_bytes())).collect();
        self.publish_files(&files, allow_prune);
    }

    /// The same with files as they are.
    pub fn publish_files(&self, files: &[(String, Vec<u8>)], allow_prune: &[&str]) {
        self.publish_entries(files, &[], allow_prune);
    }

    /// The same with entries beside the files, as a line each: a mode, an id and a path.
    pub fn publish_entries(&self, files: &[(String, Vec<u8>)], entries: &[String], allow_prune: &[&str]) {
        self.sequence.set(self.sequence.get() + 1);
        let mut trailers = format!("Berth-Cluster: {}\nBerth-Seq: {}\n", self.name, self.sequence.get());
        for path in allow_prune {
            trailers.push_str(&format!("Berth-Allow-Prune: {path}\n"));
        }
        let folder = tempfile::tempdir().expect("a folder");
        for (path, bytes) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            std::fs::write(path, bytes).expect("a file");
        }
        let git = |args: &[&str]| {
            let mut command = hermetic("git");
            command.env("GIT_DIR", self.repo.path().join(".git"));
            command.env("GIT_WORK_TREE", folder.path()).env("GIT_INDEX_FILE", folder.path().join(".index"));
            command.env("GIT_AUTHOR_DATE", "1767225600 +0000").env("GIT_COMMITTER_DATE", "1767225600 +0000");
            Ran::of(command.current_dir(folder.path()).args(args)).expect(0).out.trim().to_owned()
        };
        if !files.is_empty() {
            git(&["add", "--", "."]);
            git(&["rm", "-q", "--cached", "--ignore-unmatch", ".index", ".index.lock"]);
        }
        for entry in entries {
            git(&["update-index", "--add", "--cacheinfo", entry]);
        }
        let tree = git(&["write-tree"]);
        let message = format!("berth: objects of {}\n\n{trailers}", self.name);
        let commit = git(&["commit-tree", "-m", &message, &tree]);
        git(&["update-ref", &format!("refs/berth/clusters/{}", self.name), &commit]);
    }

    /// `berth sync --once`, with patience for whatever takes a moment.
    pub fn sync(&self, more: &[&str]) -> Ran {
        let context = ["--context", ControlPlane::CONTEXT];
        self.sync_at(self.plane.kubeconfig().to_str().expect("a text path"), &[&context, more].concat())
    }

    pub fn sync_at(&self, kubeconfig: &str, more: &[&str]) -> Ran {
        let mut command = berth();
        command.args(["sync", "--once", "--target", "kube", "--repo", self.repo.arg()]);
        command.args(["--cluster", &self.name, "--kubeconfig", kubeconfig]);
        if !more.contains(&"--fleet") {
            command.args(["--fleet", &self.name]);
        }
        if !more.contains(&"--health-timeout") {
            command.args(["--health-timeout", "90"]);
        }
        Ran::of(command.args(more))
    }

    #[track_caller]
    pub fn kubectl(&self, args: &[&str]) -> String {
        Ran::of(self.plane.kubectl().args(args)).expect(0).out
    }

    /// An object of the member's namespace as it is. `None` where it is not there.
    pub fn get(&self, kind: &str, name: &str) -> Option<Json> {
        let args = [
            "get",
            kind,
            name,
            "-n",
            &self.name,
            "-o",
            "json",
            "--ignore-not-found",
            "--show-managed-fields",
        ];
        let text = self.kubectl(&args);
        (!text.trim().is_empty()).then(|| serde_json::from_str(&text).expect("JSON"))
    }

    /// Applies objects as a person would: with `kubectl apply`.
    pub fn kubectl_apply(&self, object: &Json, more: &[&str]) {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), object.to_string()).expect("a file");
        let mut args = vec!["apply", "-f", file.path().to_str().expect("a text path")];
        args.extend(more);
        self.kubectl(&args);
    }

    /// Plays the part of whoever writes an object's status.
    pub fn set_status(&self, kind: &str, name: &str, status: &Json) {
        let patch = json!({ "status": status }).to_string();
        self.kubectl(&[
            "patch",
            kind,
            name,
            "-n",
            &self.name,
            "--subresource=status",
            "--type=merge",
            "-p",
            &patch,
        ]);
    }

    /// The requests that berth has made for this member so far, as verb and resource. How it tells people what
    /// it did is left out.
    pub fn requests(&self) -> Vec<(String, String)> {
        let text =
            |event: &Json, at: &str| event.pointer(at).and_then(Json::as_str).unwrap_or_default().to_owned();
        let set = self.set_id();
        let events = self.plane.requests().into_iter();
        let events = events.filter(|event| text(event, "/userAgent").starts_with("berth/"));
        let tells = |event: &Json| {
            text(event, "/objectRef/resource") == "events"
                || text(event, "/objectRef/name").ends_with("-status")
        };
        let ours = events.filter(|event| !tells(event)).filter(|event| {
            let uri = text(event, "/requestURI");
            uri.contains(&format!("berth%2F{}", self.name))
                || uri.contains(&format!("/namespaces/{}", self.name))
                || uri.contains(&format!("/configmaps/berth-{}", self.name))
                || uri.contains(&set)
        });
        ours.map(|event| (text(&event, "/verb"), text(&event, "/objectRef/resource"))).collect()
    }

    /// What the parent object says its set is called.
    pub fn set_id(&self) -> String {
        if let Some(set) = self.set.get() {
            return set.clone();
        }
        let args =
            ["get", "configmap", &format!("berth-{}", self.name), "-n", "berth-system", "--ignore-not-found"];
        let path = "-ojsonpath={.metadata.labels.applyset\\.kubernetes\\.io/id}";
        let id = self.kubectl(&[&args[..], &[path]].concat());
        if id.is_empty() { "no set yet".to_owned() } else { self.set.get_or_init(|| id).clone() }
    }

    pub fn config_map(&self, name: &str, value: &str) -> Json {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": self.name, "annotations": {"berth.dev/workload": "F/x/app"}},
            "data": {"key": value},
        })
    }

    pub fn deployment(&self, name: &str, image: &str) -> Json {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": self.name, "annotations": {"berth.dev/workload": "F/x/app"}},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {"containers": [{"name": "main", "image": image}]},
                },
            },
        })
    }

    /// Plays the kubelet's part for a deployment's pods: all of them run and are ready.
    #[track_caller]
    pub fn make_healthy(&self, name: &str) {
        let selector = format!("app={name}");
        let status = json!({"status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        }})
        .to_string();
        for _ in 0..300 {
            let args = ["get", "pods", "-n", &self.name, "-l", &selector, "-o", "name"];
            for pod in self.kubectl(&args).lines() {
                let args = ["-n", &self.name, "--subresource=status", "--type=merge", "-p", &status];
                self.kubectl(&[&["patch", pod][..], &args].concat());
            }
            let deployment = self.get("deployment", name).expect("it is there");
            if deployment["status"]["availableReplicas"] == deployment["spec"]["replicas"] {
                return;
            }
            pause(std::time::Duration::from_millis(200), "the controllers make pods");
        }
        panic!("the pods of {name} do not become available");
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.plane.kubectl().args(["delete", "namespace", &self.name, "--wait=false"]).output();
    }
}

/// An object with one more annotation.
pub fn annotated(mut object: Json, name: &str, value: &str) -> Json {
    object["metadata"]["annotations"][name] = json!(value);
    object
}

/// Where an object's file is in a cluster's folder.
fn place(object: &Json) -> String {
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let folder = Some(text(&object["metadata"]["namespace"])).filter(|it| !it.is_empty());
    let version = text(&object["apiVersion"]);
    let group = version.split_once('/').map(|(group, _)| format!(".{group}")).unwrap_or_default();
    let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
    format!("{}/{kind}{group}_{name}.yaml", folder.unwrap_or_else(|| "_cluster".to_owned()))
}
