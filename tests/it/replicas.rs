//! Replicas divided by a preference, through the binary: numbers that stay, their reasons, the warnings.

use crate::support::{RENDERED, Repo, case, cluster, namespace, run};

fn deployment(spec: &str) -> String {
    format!(
        "apiVersion: types.kubefed.io/v1beta1\nkind: FederatedDeployment\nmetadata: {{name: web, namespace: shop}}\n\
         spec:\n  template:\n    spec: {{replicas: 1, selector: {{matchLabels: {{app: web}}}}}}\n{spec}"
    )
}

fn preference(spec: &str) -> String {
    format!(
        "apiVersion: scheduling.kubefed.io/v1alpha1\nkind: ReplicaSchedulingPreference\n\
         metadata: {{name: web, namespace: shop}}\nspec:\n  targetKind: FederatedDeployment\n{spec}"
    )
}

fn fleet(wanted: &str) -> Repo {
    Repo::with(&[
        ("clusters/a.yaml", &cluster("a", &[("env", "prod")])),
        ("clusters/b.yaml", &cluster("b", &[("env", "prod")])),
        ("clusters/c.yaml", &cluster("c", &[("env", "dev")])),
        ("apps/shop.yaml", &namespace("shop")),
        ("apps/web.yaml", &deployment("")),
        ("apps/spread.yaml", &preference(wanted)),
    ])
}

/// What each cluster's copy says.
fn rendered(repo: &Repo) -> Vec<String> {
    let files = repo.files(RENDERED);
    let of = |cluster: &str| {
        let text = &files[&format!("clusters/{cluster}/shop/Deployment.apps_web.yaml")];
        let line = text.lines().find_map(|line| line.trim().strip_prefix("replicas: ")).expect("a number");
        format!("{cluster} {line}")
    };
    ["a", "b", "c"].map(of).to_vec()
}

#[test]
fn numbers_move_as_little_as_possible_and_not_at_all_without_a_reason() {
    let repo = fleet("  totalReplicas: 9\n");
    repo.publish().expect(0);
    assert_eq!(rendered(&repo), ["a 3", "b 3", "c 3"]);
    let first = repo.id(RENDERED);
    repo.publish().expect(0);
    assert_eq!(repo.id(RENDERED), first, "a second run makes no commit");

    repo.write(
        "apps/spread.yaml",
        preference("  totalReplicas: 12\n  clusters: {a: {weight: 1}, '*': {weight: 1, maxReplicas: 3}}\n"),
    );
    repo.commit("three more");
    repo.publish().expect(0);
    assert_eq!(rendered(&repo), ["a 6", "b 3", "c 3"]);

    repo.write("apps/spread.yaml", preference("  totalReplicas: 13\n"));
    repo.commit("one more, and no ceiling");
    repo.publish().expect(0);
    let numbers = rendered(&repo);
    assert_eq!(numbers[0], "a 6", "a cluster keeps what it has: {numbers:?}");
}

#[test]
fn with_rebalance_what_a_full_cluster_lacks_is_asked_for_there_and_elsewhere() {
    let repo = fleet("  totalReplicas: 9\n  rebalance: true\n  clusters: {'*': {weight: 1}}\n");
    repo.write(
        "status/a.yaml",
        "apiVersion: berth.dev/v1alpha1\nkind: ClusterStatus\nmetadata: {name: a}\nworkloads:\n  \
         - {kind: FederatedDeployment, namespace: shop, name: web, capacity: 1}\n",
    );
    repo.commit("a is full");
    let ran = repo.publish().expect(0);
    assert!(rendered(&repo)[0].starts_with("a 3"), "what has no room is asked for all the same");
    assert!(ran.err.contains("2 more than its total of 9"), "{}", ran.err);
}

#[test]
fn explain_takes_each_number_apart() {
    let wanted = "  totalReplicas: 10\n  clusters:\n    a: {minReplicas: 2, weight: 1}\n    b: {weight: 1, maxReplicas: 1}\n";
    let repo = fleet(wanted);
    let ran = run(&["explain", "web", "--repo", repo.arg()]).expect(0);
    for part in [
        "divides 10 replicas keeping what runs where it can, as ReplicaSchedulingPreference shop/web requires",
        "FLOOR",
        "CEILING",
        "at its maximum",
        "no entry, and no `*`",
        "hash ",
    ] {
        assert!(ran.out.contains(part), "{part} is not in\n{}", ran.out);
    }
    let json = run(&["explain", "web", "--repo", repo.arg(), "-o", "json"]).expect(0).json();
    let of = |index: usize| &json["placements"][0]["clusters"][index]["replicas"];
    assert_eq!(
        (of(0)["floor"].as_i64(), of(0)["shared"].as_i64(), of(0)["replicas"].as_i64()),
        (Some(2), Some(7), Some(9))
    );
    assert_eq!((of(1)["replicas"].as_i64(), of(1)["atCeiling"].as_bool()), (Some(1), Some(true)));
    assert_eq!(of(2)["replicas"].as_i64(), Some(0));
}

