//! Members that fall silent: their workloads move as their systems have it, and not for a fault of the hub.

use crate::support::silence::{World, moment, placement};
use crate::support::{RENDERED, Repo, cluster, namespace, run};

#[test]
fn a_workload_moves_after_the_toleration_and_not_before() {
    moves_after_the_toleration(World::of(8, 2, Some(3_600)));
}

#[test]
fn a_workload_moves_in_the_same_minute_where_members_send_their_reports() {
    moves_after_the_toleration(World::by_post(8, 2, Some(3_600)));
}

fn moves_after_the_toleration(mut world: World) {
    world.minutes(20);
    assert_eq!(world.placed(), ["c00", "c01"]);
    let before = world.tip();
    world.kill("c00");
    // The last report was in minute 20, so that it is silent from minute 50 on.
    world.minutes(29);
    assert_eq!(world.tip(), before, "nobody is silent yet");
    world.minutes(1);
    assert_eq!(
        world.facts("c00").as_deref(),
        Some(&*format!(
            "apiVersion: berth.dev/v1alpha1\nkind: ClusterStatus\nmetadata:\n  name: c00\nsilent: \"{}\"",
            moment(50 * 60)
        ))
    );
    assert_eq!(world.subject(), "berth: fell silent: c00");
    let status = run(&["status", "--repo", world.repo.arg()]).expect(0).out;
    assert!(status.contains("c00: unreachable since 2026-01-01T00:50:00Z\n"), "{status}");
    let status = run(&["status", "--repo", world.repo.arg(), "-o", "json"]).expect(0).out;
    assert_eq!(status.matches("\"unreachableSince\": \"2026-01-01T00:50:00Z\"").count(), 1, "{status}");
    world.minutes(59);
    assert_eq!(world.placed(), ["c00", "c01"], "its toleration lasts until minute 110");
    world.minutes(1);
    assert_eq!(world.placed(), ["c01", "c02"]);
    world.verify();

    // Back again, its silence ends after three intervals of reports, and nothing moves.
    let moved = world.tip();
    world.revive("c00");
    world.minutes(20);
    assert!(world.facts("c00").is_some());
    world.minutes(30);
    assert_eq!(world.facts("c00"), None);
    assert_eq!(world.placed(), ["c01", "c02"]);
    assert_ne!(world.tip(), moved, "the end of its silence is recorded");
    assert_eq!(world.subject(), "berth: no longer counts as silent: c00");
    world.verify();
}

#[test]
fn a_workload_without_a_toleration_moves_when_its_member_is_silent() {
    let mut world = World::of(8, 2, None);
    world.minutes(20);
    world.kill("c00");
    world.minutes(29);
    assert_eq!(world.placed(), ["c00", "c01"]);
    world.minutes(1);
    assert_eq!(world.placed(), ["c01", "c02"]);
    world.verify();
}

#[test]
fn a_member_that_comes_back_in_time_keeps_its_workload() {
    let mut world = World::of(8, 2, Some(3_600));
    world.minutes(20);
    world.kill("c00");
    world.minutes(70);
    world.revive("c00");
    // It reports again in minute 91; the toleration would end in minute 110, before it is steady again.
    world.minutes(60);
    assert_eq!(world.placed(), ["c00", "c01"]);
    assert_eq!(world.facts("c00"), None);
    world.verify();
}

#[test]
fn a_member_that_comes_and_goes_moves_its_workload_once() {
    let mut world = World::of(8, 2, Some(600));
    world.minutes(20);
    world.kill("c00");
    world.minutes(45);
    assert_eq!(world.placed(), ["c01", "c02"]);
    let tip = world.tip();
    for _ in 0..4 {
        world.revive("c00");
        world.minutes(11);
        world.kill("c00");
        world.minutes(30);
        assert_eq!(world.placed(), ["c01", "c02"]);
        assert!(world.facts("c00").is_some(), "it is silent still");
    }
    let files = |tip: &str| world.repo.git(&["ls-tree", "-r", &format!("{tip}:clusters")]);
    assert_eq!(files(&tip), files(&world.tip()));
    world.verify();
}

