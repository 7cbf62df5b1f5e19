//! The stored form survives a round trip.

use serde_json::json;

use super::*;
use crate::meta::testing::node;
use crate::model::cluster::{WorkloadName, WorkloadReport};
use crate::model::status::{Applied, Problem, ProblemKind};
use crate::model::{API_VERSION, ObjectId, Timestamp};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

#[test]
fn what_is_written_is_read_back() {
    let web = ObjectId::new("apps", "Deployment", "shop", "web");
    let problem = Problem {
        paths: vec!["/spec/replicas".to_owned()],
        ..Problem::of(ProblemKind::Drifted, web, "somebody changed it")
    };
    let (tree, problems) = ("abc".to_owned(), vec![problem]);
    let mut written = ClusterStatus {
        cluster: "eu-1".to_owned(),
        reported: Some(at(1_000)),
        next_due: Some(at(1_600)),
        applied: Some(Applied {
            sequence: 7,
            tree,
            objects: 3,
            problems,
            removing: vec![ObjectId::new("", "ConfigMap", "shop", "old")],
            more_removing: 2,
            ..Applied::default()
        }),
        ..ClusterStatus::default()
    };
    written.labels.insert("region".to_owned(), "eu".to_owned());
    written.claims.insert("id.k8s.io".to_owned(), "1".to_owned());
    written.properties.insert("nodes".to_owned(), "12".to_owned());
    let web = WorkloadName {
        kind: "FederatedDeployment".to_owned(),
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
    };
    written.workloads.insert(web, WorkloadReport { capacity: Some(3) });
    let scope = Scope::new("status.yaml".into(), Severity::Error);
    let read = from_node(&scope, &node(&to_json(&written)));
    assert_eq!(read, Some(written));
    assert!(scope.into_diagnostics().is_empty());
}

#[test]
fn parts_of_later_versions_are_passed_over_and_misspelt_ones_are_not() {
    let scope = Scope::new("status.yaml".into(), Severity::Error);
    let form = json!({
        "apiVersion": API_VERSION, "kind": KIND, "metadata": { "name": "a" },
        "workloads": [{ "kind": "FederatedDeployment", "name": "web", "capacity": 3 }], "scores": [], "lables": {},
    });
    assert!(from_node(&scope, &node(&form)).is_some());
    let found: Vec<String> = scope.into_diagnostics().iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("unknown field `lables`") && found[0].contains("did you mean `labels`?"));
}

#[test]
fn a_status_without_a_name_or_with_a_bad_time_is_reported() {
    let scope = Scope::new("status.yaml".into(), Severity::Error);
    assert_eq!(from_node(&scope, &node(&json!({ "reported": "yesterday" }))), None);
    let found: Vec<String> = scope.into_diagnostics().iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 2, "{found:?}");
}
