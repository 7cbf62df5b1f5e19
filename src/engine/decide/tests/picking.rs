//! Filters, scores, selection and groups; and the trace that `explain` gets.

use super::setup::*;
use crate::decide::{Stage, decide, explain};
use berth_base::model::placement::{
    AS_WRITTEN, Blocked, Filter, GroupSize, Grouping, Policy, Ranking, Retention, Rule, ScoreRule, Selection,
};
use berth_base::model::{Condition, Effect, Map};
use berth_base::packed::Packed;

#[test]
fn every_cluster_that_passes_is_picked_and_others_are_counted_by_reason_where_there_are_too_few() {
    let clusters = vec![
        cluster("a", &["env=prod"]),
        cluster("b", &["env=dev"]),
        cluster("c", &["env=test"]),
        cluster("d", &["env=prod"]),
    ];
    let in_prod = || policy(vec![labels(&["env=prod"])]);
    let three = Policy { selection: Selection::First(3), ..in_prod() };
    let placements = vec![placement("web", in_prod()), placement("three", three)];
    let decided = run(&fleet(clusters, placements), &Map::new());
    assert_eq!(picked(&decided, "web"), ["a", "d"]);
    assert_eq!(picked(&decided, "three"), ["a", "d"]);
    let decision = &decided.decisions[&key("web")];
    assert_eq!((decision.picks[0].reason.as_str(), &decision.refused), ("label env=prod", &Vec::new()));
    let decision = &decided.decisions[&key("three")];
    assert_eq!(decision.refused.len(), 1);
    assert_eq!(
        (decision.refused[0].reason.as_str(), decision.refused[0].clusters),
        ("label env=prod is required", 2)
    );
    assert!(decided.diagnostics.is_empty());
}

#[test]
fn placing_nowhere_is_a_warning_that_sums_up_the_reasons() {
    let mut bad = cluster("b", &["env=prod"]);
    bad.taints = vec![taint("gpu", Effect::Refuse, None)];
    let rules = vec![labels(&["env=prod"]), Rule::Tolerates(Vec::new())];
    let fleet = fleet(vec![cluster("a", &[]), bad, cluster("c", &[])], vec![placement("web", policy(rules))]);
    let found: Vec<_> = run(&fleet, &Map::new()).diagnostics.into_iter().map(|one| one.to_string()).collect();
    assert_eq!(
        found,
        [
            "web.yaml:1:1: warning: Placement shop/web picks no cluster: label env=prod is required (2 clusters), \
          taint gpu:NoSelect is not tolerated (1 cluster)"
        ]
    );
}

#[test]
fn the_best_scores_win_and_names_break_ties() {
    let scored = |name, value| {
        let mut cluster = cluster(name, &[]);
        cluster.scores = score(value, None);
        cluster
    };
    let clusters = vec![scored("a", 5), scored("b", 9), scored("c", 5)];
    let first = |ranking| Policy {
        scorers: vec![add_on()],
        selection: Selection::First(2),
        ranking,
        ..policy(Vec::new())
    };
    let placements = vec![
        placement("sum", first(Ranking::SumThenName)),
        placement("parts", first(Ranking::PartsThenNameDescending)),
    ];
    let decided = run(&fleet(clusters, placements), &Map::new());
    assert_eq!(picked(&decided, "sum"), ["a", "b"]);
    assert_eq!(picked(&decided, "parts"), ["b", "c"]);
    assert_eq!(decided.decisions[&key("sum")].pick("b").unwrap().scores, [("score".to_owned(), 9)].into());
    assert_eq!(decided.decisions[&key("parts")].pick("b").unwrap().scores, [("add-on".to_owned(), 9)].into());
}

#[test]
fn balance_counts_decisions_in_force_and_those_made_before_it() {
    let clusters = vec![cluster("a", &[]), cluster("b", &[]), cluster("c", &[])];
    let first = || Policy {
        scorers: vec![scorer(ScoreRule::Balance)],
        selection: Selection::First(1),
        ..policy(Vec::new())
    };
    let placements = ["p1", "p2", "p3"].map(|name| placement(name, first()));
    let fleet = fleet(clusters, placements.into());
    let decided = run(&fleet, &Map::new());
    assert_eq!(["p1", "p2", "p3"].map(|name| picked(&decided, name)), [["a"], ["b"], ["c"]]);
    // The current picks of p3 count before p3 is decided.
    let decided = run(&fleet, &earlier(&[("p3", &["a"])]));
    assert_eq!(["p1", "p2", "p3"].map(|name| picked(&decided, name)), [["b"], ["c"], ["a"]]);
}

