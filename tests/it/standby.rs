//! `berth run --standby`: of several daemons one publishes, and another takes over when it is gone.

use std::time::{Duration, Instant};

use crate::alerts::fires;
use crate::support::member::Member;
use crate::support::page::page;
use crate::support::remote::{Fleet, Plain, Running, Server};
use crate::support::signals::Signal;
use crate::support::wait::until;
use crate::support::{RENDERED, Ran, berth};

const LEADER: &str = "refs/berth/leader";

/// Seconds within which another daemon has the lease.
const TIME: &str = "8";

struct Standing {
    fleet: Fleet,
    server: Plain,
    edits: u32,
}

impl Standing {
    fn new() -> Standing {
        let fleet = Fleet::new();
        let server = Plain::new(fleet.root());
        Standing { fleet, server, edits: 0 }
    }

    fn daemon(&self, name: &str, more: &[&str]) -> Running {
        self.daemon_at(name, &self.server, more)
    }

    fn daemon_at(&self, name: &str, server: &dyn Server, more: &[&str]) -> Running {
        let standby = if more.contains(&"--standby") { &[][..] } else { &["--standby", "git"] };
        let more = [standby, &["--lease-duration", TIME, "--metrics", "0"], more].concat();
        Running::daemon_in(name, "1", &self.fleet, server, &more)
    }

    fn edit(&mut self) {
        self.edits += 1;
        self.fleet.edit(&format!("edit {}", self.edits));
    }

    /// Reports whether all edits are published.
    fn is_published(&self) -> bool {
        let head = self.fleet.bare(&["rev-parse", "main"]);
        self.fleet.has(RENDERED) && self.fleet.bare(&["log", "-1", "--format=%B", RENDERED]).contains(&head)
    }

    /// Edits, and measures how long it takes until that is published.
    fn time_of_an_edit(&mut self) -> Duration {
        let begun = Instant::now();
        self.edit();
        until("the edit is published", || self.is_published());
        begun.elapsed()
    }

    fn proves(&self) {
        Ran::of(berth().args(["verify", "--repo"]).arg(self.fleet.bare_path())).expect(0);
        self.fleet.bare(&["fsck", "--strict", "--no-dangling"]);
    }
}

/// Waits until daemons said so many publications, each its own, and no more. A log comes a moment after its push.
#[track_caller]
fn have_published<const N: usize>(daemons: [(&Running, usize); N]) {
    let said = || daemons.map(|(daemon, _)| daemon.log().matches("\"message\":\"published\"").count());
    let wanted = daemons.map(|(_, wanted)| wanted);
    until("the logs say what was published", || {
        said().iter().zip(wanted).all(|(said, wanted)| *said >= wanted)
    });
    assert_eq!(said(), wanted);
}

fn shows(daemon: &Running, line: &str) -> bool {
    page(&daemon.address("serving /metrics"), "/metrics").lines().any(|one| one == line)
}

fn stands_by(daemon: &Running) {
    daemon.wait_for(&["another daemon holds the lease"]);
    until("the page says so", || shows(daemon, "berth_leader 0"));
}

#[test]
fn one_daemon_publishes_and_the_other_is_ready_and_takes_over_from_one_that_is_frozen() {
    let mut world = Standing::new();
    // A lease that berth did not write is nobody's.
    world.fleet.bare(&["update-ref", LEADER, "main"]);
    let first = world.daemon("first", &[]);
    first.wait_for(&["holding the lease"]);
    until("the first state is published", || world.is_published());
    let second = world.daemon("second", &[]);
    stands_by(&second);
    until("the first says that it publishes", || shows(&first, "berth_leader 1"));
    until("the second looks", || !shows(&second, "berth_run_passes_total{result=\"standby\"} 0"));
    assert!(page(&second.address("serving /metrics"), "/readyz").ends_with("\r\n\r\nok\n"));
    world.time_of_an_edit();
    // Its copy is as fresh as that.
    let (copy, tip) = (world.fleet.root().join("copies/second"), world.fleet.bare(&["rev-parse", RENDERED]));
    until("the second has fetched", || {
        Ran::of(crate::support::hermetic("git").arg("-C").arg(&copy).args(["rev-parse", RENDERED])).out.trim()
            == tip
    });
    have_published([(&first, 2), (&second, 0)]);

    first.signal(Signal::STOP);
    let frozen = world.time_of_an_edit();
    have_published([(&second, 1)]);
    first.signal(Signal::CONT);
    stands_by(&first);
    world.time_of_an_edit();
    have_published([(&first, 2), (&second, 2)]);

    // A lease that is let go is taken at the next look.
    assert_eq!(second.stop().0, 0);
    let stopped = world.time_of_an_edit();
    have_published([(&first, 3)]);
    eprintln!(
        "of a lease of {TIME} s: taken after {frozen:?} from a frozen daemon, {stopped:?} after a stop"
    );
    let lease = world.fleet.bare(&["log", "-1", "--format=%B%H %P", LEADER]);
    assert!(lease.contains("\"leaseTransitions\":3"), "{lease}");
    assert_eq!(first.stop().0, 0);
    let lease = world.fleet.bare(&["log", "-1", "--format=%B", LEADER]);
    assert!(lease.contains("\"holderIdentity\":\"\""), "{lease}");
    world.proves();
}

