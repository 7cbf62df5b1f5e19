//! The page, and the questions about the past, at their largest: `berth site` from nothing, after one edit and with nothing
//! changed beside a full run; `berth log`, `why` and `--at` over many publications. `cargo bench --bench page`.
//!
//! `cargo bench --bench page -- CLUSTERS WORKLOADS EACH PUBLICATIONS` sets another size.

#![allow(clippy::print_stdout)]

mod fleet;
mod rows;
mod size;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use berth_base::model::Timestamp;
use berth_hub::daemon::{self, Settings};
use fleet::{Dialect, Shape};
use rows::{Figure, Target};

/// The clusters behind the history, and those of each of its workloads.
const PAST_CLUSTERS: usize = 1_000;
const PAST_EACH: usize = 10;

/// The longest answer about the past.
const SECOND: Figure = Figure::Time(Duration::from_secs(1));

/// Each question is asked so many times.
const TIMES: usize = 3;

fn main() {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let (clusters, workloads, each, publications) = match numbers[..] {
        [clusters, workloads, each, publications] => (clusters, workloads, each, publications),
        _ => size::of((5_000, 5_000, 200, 10_000), (300, 300, 100, 300)),
    };
    let mut folder = tempfile::tempdir().expect("a folder");
    folder.disable_cleanup(std::env::var_os("BERTH_BENCH_KEEP").is_some());
    println!("in {}", folder.path().display());
    rows::heading();
    if clusters > 0 {
        let shape = Shape { clusters, workloads, each, overridden: 10, dialect: Dialect::KubeFed };
        page(folder.path(), shape);
    }
    if publications > 0 {
        past(folder.path(), publications);
    }
}

/// The page of a fleet.
fn page(folder: &Path, shape: Shape) {
    let Shape { clusters, workloads, each, .. } = shape;
    println!("{clusters} clusters, {workloads} workloads on {each} each: {} manifests", shape.manifests());
    let repository = made(folder, "fleet.git", shape);
    let out = folder.join("page");
    let [repo, page] = [&repository, &out].map(|path| path.to_str().expect("text"));
    let full = timed(&["run", "--once", "--repo", repo]);
    let site = || timed(&["site", "--repo", repo, "--out", page]);
    rows::row("site from nothing", site(), full, "full run", Target::AtMost(0.5));
    let (files, bytes) = files(&out);
    println!("{files} files, {} KiB", bytes >> 10);
    let median = |mut all: Vec<Duration>| {
        all.sort();
        Figure::Time(all[all.len() / 2])
    };
    let mut edited = Vec::new();
    let mut idle = Vec::new();
    for number in 1..=TIMES {
        fleet::commit(&repository, &[shape.workload(number * 37 % workloads, number)], number);
        timed(&["run", "--once", "--repo", repo]);
        edited.push(duration(site()));
        idle.push(duration(site()));
    }
    rows::row("site after one edit", median(edited), full, "full run", Target::AtMost(0.02));
    rows::row("site with nothing changed", median(idle), full, "full run", Target::AtMost(0.003));
}

/// Questions about many publications, of which each changed one workload.
fn past(folder: &Path, publications: usize) {
    let workloads = PAST_CLUSTERS;
    let shape = Shape {
        clusters: PAST_CLUSTERS,
        workloads,
        each: PAST_EACH,
        overridden: 10,
        dialect: Dialect::KubeFed,
    };
    println!(
        "{publications} publications over {PAST_CLUSTERS} clusters, {workloads} workloads on {PAST_EACH} each"
    );
    let repository = made(folder, "past.git", shape);
    let settings = Settings::of(repository.clone());
    let mut cache = daemon::Cache::default();
    for number in 0..publications {
        if number > 0 {
            fleet::commit(&repository, &[shape.workload(number * 37 % workloads, number)], number);
        }
        daemon::pass_with_cache(&settings, Timestamp::now(), &mut cache).expect("the pass succeeds");
    }
    // As the daemon does now and then.
    fleet::git(&repository, &["gc", "--quiet"]);
    let repo = repository.to_str().expect("text");
    let workload = "team-01/app-00150";
    let object = "Deployment.apps/team-01/app-00150";
    let (then, cluster) = ((publications / 2).to_string(), "c00050");
    let of_cluster = format!("cluster/{cluster}");
    for (name, args) in [
        ("log of a placement", vec!["log", workload]),
        ("log of a placement in a cluster", vec!["log", workload, "--cluster", cluster]),
        ("log of a cluster", vec!["log", of_cluster.as_str()]),
        ("log of an object", vec!["log", object]),
        ("log of an object in a cluster", vec!["log", object, "--cluster", cluster]),
        ("log of an old publication", vec!["log", workload, "--at", then.as_str()]),
        ("why of an object in a cluster", vec!["why", object, "--cluster", cluster]),
        ("why of a placement", vec!["why", workload]),
        ("why at an old publication", vec!["why", object, "--cluster", cluster, "--at", then.as_str()]),
    ] {
        let args = [&args[..], &["--repo", repo]].concat();
        let longest = (0..TIMES).map(|_| duration(timed(&args))).max().unwrap_or_default();
        rows::row(name, Figure::Time(longest), SECOND, "a second", Target::AtMost(1.0));
    }
}

fn made(folder: &Path, name: &str, shape: Shape) -> PathBuf {
    let repository = folder.join(name);
    std::fs::create_dir(&repository).expect("a folder");
    shape.repository(&repository);
    repository
}

fn duration(figure: Figure) -> Duration {
    match figure {
        Figure::Time(time) => time,
        Figure::Memory(_) => Duration::ZERO,
    }
}

/// Runs berth, and measures its time on the wall.
fn timed(args: &[&str]) -> Figure {
    let start = Instant::now();
    let mut command = Command::new(env!("CARGO_BIN_EXE_berth"));
    let ran = command.args(args).stdout(Stdio::null()).stderr(Stdio::piped()).output().expect("it starts");
    let took = start.elapsed();
    assert!(ran.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
    Figure::Time(took)
}

/// Returns the number of files below a folder, and their bytes.
fn files(folder: &Path) -> (usize, u64) {
    let (mut count, mut bytes, mut folders) = (0, 0, vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let entry = entry.expect("an entry");
            match entry.metadata().expect("its size") {
                kind if kind.is_dir() => folders.push(entry.path()),
                kind => (count, bytes) = (count + 1, bytes + kind.len()),
            }
        }
    }
    (count, bytes)
}
