//! The replica planner: 10,000 preferences over 100 clusters each. `cargo bench --bench planner`.

use std::hint::black_box;

use berth::decide::divide::planner::{Contender, Request, plan};
use berth::model::placement::Share;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

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

fn planner(c: &mut Criterion) {
    let names: Vec<String> = (0..CLUSTERS).map(|index| format!("cluster-{index:03}")).collect();
    let keys: Vec<String> =
        (0..PREFERENCES).map(|index| format!("team-{}/app-{index}", index % 50)).collect();
    let inputs: Vec<_> = (0..16).map(|seed| contenders(&names, seed)).collect();
    let mut group = c.benchmark_group("planner");
    group.throughput(Throughput::Elements(PREFERENCES as u64));
    group.sample_size(10);
    for rebalance in [false, true] {
        let name = if rebalance { "from scratch" } else { "keeping what runs" };
        group.bench_function(format!("{PREFERENCES}x{CLUSTERS}, {name}"), |b| {
            b.iter(|| {
                for (index, key) in keys.iter().enumerate() {
                    let request = Request { total: 1_000, rebalance, key };
                    black_box(plan(request, &inputs[index % inputs.len()]));
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, planner);
criterion_main!(benches);
