//! A fleet with a cluster that the real Argo CD applies: its repo-server, its application-controller and, where wanted,
//! its applicationset-controller, with the Redis that they share, on free ports of the loopback address. They stop when
//! the value is dropped or the test process dies.

use std::fs::File;
use std::net::TcpStream;
use std::ops::Deref;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use serde_json::{Value as Json, json};

use super::kube::{ControlPlane, Wanted};
use super::ports::free_port;
use super::remote::PASSWORD;
use super::site::Site;
use super::wait::until;
use super::{Repo, argocd, hermetic};

/// Runs `"$@"`, ends it at the end of input, and waits until it is gone.
const GUARD: &str = r#""$@" </dev/null & program=$!; cat >/dev/null; kill "$program"; wait "$program"; true"#;

/// A site with Argo CD, which knows the Git server, and the cluster by the name `oslo`.
pub struct Bed {
    /// Before the site, so that Argo CD stops while its cluster is there.
    running: Vec<Child>,
    site: Site,
    programs: PathBuf,
    repositories: u16,
    data: tempfile::TempDir,
}

impl Deref for Bed {
    type Target = Site;

    fn deref(&self) -> &Site {
        &self.site
    }
}

impl Bed {
    /// A bed whose test plays the cluster's controllers. `None` where the machine lacks what it needs.
    pub fn of(people: Repo) -> Option<Bed> {
        Bed::on(people, Wanted::SERVER_ONLY)
    }

    pub fn on(people: Repo, wanted: Wanted) -> Option<Bed> {
        let programs = argocd::made()?;
        let plane = ControlPlane::start(wanted)?;
        argocd::install(&programs, &plane);
        let site = Site::of(people, plane, "argocd")?;
        let data = tempfile::tempdir().expect("a folder");
        let mut bed = Bed { running: Vec::new(), site, programs, repositories: free_port(), data };
        bed.set_up();
        let redis = free_port();
        bed.serve(redis);
        let arguments = [
            format!("--repo-server=127.0.0.1:{}", bed.repositories),
            "--repo-server-plaintext".to_owned(),
            format!("--metrics-port={}", free_port()),
            format!("--redis=127.0.0.1:{redis}"),
            format!("--namespace={}", argocd::NAMESPACE),
        ];
        bed.run("argocd-application-controller", &arguments);
        Some(bed)
    }

    /// Starts the controller of ApplicationSets, too.
    pub fn start_sets(&mut self) {
        let arguments = [
            format!("--argocd-repo-server=127.0.0.1:{}", self.repositories),
            "--repo-server-plaintext".to_owned(),
            format!("--metrics-addr=127.0.0.1:{}", free_port()),
            format!("--probe-addr=127.0.0.1:{}", free_port()),
            format!("--webhook-addr=127.0.0.1:{}", free_port()),
            format!("--namespace={}", argocd::NAMESPACE),
        ];
        self.run("argocd-applicationset-controller", &arguments);
    }

    /// Has the ApplicationSet look at its clusters now, and waits until it has.
    pub fn refresh_set(&self) {
        let mark = "argocd.argoproj.io/application-set-refresh";
        let set = ["annotate", "applicationsets.argoproj.io", "berth", "-n", argocd::NAMESPACE];
        self.kubectl(&[&set[..], &[&format!("{mark}=true")]].concat()).expect(0);
        self.until("applicationset", "berth", |it| it["metadata"]["annotations"][mark].is_null());
    }

    /// The commit that Argo CD should be at.
    pub fn revision(&self) -> String {
        self.fleet.bare(&["rev-parse", "refs/heads/berth/clusters/oslo"])
    }

    /// Waits until Argo CD's sync of the cluster's folder succeeded, or there was nothing to do for it.
    #[track_caller]
    pub fn until_applied(&self, revision: &str) {
        self.until("application", "berth-oslo", |it| {
            let (done, seen) = (&it["status"]["operationState"], &it["status"]["sync"]);
            (done["phase"] == "Succeeded" && done["syncResult"]["revision"] == revision)
                || (seen["status"] == "Synced" && seen["revision"] == revision)
        });
    }

    /// Waits until an object of Argo CD is as wanted, and shows the logs where it does not become so.
    #[track_caller]
    pub fn until(&self, kind: &str, name: &str, holds: impl Fn(&Json) -> bool) -> Json {
        let kind = format!("{kind}s.argoproj.io");
        let read = || {
            let ran = self.kubectl(&["get", &kind, name, "-n", argocd::NAMESPACE, "-o", "json"]);
            (ran.code == 0).then(|| ran.json())
        };
        let seen = super::wait::seen_in_time(|| read().filter(|object| holds(object)));
        seen.unwrap_or_else(|| {
            panic!("{kind} {name}: {:#?}\n{}", read().map(|it| it["status"].clone()), self.log())
        })
    }

    /// The end of what each part has logged.
    pub fn log(&self) -> String {
        let files = std::fs::read_dir(self.data.path()).expect("a folder").map(|it| it.expect("it").path());
        let logs = files.filter(|path| path.extension().is_some_and(|end| end == "log"));
        let end = |path: PathBuf| {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            format!("{}\n{}\n\n", path.display(), lines[lines.len().saturating_sub(30)..].join("\n"))
        };
        logs.map(end).collect()
    }

