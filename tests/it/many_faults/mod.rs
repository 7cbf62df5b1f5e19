//! Two daemons that both publish, and three members, through https, ssh and `git daemon`, meet one fault after the
//! other while people push. Each fault ends, and everything comes to everybody. Nothing is lost at any moment.
//!
//! `BERTH_FAULT_SECONDS` says how long each fault lasts. Prometheus watches where they last long enough for alerts.
//! `BERTH_FAULT` chooses those whose names hold a text.

mod alarms;
mod faults;
mod world;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::support::ports::free_port;
use crate::support::random::rounds;
use crate::support::signals::Signal;
use crate::support::wait::pause;
use crate::support::wait::{seen_in_time, until};
use crate::support::{RENDERED, Ran, berth};
use alarms::Alarms;
use faults::Fault;
use world::{DAEMONS, MEMBERS, World};

/// The shortest time in which each alert of a fault fires.
const LONG_ENOUGH: u64 = 70;

/// The most messages that are told of one fault.
const MOST_LINES: usize = 12;

#[test]
#[ignore = "needs Kubernetes"]
fn nothing_is_lost_by_any_fault_and_all_goes_on_once_it_is_over() {
    let seconds = rounds("BERTH_FAULT_SECONDS", 3);
    let Some(mut world) = World::new(rounds("BERTH_FAULT_SEED", 1)) else { return };
    world.edit();
    for name in DAEMONS.into_iter().chain(MEMBERS) {
        world.start(name);
    }
    until("all members have the first edit", || world.all_have_all());
    world.keep_a_backup();
    let folder = world.fleet.root().join("prometheus");
    let alarms = (seconds >= LONG_ENOUGH)
        .then(|| Alarms::over(&world.ports(), free_port(), &folder).expect("Prometheus runs"));
    let begun = Instant::now();
    let only = std::env::var("BERTH_FAULT").unwrap_or_default();
    let chosen: Vec<&Fault> = faults::ALL.iter().filter(|fault| fault.name.contains(&only)).collect();
    let missing: Vec<String> =
        chosen.iter().flat_map(|fault| meet(&mut world, fault, seconds, alarms.as_ref())).collect();
    let minutes = begun.elapsed().as_secs() / 60;

    for name in DAEMONS.into_iter().chain(MEMBERS) {
        world.end(name, Signal::TERM);
        assert!(!world.log(name).contains("panicked"), "{}", world.log(name));
    }
    let publications = prove(&world);
    eprintln!(
        "{} faults in {minutes} minutes: {} edits, {publications} publications, all proven; nothing was lost",
        chosen.len(),
        world.edits(),
    );
    assert!(missing.is_empty(), "alerts that did not fire: {missing:?}");
}

/// Lets a fault happen while people push, and waits until it is over for everybody. Tells what it led to, and returns
/// the alerts that should have fired.
fn meet(world: &mut World, fault: &Fault, seconds: u64, alarms: Option<&Alarms>) -> Vec<String> {
    let heard = log_lengths(world);
    let (edits, published) = (world.edits(), publications(world));
    let begun = Instant::now();
    let mut fired = BTreeMap::new();
    let mut listen = || {
        let firing = alarms.map(Alarms::firing).unwrap_or_default();
        for alert in &firing {
            fired.entry(alert.clone()).or_insert(begun.elapsed().as_secs());
        }
        firing.is_empty()
    };
    (fault.begin)(world);
    for second in 0..seconds {
        (fault.each)(world);
        if fault.with_edits && second % 3 == 0 {
            world.edit();
        }
        MEMBERS.iter().for_each(|member| drop(world.look(member)));
        listen();
        let next = begun + Duration::from_secs(second + 1);
        pause(next.saturating_duration_since(Instant::now()), "the pace of the samples");
    }
    let during = (world.edits() - edits, publications(world).saturating_sub(published));
    (fault.end)(world);
    let back = world.seconds_to_all();
    let over = seen_in_time(|| listen().then_some(()));
    let fired: Vec<String> =
        fired.iter().map(|(alert, second)| format!("{alert} after {second} s")).collect();
    let fired = if fired.is_empty() { "none".to_owned() } else { fired.join(", ") };
    eprintln!(
        "{}, for {seconds} s: {} edits and {} publications meanwhile; back for everybody after {back:.1} s\n   alerts: {fired}\n{}",
        fault.name,
        during.0,
        during.1,
        said(world, &heard)
    );
    let Some(alarms) = alarms else { return Vec::new() };
    assert!(over.is_some(), "{} goes on: {:?}", fault.name, alarms.firing());
    let missing = fault.alerts.iter().filter(|alert| !fired.contains(&format!("{alert} after")));
    missing.map(|alert| format!("{alert}: {}", fault.name)).collect()
}

fn publications(world: &World) -> u32 {
    world.fleet.bare(&["rev-list", "--count", RENDERED]).parse().expect("a number")
}

fn log_lengths(world: &World) -> BTreeMap<&'static str, usize> {
    DAEMONS.into_iter().chain(MEMBERS).map(|name| (name, world.log(name).len())).collect()
}

/// The warnings and errors since then, each once, with the number of times.
fn said(world: &World, since: &BTreeMap<&'static str, usize>) -> String {
    let mut counts: BTreeMap<(&str, String), u32> = BTreeMap::new();
    for (name, from) in since {
        let log = world.log(name);
        let lines =
            log[*from..].lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        for line in lines.filter(|line| ["WARN", "ERROR"].iter().any(|level| line["level"] == *level)) {
            let text = |key: &str| line[key].as_str().unwrap_or_default();
            let first = text("error").lines().next().unwrap_or_default();
            let role = if name.starts_with("daemon") { "daemon" } else { "member" };
            let message: String = format!("{}: {first}", text("message")).chars().take(160).collect();
            *counts.entry((role, message)).or_default() += 1;
        }
    }
    let more = counts.len().saturating_sub(MOST_LINES);
    let lines = counts.iter().take(MOST_LINES);
    let lines: String =
        lines.map(|((role, message), times)| format!("   {role}, {times}x: {message}\n")).collect();
    if more > 0 { format!("{lines}   and {more} other messages\n") } else { lines }
}

/// Holds that the history is one line without a gap, that each commit is proven and whole, and counts them.
fn prove(world: &World) -> usize {
    world.fleet.bare(&["fsck", "--strict", "--no-dangling"]);
    let format = "--format=%(trailers:key=Berth-Seq,valueonly,separator=) %P";
    let log = world.fleet.bare(&["log", "--reverse", format, RENDERED]);
    let numbers: Vec<usize> = log
        .lines()
        .map(|line| line.split(' ').next().and_then(|number| number.parse().ok()).expect("a number"))
        .collect();
    assert_eq!(numbers, (1..=numbers.len()).collect::<Vec<_>>());
    let proven = Ran::of(berth().args(["verify", "--repo"]).arg(world.fleet.bare_path())).expect(0);
    let all = format!("{} commits proven", numbers.len());
    assert!(proven.err.contains(&all), "{}\n{}", proven.out, proven.err);
    numbers.len()
}
