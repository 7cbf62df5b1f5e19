//! Kubernetes control planes for tests: etcd, kube-apiserver and some controllers, each instance in
//! a folder and on ports of its own, stopped when its value is dropped or the test process dies.
//!
//! Nothing runs pods: a deployment gets its replica set and pods, which stay pending.

mod apart;
mod binaries;
mod together;

use std::path::{Path, PathBuf};
use std::process::Command;

use binaries::Binaries;
use kube::Client;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};

use super::hermetic;
use super::slots::{self, Slot};

/// What an instance is started with.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Keeps a line for every request, read by [`ControlPlane::requests`].
    pub audit: bool,
    /// Runs the controllers (deployments, replica sets, jobs, namespaces, garbage, service accounts).
    pub controllers: bool,
}

impl Wanted {
    /// The API server with its controllers and no audit log.
    pub const USUAL: Wanted = Wanted { audit: false, controllers: true };
    /// The API server alone.
    pub const SERVER_ONLY: Wanted = Wanted { audit: false, controllers: false };
    /// The usual, with an audit log.
    pub const AUDITED: Wanted = Wanted { audit: true, controllers: true };
}

/// A running control plane.
#[derive(Debug)]
pub struct ControlPlane {
    binaries: &'static Binaries,
    wanted: Wanted,
    running: Option<Running>,
    kubeconfig: PathBuf,
    data: tempfile::TempDir,
    /// Given back when the instance has stopped.
    slot: Option<Slot>,
}

/// Its processes, in either of the two ways they come.
#[derive(Debug)]
enum Running {
    Together(together::Process),
    Apart(apart::Processes),
}

impl ControlPlane {
    /// Starts an instance and waits until it can be used. Without the means for it, says so loudly
    /// and gives nothing, and the test returns; under `CI=true` the test fails.
    pub fn start(wanted: Wanted) -> Option<ControlPlane> {
        binaries::find(wanted)?;
        let slot = slots::CONTROL_PLANES.take();
        let mut plane = ControlPlane::start_beside(wanted)?;
        plane.slot = Some(slot);
        Some(plane)
    }

    /// [`ControlPlane::start`] for a test that holds a slot already, or for one instance that all tests share.
    pub fn start_beside(wanted: Wanted) -> Option<ControlPlane> {
        let binaries = binaries::find(wanted)?;
        let mut plane = ControlPlane {
            binaries,
            wanted,
            running: None,
            kubeconfig: PathBuf::new(),
            data: tempfile::tempdir().expect("a temporary folder"),
            slot: None,
        };
        plane.start_again();
        Some(plane)
    }

    /// Starts a stopped instance on the data it had.
    pub fn start_again(&mut self) {
        assert!(self.running.is_none(), "it is running");
        let (running, kubeconfig) = match self.binaries {
            Binaries::Together { folder } => {
                let (process, kubeconfig) = together::start(folder, self.data.path(), self.wanted);
                (Running::Together(process), kubeconfig)
            }
            Binaries::Apart { folder, .. } => {
                let (processes, kubeconfig) = apart::start(folder, self.data.path(), self.wanted);
                (Running::Apart(processes), kubeconfig)
            }
        };
        self.running = Some(running);
        self.kubeconfig = kubeconfig;
    }

    /// Asks it to stop and waits until it has, all of it.
    pub fn stop(&mut self) {
        match self.running.take() {
            Some(Running::Together(process)) => process.stop(),
            Some(Running::Apart(processes)) => processes.stop(),
            None => {}
        }
    }

    /// Ends it as a crash would.
    pub fn kill(&mut self) {
        match self.running.take() {
            Some(Running::Together(process)) => drop(process),
            Some(Running::Apart(processes)) => processes.stop(),
            None => {}
        }
    }

    /// Copies the data of a stopped instance.
    pub fn back_up(&self) -> tempfile::TempDir {
        assert!(self.running.is_none(), "it is running");
        let copy = tempfile::tempdir().expect("a temporary folder");
        copy_all(self.data.path(), copy.path());
        copy
    }

    /// Puts back what was copied, in place of the data of a stopped instance.
    pub fn restore(&mut self, copy: &tempfile::TempDir) {
        assert!(self.running.is_none(), "it is running");
        for entry in std::fs::read_dir(self.data.path()).expect("a folder").flatten() {
            let path = entry.path();
            let removed =
                if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
            removed.expect("it is removed");
        }
        copy_all(copy.path(), self.data.path());
    }

    /// The only context of the kubeconfig.
    pub const CONTEXT: &str = "test";

    /// The path of a kubeconfig of somebody who may do everything.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// A client for the same.
    pub async fn client(&self) -> Client {
        let kubeconfig = Kubeconfig::read_from(self.kubeconfig()).expect("a kubeconfig");
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .expect("a usable kubeconfig");
        // It listens on this machine, whatever proxy the machine uses for others.
        config.proxy_url = None;
        Client::try_from(config).expect("a client")
    }

    /// kubectl for this instance, with a home of its own.
    pub fn kubectl(&self) -> Command {
        let mut command = hermetic(self.binaries.kubectl().to_str().expect("a text path"));
        command.env("HOME", self.data.path()).env("KUBECONFIG", self.kubeconfig());
        command
    }

    /// The requests answered so far, oldest first, as Kubernetes audit events. A request shows up
    /// shortly after its answer.
    pub fn requests(&self) -> Vec<serde_json::Value> {
        assert!(self.wanted.audit, "started without an audit log");
        let text = std::fs::read_to_string(audit_log(self.data.path())).unwrap_or_default();
        // What follows the last line break is still being written.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).expect("an audit event")).collect()
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        self.kill();
        drop(self.slot.take());
    }
}

fn audit_log(data: &Path) -> PathBuf {
    data.join("audit.log")
}

fn copy_all(from: &Path, to: &Path) {
    super::Ran::of(hermetic("cp").arg("-R").arg(from.join(".")).arg(to)).expect(0);
}
