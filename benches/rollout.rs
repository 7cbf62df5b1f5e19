//! One step of a rollout over large fleets, through Git: ten clusters report success, and the next ten are told.
//! `cargo bench --bench rollout [-- CLUSTERS[/OF_A_WORKLOAD]...]`: a workload is on all clusters, or on so many.
//!
//! Beside it, from the same run: the same pass without anything to do, and a full run from nothing.

#![allow(clippy::print_stdout)]

mod allocator;
mod fleet;
mod size;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use berth_base::model::status::Applied;
use berth_base::model::{ClusterStatus, Timestamp};
use berth_git::shared_refs::Refs;
use berth_git::transport::upkeep::{self, Grace};
use berth_git::transport::{Cancel, Limits};
use berth_git::{EntryKind, Repo};
use berth_hub::daemon::{Cache, PassOutcome, Settings, pass, pass_with_cache};
use berth_member::sync::status;
use fleet::{Dialect, Shape};

/// The clusters that are told at a time.
const WAVE: usize = 10;
const STEPS: usize = 7;
const START: i64 = 1_767_225_600;

fn main() {
    let size = |text: String| {
        let (clusters, each) = text.split_once('/').unwrap_or((&text, &text));
        Some((clusters.parse().ok()?, each.parse().ok()?))
    };
    let sizes: Vec<(usize, usize)> = std::env::args().skip(1).filter_map(size).collect();
    let full = vec![(1_000, 1_000), (10_000, 1_000), (10_000, 10_000), (20_000, 20_000)];
    let usual = || size::of(full, vec![(1_000, 1_000)]);
    let sizes = if sizes.is_empty() { usual() } else { sizes };
    println!(
        "clusters   of a workload   full run   a step   nothing to do   a step / full run   a step / the first one"
    );
    let mut first = None;
    for (clusters, each) in sizes {
        let Figures { full, step, idle } = measure(clusters, each);
        let first = *first.get_or_insert(step);
        println!(
            "{clusters:>8} {each:>15} {:>8.0}ms {:>6.0}ms {:>13.0}ms {:>18.2}% {:>10.2}",
            millis(full),
            millis(step),
            millis(idle),
            100.0 * millis(step) / millis(full),
            millis(step) / millis(first)
        );
    }
}

struct Figures {
    full: Duration,
    step: Duration,
    idle: Duration,
}

fn measure(clusters: usize, each: usize) -> Figures {
    let shape = Shape { clusters, workloads: 10, each, overridden: 0, dialect: Dialect::KubeFed };
    let folder = tempfile::tempdir().expect("a folder");
    shape.repository(folder.path());
    fleet::commit(folder.path(), &[policy()], 1);
    let mut world = World {
        settings: Settings::of(folder.path()),
        cache: Cache::default(),
        now: START + 3_600,
        folder: folder.path(),
    };
    let began = Instant::now();
    pass(&world.settings, world.clock()).expect("a first pass");
    let full = began.elapsed();
    let all: BTreeSet<String> = (0..clusters).map(fleet::cluster_name).collect();
    world.report(&all);
    world.upkeep();
    world.pass();
    world.pass();
    fleet::commit(folder.path(), &[shape.workload(0, 1)], 61);
    let mut before = world.tip();
    world.pass();
    let (mut steps, mut idles) = (Vec::new(), Vec::new());
    for _ in 0..STEPS {
        let tip = world.tip();
        let told = world.changed(&before, &tip);
        assert_eq!(told.len(), WAVE, "a step tells {WAVE} clusters");
        before = tip;
        world.now += 60;
        world.report(&told);
        let (outcome, took) = world.pass();
        assert!(matches!(outcome, PassOutcome::Published { .. }), "a step is published");
        steps.push(took);
        let (outcome, took) = world.pass();
        assert_eq!(outcome, PassOutcome::Unchanged);
        idles.push(took);
    }
    Figures { full, step: median(steps), idle: median(idles) }
}

/// A fleet in a repository with a daemon and members that report.
struct World<'a> {
    settings: Settings,
    cache: Cache,
    now: i64,
    folder: &'a Path,
}

impl World<'_> {
    fn clock(&self) -> Timestamp {
        Timestamp::from_second(self.now).expect("a moment")
    }

    fn pass(&mut self) -> (PassOutcome, Duration) {
        let began = Instant::now();
        let result = pass_with_cache(&self.settings, self.clock(), &mut self.cache).expect("a pass");
        (result.outcome, began.elapsed())
    }

    /// Packs the repository, as a daemon does beside its passes once so many reports are there.
    fn upkeep(&self) {
        if let Some(step) = upkeep::due(self.folder) {
            upkeep::run(self.folder, step, Grace::OfGit, Limits::default(), &Cancel::default())
                .expect("a packed repository");
        }
    }

    fn tip(&self) -> String {
        let printed = fleet::git(self.folder, &["rev-parse", &self.settings.refs.rendered]);
        String::from_utf8_lossy(&printed).trim().to_owned()
    }

    /// The clusters whose folders differ between two publications.
    fn changed(&self, before: &str, after: &str) -> BTreeSet<String> {
        let args = ["diff-tree", "-r", "--name-only", before, after, "--", "clusters"];
        let printed = fleet::git(self.folder, &args);
        let text = String::from_utf8_lossy(&printed).into_owned();
        text.lines().filter_map(|line| line.split('/').nth(1)).map(str::to_owned).collect()
    }

    /// Lets members say that all in their folders is well.
    fn report(&self, clusters: &BTreeSet<String>) {
        let repo = Repo::open(self.folder).expect("a repository");
        let refs = Refs::default();
        let root = repo.read_ref(&refs.rendered).expect("refs").expect("a publication");
        let root = repo.commit(root).expect("a commit").tree;
        let below = |tree, name: &str| {
            let entries = repo.tree(tree).expect("a tree");
            entries
                .into_iter()
                .filter_map(move |entry| match entry.kind {
                    EntryKind::Folder(id) => Some((String::from_utf8_lossy(&entry.name).into_owned(), id)),
                    _ => None,
                })
                .filter(|(found, _)| name.is_empty() || found == name)
                .collect::<Vec<_>>()
        };
        let folders = below(below(root, "clusters")[0].1, "");
        for (cluster, tree) in folders.into_iter().filter(|(cluster, _)| clusters.contains(cluster)) {
            let applied = Applied { sequence: 1, tree: tree.to_string(), objects: 10, ..Applied::default() };
            let (reported, applied) = (Some(self.clock()), Some(applied));
            let status = ClusterStatus { cluster, reported, applied, ..ClusterStatus::default() };
            status::write(&repo, &refs, &status, self.clock()).expect("a report");
        }
    }
}

fn policy() -> (String, String) {
    let text = format!(
        "apiVersion: berth.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {{name: waves}}\nspec:\n  \
         workloads: [{{kind: FederatedDeployment, name: app-00000}}]\n  strategy:\n    \
         rolloutStrategy: {{type: Progressive, progressive: {{maxConcurrency: {WAVE}}}}}\n"
    );
    ("policies/waves.yaml".to_owned(), text)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