#[test]
fn git_down_for_an_hour_moves_nothing() {
    let mut world = World::of(8, 2, None);
    world.minutes(20);
    let before = world.tip();
    world.up = false;
    world.minutes(60);
    world.up = true;
    world.minutes(40);
    assert_eq!(world.tip(), before);
    assert_eq!(world.placed(), ["c00", "c01"]);
}

#[test]
fn a_hub_that_evicts_everybody_after_its_own_outage() {
    for clusters in [2, 8] {
        let mut world = World::of(clusters, 2, Some(60));
        world.minutes(20);
        let before = world.tip();
        world.up = false;
        world.minutes(300);
        world.restart();
        world.up = true;
        // Members take their time to come back.
        world.alive.fill(false);
        world.minutes(9);
        world.alive.fill(true);
        world.minutes(40);
        assert_eq!(world.tip(), before, "{clusters}");
    }
}

#[test]
fn much_of_the_fleet_goes_silent_and_evictions_freeze_until_it_is_back() {
    let mut world = World::of(10, 3, Some(1_800));
    world.minutes(20);
    world.kill("c00");
    world.minutes(35);
    assert!(world.facts("c00").is_some_and(|facts| facts.contains("silent")), "one alone is silent");
    // Three more are cut off while its toleration runs.
    for cluster in ["c03", "c04", "c05"] {
        world.kill(cluster);
    }
    world.minutes(20);
    assert!(
        world.warnings().iter().any(|said| said.starts_with("4 of 10 members are late: ")),
        "{:?}",
        world.warnings()
    );
    assert!(world.facts("c00").is_some_and(|facts| facts.contains("frozen")));
    assert_eq!(world.subject(), "berth: nothing moves away for now: c00");
    world.minutes(300);
    assert_eq!(world.placed(), ["c00", "c01", "c02"], "the toleration ended hours ago");
    assert_eq!(world.facts("c03"), None, "and nobody else fell silent");
    world.restart();
    world.minutes(60);
    assert_eq!(world.placed(), ["c00", "c01", "c02"], "a restarted daemon freezes as well");
    for cluster in ["c03", "c04", "c05"] {
        world.revive(cluster);
    }
    world.minutes(30);
    assert_eq!(world.placed(), ["c00", "c01", "c02"], "the others have their grace first");
    world.minutes(60);
    assert_eq!(world.placed(), ["c01", "c02", "c03"], "the one that is really gone is replaced");
    world.verify();
}

#[test]
fn a_restarted_daemon_keeps_what_was_silent_and_evicts_nobody_at_once() {
    let mut world = World::of(8, 2, Some(600));
    world.minutes(20);
    world.kill("c00");
    world.minutes(35);
    assert!(world.facts("c00").is_some());
    world.restart();
    world.minutes(29);
    assert_eq!(world.placed(), ["c00", "c01"], "it could have come back");
    world.minutes(10);
    assert_eq!(world.placed(), ["c01", "c02"]);
    world.restart();
    world.minutes(60);
    assert_eq!(world.placed(), ["c01", "c02"]);
    world.verify();
}

#[test]
fn a_silent_member_of_a_fleet_whose_decisions_read_no_silence_changes_no_byte() {
    let repo = crate::support::small_fleet();
    let names = repo.git(&["ls-files", "clusters"]);
    let names: Vec<String> = names
        .lines()
        .filter_map(|file| file.rsplit('/').next()?.strip_suffix(".yaml").map(str::to_owned))
        .collect();
    let mut world = World::over(repo, names);
    world.minutes(20);
    let before = world.tip();
    let first = world.names[0].clone();
    world.kill(&first);
    world.minutes(120);
    assert_eq!(world.tip(), before);
}

