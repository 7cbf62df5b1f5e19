//! A day of a busy fleet: source commits and members' reports against a warm daemon, and at ten points of the day the
//! time of a pass, memory, and the size of the repository. `cargo bench --bench busy_day`.
//!
//! `cargo bench --bench busy_day -- COMMITS REPORTS CLUSTERS WORKLOADS EACH` sets another size.

#![allow(clippy::print_stdout)]

mod allocator;
mod fleet;
mod size;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use berth_base::model::Timestamp;
use berth_base::model::status::Applied;
use berth_git::Repo;
use berth_git::shared_refs::Refs;
use berth_git::transport::upkeep::{self, Grace, Step};
use berth_git::transport::{Cancel, Limits};
use berth_hub::daemon::{self, Cache, Settings};
use berth_member::sync::status;
use fleet::{Dialect, Shape};

const POINTS: usize = 10;

/// The date of the first commit, and the seconds from each to the next.
const BEGIN: i64 = 1_767_225_600;
const STEP: i64 = 60;

fn main() {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let [commits, reports, clusters, workloads, each] = match numbers[..] {
        [commits, reports, clusters, workloads, each] => [commits, reports, clusters, workloads, each],
        [commits, reports] => [commits, reports, 200, 300, 20],
        _ => size::of([5_000, 200_000, 200, 300, 20], [200, 8_000, 200, 300, 20]),
    };
    let shape = Shape { clusters, workloads, each, overridden: 10, dialect: Dialect::KubeFed };
    let folder = tempfile::tempdir().expect("a folder");
    shape.repository(folder.path());
    // An hour of the day in the day's own time, if a commit takes a tenth of a second.
    let hour = (commits / 240).max(1);
    fleet::git(folder.path(), &["config", "gc.pruneExpire", &format!("{hour}.seconds.ago")]);
    println!(
        "{commits} commits and {reports} reports of {clusters} clusters, {} manifests",
        shape.manifests()
    );
    println!(
        "{:>8} {:>17} {:>17} {:>8} {:>9} {:>7} {:>6} {:>16}",
        "commits", "edit, ms 50/99 %", "reports, ms", "RSS MiB", "size KiB", "files", "packs", "upkeep, s"
    );
    let mut day = Day::begin(folder.path());
    let (mut edits, mut heard) = (Vec::new(), Vec::new());
    for number in 1..=commits {
        let edited = shape.workload(number * 37 % workloads, number);
        fleet::commit(folder.path(), &[edited], number);
        edits.push(day.pass(number));
        let before = reports * (number - 1) / commits;
        for report in before..reports * number / commits {
            day.report(&fleet::cluster_name(report % clusters), number);
        }
        heard.push(day.pass(number));
        if number * POINTS / commits > (number - 1) * POINTS / commits {
            let (size, files) = size(folder.path());
            println!(
                "{number:>8} {:>17} {:>17} {:>8} {:>9} {files:>7} {:>6} {:>16}",
                percentiles(&mut edits),
                percentiles(&mut heard),
                resident() >> 10,
                size >> 10,
                packs(folder.path()),
                day.upkeep_shown()
            );
        }
    }
}

struct Day {
    settings: Settings,
    cache: Cache,
    merged: (usize, Duration),
    whole: (usize, Duration),
}

impl Day {
    fn begin(repository: &Path) -> Day {
        let settings = Settings::of(repository);
        let mut day =
            Day { settings, cache: Cache::default(), merged: Default::default(), whole: Default::default() };
        day.pass(0);
        day
    }

    /// A pass, and the upkeep after it, which a daemon does beside the next pass; the processor time of the first.
    fn pass(&mut self, number: usize) -> Duration {
        let before = processor_time();
        let passed = daemon::pass_with_cache(&self.settings, moment(number), &mut self.cache);
        let took = processor_time().saturating_sub(before);
        assert_eq!(passed.expect("the pass succeeds").errors(), 0);
        if let Some(step) = upkeep::due(&self.settings.repo) {
            let begun = Instant::now();
            upkeep::run(&self.settings.repo, step, Grace::OfGit, Limits::default(), &Cancel::default())
                .expect("git packs");
            let kind = match step {
                Step::Merge => &mut self.merged,
                Step::Whole => &mut self.whole,
            };
            kind.0 += 1;
            kind.1 += begun.elapsed();
        }
        took
    }

    /// A report of a member that has what its ref says.
    fn report(&self, cluster: &str, number: usize) {
        let repo = Repo::open(&self.settings.repo).expect("a repository");
        let refs = Refs::default();
        let commit = repo.read_ref(&refs.cluster(cluster)).expect("refs").expect("the cluster's ref");
        let tree = repo.commit(commit).expect("the ref's commit").tree.to_string();
        let applied = Applied { sequence: number as u64, tree, objects: 30, ..Applied::default() };
        let said = status::of(cluster, applied, moment(number), 10 * STEP);
        status::write(&repo, &refs, &said, moment(number)).expect("the report is written");
    }

    fn upkeep_shown(&self) -> String {
        let shown = |(count, took): (usize, Duration)| format!("{count}: {:.0}", took.as_secs_f64());
        format!("{} + {}", shown(self.merged), shown(self.whole))
    }
}

fn moment(number: usize) -> Timestamp {
    let number = i64::try_from(number).expect("a number of commits");
    Timestamp::from_second(BEGIN + STEP * number + 1).expect("a moment")
}

/// Half of the times are no longer, and 99 of 100; in milliseconds. Empties the list.
fn percentiles(times: &mut Vec<Duration>) -> String {
    times.sort();
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default().as_secs_f64();
    let shown = format!("{:.1} / {:.1}", 1000.0 * at(50), 1000.0 * at(99));
    times.clear();
    shown
}

/// The main thread's processor time, where the system tells.
fn processor_time() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or_default())
}

/// The memory in use, in KiB, where the system tells.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|rest| rest.trim().split(' ').next()?.parse().ok()).unwrap_or_default()
}

/// The bytes and the files below a folder.
fn size(folder: &Path) -> (u64, usize) {
    let (mut bytes, mut files) = (0, 0);
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(about) = entry.metadata() else { continue };
        if about.is_dir() {
            let below = size(&entry.path());
            (bytes, files) = (bytes + below.0, files + below.1);
        } else {
            (bytes, files) = (bytes + about.len(), files + 1);
        }
    }
    (bytes, files)
}

fn packs(repository: &Path) -> usize {
    let names = fs::read_dir(repository.join("objects/pack")).into_iter().flatten().flatten();
    names.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "pack")).count()
}