#[test]
fn what_is_kept_is_not_filtered_again_but_names_asked_for_must_pass() {
    let mut tainted = cluster("a", &[]);
    tainted.taints = vec![taint("gone", Effect::Refuse, None)];
    let clusters = vec![tainted, cluster("b", &[]), cluster("c", &[])];
    let keep = |selection| Policy {
        retention: Retention::SamePolicy(AS_WRITTEN),
        selection,
        ..policy(vec![Rule::Tolerates(Vec::new())])
    };
    let placements = vec![
        placement("all", keep(Selection::All)),
        placement("two", keep(Selection::First(2))),
        placement("named", keep(Selection::Exactly(names(&["a", "b", "x"])))),
    ];
    let fleet = fleet(clusters, placements);
    let previous = earlier(&[("all", &["a"]), ("two", &["a"]), ("named", &["a"])]);
    let decided = run(&fleet, &previous);
    assert_eq!(picked(&decided, "all"), ["a", "b", "c"]);
    assert_eq!(picked(&decided, "two"), ["a", "b"]);
    assert_eq!(picked(&decided, "named"), ["a", "b"]);
    let condition = decided.decisions[&key("named")].condition.clone().unwrap();
    assert_eq!((condition.status, condition.message.as_str()), (false, "a, x"));
    // Under another policy every pick is checked again.
    let mut other = previous;
    for decision in other.values_mut() {
        decision.policy = Some(Packed::of(&serde_json::json!({"another": true})));
    }
    let decided = run(&fleet, &other);
    assert_eq!(["all", "two", "named"].map(|name| picked(&decided, name).join(" ")), ["b c", "b c", "b"]);
}

#[test]
fn taints_refuse_new_clusters_for_as_long_as_they_are_tolerated() {
    let with = |name, effect, since| {
        let mut cluster = cluster(name, &[]);
        cluster.taints = vec![taint("old", effect, since)];
        cluster
    };
    let clusters = vec![
        with("fresh", Effect::Refuse, Some(990)),
        with("long", Effect::Refuse, Some(900)),
        with("new", Effect::RefuseNew, None),
        with("soft", Effect::Prefer, None),
        with("there", Effect::RefuseNew, None),
        with("unknown", Effect::Refuse, None),
    ];
    let fleet = fleet(clusters, vec![placement("web", policy(vec![tolerates("old", Some(60))]))]);
    let decided = run(&fleet, &earlier(&[("web", &["there"])]));
    // Taints without a beginning count from now, the moment of their first sight.
    assert_eq!(picked(&decided, "web"), ["fresh", "new", "soft", "there", "unknown"]);
    assert_eq!(decided.next_change, Some(second(1050)));
    let seen: Vec<_> = decided
        .facts
        .iter()
        .map(|(name, fact)| (name.as_str(), fact.taints.values().next().copied()))
        .collect();
    assert_eq!(seen, ["new", "soft", "there", "unknown"].map(|name| (name, Some(second(1000)))));
    let at = |moment| decide(&fleet, &decided.decisions, &decided.facts, second(moment));
    let kept = |moment| picked(&at(moment), "web");
    assert_eq!(kept(1059), ["new", "soft", "there", "unknown"]);
    assert_eq!(kept(1060), ["new", "soft", "there"], "what refuses only new ones refuses none that is there");
    assert_eq!(at(1060).facts, decided.facts, "they are remembered as long as they are there");
}

#[test]
fn named_groups_come_first_and_chunks_are_not_topped_up() {
    let clusters = ["a", "b", "c", "d", "e"]
        .map(|name| cluster(name, if matches!(name, "b" | "d" | "e") { &["canary=yes"] } else { &[] }));
    let groups = Grouping {
        size: GroupSize::Count(2),
        named: vec![("none".to_owned(), term(&["x"])), ("canary".to_owned(), term(&["canary=yes"]))],
    };
    let fleet =
        fleet(clusters.into(), vec![placement("web", Policy { groups: Some(groups), ..policy(Vec::new()) })]);
    let decided = run(&fleet, &Map::new());
    let groups: Vec<_> = decided.decisions[&key("web")]
        .picks
        .iter()
        .map(|pick| {
            let group = pick.group.clone().expect("every pick has a group");
            (&*pick.cluster, group.index, group.name)
        })
        .collect();
    let group = |cluster, index, name: &str| (cluster, index, name.to_owned());
    assert_eq!(
        groups,
        [
            group("a", 2, ""),
            group("b", 0, "canary"),
            group("c", 2, ""),
            group("d", 0, "canary"),
            group("e", 1, "canary"),
        ]
    );
}

#[test]
fn a_blocked_placement_keeps_what_it_has_only_where_told() {
    let condition =
        Condition { kind: "X".into(), status: false, reason: "R".into(), message: "not now".into() };
    let blocked = |keep_earlier| Policy {
        blocked: Some(Blocked { condition: condition.clone(), keep_earlier }),
        ..policy(Vec::new())
    };
    let placements = vec![placement("keep", blocked(true)), placement("drop", blocked(false))];
    let fleet = fleet(vec![cluster("a", &[]), cluster("b", &[])], placements);
    let decided = run(&fleet, &earlier(&[("keep", &["a", "gone"]), ("drop", &["a"])]));
    assert_eq!(picked(&decided, "keep"), ["a"]);
    assert!(picked(&decided, "drop").is_empty());
    assert_eq!(decided.diagnostics.iter().filter(|one| one.message.ends_with("not now")).count(), 2);
}

#[test]
fn a_reason_names_who_asked() {
    let by = berth_base::model::Key::new("", "FederatedNamespace", "shop", "shop");
    let mut policy = policy(Vec::new());
    policy.filters = vec![Filter { rule: Rule::Named(names(&["z"])), by: Some(by) }];
    let decided =
        run(&fleet(vec![cluster("a", &[]), cluster("b", &[])], vec![placement("web", policy)]), &Map::new());
    let reason = &decided.decisions[&key("web")].refused[0].reason;
    assert_eq!(reason, "not in the placement of FederatedNamespace shop/shop");
}

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
