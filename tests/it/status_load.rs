//! A fleet's statuses by POST and by refs: what they cost the Git server and the daemon, in bytes and processor time.
//! `BERTH_STATUSES=10000` asks for that many members, `BERTH_STATUSES_AGAIN=833` for so many heartbeats of theirs, and
//! `BERTH_STATUSES_SECONDS=300` spreads these.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::remote::{Fleet, Plain, Server, Wire};
use crate::support::status_posts::{MemberKey, daemon, kept, listens_at, signers_file, status};
use crate::support::wait::{pause, until};
use crate::support::{Repo, cluster, config_map, hermetic, namespace};

/// Senders at a time.
const AT_ONCE: usize = 400;

fn number_of(variable: &str, default: usize) -> usize {
    std::env::var(variable).map_or(default, |text| text.parse().expect("a number"))
}

/// The processor time of a process and of its children that ended, in seconds.
fn processor_time(pid: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
    let (_, fields) = text.rsplit_once(')').expect("a name");
    let ticks: u32 =
        fields.split_whitespace().skip(11).take(4).map(|field| field.parse::<u32>().unwrap()).sum();
    f64::from(ticks) / 100.0
}

fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}

#[test]
fn a_fleets_statuses_cost_little_by_post() {
    let count = number_of("BERTH_STATUSES", 60);
    let again = number_of("BERTH_STATUSES_AGAIN", 10).min(count);
    let spread = Duration::from_secs(number_of("BERTH_STATUSES_SECONDS", 0) as u64);
    let people = Repo::new();
    let names: Vec<String> = (0..count).map(|index| format!("m{index:05}")).collect();
    for part in names.chunks(1_000) {
        let documents: Vec<String> = part.iter().map(|name| cluster(name, &[("env", "prod")])).collect();
        people.write(&format!("clusters/{}.yaml", part[0]), documents.join("---\n"));
    }
    people.write("apps/shop.yaml", namespace("shop"));
    people.write("apps/web.yaml", config_map("web", "one", "{clusterSelector: {}}"));
    people.commit("start");
    let fleet = Fleet::of(people);
    let keys: Vec<MemberKey> = names.iter().map(|name| MemberKey::new(fleet.root(), name)).collect();
    let lines: String = keys.iter().map(|key| key.line(&key.cluster)).collect();
    std::fs::write(signers_file(&fleet), lines).unwrap();
    let server = Plain::new(fleet.root());
    let at_server = Wire::to(server.port);
    let counted = at_server.server(&server);
    let daemon = daemon("daemon", "30", &fleet, &counted, &[]);
    daemon.wait_for(&["\"pass done\""]);
    let listening = listens_at(&daemon);
    until("statuses are taken", || keys[0].post(&listening, "kind: Nothing\n").0 == 400);
    fleet.bare(&["pack-refs", "--all"]);
    let at_daemon = Wire::to(listening.rsplit(':').next().unwrap().parse().unwrap());
    let address = format!("127.0.0.1:{}", at_daemon.port);
    let times = || (processor_time(server.pid()), processor_time(daemon.pid()));

    // First all say something new as fast as they can, then some say the same again.
    for (word, count, spread) in [("new", count, Duration::ZERO), ("same", again, spread)] {
        let (before, begun) = (times(), Instant::now());
        at_server.take_bytes();
        let (next, tries) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE.min(count) {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::SeqCst);
                        let Some(key) = keys.get(index).filter(|_| index < count) else { break };
                        let due = begun + spread.mul_f64(index as f64 / count as f64);
                        pause(due.saturating_duration_since(Instant::now()), "the pace of the reports");
                        until("it is kept", || {
                            tries.fetch_add(1, Ordering::SeqCst);
                            key.post(&address, &status(&key.cluster, "well", 0)).0 == 204
                        });
                    }
                });
            }
        });
        let (after, took) = (times(), begun.elapsed());
        println!(
            "{count} {word} statuses by POST in {:.0} s, {} requests: daemon heard {:.1} MB and took {:.1} s with its \
             passes; server moved {:.1} MB and took {:.1} s",
            took.as_secs_f64(),
            tries.load(Ordering::SeqCst),
            megabytes(at_daemon.take_bytes()),
            after.1 - before.1,
            megabytes(at_server.take_bytes()),
            after.0 - before.0,
        );
    }
    assert_eq!(kept(&fleet).len(), count);
    println!("most memory of the daemon: {}", most_memory(daemon.pid()));
    assert_eq!(daemon.stop().0, 0);

    // By refs: each member has a status ref, and pushes its own.
    let some = count.min(50);
    let commit = fleet.bare(&["commit-tree", "-m", "status", &fleet.bare(&["rev-parse", "main^{tree}"])]);
    fleet.add_refs("refs/berth/status/", count, &commit);
    let before = processor_time(server.pid());
    at_server.take_bytes();
    let bytes: usize = (0..some).map(|_| push(&fleet, &counted, &at_server)).sum();
    println!(
        "{some} statuses by refs: server moved {:.2} MB and took {:.3} s for each",
        megabytes(bytes) / some as f64,
        (processor_time(server.pid()) - before) / some as f64,
    );
}

/// Pushes a new status to a ref as a member does, and returns the bytes.
fn push(fleet: &Fleet, server: &dyn Server, counter: &Wire) -> usize {
    let folder = tempfile::tempdir_in(fleet.root()).unwrap();
    let git = |args: &[&str]| {
        let mut command: Command = hermetic("git");
        let ran = command.arg("-C").arg(folder.path()).args(args).output().expect("git runs");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8_lossy(&ran.stdout).trim().to_owned()
    };
    git(&["init", "-q", "--bare"]);
    let name = folder.path().file_name().unwrap().to_string_lossy().into_owned();
    let tree = git(&["hash-object", "-t", "tree", "-w", "/dev/null"]);
    let commit = git(&["commit-tree", "-m", &name, &tree]);
    let url = server.access()[1].clone();
    counter.take_bytes();
    git(&["push", "-q", "--force", &url, &format!("{commit}:refs/berth/status/m00000")]);
    counter.take_bytes()
}

/// The most memory that a process had, as the system says it.
fn most_memory(pid: u32) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap_or_default().trim().to_owned()
}
