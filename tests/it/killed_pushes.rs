//! Pushes to a repository of the same machine that end in the middle: the refs' locks there are in the way of
//! nobody for long, and no person is needed.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::SystemTime;

use crate::support::leftovers::{family, locks};
use crate::support::remote::{Fleet, Plain};
use crate::support::signals::{self, Signal};
use crate::support::wait::until;
use crate::support::{RENDERED, Ran, berth};

/// Stops each push while it has the locks of all refs, and says when one is there.
fn hold_pushes(fleet: &Fleet) {
    let at = at(fleet).display().to_string();
    let script = format!(
        "[ \"$1\" = prepared ] || exit 0\n\
         : > {at}\n\
         exec sleep 1000"
    );
    fleet.hook("reference-transaction", &script);
}

fn let_pushes_go(fleet: &Fleet) {
    std::fs::remove_file(fleet.bare_path().join("hooks/reference-transaction")).expect("a hook");
}

fn at(fleet: &Fleet) -> PathBuf {
    fleet.bare_path().join("at")
}

fn run(fleet: &Fleet) -> Command {
    let mut command = berth();
    command.args(["run", "--repo"]).arg(fleet.root().join("copies/run"));
    command.arg("--remote").arg(fleet.bare_path());
    command
}

fn sync(fleet: &Fleet) -> Command {
    let mut command = berth();
    command.args(["sync", "--once", "--cluster", "a", "--repo"]).arg(fleet.root().join("copies/a"));
    command.arg("--target").arg(format!("dir:{}", fleet.target("a").display()));
    command.arg("--remote").arg(fleet.bare_path());
    command
}

/// Starts a command and waits until its push is held.
fn start_held(fleet: &Fleet, command: &mut Command) -> Child {
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("berth starts");
    until("a push holds its locks", || at(fleet).exists());
    assert!(!locks(&fleet.bare_path()).is_empty());
    child
}

/// Kills a process and its push, as the end of a container or a lack of memory does.
fn kill_all(mut child: Child) {
    let all = family(child.id());
    assert!(all.len() > 2, "git and its helper are among them: {all:?}");
    for process in all {
        assert!(signals::send(Signal::KILL, process), "{process}");
    }
    child.wait().expect("it ends");
}

/// Lets locks look as if they had been left long ago.
fn age(locks: &[PathBuf]) {
    for lock in locks {
        std::fs::File::open(lock).expect("a lock").set_modified(SystemTime::UNIX_EPOCH).expect("old");
    }
}

#[test]
fn an_orphaned_push_is_ended_without_a_trace() {
    let fleet = Fleet::new();
    hold_pushes(&fleet);
    let mut child = start_held(&fleet, run(&fleet).arg("--once"));
    child.kill().expect("killed");
    child.wait().expect("it ends");
    let_pushes_go(&fleet);
    let next = Ran::of(run(&fleet).arg("--once")).expect(0);
    assert!(!next.err.contains("lock"), "it had to wait for a lock: {}", next.err);
    assert_eq!(locks(&fleet.bare_path()), Vec::<PathBuf>::new());
}

#[test]
fn a_push_that_is_broken_off_leaves_no_lock() {
    let fleet = Fleet::new();
    hold_pushes(&fleet);
    // One that takes too long.
    until("a push holds its locks", || {
        let late = Ran::of(run(&fleet).args(["--once", "--git-timeout", "2"])).expect(6);
        assert!(late.err.contains("did not finish within 2 seconds"), "{}", late.err);
        at(&fleet).exists()
    });
    assert_eq!(locks(&fleet.bare_path()), Vec::<PathBuf>::new());
    std::fs::remove_file(at(&fleet)).expect("a push was held");
    // One whose daemon is asked to stop.
    let mut daemon = start_held(&fleet, &mut run(&fleet));
    assert!(signals::send(Signal::TERM, daemon.id()));
    assert_eq!(daemon.wait().expect("it ends").code(), Some(0));
    assert_eq!(locks(&fleet.bare_path()), Vec::<PathBuf>::new());
    let_pushes_go(&fleet);
    Ran::of(run(&fleet).arg("--once")).expect(0);
}

#[test]
fn locks_of_a_push_that_was_killed_are_removed_and_said() {
    let fleet = Fleet::new();
    hold_pushes(&fleet);
    let child = start_held(&fleet, run(&fleet).arg("--once"));
    kill_all(child);
    let_pushes_go(&fleet);
    let left = locks(&fleet.bare_path());
    assert!(left.iter().any(|lock| lock.ends_with("refs/heads/berth/rendered.lock")), "{left:?}");
    age(&left);
    let next = Ran::of(run(&fleet).arg("--once")).expect(0);
    for lock in &left {
        let lock = lock.strip_prefix(fleet.bare_path()).expect("a lock of the repository");
        assert!(next.err.contains(&lock.display().to_string()), "{lock:?} is not named: {}", next.err);
    }
    assert_eq!(locks(&fleet.bare_path()), Vec::<PathBuf>::new());
    assert!(fleet.has(RENDERED));
    // A member's.
    std::fs::remove_file(at(&fleet)).expect("a push was held");
    hold_pushes(&fleet);
    let child = start_held(&fleet, &mut sync(&fleet));
    kill_all(child);
    let_pushes_go(&fleet);
    // These are young, and watched for longer.
    let next = Ran::of(&mut sync(&fleet)).expect(0);
    assert!(next.err.contains("refs/berth/status/a.lock"), "{}", next.err);
    assert!(fleet.has("refs/berth/status/a"));
    fleet.bare(&["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn a_lock_that_stays_is_named_with_what_to_do() {
    let fleet = Fleet::new();
    let lock = fleet.bare_path().join("refs/heads/berth/rendered.lock");
    std::fs::create_dir_all(lock.parent().expect("a folder")).expect("a folder");
    let holder = std::fs::File::create(&lock).expect("a lock");
    holder.set_modified(SystemTime::UNIX_EPOCH).expect("old");
    let says = |ran: Ran| {
        assert!(
            ran.err.contains("`refs/heads/berth/rendered` is locked at")
                && ran.err.contains(&format!("`{}` exists", lock.display()))
                && ran.err.contains("remove the file"),
            "{}",
            ran.err
        );
    };
    // One that is in use.
    says(Ran::of(run(&fleet).arg("--once")).expect(4));
    drop(holder);
    // One at a server, where berth removes nothing.
    let server = Plain::new(fleet.root());
    says(fleet.run_from("server", &server, &[]).expect(4));
    assert!(lock.exists());
}
