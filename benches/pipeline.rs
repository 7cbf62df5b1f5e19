//! Each stage apart, over generated fleets: load, decide, render, plan, publish, and a pass after one
//! edit with and without what earlier passes left. `cargo bench --bench pipeline`.

mod allocator;
mod fleet;
mod size;

use berth_git::shared_refs::Refs;
use std::cell::RefCell;
use std::hint::black_box;

use berth_base::model::{Map, Timestamp};
use berth_base::source::{SourceFile, SourceTree};
use berth_engine::decide::decide;
use berth_engine::load::{self, FileCache, History};
use berth_engine::pipeline::{Inputs, build};
use berth_engine::plan::plan;
use berth_engine::render::{self, MemoryContents};
use berth_engine::state::State;
use berth_git::{CommitId, GitContents, Repo};
use berth_hub::daemon::{Cache, Settings, pass, pass_with_cache};
use berth_hub::publish::{Stamp, Summary, draft, point};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};
use fleet::{Dialect, Shape};

fn shapes() -> [(&'static str, Shape); 4] {
    let shape = |dialect| Shape { clusters: 100, workloads: 100, each: 10, overridden: 10, dialect };
    [
        ("kubefed", shape(Dialect::KubeFed)),
        ("kubefleet", shape(Dialect::KubeFleet)),
        ("ocm", shape(Dialect::Ocm)),
        ("kubefed x10", Shape { clusters: 1000, each: 100, ..shape(Dialect::KubeFed) }),
    ]
}

fn tree(shape: &Shape) -> SourceTree {
    let file = |(path, text): (String, String)| SourceFile::new(path, text.into_bytes());
    SourceTree { files: shape.files().into_iter().map(file).collect(), ..SourceTree::default() }
}

fn now() -> Timestamp {
    "2027-01-01T00:00:00Z".parse().expect("a moment")
}

fn stages(c: &mut Criterion) {
    let (nothing, statuses) = (State::default(), Map::new());
    for (name, shape) in shapes() {
        let tree = tree(&shape);
        let files = Throughput::Elements(tree.files.len() as u64);
        let copies = Throughput::Elements(shape.manifests() as u64);
        let size = || BenchmarkId::from_parameter(name);
        let mut group = c.benchmark_group("load");
        group.throughput(files.clone());
        group.bench_function(size(), |b| b.iter(|| black_box(load::load(&tree, History::None))));
        group.finish();

        let mut parsed = FileCache::default();
        load::load_with_cache(&tree, History::None, &mut parsed);
        let mut group = c.benchmark_group("load, parsed before");
        group.throughput(files);
        group.bench_function(size(), |b| {
            b.iter(|| black_box(load::load_with_cache(&tree, History::None, &mut parsed)));
        });
        group.finish();

        let loaded = load::load(&tree, History::None);
        let decided = || decide(&loaded.fleet, &Map::new(), &statuses, now());
        let mut group = c.benchmark_group("decide");
        group.throughput(Throughput::Elements(loaded.fleet.placements.len() as u64));
        group.bench_function(size(), |b| b.iter(|| black_box(decided())));
        group.finish();

        let mut group = c.benchmark_group("render");
        group.throughput(copies.clone());
        let previous = render::Previous { decisions: &nothing.decisions, folders: &nothing.folders };
        group.bench_function(size(), |b| {
            b.iter_batched(
                || decided().decisions,
                |mut decisions| {
                    let mut contents = MemoryContents::default();
                    render::render(&loaded.fleet, &mut decisions, previous, &mut contents)
                        .expect("memory takes it")
                },
                BatchSize::LargeInput,
            );
        });
        group.finish();

        let inputs = Inputs {
            tree: &tree,
            history: History::None,
            current: &nothing,
            statuses: &statuses,
            now: now(),
        };
        let built = build(inputs, &mut MemoryContents::default()).expect("memory takes it");
        let mut group = c.benchmark_group("plan from nothing");
        group.throughput(copies.clone());
        group.bench_function(size(), |b| b.iter(|| black_box(plan(&nothing, &built.state))));
        group.finish();

        let mut group = c.benchmark_group("publish from nothing");
        group.sample_size(10).throughput(copies);
        group.bench_function(size(), |b| {
            b.iter_batched(
                || {
                    let folder = tempfile::tempdir().expect("a folder");
                    fleet::git(folder.path(), &["init", "-q", "--bare", "."]);
                    folder
                },
                |folder| {
                    let repo = Repo::open(folder.path()).expect("a repository");
                    let mut contents = GitContents::writing(&repo).expect("its objects");
                    let built = build(inputs, &mut contents).expect("it is stored");
                    let stamp = Stamp::new(CommitId([0xab; 20]), "bench", 0, now());
                    let summary = Summary::of(&plan(&nothing, &built.state), true);
                    let drafted = draft(&repo, None, &built.state, &stamp, &summary).expect("written");
                    point(&repo, &Refs::default(), None, &drafted).expect("published");
                    folder
                },
                BatchSize::PerIteration,
            );
        });
        group.finish();
    }
}

fn one_edit(c: &mut Criterion) {
    for (name, shape) in shapes() {
        let folder = tempfile::tempdir().expect("a folder");
        shape.repository(folder.path());
        let settings = Settings::of(folder.path());
        let (cache, number) = (RefCell::new(Cache::default()), RefCell::new(0));
        let edit = || {
            *number.borrow_mut() += 1;
            fleet::commit(
                folder.path(),
                &[shape.workload(*number.borrow() % 100, *number.borrow())],
                *number.borrow(),
            );
        };
        let warm = || pass_with_cache(&settings, now(), &mut cache.borrow_mut()).expect("a pass");
        warm();
        let mut group = c.benchmark_group("pass after one edit");
        group.sample_size(10);
        group.bench_function(BenchmarkId::new("remembering", name), |b| {
            b.iter_batched(edit, |()| warm(), BatchSize::PerIteration);
        });
        group.bench_function(BenchmarkId::new("from nothing", name), |b| {
            b.iter_batched(edit, |()| pass(&settings, now()).expect("a pass"), BatchSize::PerIteration);
        });
        group.finish();
    }
}

fn main() {
    let mut criterion = size::criterion();
    stages(&mut criterion);
    one_edit(&mut criterion);
    criterion.final_summary();
}
