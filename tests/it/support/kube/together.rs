//! Runs our own control plane: one process, which says when it is ready and stops when its standard
//! input closes, so that it never outlives the test.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::channel;

use super::super::hermetic;
use super::super::wait::{PATIENCE, seen_in_time};
use super::{Wanted, audit_log};

#[derive(Debug)]
pub struct Process {
    child: Child,
}

/// Starts it and waits for the line that says it is ready; gives the kubeconfig named there.
pub fn start(folder: &Path, data: &Path, wanted: Wanted) -> (Process, PathBuf) {
    let errors = data.join("stderr.log");
    let mut command = hermetic(folder.join("control-plane").to_str().expect("a text path"));
    command.arg("-until-stdin-closes").arg("-data").arg(data);
    if wanted.audit {
        command.arg("-audit-log").arg(audit_log(data));
    }
    if !wanted.controllers {
        command.args(["-controllers", ""]);
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(File::create(&errors).expect("a file"))
        .spawn()
        .expect("the control plane starts");
    let stdout = child.stdout.take().expect("a pipe");
    let process = Process { child };
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let _ = BufReader::new(stdout).read_line(&mut line);
        let _ = sender.send(line);
    });
    let line = lines.recv_timeout(PATIENCE).unwrap_or_default();
    let ready: serde_json::Value = serde_json::from_str(&line).unwrap_or_else(|_| {
        let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
        let log = read(&data.join("control-plane.log"));
        let tail: Vec<&str> = log.lines().rev().take(30).collect();
        panic!(
            "no control plane: {}\n{}",
            read(&errors),
            tail.into_iter().rev().collect::<Vec<_>>().join("\n")
        )
    });
    let kubeconfig = ready["kubeconfig"].as_str().expect("the path of a kubeconfig");
    (process, PathBuf::from(kubeconfig))
}

impl Process {
    /// Closes its input, as the death of this process would, and waits for its end.
    pub fn stop(mut self) {
        drop(self.child.stdin.take());
        let status = wait(&mut self.child).expect("it stops when its input closes");
        assert!(status.success(), "it stops cleanly, not with {status}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for a process, within bounds.
pub fn wait(child: &mut Child) -> Option<ExitStatus> {
    seen_in_time(|| child.try_wait().expect("a child of ours"))
}