#[test]
fn a_preference_that_is_taken_away_gives_the_placement_back() {
    let repo = fleet("  totalReplicas: 9\n");
    repo.write("apps/web.yaml", deployment("  placement: {clusterSelector: {}}\n"));
    repo.commit("placed by itself too");
    repo.publish().expect(0);
    assert_eq!(rendered(&repo), ["a 3", "b 3", "c 3"]);
    repo.git(&["rm", "-q", "apps/spread.yaml"]);
    repo.commit("no preference");
    repo.publish().expect(0);
    assert_eq!(rendered(&repo), ["a 1", "b 1", "c 1"]);
}

#[test]
fn what_was_divided_stays_while_no_cluster_is_ready() {
    let repo = fleet("  totalReplicas: 9\n");
    repo.publish().expect(0);
    for name in ["a", "b", "c"] {
        let offline = format!(
            "{}status:\n  conditions:\n  - {{type: Offline, status: 'True', lastProbeTime: '2026-01-01T00:00:00Z'}}\n",
            cluster(name, &[("env", "prod")])
        );
        repo.write(&format!("clusters/{name}.yaml"), offline);
    }
    repo.commit("all are down");
    let ran = repo.publish().expect(0);
    assert_eq!(rendered(&repo), ["a 3", "b 3", "c 3"]);
    assert!(ran.err.contains("no cluster takes part: the previous division stays"), "{}", ran.err);
    let second = repo.id(RENDERED);
    repo.publish().expect(0);
    assert_eq!(repo.id(RENDERED), second);
}

#[test]
fn every_surprise_of_kubefed_is_warned_of() {
    for (case, part) in [
        ("rsp-capacity-overflow-added", "more than its total"),
        ("rsp-floor-above-ceiling-kept", "is above maxReplicas"),
        ("rsp-floor-above-ceiling-trimmed", "is above maxReplicas"),
        ("rsp-intersect-namespace-by-names", "FederatedNamespace web/web has no clusterSelector"),
        ("rsp-intersect-no-selector", "FederatedDeployment web/front has no clusterSelector"),
        ("rsp-keep-over-total", "without `rebalance` some clusters keep all replicas"),
        ("rsp-namespace-loses-replicas", "3 of the 9 replicas"),
        ("rsp-none-ready", "no cluster takes part"),
        ("rsp-wrong-kind", "there is no FederatedReplicaSet web/front"),
        ("rsp-wrong-name", "there is no FederatedDeployment web/back"),
        ("rsp-min-then-weight", "divide only the replicas above minReplicas"),
        ("rsp-capacity-keep-both-short", "has 0 replicas there"),
        ("rsp-weight-absent-favourite", "names `amber`, which is not a cluster of the fleet"),
        ("rsp-replaces-names", "has no effect"),
    ] {
        let (_, folder) = self::case(&format!("kubefed/{case}"));
        let (fleet, previous) = (folder.path().join("fleet"), folder.path().join("previous.json"));
        let mut args = vec!["decide", "--repo", fleet.to_str().expect("text")];
        if previous.exists() {
            args.extend(["--previous", previous.to_str().expect("text")]);
        }
        let ran = run(&args).expect(0);
        assert!(ran.err.contains(part), "{case}: {part} is not in\n{}", ran.err);
    }
}

#[test]
fn what_else_sets_the_number_is_told_of() {
    let repo = fleet("  totalReplicas: 9\n  clusters: {'*': {weight: 1}, b: {maxReplicas: 3}}\n");
    let spec = "  retainReplicas: true\n  overrides:\n  - clusterName: a\n    clusterOverrides: [{op: remove, path: /spec/replicas}]\n";
    repo.write("apps/web.yaml", deployment(spec));
    let ran = run(&["validate", repo.arg()]);
    for part in [
        "retainReplicas of FederatedDeployment shop/web has no effect",
        "members fall back to 1",
        "spec.clusters.b has neither a weight nor minReplicas",
    ] {
        assert!(ran.err.contains(part), "{part} is not in\n{}", ran.err);
    }
}

#[test]
fn the_cause_of_fewer_replicas_is_the_cluster_that_joined() {
    let repo = fleet("  totalReplicas: 3\n  rebalance: true\n");
    repo.publish().expect(0);
    let first = repo.id("main");
    repo.write("apps/spread.yaml", preference("  totalReplicas: 4\n  rebalance: true\n"));
    repo.commit("one more");
    repo.publish().expect(0);
    let more = repo.id("main");
    repo.write("clusters/d.yaml", cluster("d", &[("env", "prod")]));
    repo.commit("d joins");
    repo.publish().expect(0);
    let since =
        |revision: &str| run(&["explain", "web", "--since", revision, "--repo", repo.arg()]).expect(0).out;
    let joined = since(&more);
    assert!(joined.contains("2 → 1 replicas"), "{joined}");
    assert!(joined.contains("cause: cluster `d` is new in clusters/d.yaml\n"), "{joined}");
    assert!(since(&first).contains("FederatedDeployment shop/web was edited in"), "{}", since(&first));
}
