//! berth as a running process, whose log can be read at any time.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use super::{Fleet, Server};
use crate::support::berth;
use crate::support::signals::{self, Signal};
use crate::support::wait::seen_in_time;

/// Killed when the test ends.
pub struct Running {
    child: Child,
    log: Arc<Mutex<String>>,
}

impl Running {
    pub fn daemon(fleet: &Fleet, server: &dyn Server, more: &[&str]) -> Running {
        Running::daemon_that_polls("1", fleet, server, more)
    }

    /// A daemon that looks at its remote this often, in seconds.
    pub fn daemon_that_polls(poll: &str, fleet: &Fleet, server: &dyn Server, more: &[&str]) -> Running {
        Running::daemon_in("daemon", poll, fleet, server, more)
    }

    /// The same, with a working copy of this name.
    pub fn daemon_in(copy: &str, poll: &str, fleet: &Fleet, server: &dyn Server, more: &[&str]) -> Running {
        let mut command = berth();
        command.args(["run", "--log-format", "json", "--poll", poll, "--repo"]);
        command.arg(fleet.root().join("copies").join(copy)).args(more);
        Running::start(command, server)
    }

    pub fn member(fleet: &Fleet, cluster: &str, server: &dyn Server, more: &[&str]) -> Running {
        let target = format!("dir:{}", fleet.target(cluster).display());
        Running::member_of(&target, fleet, cluster, server, more)
    }

    /// The same with a target of any kind.
    pub fn member_of(
        target: &str,
        fleet: &Fleet,
        cluster: &str,
        server: &dyn Server,
        more: &[&str],
    ) -> Running {
        let mut command = berth();
        command.args(["sync", "--cluster", cluster, "--log-format", "json", "--interval", "1"]);
        command.args(["--fetch-interval", "1", "--repo"]).arg(fleet.root().join("copies").join(cluster));
        command.args(["--target", target]).args(more);
        Running::start(command, server)
    }

    fn start(mut command: Command, server: &dyn Server) -> Running {
        command.args(server.access());
        server.set_secrets(&mut command);
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("berth starts");
        let log = Arc::new(Mutex::new(String::new()));
        let (lines, to) = (BufReader::new(child.stderr.take().expect("a pipe")).lines(), log.clone());
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let mut log = to.lock().expect("a log");
                log.push_str(&line);
                log.push('\n');
            }
        });
        Running { child, log }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// All that it said so far.
    pub fn log(&self) -> String {
        self.log.lock().expect("a log").clone()
    }

    /// Waits for a log line with all these words.
    #[track_caller]
    pub fn wait_for(&self, words: &[&str]) {
        let said = seen_in_time(|| {
            self.log().lines().find(|line| words.iter().all(|word| line.contains(word))).map(drop)
        });
        assert!(said.is_some(), "no line with {words:?}; the log so far:\n{}", self.log());
    }

    pub fn signal(&self, signal: Signal) {
        assert!(signals::send(signal, self.pid()));
    }

    /// The address of its log line with these words.
    #[track_caller]
    pub fn address(&self, words: &str) -> String {
        self.wait_for(&[words]);
        let log = self.log();
        let line = log.lines().find(|line| line.contains(words)).expect("a line");
        let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        line["address"].as_str().expect("an address").to_owned()
    }

    /// Asks it to stop; gives its exit code and its log.
    pub fn stop(mut self) -> (i32, String) {
        self.signal(Signal::TERM);
        let code = self.child.wait().expect("it ends").code().unwrap_or(-1);
        (code, self.log())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
