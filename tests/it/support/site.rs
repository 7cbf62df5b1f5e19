//! A fleet at a real server of Git, and the cluster `oslo`, whose folder another program applies. berth applies that of
//! `turin`.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value as Json, json};

use super::kube::ControlPlane;
use super::remote::{Fleet, Https, Server as _};
use super::wait::eventually;
use super::{RENDERED, Ran, Repo, berth};

pub struct Site {
    pub fleet: Fleet,
    pub server: Https,
    /// The cluster `oslo`.
    pub plane: ControlPlane,
    applier: &'static str,
}

impl Site {
    /// `None` where the machine lacks what it needs.
    pub fn of(people: Repo, plane: ControlPlane, applier: &'static str) -> Option<Site> {
        let fleet = Fleet::of(people);
        let server = Https::new(fleet.root())?;
        Some(Site { fleet, server, plane, applier })
    }

    pub fn pass(&self) -> Ran {
        self.fleet.run_once(&self.server, &[])
    }

    /// Commits files, pushes and publishes them.
    pub fn edit(&self, files: &[(&str, &str)], message: &str) -> Ran {
        self.push(files, message);
        self.pass()
    }

    /// The same without the gate, so that no approval travels to the member.
    pub fn edit_ungated(&self, path: &str, text: &str, message: &str) -> Ran {
        self.push(&[(path, text)], message);
        let most = ["--max-removed-objects", "100%", "--max-removed-clusters", "100%"];
        self.fleet.run_once(&self.server, &[&["--allow-risky-removals"][..], &most].concat())
    }

    fn push(&self, files: &[(&str, &str)], message: &str) {
        files.iter().for_each(|(path, text)| self.fleet.people.write(path, text));
        self.fleet.people.commit(message);
        self.fleet.push();
    }

    /// Applies what the documented `berth join` writes for the program.
    pub fn join(&self, more: &[&str]) {
        let out = self.fleet.root().join(self.applier);
        let mut command = berth();
        command.args(self.documented("berth join oslo ", &out)).args(more);
        let ran = Ran::of(command.args(["--repo", self.fleet.people.arg()])).expect(0);
        let file = out.join("oslo.yaml");
        assert_eq!(ran.out.trim(), file.display().to_string());
        self.kubectl(&["apply", "--server-side", "-f", file.to_str().expect("text")]).expect(0);
    }

    pub fn kubectl(&self, args: &[&str]) -> Ran {
        Ran::of(self.plane.kubectl().args(args))
    }

    /// An object of the namespace `shop`, or one without a namespace.
    pub fn get(&self, kind: &str, name: &str) -> Option<Json> {
        let ran = self.kubectl(&["get", kind, name, "-n", "shop", "-o", "json"]);
        (ran.code == 0).then(|| ran.json())
    }

    /// Reports whether an object is there and nobody has removed it.
    pub fn stays(&self, kind: &str, name: &str) -> bool {
        self.get(kind, name).is_some_and(|it| it["metadata"]["deletionTimestamp"].is_null())
    }

    /// The arguments of a command of docs/neighbours.md, for this server.
    fn documented(&self, start: &str, out: &Path) -> Vec<String> {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/neighbours.md");
        let page = std::fs::read_to_string(page).expect("the page").replace("\\\n", " ");
        let ours = format!("--applier {} ", self.applier);
        let command = page.lines().find(|line| line.starts_with(start) && line.contains(&ours));
        let here = |word: &str| match word {
            "https://git.example.com/team/fleet.git" => self.server.url(),
            word => word.to_owned(),
        };
        let mut words: Vec<String> =
            command.expect("the command").split_whitespace().skip(1).map(here).collect();
        if let Some(at) = words.iter().position(|word| word == "--applier-out") {
            words[at + 1] = out.display().to_string();
        }
        words
    }

    /// The documented `berth sync` of the cluster.
    pub fn reporter(&self, more: &[&str]) -> Command {
        let mut command = berth();
        command.args(self.documented("berth sync --cluster oslo ", self.fleet.root())).arg("--kubeconfig");
        command.arg(self.plane.kubeconfig()).arg("--repo").arg(self.fleet.root().join("copies/oslo"));
        // The documented command names the remote.
        command.args(self.server.access().into_iter().skip(2)).args(more);
        self.server.set_secrets(&mut command);
        command
    }

    /// `berth sync --once` of `turin` by berth itself, to another control plane.
    pub fn sync_turin(&self, plane: &ControlPlane) -> Ran {
        let mut command = berth();
        command.args(["sync", "--once", "--cluster", "turin", "--target", "kube", "--health-timeout", "0"]);
        command.arg("--kubeconfig").arg(plane.kubeconfig());
        command.arg("--repo").arg(self.fleet.root().join("copies/turin")).args(self.server.access());
        self.server.set_secrets(&mut command);
        Ran::of(&mut command)
    }

    fn report(&self) -> String {
        match self.fleet.has("refs/berth/status/oslo") {
            true => self.fleet.bare(&["show", "refs/berth/status/oslo:status.yaml"]),
            false => String::new(),
        }
    }

