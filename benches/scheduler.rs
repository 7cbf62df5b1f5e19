//! The scheduler of KubeFleet's PickN: 1,000 placements with affinity and two spread constraints over 1,000,
//! 5,000 and 10,000 clusters, decided from nothing. `cargo bench --bench scheduler` takes some minutes.
//!
//! Run as a test, it decides a small fleet once.

mod size;

use std::hint::black_box;

use berth_base::model::{Fleet, Map, Shared, Timestamp};
use berth_base::source::{SourceFile, SourceTree};
use berth_engine::decide::decide;
use berth_engine::load::{self, History};
use criterion::{BenchmarkId, Criterion, Throughput};

/// Placements, and fleets by their number of clusters.
fn sizes() -> (usize, Vec<usize>) {
    let measured = std::env::args().any(|arg| arg == "--bench");
    let full = size::of((1_000, vec![1_000, 5_000, 10_000]), (100, vec![1_000, 5_000]));
    if measured { full } else { (4, vec![40]) }
}

fn cluster(n: usize) -> String {
    format!(
        "apiVersion: cluster.kubernetes-fleet.io/v1beta1\nkind: MemberCluster\n\
         metadata:\n  name: m-{n:05}\n  labels: {{region: r{}, zone: z{}, env: {}}}\n\
         spec:\n  identity: {{kind: ServiceAccount, name: a}}\n\
         status:\n  resourceUsage: {{available: {{cpu: \"{}\"}}}}\n---\n",
        n % 12,
        n % 35,
        if n.is_multiple_of(5) { "test" } else { "prod" },
        1 + n * 31 % 97,
    )
}

fn placement(n: usize) -> String {
    format!(
        "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterResourcePlacement\n\
         metadata: {{name: p-{n:04}}}\n\
         spec:\n  policy:\n    placementType: PickN\n    numberOfClusters: {}\n\
         \x20   affinity:\n      clusterAffinity:\n\
         \x20       requiredDuringSchedulingIgnoredDuringExecution:\n\
         \x20         clusterSelectorTerms: [{{labelSelector: {{matchLabels: {{env: prod}}}}}}]\n\
         \x20       preferredDuringSchedulingIgnoredDuringExecution:\n\
         \x20       - weight: {}\n          preference:\n\
         \x20           propertySorter: {{name: resources.kubernetes-fleet.io/available-cpu, sortOrder: Descending}}\n\
         \x20   topologySpreadConstraints:\n\
         \x20   - {{maxSkew: 2, topologyKey: region, whenUnsatisfiable: DoNotSchedule}}\n\
         \x20   - {{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}}\n---\n",
        3 + n % 20,
        1 + n % 100,
    )
}

fn fleet(placements: usize, clusters: usize) -> Shared<Fleet> {
    let text: String = (0..clusters).map(cluster).chain((0..placements).map(placement)).collect();
    let file = SourceFile::new("fleet.yaml", text.into_bytes());
    let tree = SourceTree { files: [file].into(), ..SourceTree::default() };
    let loaded = load::load(&tree, History::None);
    assert!(!loaded.diagnostics.has_errors(), "{:?}", loaded.diagnostics.errors().next());
    assert_eq!((loaded.fleet.clusters.len(), loaded.fleet.placements.len()), (clusters, placements));
    loaded.fleet
}

fn now() -> Timestamp {
    "2027-01-01T00:00:00Z".parse().expect("a moment")
}

fn scheduler(c: &mut Criterion) {
    let (placements, sizes) = sizes();
    let (nothing, statuses) = (Map::new(), Map::new());
    let mut group = c.benchmark_group("scheduler");
    group.throughput(Throughput::Elements(placements as u64));
    group.sample_size(10);
    for clusters in sizes {
        let fleet = fleet(placements, clusters);
        let decided = decide(&fleet, &nothing, &statuses, now());
        let picks: usize = decided.decisions.values().map(|one| one.picks.len()).sum();
        assert_eq!(
            picks,
            (0..placements).map(|n| 3 + n % 20).sum::<usize>(),
            "all are picked that are asked for"
        );
        let size = BenchmarkId::from_parameter(format!("{placements} over {clusters}"));
        group.bench_function(size, |b| b.iter(|| black_box(decide(&fleet, &nothing, &statuses, now()))));
    }
    group.finish();
}

fn main() {
    let mut criterion = size::criterion();
    scheduler(&mut criterion);
    criterion.final_summary();
}
