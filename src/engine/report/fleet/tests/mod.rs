//! Tests that the summary shows each cluster's status.

mod updates;

use serde_json::{Value as Json, json};

use super::*;
use berth_base::model::status::{Applied, ProblemKind};
use berth_base::model::{Failure, Pick};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

fn status(cluster: &str, tree: &str, problems: Vec<Problem>) -> ClusterStatus {
    ClusterStatus {
        cluster: cluster.to_owned(),
        reported: Some(at(1_000)),
        next_due: Some(at(1_600)),
        applied: Some(Applied {
            sequence: 7,
            tree: tree.to_owned(),
            objects: 3,
            problems,
            ..Applied::default()
        }),
        ..ClusterStatus::default()
    }
}

fn problem() -> Problem {
    Problem::failed(ObjectId::new("apps", "Deployment", "shop", "web"), "a foreign file is in the way")
}

fn decision(clusters: &[&str]) -> (Key, Decision) {
    let key = Key::new("types.kubefed.io", "FederatedDeployment", "shop", "web");
    let picks = clusters.iter().map(|name| Pick::of(*name));
    let decision = Decision {
        picks: picks.collect(),
        objects: vec![problem().object],
        ..Decision::new(key.clone(), "web.yaml")
    };
    (key, decision)
}

fn summed_up(
    statuses: &Map<String, Shared<ClusterStatus>>,
    decisions: &Map<Key, Decision>,
    published: &Map<String, Published>,
    now: Timestamp,
) -> Json {
    let (statuses, published, decisions) = (statuses.clone(), published.clone(), decisions.clone());
    let inputs = SummaryInputs { statuses, published, decisions, now, ..SummaryInputs::default() };
    let summary = FleetSummary::of(inputs, Detail::Full);
    let clusters: Vec<_> = summary.clusters().values().collect();
    let workloads: Vec<_> = summary.workloads().values().map(|line| &**line).collect();
    json!({"clusters": clusters, "totals": summary.totals(), "workloads": workloads})
}

#[test]
fn clusters_are_in_sync_behind_silent_or_unheard_of() {
    let published = |tree: &str| Published { sequence: 7, tree: tree.to_owned() };
    let names = ["a-sync", "b-behind", "c-silent", "d-never", "e-problem"];
    let published: Map<String, Published> =
        names.iter().map(|name| ((*name).to_owned(), published("new"))).collect();
    let mut silent = status("c-silent", "new", vec![]);
    silent.next_due = Some(at(1_010));
    let statuses: Map<String, Shared<ClusterStatus>> = [
        status("a-sync", "new", vec![]),
        status("b-behind", "old", vec![]),
        silent,
        status("e-problem", "new", vec![problem()]),
    ]
    .into_iter()
    .map(|status| (status.cluster.clone(), status.into()))
    .collect();
    let summary = summed_up(&statuses, &Map::from([decision(&names)]), &published, at(1_500));
    let states: Vec<&str> =
        summary["clusters"].as_array().unwrap().iter().map(|c| c["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["in sync", "behind", "silent", "never reported", "problems"]);
    assert_eq!(summary["clusters"][4]["problems"], 1);
    assert_eq!(summary["workloads"][0]["inSync"], 1);
    assert_eq!(summary["workloads"][0]["placed"], 5);
    assert_eq!(summary["workloads"][0]["withProblems"], json!(["e-problem"]));
    assert_eq!(summary["totals"]["in sync"], 1);
}

#[test]
fn silence_begins_after_three_intervals() {
    let status = status("a", "x", vec![]);
    assert!(!is_silent(&status, at(1_000 + 1_800)));
    assert!(is_silent(&status, at(1_000 + 1_801)));
}

/// Returns the words for these members, and the reason of the condition.
fn propagation(statuses: Vec<ClusterStatus>, change: impl Fn(&mut Decision)) -> (Vec<String>, String) {
    let names = ["a", "b"];
    let published: Map<String, Published> = names
        .iter()
        .map(|name| ((*name).to_owned(), Published { sequence: 7, tree: "new".to_owned() }))
        .collect();
    let statuses = statuses.into_iter().map(|status| (status.cluster.clone(), status.into())).collect();
    let (key, mut decision) = decision(&names);
    change(&mut decision);
    let summary = summed_up(&statuses, &Map::from([(key, decision)]), &published, at(1_500));
    let status = &summary["workloads"][0]["status"];
    let word = |one: &serde_json::Value| {
        format!("{} {}", one["name"].as_str().unwrap(), one["status"].as_str().unwrap())
    };
    let words = status["clusters"].as_array().unwrap().iter().map(word).collect();
    (words, status["conditions"][0]["reason"].as_str().unwrap_or("").to_owned())
}

#[test]
fn kubefeds_words_say_what_keeps_each_cluster_from_being_in_sync() {
    let well = |name: &str| status(name, "new", vec![]);
    let said = |kind: ProblemKind| {
        let problem = Problem { kind, ..problem() };
        vec![well("a"), status("b", "new", vec![problem])]
    };
    let failed = |of_override: bool| {
        move |decision: &mut Decision| {
            let (cluster, object, reason) = ("b".to_owned(), problem().object, "words".to_owned());
            decision.failures = vec![Failure { cluster, object, of_override, reason }];
        }
    };
    let both = || vec![well("a"), well("b")];
    assert_eq!(propagation(both(), |_| ()), (vec![], String::new()));
    let checked = |words: &str| (vec![words.to_owned()], "CheckClusters".to_owned());
    assert_eq!(propagation(vec![well("a")], |_| ()), checked("b ClusterNotReady"));
    let behind = vec![well("a"), status("b", "old", vec![])];
    assert_eq!(propagation(behind, |_| ()), checked("b UpdateTimedOut"));
    assert_eq!(propagation(said(ProblemKind::Failed), |_| ()), checked("b UpdateFailed"));
    assert_eq!(propagation(said(ProblemKind::Foreign), |_| ()), checked("b AlreadyExists"));
    assert_eq!(propagation(both(), failed(true)), checked("b ApplyOverridesFailed"));
    assert_eq!(propagation(both(), failed(false)), checked("b ComputeResourceFailed"));
    let removed = propagation(said(ProblemKind::Kept), |decision| {
        decision.picks.truncate(1);
    });
    assert_eq!(removed, checked("b WaitingForRemoval"));
    let (_, reason) = propagation(both(), |decision| {
        decision.condition = Some(berth_base::model::Condition {
            kind: "Propagation".to_owned(),
            status: false,
            reason: "NamespaceNotFederated".to_owned(),
            message: String::new(),
        });
    });
    assert_eq!(reason, "NamespaceNotFederated");
}
