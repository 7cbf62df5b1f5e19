//! Tests that a placement's conditions follow the reports of its clusters.

use super::*;

use proptest::prelude::*;

use berth_base::model::status::{Applied, Problem, ProblemKind};
use berth_base::model::{ClusterStatus, Condition, Map, Published, Shared, Timestamp};
use berth_base::model::{Failure, Key, ObjectId, Pick};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

fn decision(object: &ObjectId) -> Decision {
    let pick = |name: &str| Pick::of(name).with(|details| details.reason = "named".to_owned());
    Decision {
        picks: [pick("a"), pick("b")].into_iter().collect(),
        condition: Some(Condition {
            kind: "Scheduled".to_owned(),
            status: true,
            reason: "SchedulingPolicyFulfilled".to_owned(),
            message: "found all".to_owned(),
        }),
        objects: vec![object.clone()],
        ..Decision::new(
            Key::new("placement.kubernetes-fleet.io", "ClusterResourcePlacement", "", "web"),
            "web.yaml",
        )
    }
}

fn status(cluster: &str, tree: &str, problems: Vec<Problem>) -> (String, Shared<ClusterStatus>) {
    let applied = Applied { sequence: 1, tree: tree.to_owned(), objects: 1, problems, ..Applied::default() };
    let status = ClusterStatus {
        cluster: cluster.to_owned(),
        reported: Some(at(1_000)),
        next_due: Some(at(1_600)),
        applied: Some(applied),
        ..ClusterStatus::default()
    };
    (cluster.to_owned(), status.into())
}

/// Returns the last of the placement's conditions, as `Type=Status Reason`.
fn last(decision: &Decision, statuses: Vec<(String, Shared<ClusterStatus>)>, published: &[&str]) -> String {
    let statuses = statuses.into_iter().collect();
    let folder = |name: &&str| ((*name).to_owned(), Published { sequence: 1, tree: "new".to_owned() });
    let published = published.iter().map(folder).collect();
    let differing = Map::new();
    let observed =
        Observed { statuses: &statuses, published: &published, differing: &differing, now: at(1_100) };
    let known = DescribeInputs::new(observed);
    let described = describe(decision, known);
    let conditions = described["status"]["conditions"].as_array().expect("conditions").clone();
    assert_eq!(conditions[0]["type"], "ClusterResourcePlacementScheduled");
    let text = |one: &Json, field: &str| one[field].as_str().unwrap_or_default().to_owned();
    let last = conditions.last().expect("one");
    let kind = text(last, "type").replace("ClusterResourcePlacement", "");
    format!("{kind}={} {}", text(last, "status"), text(last, "reason"))
}

#[test]
fn conditions_go_on_until_one_does_not_hold() {
    let settings = ObjectId::new("", "ConfigMap", "shop", "settings");
    let web = ObjectId::new("apps", "Deployment", "shop", "web");
    let one = decision(&settings);
    let both = ["a", "b"];
    let good = |name: &str| status(name, "new", Vec::new());
    assert_eq!(last(&one, vec![], &["a"]), "RolloutStarted=Unknown RolloutStartedUnknown");
    assert_eq!(last(&one, vec![good("a")], &both), "Applied=Unknown ApplyPending");
    assert_eq!(
        last(&one, vec![good("a"), status("b", "old", vec![])], &both),
        "Applied=Unknown ApplyPending"
    );
    let problem = Problem::failed(settings.clone(), "in the way");
    let failed = vec![good("a"), status("b", "new", vec![problem])];
    assert_eq!(last(&one, failed, &both), "Applied=False ApplyFailed");
    assert_eq!(last(&one, vec![good("a"), good("b")], &both), "Available=True ResourceAvailable");
    let deployed = decision(&web);
    assert_eq!(
        last(&deployed, vec![good("a"), good("b")], &both),
        "Available=Unknown ResourceAvailableUnknown"
    );
    let failure = Failure {
        cluster: "b".to_owned(),
        object: settings,
        of_override: true,
        reason: "no such path".to_owned(),
    };
    let unmade = Decision { failures: vec![failure], ..one };
    assert_eq!(last(&unmade, vec![good("a"), good("b")], &both), "Overridden=False OverriddenFailed");
}

#[test]
fn other_systems_placements_come_in_their_own_words() {
    let nothing = Map::new();
    let published = Map::new();
    let differing = Map::new();
    let observed =
        Observed { statuses: &nothing, published: &published, differing: &differing, now: at(1_100) };
    let known = DescribeInputs::new(observed);
    let base = decision(&ObjectId::new("", "ConfigMap", "shop", "settings"));
    let with =
        |group: &str, kind: &str| Decision { key: Key::new(group, kind, "shop", "web"), ..base.clone() };
    let placement = describe(&with("cluster.open-cluster-management.io", "Placement"), known);
    assert_eq!(placement["status"]["numberOfSelectedClusters"], 2);
    assert_eq!(placement["status"]["decisionGroups"][0]["clusters"], json!(["a", "b"]));
    let works = describe(&with("work.open-cluster-management.io", "ManifestWorkReplicaSet"), known);
    assert_eq!(
        works["status"]["summary"],
        json!({"total": 2, "applied": 0, "degraded": 0, "progressing": 2})
    );
    assert_eq!(works["status"]["conditions"][1]["status"], "False");
    let federated = describe(&with("types.kubefed.io", "FederatedConfigMap"), known);
    assert_eq!(federated["metadata"]["namespace"], "shop");
    assert_eq!(federated["status"]["conditions"][0]["type"], "Propagation");
}

