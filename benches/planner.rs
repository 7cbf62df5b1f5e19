//! The replica planner: 10,000 preferences over 100 clusters each, and how the cost of one grows with the
//! clusters. `cargo bench --bench planner` takes a minute.

mod size;

use std::hint::black_box;

use berth_base::model::placement::Share;
use berth_engine::decide::divide::planner::{Contender, Request, plan};
use criterion::{Criterion, Throughput};

const PREFERENCES: usize = 10_000;
const CLUSTERS: usize = 100;

/// Floors, ceilings, weights, current counts and capacities that differ from cluster to cluster.
fn contender(cluster: &str, index: usize, seed: usize) -> Contender<'_> {
    let turn = index.wrapping_mul(31).wrapping_add(seed.wrapping_mul(17));
    let number = |below: usize| i64::try_from(turn % below).unwrap_or(0);
    let ceiling = turn.is_multiple_of(4).then(|| 3 + number(40));
    Contender {
        cluster,
        share: Some(Share { floor: number(3), ceiling, weight: number(6) }),
        current: turn.is_multiple_of(3).then(|| number(20)),
        capacity: turn.is_multiple_of(11).then(|| number(15)),
    }
}

fn contenders(names: &[String], seed: usize) -> Vec<Contender<'_>> {
    names.iter().enumerate().map(|(index, name)| contender(name, index, seed)).collect()
}

fn names(clusters: usize) -> Vec<String> {
    (0..clusters).map(|index| format!("cluster-{index:04}")).collect()
}

fn keys(preferences: usize) -> Vec<String> {
    (0..preferences).map(|index| format!("team-{}/app-{index}", index % 50)).collect()
}

/// Plans every preference once, over inputs that take turns.
fn plan_all(keys: &[String], inputs: &[Vec<Contender<'_>>], total: i32, rebalance: bool) {
    for (index, key) in keys.iter().enumerate() {
        black_box(plan(Request { total, rebalance, key }, &inputs[index % inputs.len()]));
    }
}

fn fleet(c: &mut Criterion) {
    let (names, keys) = (names(CLUSTERS), keys(PREFERENCES));
    let inputs: Vec<_> = (0..16).map(|seed| contenders(&names, seed)).collect();
    let mut group = c.benchmark_group("planner");
    group.throughput(Throughput::Elements(PREFERENCES as u64));
    group.sample_size(10);
    for rebalance in [false, true] {
        let name = if rebalance { "from scratch" } else { "keeping what runs" };
        group.bench_function(format!("{PREFERENCES}x{CLUSTERS}, {name}"), |b| {
            b.iter(|| plan_all(&keys, &inputs, 1_000, rebalance));
        });
    }
    group.finish();
}

/// How the cost of one preference grows with the clusters it divides over, ten replicas for each.
fn growth(c: &mut Criterion) {
    let keys = keys(16);
    let mut group = c.benchmark_group("planner, 16 preferences");
    group.throughput(Throughput::Elements(16));
    group.sample_size(20);
    if !size::is_quick() {
        group.measurement_time(std::time::Duration::from_secs(2));
    }
    for clusters in [10, 100, 1_000, 10_000] {
        let names = names(clusters);
        let inputs: Vec<_> = (0..16).map(|seed| contenders(&names, seed)).collect();
        let total = i32::try_from(clusters * 10).unwrap_or(i32::MAX);
        group.bench_function(format!("{clusters} clusters"), |b| {
            b.iter(|| plan_all(&keys, &inputs, total, false));
        });
    }
    group.finish();
}

fn main() {
    let mut criterion = size::criterion();
    fleet(&mut criterion);
    growth(&mut criterion);
    criterion.final_summary();
}