    /// Tells Argo CD of a cluster, by the name that it has in the fleet.
    pub fn add_cluster(&self, name: &str) {
        let config = self.kubectl(&["config", "view", "--raw", "--flatten", "-o", "json"]).expect(0).json();
        let (cluster, user) = (&config["clusters"][0]["cluster"], &config["users"][0]["user"]);
        let tls = json!({"caData": cluster["certificate-authority-data"],
            "certData": user["client-certificate-data"], "keyData": user["client-key-data"]});
        let access = json!({"bearerToken": user["token"], "tlsClientConfig": tls}).to_string();
        let server = cluster["server"].as_str().expect("an address");
        self.add_secret("cluster", name, &json!({"name": name, "server": server, "config": access}));
    }

    /// Applies a Secret that Argo CD reads.
    fn add_secret(&self, kind: &str, name: &str, data: &Json) {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "stringData": data, "metadata": {
            "name": format!("{kind}-{name}"), "namespace": argocd::NAMESPACE,
            "labels": {"argocd.argoproj.io/secret-type": kind}}});
        self.apply(&secret.to_string());
    }

    /// Applies manifests.
    pub fn apply(&self, manifests: &str) {
        let file = self.data.path().join("apply.yaml");
        std::fs::write(&file, manifests).expect("a file");
        self.kubectl(&["apply", "--server-side", "-f", file.to_str().expect("text")]).expect(0);
    }

    /// Writes what an installation of Argo CD has, the credentials, and the certificate of the Git server.
    fn set_up(&self) {
        let named = |name: &str| {
            json!({"name": name, "namespace": argocd::NAMESPACE,
                "labels": {"app.kubernetes.io/part-of": "argocd"}})
        };
        let objects = [
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": named("argocd-cm")}),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": named("argocd-secret"),
                "stringData": {"server.secretkey": "a key of tests"}}),
            json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
                "metadata": {"name": "default", "namespace": argocd::NAMESPACE},
                "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}],
                    "clusterResourceWhitelist": [{"group": "*", "kind": "*"}]}}),
        ];
        self.apply(&json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string());
        let git = json!({"type": "git", "url": self.server.url(), "username": "ann", "password": PASSWORD});
        self.add_secret("repository", "fleet", &git);
        self.add_cluster("oslo");
        let certificates = self.certificates();
        std::fs::create_dir(&certificates).expect("a folder");
        std::fs::copy(self.fleet.root().join("cert.pem"), certificates.join("127.0.0.1")).expect("a copy");
    }

    /// Starts Redis and the repo-server.
    fn serve(&mut self, redis: u16) {
        let folder = self.data.path().display().to_string();
        let port = redis.to_string();
        let arguments = ["--bind", "127.0.0.1", "--port", &port, "--save", "", "--dir", &folder];
        self.run("redis-server", &arguments.map(str::to_owned));
        let arguments = [
            "--address=127.0.0.1".to_owned(),
            format!("--port={}", self.repositories),
            "--metrics-address=127.0.0.1".to_owned(),
            format!("--metrics-port={}", free_port()),
            "--disable-tls".to_owned(),
            // The certificates of its clients, which is at this place by default.
            "--client-ca-path=".to_owned(),
            format!("--redis=127.0.0.1:{redis}"),
        ];
        self.run("argocd-repo-server", &arguments);
        for port in [redis, self.repositories] {
            until("a part of Argo CD listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        }
    }

    fn run(&mut self, part: &str, arguments: &[String]) {
        let folder = self.data.path().join(part);
        std::fs::create_dir(&folder).expect("a folder");
        let log = File::create(self.data.path().join(format!("{part}.log"))).expect("a file");
        let mut path = vec![self.programs.clone()];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        let mut command = hermetic("sh");
        command
            .args(["-c", GUARD, "sh"])
            .arg(self.programs.join(part))
            .args(arguments)
            // git asks the program `argocd` for passwords.
            .env("PATH", std::env::join_paths(path).expect("folders"))
            .env("LD_LIBRARY_PATH", &self.programs)
            .env("KUBECONFIG", self.plane.kubeconfig())
            .env("HOME", &folder)
            .env("TMPDIR", &folder)
            .env("ARGOCD_ASK_PASS_SOCK", folder.join("ask-pass.sock"))
            .env("ARGOCD_GPG_ENABLED", "false")
            .env("ARGOCD_TLS_DATA_PATH", self.certificates())
            // Looks for new revisions this often.
            .env("ARGOCD_RECONCILIATION_TIMEOUT", "2s")
            .env("ARGOCD_RECONCILIATION_JITTER", "0s")
            .stdin(Stdio::piped())
            .stdout(log.try_clone().expect("a handle"))
            .stderr(log);
        self.running.push(command.spawn().expect("sh starts"));
    }

    fn certificates(&self) -> PathBuf {
        self.data.path().join("certificates")
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        for child in self.running.iter_mut().rev() {
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}