/// Three KubeFleet members, of which a placement picks two.
fn kubefleet(annotations: &str) -> World {
    let repo = Repo::new();
    let names: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
    for name in &names {
        repo.write(
            &format!("clusters/{name}.yaml"),
            format!(
                "apiVersion: cluster.kubernetes-fleet.io/v1\nkind: MemberCluster\nmetadata: {{name: {name}}}\n\
                 spec: {{identity: {{kind: User, name: {name}}}}}\n"
            ),
        );
    }
    repo.write(
        "apps/web.yaml",
        format!(
            "apiVersion: v1\nkind: Namespace\nmetadata: {{name: shop}}\n---\n\
             apiVersion: placement.kubernetes-fleet.io/v1\nkind: ClusterResourcePlacement\n\
             metadata: {{name: shop, annotations: {{{annotations}}}}}\n\
             spec:\n  resourceSelectors: [{{group: '', version: v1, kind: Namespace, name: shop, selectionScope: NamespaceOnly}}]\n  \
             policy: {{placementType: PickN, numberOfClusters: 2}}\n"
        ),
    );
    repo.commit("start");
    World::over(repo, names)
}

fn namespaces(world: &World) -> Vec<String> {
    let files = world.repo.files(RENDERED);
    let with_copy = files.keys().filter(|path| path.starts_with("clusters/") && path.contains("Namespace"));
    with_copy.filter_map(|path| path.split('/').nth(1).map(str::to_owned)).collect()
}

#[test]
fn kubefleet_never_replaces_a_silent_cluster_unless_somebody_asks() {
    let mut world = kubefleet("");
    world.minutes(20);
    assert_eq!(namespaces(&world), ["b", "c"]);
    world.kill("c");
    world.minutes(300);
    assert_eq!(namespaces(&world), ["b", "c"]);
    world.verify();

    let mut world = kubefleet("berth.dev/replace-after: 30m");
    world.settings.limits.allow_risky = true;
    world.minutes(20);
    assert_eq!(namespaces(&world), ["b", "c"]);
    world.kill("c");
    // Its last report was in minute 12, so that it is silent from minute 42 on.
    world.minutes(51);
    assert_eq!(namespaces(&world), ["b", "c"], "silent for less than half an hour");
    world.minutes(1);
    assert_eq!(namespaces(&world), ["a", "b"]);
    world.verify();
    world.revive("c");
    world.minutes(120);
    assert_eq!(namespaces(&world), ["a", "b"], "nothing moves back");
    world.verify();
}

#[test]
fn a_silent_cluster_without_a_replacement_keeps_its_copy() {
    let mut world = kubefleet("berth.dev/replace-after: 30m");
    world.settings.limits.allow_risky = true;
    world.minutes(20);
    world.repo.git(&["rm", "-q", "clusters/a.yaml"]);
    world.repo.commit("two are left");
    world.kill("c");
    world.minutes(120);
    assert_eq!(namespaces(&world), ["b", "c"]);
    world.verify();
}

/// A KubeFed fleet whose nine replicas a preference divides among three clusters.
fn divided(spec: &str) -> World {
    let deployment = "apiVersion: types.kubefed.io/v1beta1\nkind: FederatedDeployment\nmetadata: {name: web, namespace: shop}\n\
         spec:\n  template:\n    spec: {replicas: 1, selector: {matchLabels: {app: web}}}\n";
    let preference = format!(
        "apiVersion: scheduling.kubefed.io/v1alpha1\nkind: ReplicaSchedulingPreference\n\
         metadata: {{name: web, namespace: shop}}\nspec:\n  targetKind: FederatedDeployment\n  totalReplicas: 9\n{spec}"
    );
    let repo = Repo::with(&[
        ("clusters/a.yaml", &cluster("a", &[])),
        ("clusters/b.yaml", &cluster("b", &[])),
        ("clusters/c.yaml", &cluster("c", &[])),
        ("apps/shop.yaml", &namespace("shop")),
        ("apps/web.yaml", deployment),
        ("apps/spread.yaml", &preference),
    ]);
    World::over(repo, ["a", "b", "c"].map(str::to_owned).to_vec())
}

fn replicas(world: &World) -> Vec<String> {
    let files = world.repo.files(RENDERED);
    let of = |cluster: &str| {
        let text = files.get(&format!("clusters/{cluster}/shop/Deployment.apps_web.yaml"))?;
        let line = text.lines().find_map(|line| line.trim().strip_prefix("replicas: "))?;
        Some(format!("{cluster} {line}"))
    };
    ["a", "b", "c"].iter().filter_map(|cluster| of(cluster)).collect()
}

