//! `berth sync` that keeps running against a test's control plane, until it is dropped.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use super::berth;
use super::member::Member;
use super::wait::{PATIENCE, seen_in_time};

pub struct Running<'m> {
    member: &'m Member,
    child: Child,
    log: tempfile::NamedTempFile,
}

impl Member {
    /// Starts `berth sync` for this member.
    pub fn keep_in_sync(&self, more: &[&str]) -> Running<'_> {
        let kubeconfig = self.plane.kubeconfig().to_str().expect("a text path");
        let log = tempfile::NamedTempFile::new().expect("a file");
        let mut command = berth();
        command.args(["sync", "--target", "kube", "--repo", self.repo.arg()]);
        command.args(["--cluster", &self.name, "--fleet", &self.name]);
        if !more.contains(&"--interval") {
            command.args(["--interval", "1"]);
        }
        if !more.contains(&"--kubeconfig") {
            command.args(["--kubeconfig", kubeconfig]);
        }
        command.args(more).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(log.reopen().expect("a file")).spawn().expect("berth starts");
        Running { member: self, child, log }
    }

    /// What the member last reported.
    pub fn status(&self) -> String {
        let name = format!("refs/berth/status/{}:status.yaml", self.name);
        let mut command = super::hermetic("git");
        let ran = super::Ran::of(command.current_dir(self.repo.path()).args(["cat-file", "-p", &name]));
        if ran.code == 0 { ran.out } else { String::new() }
    }

    /// Patches an object of the member's namespace, as a manager of some name would.
    pub fn patch_as(&self, manager: &str, kind: &str, name: &str, patch: &Json) {
        let manager = format!("--field-manager={manager}");
        let patch = patch.to_string();
        self.kubectl(&["patch", kind, name, "-n", &self.name, "--type=merge", &manager, "-p", &patch]);
    }
}

impl Running<'_> {
    #[allow(dead_code, reason = "the bench asks for it")]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log.path()).expect("a log")
    }

    /// Looks until there is something to see.
    #[track_caller]
    pub fn until<T>(&self, what: &str, look: impl FnMut() -> Option<T>) -> T {
        seen_in_time(look).unwrap_or_else(|| {
            panic!("not within {PATIENCE:?}: {what}\n{}\n{}", self.log(), self.member.status())
        })
    }

    /// Looks until the folder of this sequence is applied without a problem.
    #[track_caller]
    pub fn until_applied(&self, sequence: u64) {
        let said = format!("sequence: {sequence}\n");
        self.until(&said, || {
            let status = self.member.status();
            (status.contains(&said) && !status.contains("problems:")).then_some(())
        });
    }

    /// Looks until no request was made for a while, and gives all that were made so far.
    pub fn until_quiet(&self) -> Vec<(String, String)> {
        let (mut seen, mut since) = (self.member.requests(), Instant::now());
        self.until("no more requests", || {
            let now = self.member.requests();
            if now.len() != seen.len() {
                (seen, since) = (now, Instant::now());
            }
            (since.elapsed() >= Duration::from_secs(4)).then_some(())
        });
        seen
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
