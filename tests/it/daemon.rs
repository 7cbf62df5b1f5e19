//! The daemon as a process: bursts of commits, broken ones among them, and a graceful stop.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::support::signals::{self, Signal};
use crate::support::{RENDERED, Repo, berth, config_map, small_fleet};

/// A running daemon whose log lines can be waited for.
pub struct Daemon {
    child: Child,
    lines: Receiver<String>,
}

impl Daemon {
    pub fn start(repo: &Repo) -> Daemon {
        Daemon::start_with(&["--repo", repo.arg()])
    }

    pub fn start_with(args: &[&str]) -> Daemon {
        Daemon::start_with_env(args, &[])
    }

    pub fn start_with_env(args: &[&str], variables: &[(&str, &str)]) -> Daemon {
        let mut child = berth()
            .args(["run", "--log-format", "json"])
            .args(args)
            .envs(variables.iter().copied())
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("berth starts");
        let stderr = child.stderr.take().expect("a pipe");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Daemon { child, lines }
    }

    /// Waits for a log line that holds all these words.
    pub fn wait_for(&self, words: &[&str]) -> String {
        self.lines_until(words).pop().expect("the line")
    }

    /// The log lines up to one that holds all these words.
    pub fn lines_until(&self, words: &[&str]) -> Vec<String> {
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut seen = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    seen.push(line);
                    if words.iter().all(|word| seen.last().is_some_and(|line| line.contains(word))) {
                        return seen;
                    }
                }
                Err(error) => {
                    panic!("no line with {words:?} ({error}); the log so far:\n{}", seen.join("\n"))
                }
            }
        }
    }

    /// Asks it to stop; gives its exit code and the log that nobody waited for.
    pub fn stop_with_log(mut self) -> (i32, String) {
        assert!(signals::send(Signal::TERM, self.child.id()));
        let code = self.child.wait().expect("it ends").code().unwrap_or(-1);
        let lines: Vec<String> = self.lines.iter().collect();
        (code, lines.join("\n"))
    }

    /// Asks it to stop and gives its exit code.
    pub fn stop(self) -> i32 {
        self.stop_with_log().0
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_burst_of_commits_some_broken_ends_on_the_last_good_state() {
    let repo = small_fleet();
    let daemon = Daemon::start(&repo);
    daemon.wait_for(&["published"]);
    for n in 0..60 {
        let text = config_map("web", &format!("value-{n}"), "{clusterSelector: {}}");
        // Every seventh commit is broken, and the last one is, too.
        repo.write("apps/web.yaml", if n % 7 == 3 || n == 59 { format!("{text} oops: [\n") } else { text });
        repo.commit(&format!("edit {n}"));
    }
    let last = repo.id("HEAD");
    daemon.wait_for(&["pass done", &last]);
    let files = repo.files(RENDERED);
    // What stood at 58 is the last good form, whether or not the daemon ever saw that commit by itself.
    assert!(
        files["clusters/b/shop/ConfigMap_web.yaml"].contains("value-58"),
        "{}",
        files["clusters/b/shop/ConfigMap_web.yaml"]
    );
    repo.write("apps/web.yaml", config_map("web", "healed", "{clusterSelector: {}}"));
    let last = repo.commit("heal");
    daemon.wait_for(&["pass done", &last]);
    assert!(repo.files(RENDERED)["clusters/b/shop/ConfigMap_web.yaml"].contains("healed"));
    assert_eq!(daemon.stop(), 0);
}

#[test]
fn a_stop_in_the_middle_leaves_a_complete_state() {
    let repo = small_fleet();
    for n in 0..200 {
        repo.write(
            &format!("apps/more-{n}.yaml"),
            config_map(&format!("more-{n}"), "x", "{clusterSelector: {}}"),
        );
    }
    repo.commit("many");
    let daemon = Daemon::start(&repo);
    daemon.wait_for(&["pass started"]);
    assert_eq!(daemon.stop(), 0);
    repo.git(&["fsck", "--strict", "--no-dangling"]);
    repo.publish().expect(0);
    assert_eq!(repo.files(RENDERED).keys().filter(|path| path.starts_with("clusters/a/shop/")).count(), 201);
}

#[test]
fn a_commit_in_a_linked_work_tree_wakes_the_daemon_there() {
    let repo = small_fleet();
    let folder = tempfile::tempdir().expect("a folder");
    let linked = folder.path().join("linked");
    let linked = linked.to_str().expect("a text path");
    repo.git(&["worktree", "add", "-q", "-b", "other", linked]);
    // Polling alone would come an hour too late.
    let daemon = Daemon::start_with(&["--repo", linked, "--source", "main", "--poll", "3600"]);
    daemon.wait_for(&["pass done"]);
    repo.write("apps/web.yaml", config_map("web", "two", "{clusterSelector: {}}"));
    let commit = repo.commit("edit");
    daemon.wait_for(&["pass done", &commit]);
    assert_eq!(daemon.stop(), 0);
}
