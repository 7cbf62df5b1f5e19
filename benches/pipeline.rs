//! The pure pipeline over generated fleets: load, decide, render. `cargo bench`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hint::black_box;

use berth::load::{self, History};
use berth::model::Timestamp;
use berth::pipeline::{Inputs, build};
use berth::render::MemoryContents;
use berth::source::{SourceFile, SourceTree};
use berth::state::State;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// A fleet whose every workload goes to a tenth of the clusters, with an override in one of them.
fn fleet(clusters: usize, workloads: usize) -> SourceTree {
    let mut files = Vec::new();
    let mut file = |path: String, text: String| {
        files.push(SourceFile { path: path.into(), bytes: text.into_bytes().into() });
    };
    for n in 0..clusters {
        file(
            format!("clusters/c{n:05}.yaml"),
            format!(
                "apiVersion: core.kubefed.io/v1beta1\nkind: KubeFedCluster\nmetadata:\n  name: c{n:05}\n  namespace: kube-federation-system\n  \
                 labels: {{shard: s{}, region: r{}}}\nspec:\n  apiEndpoint: https://c{n:05}.example.com\n  secretRef: {{name: t}}\n",
                n % 10,
                n % 7
            ),
        );
    }
    file(
        "apps/namespace.yaml".into(),
        "apiVersion: types.kubefed.io/v1beta1\nkind: FederatedNamespace\nmetadata: {name: shop, namespace: shop}\nspec: {placement: {clusterSelector: {}}}\n".into(),
    );
    for n in 0..workloads {
        let mut text = format!(
            "apiVersion: types.kubefed.io/v1beta1\nkind: FederatedConfigMap\nmetadata: {{name: app-{n:05}, namespace: shop}}\nspec:\n  \
             placement: {{clusterSelector: {{matchLabels: {{shard: s{}}}}}}}\n  template:\n    data:\n",
            n % 10
        );
        for key in 0..10 {
            let _ = writeln!(text, "      key-{key}: value of {n} at {key}");
        }
        let _ = write!(
            text,
            "  overrides:\n  - clusterName: c{:05}\n    clusterOverrides: [{{path: /data/key-1, value: other}}]\n",
            n % 10
        );
        file(format!("apps/app-{n:05}.yaml"), text);
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    SourceTree { files, ..SourceTree::default() }
}

fn pipeline(c: &mut Criterion) {
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a moment");
    let nothing = State::default();
    let statuses = BTreeMap::new();
    for (clusters, workloads) in [(10, 10), (100, 100), (1000, 100)] {
        let tree = fleet(clusters, workloads);
        let inputs =
            |previous| Inputs { tree: &tree, history: History::None, previous, statuses: &statuses, now };
        let size = BenchmarkId::from_parameter(format!("{clusters}x{workloads}"));
        let mut group = c.benchmark_group("load");
        group.throughput(Throughput::Elements((clusters + workloads) as u64));
        group.bench_with_input(size.clone(), &tree, |b, tree| {
            b.iter(|| black_box(load::load(tree, History::None)));
        });
        group.finish();
        let mut group = c.benchmark_group("build from nothing");
        group.throughput(Throughput::Elements((clusters * workloads / 10) as u64));
        group.bench_function(size.clone(), |b| {
            b.iter(|| build(inputs(&nothing), &mut MemoryContents::default()).expect("memory holds it"));
        });
        group.finish();
        let before = build(inputs(&nothing), &mut MemoryContents::default()).expect("memory holds it").state;
        let mut group = c.benchmark_group("build again, nothing changed");
        group.bench_function(size, |b| {
            b.iter(|| build(inputs(&before), &mut MemoryContents::default()).expect("memory holds it"));
        });
        group.finish();
    }
}

criterion_group!(benches, pipeline);
criterion_main!(benches);