    /// Waits for a report on the cluster's present folder.
    #[track_caller]
    pub fn until_reported(&self, holds: impl Fn(&str) -> bool) -> String {
        let tree = self.fleet.bare(&["rev-parse", &format!("{RENDERED}:clusters/oslo")]);
        eventually("the report of oslo", || {
            Some(self.report()).filter(|report| report.contains(&tree) && holds(report))
        })
    }

    /// Writes what the Deployment's controller would, once it has this image.
    pub fn set_status(&self, tag: &str, is_well: bool) {
        let web = eventually(&format!("the Deployment has {tag}"), || {
            let web = self.get("deployment", "web")?;
            (web["spec"]["template"]["spec"]["containers"][0]["image"] == image(tag)).then_some(web)
        });
        let (status, reason) = match is_well {
            true => ("True", "NewReplicaSetAvailable"),
            false => ("False", "ProgressDeadlineExceeded"),
        };
        let moment = "2026-01-01T00:00:00Z";
        let ready = i32::from(is_well);
        let mut said =
            json!({"replicas": 1, "updatedReplicas": 1, "readyReplicas": ready, "availableReplicas": ready});
        said["observedGeneration"] = web["metadata"]["generation"].clone();
        let available = if is_well { "True" } else { "False" };
        said["conditions"] = json!([
            {"type": "Progressing", "status": status, "reason": reason, "message": "said so", "lastUpdateTime": moment, "lastTransitionTime": moment},
            {"type": "Available", "status": available, "reason": "x", "message": "y", "lastUpdateTime": moment, "lastTransitionTime": moment},
        ]);
        self.patch_status("deployment", "web", &said);
    }

    /// Goes from `web:1` by way of a bad image to `web:3`, and expects that `turin` never gets the bad one. Returns the
    /// report on it.
    #[track_caller]
    pub fn halts_at_a_bad_image(&self, web: &dyn Fn(&str) -> String, publish: impl Fn() -> Ran) -> String {
        let edit = |tag: &str| {
            self.push(&[("apps/web.yaml", &web(tag))], &format!("web:{tag}"));
            publish().expect(0);
        };
        self.set_status("1", true);
        self.until_reported(is_well);
        publish().expect(0);
        assert_eq!(tags(&self.fleet), ["1", "1"]);

        edit("2-typo");
        self.set_status("2-typo", false);
        let said = self.until_reported(|report| report.contains("problems:"));
        let ran = publish().expect(0);
        let halted = "is halted: oslo failed: Deployment.apps shop/web";
        assert!(ran.err.contains(halted), "{}{}", ran.out, ran.err);
        assert_eq!(tags(&self.fleet), ["2-typo", "1"]);

        edit("3");
        self.set_status("3", true);
        self.until_reported(is_well);
        publish().expect(0);
        assert_eq!(tags(&self.fleet), ["3", "3"]);
        said
    }

    /// Writes the status of an object of the namespace `shop`.
    pub fn patch_status(&self, kind: &str, name: &str, status: &Json) {
        let patch = json!({ "status": status }).to_string();
        let args = ["patch", kind, name, "-n", "shop", "--subresource=status", "--type=merge", "-p", &patch];
        self.kubectl(&args).expect(0);
    }
}

/// A reporter that keeps running.
pub struct Running(Child);

impl Running {
    pub fn start(site: &Site) -> Running {
        let mut command = site.reporter(&["--interval", "1", "--fetch-interval", "1"]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Running(child.expect("berth starts"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The image of the Deployment `web`.
pub fn image(tag: &str) -> String {
    format!("registry.example.com/web:{tag}")
}

/// The tags of the image that `oslo` and `turin` should have.
pub fn tags(fleet: &Fleet) -> [String; 2] {
    ["oslo", "turin"].map(|cluster| {
        let path = format!("{RENDERED}:clusters/{cluster}/shop/Deployment.apps_web.yaml");
        let text = if fleet.has(&path) { fleet.bare(&["show", &path]) } else { String::new() };
        let image =
            text.lines().find_map(|line| line.trim().trim_start_matches("- ").strip_prefix("image: "));
        image.unwrap_or("-").rsplit(':').next().unwrap_or_default().to_owned()
    })
}

/// Reports whether a report says that all is done and well.
pub fn is_well(report: &str) -> bool {
    !report.contains("progressing:") && !report.contains("problems:")
}

/// An object without what differs from server to server, and what those who apply it add for themselves.
pub fn comparable(mut object: Json) -> Json {
    let metadata = object["metadata"].as_object_mut().expect("metadata");
    for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"] {
        metadata.remove(field);
    }
    let own = |name: &str| {
        name.starts_with("kustomize.toolkit.fluxcd.io/")
            || name.starts_with("argocd.argoproj.io/")
            || name.starts_with("applyset.kubernetes.io/")
            || name == "berth.dev/applied"
    };
    for map in ["labels", "annotations"] {
        if let Some(map) = metadata.get_mut(map).and_then(Json::as_object_mut) {
            map.retain(|name, _| !own(name));
        }
        if metadata.get(map).is_some_and(|map| map.as_object().is_some_and(serde_json::Map::is_empty)) {
            metadata.remove(map);
        }
    }
    if let Some(spec) = object.get_mut("spec").and_then(Json::as_object_mut) {
        spec.remove("clusterIP");
        spec.remove("clusterIPs");
    }
    object.as_object_mut().expect("an object").remove("status");
    object
}
