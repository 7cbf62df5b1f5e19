//! `berth run --fleets`: one process with the daemons of several fleets, where no fault of one is another's.

use crate::daemon::Daemon;
use crate::support::remote::{Fleet, Plain, Server as _};
use crate::support::wait::until;
use crate::support::{RENDERED, Ran, berth};

fn publications(fleet: &Fleet) -> String {
    if fleet.has(RENDERED) { fleet.bare(&["rev-list", "--count", RENDERED]) } else { "0".to_owned() }
}

#[test]
fn a_fleet_that_cannot_be_served_keeps_no_other_one_waiting_and_is_served_once_it_can() {
    let [plain, away, faulty] = [Fleet::new(), Fleet::new(), Fleet::new()];
    let mut server = Plain::new(plain.root());
    let folder = tempfile::tempdir().expect("a folder");
    let put = |name: &str, flags: &str| std::fs::write(folder.path().join(name), flags).expect("a file");
    let of = |fleet: &Fleet| format!("--remote {}", fleet.bare_path().display());
    let own = |fleet: &Fleet| format!("\n--poll 1\n--repo {}\n", fleet.root().join("copy").display());
    put("away", &(of(&away) + &own(&away)));
    put("faulty", &(of(&faulty) + " and more" + &own(&faulty)));
    put(
        "plain",
        &format!("# ours\n\n{}{}", server.access().join(" ").replace(" --allow", "\n--allow"), own(&plain)),
    );
    put(".hidden", "--no-flags");
    let gone = away.root().join("gone.git");
    std::fs::rename(away.bare_path(), &gone).expect("a move");

    let daemon = Daemon::start_with(&["--fleets", folder.path().to_str().expect("a text path")]);
    until("the one that can be served is published", || publications(&plain) == "1");
    plain.edit("two");
    until("it is followed", || publications(&plain) == "2");

    std::fs::rename(&gone, away.bare_path()).expect("a move");
    until("the one that was away is published", || publications(&away) == "1");
    put("faulty", &(of(&faulty) + &own(&faulty)));
    until("the mended one is published", || publications(&faulty) == "1");

    server.stop();
    for fleet in [&away, &faulty] {
        fleet.edit("two");
        until("the others are followed", || publications(fleet) == "2");
    }
    server.start();
    plain.edit("three");
    until("the one whose server is back is followed", || publications(&plain) == "3");
    for (fleet, other) in [(&plain, "away"), (&away, "faulty"), (&faulty, "plain")] {
        Ran::of(berth().args(["verify", "--repo"]).arg(fleet.bare_path())).expect(0);
        assert!(!fleet.bare(&["log", "--all", "--format=%B"]).contains(other));
    }
    let (code, log) = daemon.stop_with_log();
    assert_eq!(code, 0, "{log}");
    for line in log.lines().filter(|line| line.contains("\"published\"")) {
        assert!(line.contains("\"fleet\":\""), "{line}");
    }
    let about = |fleet: &str, words: &str| {
        let said = |line: &&str| line.contains(&format!("\"fleet\":\"{fleet}\"")) && line.contains(words);
        log.lines().any(|line| said(&line))
    };
    assert!(about("faulty", "this fleet cannot be served; the others continue"), "{log}");
    assert!(about("plain", "the remote cannot be used; the current state stays"), "{log}");
    assert!(log.matches("\"stopped\"").count() == 3, "{log}");
}

#[test]
fn a_folder_without_fleets_and_flags_of_one_fleet_beside_it_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("a text path");
    let ran = Ran::of(berth().args(["run", "--fleets", path])).expect(2);
    assert!(ran.err.contains("describes a fleet"), "{}", ran.err);
    std::fs::write(folder.path().join("Our Fleet"), "--remote /a\n").expect("a file");
    let ran = Ran::of(berth().args(["run", "--fleets", path])).expect(2);
    assert!(ran.err.contains("is no name of a fleet"), "{}", ran.err);
    let ran = Ran::of(berth().args(["run", "--fleets", path, "--remote", "/a"])).expect(2);
    assert!(ran.err.contains("`--remote` has no effect beside `--fleets`"), "{}", ran.err);
}
