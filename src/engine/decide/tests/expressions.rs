use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::setup::*;
use crate::decide::{decide, explain};
use berth_base::model::placement::Rule;
use berth_base::model::{Cluster, ClusterStatus, ClusterView, Expression, Fleet, Map, Term};

fn shown(cluster: &Cluster) -> Json {
    json!({"name": cluster.name, "labels": cluster.labels, "claims": cluster.claims})
}

fn best(cluster: &Cluster, resource: &str) -> Option<Json> {
    let of = |((named, _), score): (&(String, String), &berth_base::model::cluster::AddOnScore)| {
        (named == resource).then_some(score.value)
    };
    cluster.scores.iter().filter_map(of).max().map(Json::from)
}

const VIEW: ClusterView = ClusterView { name: "it", shown, methods: &[("best", best)] };

fn wants(texts: &[&str]) -> Rule {
    let expressions = texts.iter().map(|text| Expression { text: (*text).to_owned(), view: VIEW }).collect();
    Rule::AnyOf(vec![Term { expressions, ..Term::default() }])
}

fn three() -> Vec<Cluster> {
    vec![
        cluster("a", &["zone=x"]),
        Cluster { scores: score(7, Some(5)), ..cluster("b", &["zone=y"]) },
        cluster("c", &[]),
    ]
}

fn of_p(fleet: &Fleet) -> Vec<String> {
    picked(&run(fleet, &Map::new()), "p")
}

#[test]
fn a_cluster_passes_where_all_expressions_of_a_term_give_true() {
    assert_eq!(
        of_p(&fleet(three(), vec![placement("p", policy(vec![wants(&["it.labels.zone != 'q'"])]))])),
        ["a", "b"]
    );
    let both = wants(&["it.labels.zone != 'q'", "it.best('r') > 5"]);
    assert_eq!(of_p(&fleet(three(), vec![placement("p", policy(vec![both]))])), ["b"]);
    assert!(of_p(&fleet(three(), vec![placement("p", policy(vec![wants(&["it.name"])]))])).is_empty());
}

#[test]
fn why_an_expression_does_not_match_is_told_for_each_cluster() {
    let fleet = fleet(three(), vec![placement("p", policy(vec![wants(&["it.labels.zone == 'x'"])]))]);
    let trace = explain(&fleet, &Map::new(), &Map::new(), second(10), &key("p")).expect("a trace");
    let why: Vec<String> = trace
        .clusters
        .iter()
        .flat_map(|one| &one.steps)
        .filter(|step| !step.passed)
        .map(|step| step.why.clone())
        .collect();
    assert_eq!(
        why,
        [
            "`it.labels.zone == 'x'` must be true: it gives false",
            "`it.labels.zone == 'x'` must be true: it fails at character 10: there is no key `zone`"
        ]
    );
}

#[test]
fn a_decision_stands_until_something_that_an_expression_can_see_changes() {
    let of =
        |clusters| fleet(clusters, vec![placement("p", policy(vec![wants(&["it.labels.zone != 'q'"])]))]);
    let first = decide(&of(three()), &Map::new(), &Map::new(), second(10));
    let again = |fleet: &Fleet| decide(fleet, &first.decisions, &Map::new(), second(20)).decided;
    assert_eq!(again(&of(three())), 0);
    let with_claim = |at: usize| {
        let mut other = three();
        other[at].claims.insert("cloud".to_owned(), "x".to_owned());
        again(&of(other))
    };
    assert_eq!([0, 2].map(with_claim), [1, 0], "the last one is refused before and after");
    let mut other = three();
    other[0].scores = score(1, None);
    assert_eq!(again(&of(other)), 1);
}

#[test]
fn what_members_report_and_expressions_can_see_becomes_a_fact() {
    let fleet = fleet(three(), vec![placement("p", policy(vec![wants(&["it.labels.size == 'big'"])]))]);
    let labels = [("size", "big"), ("zone", "q")].map(|(key, value)| (key.to_owned(), value.to_owned()));
    let status = ClusterStatus { cluster: "a".to_owned(), labels: labels.into(), ..ClusterStatus::default() };
    let statuses = Map::from([("a".to_owned(), status.into())]);
    let decided = decide(&fleet, &Map::new(), &statuses, second(10));
    assert_eq!(decided.decisions[&key("p")].picks[0].cluster[..], *"a");
    // The file's own label overrides the reported one, so no decision reads the report.
    assert_eq!(decided.facts["a"].labels, BTreeMap::from([("size".to_owned(), "big".to_owned())]));
    let from_facts = decide(&fleet, &Map::new(), &decided.facts, second(10));
    assert_eq!(from_facts.decisions, decided.decisions);
}
