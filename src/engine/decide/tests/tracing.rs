//! The trace that `explain` gets.

use super::setup::*;
use crate::decide::{Stage, explain};
use berth_base::model::placement::{Filter, Policy, Rule, Selection};
use berth_base::model::{Effect, Map};

#[test]
fn every_cluster_has_its_steps_scores_and_precise_reason() {
    let mut tainted = cluster("c", &["set=blue", "env=prod"]);
    tainted.taints = vec![taint("gpu", Effect::Refuse, None)];
    let scored = |name, value| {
        let mut cluster = cluster(name, &["set=blue", "env=prod"]);
        cluster.scores = score(value, None);
        cluster
    };
    let clusters = vec![
        scored("a", 7),
        cluster("b", &["set=blue", "env=dev"]),
        tainted,
        cluster("d", &[]),
        scored("e", 3),
    ];
    let policy = Policy {
        candidates: vec![Filter { rule: labels(&["set=blue"]), by: None }],
        scorers: vec![add_on()],
        selection: Selection::First(1),
        ..policy(vec![labels(&["env=prod"]), Rule::Tolerates(Vec::new())])
    };
    let fleet = fleet(clusters, vec![placement("web", policy)]);
    let trace = explain(&fleet, &Map::new(), &Map::new(), second(1000), &key("web")).expect("it is there");
    let reasons: Vec<_> =
        trace.clusters.iter().map(|one| (one.cluster.as_str(), one.picked, one.reason.as_str())).collect();
    assert_eq!(
        reasons,
        [
            ("a", true, "among the first 1 by score"),
            ("b", false, "label env=prod is required, the cluster has env=dev"),
            ("c", false, "taint gpu:NoSelect is not tolerated"),
            ("d", false, "label set=blue is required, the cluster has none"),
            ("e", false, "not among the first 1 by score"),
        ]
    );
    let ranks: Vec<_> = trace.clusters.iter().map(|one| one.rank).collect();
    assert_eq!(ranks, [Some(1), None, None, None, Some(2)]);
    assert_eq!(trace.clusters[4].scores[0].score, 3);
    let steps: Vec<_> = trace.clusters[2].steps.iter().map(|step| (step.stage, step.passed)).collect();
    assert_eq!(steps, [(Stage::Candidate, true), (Stage::Filter, true), (Stage::Filter, false)]);
    assert!(!trace.sticky);
}

#[test]
fn a_follower_is_explained_by_what_it_follows() {
    let clusters = vec![cluster("a", &["x=1"]), cluster("b", &[])];
    let work = follows("work", &["xs"]);
    let key = work.key.clone();
    let fleet = fleet(clusters, vec![placement("xs", policy(vec![labels(&["x"])])), work]);
    let trace = explain(&fleet, &Map::new(), &Map::new(), second(1000), &key).expect("it is there");
    let reasons: Vec<_> = trace.clusters.iter().map(|one| one.reason.as_str()).collect();
    assert_eq!(reasons, ["picked by Placement shop/xs", "not picked by Placement shop/xs"]);
}

#[test]
fn what_is_not_there_is_not_explained() {
    let fleet = fleet(Vec::new(), Vec::new());
    assert_eq!(explain(&fleet, &Map::new(), &Map::new(), second(1000), &key("web")), None);
}
