//! Two daemons on one remote, with nothing between them: each push is one of theirs, or is made anew on top of it.

use std::collections::BTreeSet;

use crate::support::deliveries::{SECRET, github, send};
use crate::support::remote::{Fleet, Plain, Running};
use crate::support::wait::until;
use crate::support::{RENDERED, Ran, berth, config_map};

/// The commits that people push; `BERTH_RACE_COMMITS` sets another number.
fn commits() -> u32 {
    let number = std::env::var("BERTH_RACE_COMMITS").ok();
    number.map_or(12, |number| number.parse().expect("a number"))
}

/// Adds an object of its own, and pushes.
fn push_one_more(fleet: &Fleet, number: u32) {
    let name = format!("edit-{number}");
    fleet.people.write(&format!("apps/{name}.yaml"), config_map(&name, "here", "{clusterSelector: {}}"));
    fleet.people.commit(&name);
    fleet.push();
}

/// Holds a push of the rendered branch back until the other daemon pushes, too, and lets the first of them and the second
/// win in turns. A daemon that has nothing to push is not waited for.
fn makes_races(fleet: &Fleet) {
    fleet.hook(
        "pre-receive",
        r#"case "$(cat)" in *refs/heads/berth/rendered*) ;; *) exit 0 ;; esac
published=$(git rev-list --count refs/heads/berth/rendered 2>/dev/null || echo 0)
place="$PWD/race-$published"
if mkdir "$place" 2>/dev/null; then
  turn=0
  for look in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    [ -e "$place/second" ] && break
    sleep 0.05
  done
else
  turn=1
  touch "$place/second"
fi
[ "$((published % 2))" = "$turn" ] || sleep 0.2
exit 0"#,
    );
}

/// The races that a daemon lost.
fn lost(daemon: &Running) -> usize {
    daemon.log().matches("another process moved or locked a ref").count()
}

#[test]
fn two_daemons_race_for_many_commits_and_publish_one_line_of_history() {
    let fleet = Fleet::new();
    let server = Plain::new(fleet.root());
    let secrets = fleet.root().join("secrets");
    std::fs::write(&secrets, SECRET).expect("a file");
    let secrets = secrets.to_str().expect("a text path");
    let more = ["-v", "--webhook", "0", "--webhook-secret-file", secrets];
    let daemons = ["one", "two"].map(|name| Running::daemon_in(name, "1", &fleet, &server, &more));
    for daemon in &daemons {
        daemon.wait_for(&["\"pass done\""]);
    }
    makes_races(&fleet);
    let (mut pushed, least) = (0, commits());
    // Both look at the same moment, again and again, until each has lost a race.
    until("each daemon lost a race", || {
        loop {
            push_one_more(&fleet, pushed);
            pushed += 1;
            for daemon in &daemons {
                send(&daemon.address("listening for webhooks"), &github(SECRET, "push", &pushed.to_string()));
            }
            if pushed >= least {
                break daemons.iter().all(|daemon| lost(daemon) > 0);
            }
        }
    });
    let last = fleet.bare(&["rev-parse", "main"]);
    for daemon in &daemons {
        daemon.wait_for(&["\"pass done\"", &last]);
    }
    let races: Vec<usize> = daemons.iter().map(lost).collect();
    let published =
        daemons.each_ref().map(|daemon| daemon.log().matches("\"message\":\"published\"").count());
    for daemon in daemons {
        let (code, log) = daemon.stop();
        assert_eq!(code, 0, "{log}");
        assert!(!log.contains("\"level\":\"ERROR\""), "{log}");
    }
    fleet.bare(&["fsck", "--strict", "--no-dangling"]);

    // One line, numbered without a gap, and each commit says something new.
    let format = "--format=%(trailers:key=Berth-Seq,valueonly,separator=) %P %T";
    let log = fleet.bare(&["log", "--reverse", format, RENDERED]);
    let lines: Vec<Vec<&str>> = log.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0].len(), 2, "{log}");
    assert!(lines[1..].iter().all(|line| line.len() == 3), "{log}");
    let numbers: Vec<u64> = lines.iter().map(|line| line[0].parse().expect("a number")).collect();
    assert_eq!(numbers, (1..=lines.len() as u64).collect::<Vec<_>>());
    let trees: BTreeSet<&str> = lines.iter().filter_map(|line| line.last().copied()).collect();
    assert_eq!(trees.len(), lines.len(), "a state was published twice");

    // Nothing is lost, and the refs of the clusters are those of the last state.
    for cluster in ["a", "b", "c"] {
        let folder = format!("{RENDERED}:clusters/{cluster}");
        let files = fleet.bare(&["ls-tree", "-r", "--name-only", &folder]);
        assert_eq!(files.matches("ConfigMap_edit-").count(), pushed as usize);
        assert_eq!(
            fleet.bare(&["rev-parse", &folder]),
            fleet.bare(&["rev-parse", &format!("refs/berth/clusters/{cluster}^{{tree}}")])
        );
    }
    let path = fleet.bare_path();
    let proven = Ran::of(berth().args(["verify", "--repo"]).arg(&path)).expect(0);
    let all = format!("{} commits proven", lines.len());
    assert!(proven.err.contains(&all), "{}\n{}", proven.out, proven.err);
    eprintln!("{pushed} commits: {} publications, said by {published:?}, races lost {races:?}", lines.len());
}
