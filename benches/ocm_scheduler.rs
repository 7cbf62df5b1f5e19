//! OCM's scheduler: 1,000 Placements of ten clusters each (Exact: Steady, Balance, ResourceAllocatableMemory) over 1,000,
//! 5,000 and 10,000 clusters, from nothing, and again with all of it in force. `cargo bench --bench ocm_scheduler`.
//!
//! Prints the time for each placement beside what OCM's own scheduler needs for one. As a test, a small fleet once.

#![allow(clippy::print_stdout, reason = "a bench prints what it measured")]

mod size;

use std::hint::black_box;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use berth_base::model::{Decision, Fleet, Key, Map, Shared, Timestamp};
use berth_base::source::{SourceFile, SourceTree};
use berth_engine::decide::decide;
use berth_engine::load::{self, History};

/// Clusters, and the milliseconds that OCM's scheduler was measured to need for one such Placement, in its own
/// process with its own fakes: without a predicate, and with matchLabels.
const SIZES: [(usize, Option<[f64; 2]>); 3] =
    [(1_000, Some([1.3, 2.6])), (5_000, Some([8.0, 14.0])), (10_000, None)];

const WANTED: usize = 10;

fn cluster(n: usize) -> String {
    format!(
        "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\n\
         metadata:\n  name: m-{n:05}\n  labels: {{cluster.open-cluster-management.io/clusterset: all, env: {}, region: r{}}}\n\
         spec: {{hubAcceptsClient: true}}\n\
         status:\n  allocatable: {{cpu: \"8\", memory: {}Mi}}\n  capacity: {{cpu: \"8\", memory: 1048576Mi}}\n---\n",
        if n.is_multiple_of(5) { "test" } else { "prod" },
        n % 12,
        1_024 + n * 7_919 % 65_536,
    )
}

fn placement(n: usize, predicates: &str) -> String {
    let prioritizer = |name: &str| format!("    - {{scoreCoordinate: {{builtIn: {name}}}}}\n");
    let prioritizers: String = ["Steady", "Balance", "ResourceAllocatableMemory"].map(prioritizer).concat();
    format!(
        "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\nmetadata: {{name: p-{n:04}, namespace: apps}}\n\
         spec:\n  numberOfClusters: {WANTED}\n{predicates}  prioritizerPolicy:\n    mode: Exact\n    configurations:\n{prioritizers}---\n"
    )
}

fn fleet(placements: usize, clusters: usize, predicates: &str) -> Shared<Fleet> {
    let sets = "apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSet\nmetadata: {name: all}\n---\n\
                apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSetBinding\n\
                metadata: {name: all, namespace: apps}\nspec: {clusterSet: all}\n---\n";
    let rest = (0..clusters).map(cluster).chain((0..placements).map(|n| placement(n, predicates)));
    let text: String = std::iter::once(sets.to_owned()).chain(rest).collect();
    let file = SourceFile::new("fleet.yaml", text.into_bytes());
    let loaded = load::load(&SourceTree { files: [file].into(), ..SourceTree::default() }, History::None);
    assert!(!loaded.diagnostics.has_errors(), "{:?}", loaded.diagnostics.errors().next());
    assert_eq!((loaded.fleet.clusters.len(), loaded.fleet.placements.len()), (clusters, placements));
    loaded.fleet
}

/// Microseconds for each placement, the best of some runs, and what was decided.
fn measure(fleet: &Fleet, previous: &Map<Key, Decision>, runs: usize) -> (f64, Map<Key, Decision>) {
    let now: Timestamp = "2027-01-01T00:00:00Z".parse().expect("a moment");
    let (mut best, mut last) = (f64::INFINITY, Map::new());
    for _ in 0..runs {
        let start = clock();
        let decided = black_box(decide(fleet, previous, &Map::new(), now));
        best = best.min((clock() - start).as_secs_f64() * 1e6 / fleet.placements.len() as f64);
        last = decided.decisions;
    }
    assert!(
        last.values().all(|decision| decision.picks.len() == WANTED),
        "all are picked that are asked for"
    );
    (best, last)
}

/// What the process has computed so far, where the system tells; elsewhere the clock on the wall.
fn clock() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let wall = START.elapsed();
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let computed = text.split_whitespace().next().and_then(|nanos| nanos.parse().ok());
    computed.map_or(wall, Duration::from_nanos)
}

/// What the process has needed at most, in MiB, where the system tells.
fn peak() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches("kB").trim().parse::<usize>().ok()? / 1024)
}

fn main() {
    let measured = std::env::args().any(|arg| arg == "--bench");
    let (placements, runs) = if measured { size::of((1_000, 5), (100, 3)) } else { (4, 1) };
    let labelled =
        "  predicates:\n  - requiredClusterSelector: {labelSelector: {matchLabels: {env: prod}}}\n";
    println!("microseconds for one of {placements} Placements; how many times as fast as OCM's scheduler");
    println!(
        "clusters  predicates   from nothing       all in force, decided again   all in force, nothing changed"
    );
    for (clusters, ocm) in SIZES {
        let clusters = if measured { clusters } else { clusters / 50 };
        for (index, (name, predicates)) in [("none", ""), ("matchLabels", labelled)].into_iter().enumerate() {
            let fleet = fleet(placements, clusters, predicates);
            let (first, decided) = measure(&fleet, &Map::new(), runs);
            let undigested: Map<Key, Decision> = decided
                .iter()
                .map(|(key, one)| (key.clone(), Decision { digest: None, ..one.clone() }))
                .collect();
            let (again, _) = measure(&fleet, &undigested, runs);
            let (standing, stood) = measure(&fleet, &decided, runs);
            assert!(stood == decided, "what nothing changed for stands");
            let times = |micros: f64| {
                ocm.map_or("     ".to_owned(), |ocm| format!("{:>4.0}x", ocm[index] * 1e3 / micros))
            };
            println!(
                "{clusters:>8}  {name:<11}  {first:>8.1} {}     {again:>8.1} {}              {standing:>8.1} {}",
                times(first),
                times(again),
                times(standing)
            );
        }
    }
    if let Some(peak) = peak() {
        println!("at most {peak} MiB, of which most is the files as read");
    }
}
