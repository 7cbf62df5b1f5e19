//! A fleet of which everything is real: a Git server, and members with a control plane each. The test plays the
//! controllers and the kubelet alone.

use std::process::{Child, Stdio};

use serde_json::{Value as Json, json};

use super::kube::{ControlPlane, Wanted};
use super::remote::{Fleet, Plain, Server as _};
use super::slots::{self, Slot};
use super::wait::eventually;
use super::{RENDERED, Ran, Repo, berth, run};

/// A cluster with a syncer that keeps running, until it is stopped.
pub struct Member {
    pub name: String,
    pub plane: ControlPlane,
    syncer: Option<Child>,
}

pub struct RealFleet {
    pub fleet: Fleet,
    pub server: Plain,
    pub members: Vec<Member>,
    _slot: Slot,
}

impl RealFleet {
    /// Members of these names, over what people have committed. `None` where the machine lacks what it needs.
    pub fn of(people: Repo, names: &[&str]) -> Option<RealFleet> {
        let slot = slots::CONTROL_PLANES.take();
        let starting: Vec<_> = names
            .iter()
            .map(|_| std::thread::spawn(|| ControlPlane::start_beside(Wanted::SERVER_ONLY)))
            .collect();
        let mut members = Vec::new();
        for (name, starting) in names.iter().zip(starting) {
            let plane = starting.join().expect("a control plane")?;
            members.push(Member { name: (*name).to_owned(), plane, syncer: None });
        }
        let fleet = Fleet::of(people);
        let server = Plain::new(fleet.root());
        Some(RealFleet { fleet, server, members, _slot: slot })
    }

    /// Starts the syncer of a member.
    pub fn start(&mut self, name: &str, more: &[&str]) {
        let copy = self.fleet.root().join("copies").join(name);
        let access = self.server.access();
        let member = self.members.iter_mut().find(|member| member.name == name).expect("a member");
        let mut command = berth();
        command.args([
            "sync",
            "--target",
            "kube",
            "--cluster",
            name,
            "--interval",
            "1",
            "--fetch-interval",
            "1",
        ]);
        command.arg("--kubeconfig").arg(member.plane.kubeconfig()).arg("--repo").arg(copy);
        command.args(access).args(more).stdin(Stdio::null()).stdout(Stdio::null());
        member.syncer = Some(command.stderr(Stdio::null()).spawn().expect("berth starts"));
    }

    pub fn stop(&mut self, name: &str) {
        let member = self.members.iter_mut().find(|member| member.name == name).expect("a member");
        member.stop();
    }

    /// `berth run --once` through the server.
    pub fn pass(&self) -> Ran {
        self.fleet.run_once(&self.server, &[])
    }

    /// Commits a change, and pushes it.
    pub fn edit(&self, path: &str, text: &str, message: &str) {
        self.fleet.people.write(path, text);
        self.fleet.people.commit(message);
        self.fleet.push();
    }

    pub fn member(&self, name: &str) -> &Member {
        self.members.iter().find(|member| member.name == name).expect("a member")
    }

    /// The member's last report.
    pub fn report(&self, name: &str) -> String {
        let status = format!("refs/berth/status/{name}");
        if !self.fleet.has(&status) {
            return String::new();
        }
        self.fleet.bare(&["show", &format!("{status}:status.yaml")])
    }

    /// Waits for a report on the member's present folder that holds what is wanted.
    #[track_caller]
    pub fn until_reported(&self, name: &str, is_wanted: impl Fn(&str) -> bool) {
        let tree = self.fleet.bare(&["rev-parse", &format!("{RENDERED}:clusters/{name}")]);
        eventually(&format!("the report of {name}"), || {
            let report = self.report(name);
            (report.contains(&tree) && is_wanted(&report)).then_some(())
        });
    }

    /// Each commit of the rendered branch, the first one first: its number, its subject, and what it says of releases.
    pub fn story(&self) -> String {
        let log = self.fleet.bare(&["log", "--reverse", "--format=%x00%s%n%b", RENDERED]);
        let tell = |(number, message): (usize, &str)| {
            let mut lines = message.lines();
            let subject = lines.next().unwrap_or_default();
            let releases = lines
                .filter(|line| line.starts_with("ManifestWorkReplicaSet") && line.contains(": release "));
            let releases: String = releases.map(|line| format!("   {line}\n")).collect();
            format!("{number}. {subject}\n{releases}")
        };
        log.split('\0').enumerate().skip(1).map(tell).collect()
    }

    /// The paths of a revision.
    pub fn files(&self, revision: &str) -> String {
        self.fleet.bare(&["ls-tree", "-r", "--name-only", revision])
    }

    #[track_caller]
    pub fn verify(&self) -> Ran {
        run(&["verify", "--repo", self.fleet.bare_path().to_str().expect("text")]).expect(0)
    }
}

impl Member {
    fn kubectl(&self, args: &[&str]) -> Ran {
        Ran::of(self.plane.kubectl().args(args))
    }

    /// An object of the namespace `shop`, where it is there.
    pub fn get(&self, kind: &str, name: &str) -> Option<Json> {
        let ran = self.kubectl(&["get", kind, name, "-n", "shop", "-o", "json"]);
        (ran.code == 0).then(|| ran.json())
    }

    /// The image that the Deployment `web` asks for.
    pub fn image(&self) -> Option<String> {
        let web = self.get("deployment", "web")?;
        web["spec"]["template"]["spec"]["containers"][0]["image"].as_str().map(str::to_owned)
    }

    /// Sets or takes off finalizers of the Deployment `web`.
    pub fn hold_back(&self, finalizers: &Json) {
        let patch = json!({"metadata": { "finalizers": finalizers }}).to_string();
        self.kubectl(&["patch", "deployment", "web", "-n", "shop", "--type=merge", "-p", &patch]).expect(0);
    }

    /// Waits for an image, and writes what the Deployment's controller would write when its pods are ready.
    #[track_caller]
    pub fn pods_run(&self, image: &str) {
        let ready = json!({"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1});
        let says =
            condition("Progressing", "True", "NewReplicaSetAvailable", "it has successfully progressed.");
        self.set_status(image, ready, says);
    }

    /// The same where no new pod gets ready within the deadline.
    #[track_caller]
    pub fn pods_fail(&self, image: &str) {
        let ready = json!({"replicas": 2, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
            "unavailableReplicas": 1});
        let message = "ReplicaSet \"web-6d4cf56db6\" has timed out progressing.";
        self.set_status(image, ready, condition("Progressing", "False", "ProgressDeadlineExceeded", message));
    }

    #[track_caller]
    fn set_status(&self, image: &str, mut status: Json, condition: Json) {
        let web = eventually(&format!("{} has {image}", self.name), || {
            let web = self.get("deployment", "web")?;
            (web["spec"]["template"]["spec"]["containers"][0]["image"] == image).then_some(web)
        });
        status["observedGeneration"] = web["metadata"]["generation"].clone();
        status["conditions"] = json!([condition]);
        let patch = json!({ "status": status }).to_string();
        let args = ["patch", "deployment", "web", "-n", "shop", "--subresource=status", "--type=merge", "-p"];
        self.kubectl(&[&args[..], &[&patch]].concat()).expect(0);
    }

    fn stop(&mut self) {
        if let Some(mut syncer) = self.syncer.take() {
            let _ = syncer.kill();
            let _ = syncer.wait();
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.stop();
    }
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Json {
    let moment = "2026-01-01T00:00:00Z";
    json!({"type": kind, "status": status, "reason": reason, "message": message,
        "lastUpdateTime": moment, "lastTransitionTime": moment})
}
