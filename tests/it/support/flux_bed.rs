//! A fleet with a cluster that the real Flux applies: a server of Git, the binary, a control plane.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value as Json, json};

use super::flux::Flux;
use super::kube::{ControlPlane, Wanted};
use super::remote::{Fleet, Https, PASSWORD, Server as _};
use super::wait::eventually;
use super::{RENDERED, Ran, Repo, berth};

/// A fleet at a real server of Git, and a cluster with Flux.
pub struct Bed {
    pub fleet: Fleet,
    pub server: Https,
    pub plane: ControlPlane,
    pub flux: Flux,
}

impl Bed {
    pub fn of(people: Repo) -> Option<Bed> {
        let controllers = Flux::made()?;
        let plane = ControlPlane::start(Wanted::SERVER_ONLY)?;
        let flux = Flux::start(&controllers, &plane);
        let fleet = Fleet::of(people);
        let server = Https::new(fleet.root())?;
        Some(Bed { fleet, server, plane, flux })
    }

    pub fn pass(&self) -> Ran {
        self.fleet.run_once(&self.server, &[])
    }

    /// Commits files, pushes and publishes them.
    pub fn edit(&self, files: &[(&str, &str)], message: &str) -> Ran {
        files.iter().for_each(|(path, text)| self.fleet.people.write(path, text));
        self.fleet.people.commit(message);
        self.fleet.push();
        self.pass()
    }

    /// Gives Flux the credentials, and what `berth join` writes for it.
    pub fn join(&self, more: &[&str]) {
        let ca = format!("--from-file=ca.crt={}", self.fleet.root().join("cert.pem").display());
        let (user, password) = ("--from-literal=username=ann", format!("--from-literal=password={PASSWORD}"));
        self.kubectl(&["create", "secret", "generic", "pull", "-n", "flux-system", &ca, user, &password])
            .expect(0);
        let out = self.fleet.root().join("flux");
        let mut command = berth();
        command.args(self.documented("berth join oslo ", &out)).args(["--source-interval", "1s"]).args(more);
        let ran = Ran::of(command.args(["--repo", self.fleet.people.arg()])).expect(0);
        let file = out.join("oslo.yaml");
        assert_eq!(ran.out.trim(), file.display().to_string());
        self.kubectl(&["apply", "--server-side", "-f", file.to_str().expect("text")]).expect(0);
    }

    pub fn kubectl(&self, args: &[&str]) -> Ran {
        Ran::of(self.plane.kubectl().args(args))
    }

    pub fn get(&self, kind: &str, name: &str) -> Option<Json> {
        let ran = self.kubectl(&["get", kind, name, "-n", "shop", "-o", "json"]);
        (ran.code == 0).then(|| ran.json())
    }

    /// The commit that Flux should be at.
    pub fn revision(&self) -> String {
        format!(
            "berth/clusters/oslo@sha1:{}",
            self.fleet.bare(&["rev-parse", "refs/heads/berth/clusters/oslo"])
        )
    }

    /// The arguments of a command of docs/neighbours.md, for this server.
    fn documented(&self, start: &str, out: &Path) -> Vec<String> {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/neighbours.md");
        let page = std::fs::read_to_string(page).expect("the page").replace("\\\n", " ");
        let command = page.lines().find(|line| line.starts_with(start)).expect("the command");
        let here = |word: &str| match word {
            "https://git.example.com/team/fleet.git" => self.server.url(),
            word => word.to_owned(),
        };
        let mut words: Vec<String> = command.split_whitespace().skip(1).map(here).collect();
        if let Some(at) = words.iter().position(|word| word == "--applier-out") {
            words[at + 1] = out.display().to_string();
        }
        words
    }

    /// `berth sync` of the cluster that Flux applies.
    pub fn reporter(&self, more: &[&str]) -> Command {
        let mut command = berth();
        command.args(self.documented("berth sync --cluster oslo ", self.fleet.root())).arg("--kubeconfig");
        command.arg(self.plane.kubeconfig()).arg("--repo").arg(self.fleet.root().join("copies/oslo"));
        // The documented command names the remote.
        command.args(self.server.access().into_iter().skip(2)).args(more);
        self.server.set_secrets(&mut command);
        command
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
        let counts = json!({"replicas": 1, "updatedReplicas": 1, "readyReplicas": i32::from(is_well), "availableReplicas": i32::from(is_well)});
        let mut said = counts;
        said["observedGeneration"] = web["metadata"]["generation"].clone();
        let available = if is_well { "True" } else { "False" };
        said["conditions"] = json!([
            {"type": "Progressing", "status": status, "reason": reason, "message": "said so", "lastUpdateTime": moment, "lastTransitionTime": moment},
            {"type": "Available", "status": available, "reason": "x", "message": "y", "lastUpdateTime": moment, "lastTransitionTime": moment},
        ]);
        let patch = json!({ "status": said }).to_string();
        let args = [
            "patch",
            "deployment",
            "web",
            "-n",
            "shop",
            "--subresource=status",
            "--type=merge",
            "-p",
            &patch,
        ];
        self.kubectl(&args).expect(0);
    }
}

/// A reporter that keeps running.
pub struct Running(Child);

impl Running {
    pub fn start(bed: &Bed) -> Running {
        let mut command = bed.reporter(&["--interval", "1", "--fetch-interval", "1"]);
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