#[test]
#[ignore = "needs Prometheus"]
fn no_alert_fires_for_a_daemon_that_stands_by() {
    let world = Standing::new();
    let first = world.daemon("first", &[]);
    first.wait_for(&["holding the lease"]);
    let second = world.daemon("second", &[]);
    stands_by(&second);
    until("the second looks", || !shows(&second, "berth_run_passes_total{result=\"standby\"} 0"));
    let calm = page(&second.address("serving /metrics"), "/metrics");
    fires(&calm, &(calm.clone() + "berth_leader{pod=\"first\"} 1\n"), 1_500, &[]);
}

#[test]
fn a_daemon_that_was_killed_is_followed_and_its_next_start_stands_by() {
    let mut world = Standing::new();
    let first = world.daemon("first", &[]);
    first.wait_for(&["\"published\""]);
    let second = world.daemon("second", &[]);
    stands_by(&second);
    first.signal(Signal::KILL);
    let killed = world.time_of_an_edit();
    let again = world.daemon("first", &[]);
    stands_by(&again);
    world.time_of_an_edit();
    have_published([(&second, 2), (&again, 0)]);
    eprintln!("of a lease of {TIME} s: taken {killed:?} after a kill on the same machine");
    world.proves();
}

#[test]
fn a_daemon_that_is_cut_off_publishes_nothing_after_another_took_over() {
    let mut world = Standing::new();
    let mut way = Plain::new(world.fleet.root());
    let first = world.daemon_at("first", &way, &[]);
    first.wait_for(&["\"published\""]);
    let second = world.daemon("second", &[]);
    stands_by(&second);
    way.stop();
    let cut = world.time_of_an_edit();
    until("the first knows that it stands by", || shows(&first, "berth_leader 0"));
    first.wait_for(&["the lease cannot be read or renewed"]);
    way.start();
    first.wait_for(&["another daemon holds the lease"]);
    world.time_of_an_edit();
    have_published([(&first, 1), (&second, 2)]);
    eprintln!("of a lease of {TIME} s: taken after {cut:?} from a daemon that was cut off");
    world.proves();
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_lease_of_kubernetes_does_the_same() {
    let Some(member) = Member::new("leaders") else { return };
    let mut world = Standing::new();
    let kubeconfig = member.plane.kubeconfig().display().to_string();
    let more = ["--standby", "lease/leaders/berth-hub", "--kubeconfig", &kubeconfig];
    let holder = || member.get("lease", "berth-hub").map(|lease| lease["spec"]["holderIdentity"].clone());
    let first = world.daemon("first", &more);
    first.wait_for(&["\"published\""]);
    let second = world.daemon("second", &more);
    stands_by(&second);
    let before = holder();
    first.signal(Signal::STOP);
    let frozen = world.time_of_an_edit();
    assert_ne!(holder(), before);
    first.signal(Signal::CONT);
    stands_by(&first);
    assert_eq!(second.stop().0, 0);
    let stopped = world.time_of_an_edit();
    assert_eq!(holder(), before);
    // A lease that somebody removed is made anew.
    member.kubectl(&["delete", "lease", "berth-hub", "-n", "leaders"]);
    until("the lease is back", || holder() == before);
    world.time_of_an_edit();
    have_published([(&first, 3)]);
    assert_eq!(first.stop().0, 0);
    assert_eq!(holder(), Some("".into()));
    assert!(!world.fleet.has(LEADER));
    eprintln!(
        "of a lease of {TIME} s: taken after {frozen:?} from a frozen daemon, {stopped:?} after a stop"
    );
    world.proves();
}

#[test]
fn a_standby_without_a_remote_or_with_an_unknown_lease_is_refused() {
    let ran = Ran::of(berth().args(["run", "--standby", "git", "--repo", "."])).expect(2);
    assert!(ran.err.contains("`--standby` needs a remote"), "{}", ran.err);
    let ran = Ran::of(berth().args(["run", "--standby", "leese/a/b"])).expect(2);
    assert!(ran.err.contains("`lease/NAMESPACE/NAME`"), "{}", ran.err);
}