#[test]
fn clusters_of_a_rollout_wait_in_each_systems_words() {
    use crate::state::State;
    use berth_base::model::ContentId;
    use berth_base::model::release::{Assignment, Release, Releases};
    let object = ObjectId::new("apps", "Deployment", "shop", "web");
    let statuses: Map<String, Shared<ClusterStatus>> =
        [status("a", "new", vec![]), status("b", "new", vec![])].into();
    let folder = |name: &str| (name.to_owned(), Published { sequence: 1, tree: "new".to_owned() });
    let published = ["a", "b"].map(folder).into();
    let described = |group: &str, kind: &str, assigned: &[&str]| {
        let key = Key::new(group, kind, "shop", "web");
        let decision = Decision { key: key.clone(), ..decision(&object) };
        let release = |number| Release { number, begun: at(0), inputs: ContentId([0; 20]) };
        let assigned =
            assigned.iter().map(|name| ((*name).to_owned(), Assignment { release: 2, at: at(10) }));
        let releases = Releases {
            good: Some(1),
            earlier: vec![release(1)],
            assigned: assigned.collect(),
            ..Releases::of(key.clone(), release(2))
        };
        let state = State { releases: [(key, releases.into())].into(), ..State::default() };
        let observed =
            Observed { statuses: &statuses, published: &published, differing: &Map::new(), now: at(1_100) };
        let known = DescribeInputs { state: Some(&state), ..DescribeInputs::new(observed) };
        describe(&decision, known)["status"].clone()
    };
    let fleet = "placement.kubernetes-fleet.io";
    let web = described(fleet, "ResourcePlacement", &["a"]);
    let rollout = &web["conditions"][1];
    assert_eq!(rollout["type"], "ResourcePlacementRolloutStarted");
    assert_eq!((&rollout["status"], &rollout["reason"]), (&json!("False"), &json!("RolloutNotStartedYet")));
    let waits = &web["placementStatuses"][1]["conditions"][1];
    assert_eq!(waits["message"], "it keeps release 1; release 2 has not reached it yet");
    let ocm = "work.open-cluster-management.io";
    let works = |told: &[&str]| described(ocm, "ManifestWorkReplicaSet", told);
    let rolled_out = |works: &Json| works["conditions"][1]["reason"].clone();
    let (some, all) = (works(&["a"]), works(&["a", "b"]));
    assert_eq!(some["conditions"][1]["type"], "PlacementRolledOut");
    assert_eq!((rolled_out(&some), rolled_out(&all)), (json!("Progressing"), json!("Complete")));
    assert_eq!((&some["summary"]["applied"], &some["summary"]["progressing"]), (&json!(1), &json!(1)));
    let federated = described("types.kubefed.io", "FederatedDeployment", &["a"]);
    assert_eq!(federated["clusters"], json!([{"name": "b", "status": "UpdateTimedOut"}]));
}

/// Describes a placement with a problem and a difference that a member reports without a message.
fn without_words(kind: ProblemKind, words: &str) -> Json {
    let object = ObjectId::new("", "ConfigMap", "shop", "settings");
    let mut problem = Problem::of(kind, object.clone(), words);
    problem.paths = vec!["/data/a".to_owned()];
    let statuses = [status("a", "new", vec![problem.clone()]), status("b", "new", Vec::new())];
    let mut statuses: Map<String, Shared<ClusterStatus>> = statuses.into_iter().collect();
    if let Some(Some(applied)) = statuses.get_mut("b").map(|status| status.applied.as_mut()) {
        applied.differences.push(problem);
    }
    let published =
        ["a", "b"].map(|name| (name.to_owned(), Published { sequence: 1, tree: "new".to_owned() }));
    let published = published.into_iter().collect();
    let differing = Map::new();
    let observed =
        Observed { statuses: &statuses, published: &published, differing: &differing, now: at(1_100) };
    let mut described = describe(&decision(&object), DescribeInputs::new(observed));
    strip(&mut described);
    described
}

fn strip(value: &mut Json) {
    match value {
        Json::Object(fields) => {
            fields.remove("message");
            fields.values_mut().for_each(strip);
        }
        Json::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

proptest! {
    #[test]
    fn no_condition_depends_on_the_words_of_a_message(words in "(FoundDiff: |FoundDrifts: |`/x` |it was not made by berth|no longer wanted|[a-z `/:]{0,9}){0,4}") {
        for kind in [
            ProblemKind::Failed,
            ProblemKind::Foreign,
            ProblemKind::TakeOverRefused,
            ProblemKind::Drifted,
            ProblemKind::Different,
            ProblemKind::NotCompared,
            ProblemKind::Kept,
        ] {
            prop_assert_eq!(without_words(kind, &words), without_words(kind, ""));
        }
    }
}
