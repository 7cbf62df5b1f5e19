//! Running a member for long: one writer at a time, people who stop it for a while, and what it says of itself.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use crate::support::member::Member;
use crate::support::{Ran, berth};

/// A syncer that keeps running, ended when the test is.
struct Running {
    child: Child,
    lines: std::sync::mpsc::Receiver<String>,
}

impl Running {
    fn start(member: &Member, more: &[&str]) -> Running {
        let mut command = berth();
        command.args(["sync", "--target", "kube", "--repo", member.repo.arg(), "--interval", "1"]);
        command.args(["--cluster", &member.name, "--fleet", &member.name, "--log-format", "json"]);
        command.arg("--kubeconfig").arg(member.plane.kubeconfig()).args(more);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("berth runs");
        let (heard, lines) = std::sync::mpsc::channel();
        let out = BufReader::new(child.stderr.take().expect("a pipe"));
        std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| heard.send(line)));
        Running { child, lines }
    }

    /// Waits for a line of the log that holds this text.
    #[track_caller]
    fn hear(&self, text: &str) -> String {
        let mut all = Vec::new();
        let deadline = Instant::now() + Duration::from_secs(90);
        while let Ok(line) = self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            if line.contains(text) {
                return line;
            }
            all.push(line);
        }
        panic!("nothing of `{text}` in\n{}", all.join("\n"));
    }

    /// Asks it to stop, and waits until it has.
    fn stop(mut self) -> i32 {
        let pid = self.child.id().to_string();
        Ran::of(crate::support::hermetic("kill").args(["-TERM", &pid])).expect(0);
        self.child.wait().expect("it ends").code().unwrap_or(-1)
    }

    fn signal(&self, name: &str) {
        Ran::of(crate::support::hermetic("kill").args([name, &self.child.id().to_string()])).expect(0);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Looks until there is something to see.
#[track_caller]
fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(90);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn lease(member: &Member) -> Json {
    let name = format!("berth-{}", member.name);
    let text = member.kubectl(&["get", "lease", &name, "-n", "berth-system", "-o", "json"]);
    serde_json::from_str(&text).expect("JSON")
}

fn value(member: &Member) -> Option<String> {
    member.get("configmap", "web").map(|web| web["data"]["key"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn of_two_syncers_one_writes_and_the_other_takes_over_when_it_stops() {
    let Some(member) = Member::new("turns") else { return };
    member.publish(&[member.config_map("web", "one")]);
    let first = Running::start(&member, &["--lease-duration", "60"]);
    first.hear("holding the lease");
    first.hear("applied");
    let holder = lease(&member)["spec"]["holderIdentity"].as_str().expect("a holder").to_owned();
    let second = Running::start(&member, &["--lease-duration", "12"]);
    let line = second.hear("another syncer holds the lease");
    assert!(line.contains(&holder), "{line}");
    assert_eq!(first.stop(), 0);
    // It was let go: nobody waits a minute for it.
    second.hear("holding the lease");
    member.publish(&[member.config_map("web", "two")]);
    eventually("the second applies", || (value(&member)? == "two").then_some(()));
    assert_eq!(lease(&member)["spec"]["leaseTransitions"], 2);
    assert_eq!(second.stop(), 0);
    assert_eq!(lease(&member)["spec"]["holderIdentity"].as_str().unwrap_or_default(), "");
}

#[test]
fn a_single_round_beside_a_running_syncer_ends_politely_and_changes_nothing() {
    let Some(member) = Member::new("polite") else { return };
    member.publish(&[member.config_map("web", "one")]);
    let first = Running::start(&member, &["--lease-duration", "6"]);
    first.hear("applied");
    let ran = member.sync(&[]).expect(4);
    assert!(ran.err.contains("another syncer is at work on this cluster"), "{}", ran.err);
    assert!(ran.err.contains("--no-lease"), "{}", ran.err);
    // Looking is nobody's turn.
    member.sync(&["--dry-run"]).expect(0);
    member.sync(&["--no-lease"]).expect(0);
    assert_eq!(first.stop(), 0);
    member.sync(&[]).expect(0);
}

#[test]
fn a_holder_that_is_frozen_loses_its_turn_and_does_not_write_when_it_wakes() {
    let Some(member) = Member::new("frozen") else { return };
    member.publish(&[member.config_map("web", "one")]);
    let first = Running::start(&member, &["--lease-duration", "4"]);
    first.hear("applied");
    first.signal("-STOP");
    member.publish(&[member.config_map("web", "two")]);
    let second = Running::start(&member, &["--lease-duration", "4"]);
    second.hear("holding the lease");
    eventually("the second applies", || (value(&member)? == "two").then_some(()));
    let holder = lease(&member)["spec"]["holderIdentity"].clone();
    first.signal("-CONT");
    // The first finds out before it writes anything.
    first.hear("another syncer holds the lease");
    assert_eq!(lease(&member)["spec"]["holderIdentity"], holder);
    let edit = json!({"data": {"key": "by hand"}}).to_string();
    member.kubectl(&["patch", "configmap", "web", "-n", "frozen", "--type=merge", "-p", &edit]);
    eventually("the second corrects", || (value(&member)? == "two").then_some(()));
    assert_eq!(second.stop(), 0);
    first.hear("holding the lease");
}

#[test]
fn a_holder_that_was_killed_here_is_followed_at_once() {
    let Some(member) = Member::new("killed") else { return };
    member.publish(&[member.config_map("web", "one")]);
    let mut first = Running::start(&member, &["--lease-duration", "3600"]);
    first.hear("applied");
    first.child.kill().expect("it is killed");
    first.child.wait().expect("it ends");
    member.publish(&[member.config_map("web", "two")]);
    member.sync(&[]).expect(0);
    assert_eq!(value(&member).as_deref(), Some("two"));
}

#[test]
fn the_clock_of_another_machine_counts_for_nothing() {
    let Some(member) = Member::new("clocks") else { return };
    member.publish(&[member.config_map("web", "one")]);
    member.sync(&[]).expect(0);
    // Held by somebody whose clock stands in 1970, and who renews: never expired, whatever it says.
    let plane = member.plane.clone();
    let patch = move |time: &str| {
        let spec = json!({"spec": {"holderIdentity": "elsewhere", "leaseDurationSeconds": 3600,
            "renewTime": time, "acquireTime": time}});
        let (kind, patch) = ("--type=merge", spec.to_string());
        let args = ["patch", "lease", "berth-clocks", "-n", "berth-system", kind, "-p", &patch];
        Ran::of(plane.kubectl().args(args)).expect(0);
    };
    patch("1970-01-01T00:00:00.000000Z");
    let waiting = Running::start(&member, &["--lease-duration", "4"]);
    waiting.hear("another syncer holds the lease");
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    let renewing = std::thread::spawn(move || {
        let mut tick = 0;
        while is_done.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
            tick += 1;
            patch(&format!("1970-01-01T00:{:02}:{:02}.000000Z", tick / 60 % 60, tick % 60));
        }
    });
    let once = member.sync(&[]);
    drop(done);
    renewing.join().expect("it ends");
    once.expect(4);
    // And one that says it renews a hundred years from now is gone once it is let go.
    let free =
        json!({"spec": {"holderIdentity": "", "renewTime": "2126-01-01T00:00:00.000000Z"}}).to_string();
    member.kubectl(&["patch", "lease", "berth-clocks", "-n", "berth-system", "--type=merge", "-p", &free]);
    waiting.hear("holding the lease");
}