#[test]
fn a_preference_divides_the_replicas_of_a_silent_cluster_among_the_others() {
    for rebalance in [false, true] {
        let mut world = divided(&format!("  rebalance: {rebalance}\n"));
        world.minutes(20);
        assert_eq!(replicas(&world), ["a 3", "b 3", "c 3"]);
        world.kill("c");
        // Its last report was in minute 12.
        world.minutes(21);
        assert_eq!(replicas(&world), ["a 3", "b 3", "c 3"]);
        world.minutes(1);
        let numbers = replicas(&world);
        assert_eq!(numbers.iter().filter_map(|text| text[2..].parse::<i64>().ok()).sum::<i64>(), 9);
        assert_eq!(numbers.len(), 2, "{numbers:?}");
        world.verify();
    }
}

#[test]
fn a_placement_that_tolerates_for_ever_stays_and_one_of_another_system_picks_elsewhere() {
    let mut world = World::of(8, 2, None);
    let tolerant = placement(2, None)
        + "  tolerations:\n  - {key: cluster.open-cluster-management.io/unreachable, operator: Exists}\n";
    world.repo.write("apps/placement.yaml", tolerant);
    world.repo.commit("edge sites are often away");
    world.minutes(20);
    world.kill("c00");
    world.minutes(300);
    assert_eq!(world.placed(), ["c00", "c01"]);
    world.repo.write(
        "apps/fixed.yaml",
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: edge}\n---\n\
         apiVersion: placement.kubernetes-fleet.io/v1\nkind: ClusterResourcePlacement\nmetadata: {name: edge}\n\
         spec:\n  resourceSelectors: [{group: '', version: v1, kind: Namespace, name: edge, selectionScope: NamespaceOnly}]\n",
    );
    world.repo.commit("another system's placement");
    world.minutes(10);
    assert_eq!(
        namespaces(&world),
        ["c01", "c02", "c03", "c04", "c05", "c06", "c07"],
        "all but the silent one"
    );
    world.verify();
}

#[test]
fn a_report_counts_for_more_than_the_older_status_in_a_file() {
    let mut world = kubefleet("");
    let agent = |heartbeat: &str| {
        format!(
            "status:\n  agentStatus:\n  - type: MemberAgent\n    lastReceivedHeartbeat: \"{heartbeat}\"\n    conditions:\n    \
             - {{type: Joined, status: \"True\", lastTransitionTime: \"{heartbeat}\"}}\n    \
             - {{type: Healthy, status: \"True\", lastTransitionTime: \"{heartbeat}\"}}\n"
        )
    };
    let member = |name: &str, status: &str| {
        format!(
            "apiVersion: cluster.kubernetes-fleet.io/v1\nkind: MemberCluster\nmetadata: {{name: {name}}}\n\
             spec: {{identity: {{kind: User, name: {name}}}}}\n{status}"
        )
    };
    world.alive.fill(false);
    world.repo.write("clusters/d.yaml", member("d", &agent("2025-12-01T00:00:00Z")));
    world.repo.write("clusters/e.yaml", member("e", &agent("2025-12-01T00:00:00Z")));
    let pick_all = std::fs::read_to_string(world.repo.path().join("apps/web.yaml"))
        .expect("a file")
        .replace("PickN, numberOfClusters: 2", "PickAll");
    world.repo.write("apps/web.yaml", pick_all);
    world.repo.commit("two members of a hub that is gone");
    world.minutes(1);
    world.pass();
    assert_eq!(namespaces(&world), ["a", "b", "c"], "their heartbeats are old");
    world.verify();
    world.names.push("d".to_owned());
    world.alive.push(true);
    world.minutes(10);
    assert_eq!(namespaces(&world), ["a", "b", "c", "d"]);
    assert!(world.facts("d").is_some_and(|facts| facts.contains("heard: true")));
    world.verify();
    let before = world.tip();
    world.minutes(15);
    assert_eq!(world.tip(), before, "further reports change nothing");
}
