//! Accidents that once happened: each object that somebody would have lost by them stays.

use berth_hub::daemon::{Settings, pass};

use crate::support::removals::{
    GLOBAL_SET, WEB, copies, fleet_of, managed, placement, report, tolerating, work,
};
use crate::support::rollouts::Rollouts;
use crate::support::silence::{self, World};
use crate::support::{RENDERED, Repo, cluster, config_map, fleet_member, namespace, run, small_fleet};

const NAMES: [&str; 6] = ["c0", "c1", "c2", "c3", "c4", "c5"];

const EVERYWHERE: &str = "{clusterSelector: {}}";
const SELECTED: &str = "{clusterSelector: {matchLabels: {tier: prod}}}";
const MISSPELT: &str = "{clusterSelector: {matchLabels: {tier: pord}}}";

/// The file of the ConfigMap `web` in a cluster's folder.
const MAP: &str = "/shop/ConfigMap_web.yaml";

/// KubeFed clusters with the label `tier: prod`, the first one a canary, and the ConfigMap `web` with this placement.
fn kubefed(names: &[&str], placement: &str) -> Repo {
    let repo = Repo::new();
    for (number, name) in names.iter().enumerate() {
        let ring = if number == 0 { "canary" } else { "rest" };
        let labels = [("tier", "prod"), ("ring", ring)];
        repo.write(&format!("clusters/{name}.yaml"), cluster(name, &labels));
    }
    repo.write("shop/namespace.yaml", namespace("shop"));
    repo.write("shop/web.yaml", config_map("web", "one", placement));
    repo.commit("start");
    repo
}

/// OCM clusters with the label `tier: prod` in the global set, the Placement `all`, and these files.
fn ocm(files: &[(&str, &str)]) -> Repo {
    let repo = Repo::new();
    for name in NAMES {
        repo.write(&format!("clusters/{name}.yaml"), labelled(name));
    }
    repo.write("sets.yaml", GLOBAL_SET);
    repo.write("all.yaml", by_tier("all", "prod"));
    for (path, text) in files {
        repo.write(path, text);
    }
    repo.commit("start");
    repo
}

/// A managed cluster with the label `tier: prod`.
fn labelled(name: &str) -> String {
    managed(name, "").replace('}', ", labels: {tier: prod}}")
}

/// A Placement on all clusters with this label.
fn by_tier(name: &str, tier: &str) -> String {
    format!(
        "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n\
         metadata: {{name: {name}, namespace: shop}}\nspec:\n  predicates:\n  \
         - requiredClusterSelector: {{labelSelector: {{matchLabels: {{tier: {tier}}}}}}}\n"
    )
}

/// References of a ManifestWorkReplicaSet to the Placement `all`.
const AT_ONCE: &str = "{name: all}";
const ONE_BY_ONE: &str =
    "{name: all, rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 1}}}";

/// A ManifestWorkReplicaSet of ConfigMaps with one value each.
fn work_set(name: &str, reference: &str, maps: &[(&str, &str)]) -> String {
    let manifest = |(map, value): &(&str, &str)| {
        format!(
            "      - apiVersion: v1\n        kind: ConfigMap\n        \
             metadata: {{name: {map}, namespace: shop}}\n        data: {{value: {value}}}\n"
        )
    };
    let manifests: String = maps.iter().map(manifest).collect();
    format!(
        "apiVersion: work.open-cluster-management.io/v1alpha1\nkind: ManifestWorkReplicaSet\n\
         metadata: {{name: {name}, namespace: shop}}\nspec:\n  placementRefs: [{reference}]\n  \
         manifestWorkTemplate:\n    workload:\n      manifests:\n{manifests}"
    )
}

fn policy(spec: &str) -> String {
    format!(
        "apiVersion: berth.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {{name: web, namespace: shop}}\nspec:\n{spec}"
    )
}

/// A policy for the ConfigMap `web`: first the canary, with this task after it, then the other clusters.
fn stages(task: &str, more: &str) -> String {
    policy(&format!(
        "  workloads: [{{kind: FederatedConfigMap, name: web}}]\n  strategy:\n    stages:\n    \
         - {{name: canary, labelSelector: {{matchLabels: {{ring: canary}}}}, afterStageTasks: [{task}]}}\n    \
         - {{name: rest, labelSelector: {{matchLabels: {{ring: rest}}}}}}\n{more}"
    ))
}

/// The values of the ConfigMap `web`, by cluster.
fn web(rollouts: &Rollouts) -> String {
    rollouts.values(&NAMES, "web")
}

/// One value in all clusters, as [`web`] shows it.
fn everywhere(value: &str) -> String {
    NAMES.map(|name| format!("{name}={value}")).join(" ")
}

/// A new value in the first cluster, and the old one in the others.
const FIRST: &str = "c0=two c1=one c2=one c3=one c4=one c5=one";

/// The clusters that have this ConfigMap.
fn clusters_with(repo: &Repo, map: &str) -> Vec<String> {
    let path = format!("/shop/ConfigMap_{map}.yaml");
    let files = repo.files(RENDERED);
    let cluster = |file: &String| Some(file.strip_prefix("clusters/")?.strip_suffix(&path)?.to_owned());
    files.keys().filter_map(cluster).collect()
}

/// The workloads that wait for an approval, as `berth status` shows them.
fn held(repo: &Repo) -> String {
    let status = run(&["status", "--repo", repo.arg()]).expect(0).out;
    let lines: Vec<&str> = status.lines().filter(|line| line.starts_with("held for approval: ")).collect();
    lines.join("\n")
}

#[test]
fn a_claim_that_all_members_stop_reporting_removes_nothing() {
    let (repo, names) = fleet_of(6, placement("size", "small").replace("NotIn", "In"), 1);
    assert_eq!(copies(&repo, WEB), 0);
    repo.write("apps/side-placement.yaml", tolerating(None).replace("name: web", "name: side"));
    repo.write("apps/side.yaml", work(1).replace("name: web", "name: side").replace("web-0", "side-0"));
    repo.commit("something that stays");
    repo.publish().expect(0);
    let all_report =
        |minute: u64, says: &str| names.iter().for_each(|name| report(&repo, name, minute, says));
    all_report(60, "claims: {size: small}\n");
    repo.publish().expect(0);
    assert_eq!(copies(&repo, WEB), 6);
    // The next state equals the first one.
    all_report(120, "");
    let ran = repo.publish().expect(5);
    let line = ran.approval();
    assert!(!ran.err.contains("restores the state of"), "{}", ran.err);
    assert_eq!(copies(&repo, WEB), 6);
    assert_eq!(repo.publish().expect(5).approval(), line);
    assert_eq!(copies(&repo, WEB), 6);
    all_report(180, "claims: {size: small}\n");
    repo.publish().expect(0);
    assert_eq!(copies(&repo, WEB), 6);
}

/// Publishes the workload `aa` with the ConfigMap `web`, and the workload `bb` without it. Then `bb` gets a strategy
/// of one cluster at a time, and the fleet gets these files.
fn two_work_sets(more: &[(&str, &str)]) -> Rollouts {
    let (aa, bb) = (
        work_set("aa", AT_ONCE, &[("aa", "one"), ("web", "one")]),
        work_set("bb", AT_ONCE, &[("bb", "one")]),
    );
    let rollouts = Rollouts::of(ocm(&[("aa.yaml", &aa), ("bb.yaml", &bb)]));
    let bb = work_set("bb", ONE_BY_ONE, &[("bb", "one")]);
    rollouts.edit(&[&[("bb.yaml", bb.as_str())], more].concat());
    assert_eq!(web(&rollouts), everywhere("one"));
    rollouts
}

/// Moves the ConfigMap `web` from the workload `aa` to `bb`, with a new value.
fn move_web(rollouts: &Rollouts) {
    let aa = work_set("aa", AT_ONCE, &[("aa", "one")]);
    let bb = work_set("bb", ONE_BY_ONE, &[("bb", "one"), ("web", "two")]);
    rollouts.edit(&[("aa.yaml", &aa), ("bb.yaml", &bb)]);
}

/// Members report success until all clusters have the new value. No cluster is ever without the ConfigMap.
#[track_caller]
fn reaches_all_and_is_never_missing(rollouts: &Rollouts) {
    for _ in NAMES {
        rollouts.succeed(&NAMES);
        rollouts.publish();
        let shown = web(rollouts);
        assert!(!shown.contains("=-"), "{shown}");
    }
    assert_eq!(web(rollouts), everywhere("two"));
}

#[test]
fn an_object_that_moves_to_a_slower_workload_stays_until_that_workload_takes_it_over() {
    let rollouts = two_work_sets(&[]);
    move_web(&rollouts);
    assert_eq!(web(&rollouts), FIRST);
    reaches_all_and_is_never_missing(&rollouts);
}

#[test]
fn an_object_that_moves_to_a_paused_workload_stays() {
    let pause =
        "  workloads: [{kind: ManifestWorkReplicaSet, name: bb}]\n  paused: {reason: waiting for legal}\n";
    let rollouts = two_work_sets(&[("policy.yaml", &policy(pause))]);
    move_web(&rollouts);
    assert_eq!(web(&rollouts), everywhere("one"));
    rollouts.publish();
    assert_eq!(web(&rollouts), everywhere("one"));
    rollouts.succeed(&NAMES);
    rollouts.publish();
    assert_eq!(web(&rollouts), everywhere("one"));
}

#[test]
fn a_workload_that_is_renamed_takes_its_objects_over_cluster_by_cluster() {
    let rollouts = Rollouts::of(ocm(&[("web.yaml", &work_set("web", AT_ONCE, &[("web", "one")]))]));
    let one_by_one = "  workloads: [{kind: ManifestWorkReplicaSet}]\n  \
                      strategy: {rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 1}}}\n";
    rollouts.edit(&[("policy.yaml", &policy(one_by_one))]);
    assert_eq!(web(&rollouts), everywhere("one"));
    rollouts.edit(&[("web.yaml", &work_set("site", AT_ONCE, &[("web", "two")]))]);
    assert_eq!(web(&rollouts), FIRST);
    reaches_all_and_is_never_missing(&rollouts);
}

#[test]
fn an_object_that_moves_between_slow_workloads_belongs_to_one_of_them_at_any_time() {
    let aa = work_set("aa", ONE_BY_ONE, &[("aa", "one"), ("web", "one")]);
    let rollouts = two_work_sets(&[("aa.yaml", &aa)]);
    rollouts.succeed(&NAMES);
    rollouts.publish();
    let aa = work_set("aa", ONE_BY_ONE, &[("aa", "two")]);
    let bb = work_set("bb", ONE_BY_ONE, &[("bb", "one"), ("web", "two")]);
    rollouts.edit(&[("aa.yaml", &aa), ("bb.yaml", &bb)]);
    let ledger = || rollouts.repo.files(RENDERED)["ledger/ledger.yaml"].clone();
    assert!(ledger().contains("owners:"), "{}", ledger());
    reaches_all_and_is_never_missing(&rollouts);
    rollouts.succeed(&NAMES);
    rollouts.publish();
    let files = rollouts.repo.files(RENDERED);
    assert!(!files.contains_key("ledger/ledger.yaml"), "{}", ledger());
    for (path, record) in files.iter().filter(|(path, _)| path.starts_with("releases/")) {
        assert!(!record.contains("told:"), "{path} goes on for ever: {record}");
    }
}

#[test]
fn a_plan_of_a_new_name_takes_no_last_copy() {
    for reference in [AT_ONCE, ONE_BY_ONE] {
        let repo = ocm(&[("web.yaml", &work_set("web", reference, &[("web", "one")]))]);
        repo.publish().expect(0);
        repo.write("web.yaml", work_set("site", reference, &[("web", "two")]));
        repo.commit("another name");
        let plan = run(&["plan", "--repo", repo.arg()]).expect(0).out;
        assert!(plan.contains("ManifestWorkReplicaSet shop/site joins"), "{plan}");
        assert!(!plan.contains("last copy"), "{plan}");
    }
}

/// The workload `site` on all clusters with this label.
fn site(tier: &str) -> String {
    format!("{}---\n{}", by_tier("site", tier), work_set("site", "{name: site}", &[("site", "one")]))
}

#[test]
fn a_held_edit_keeps_no_other_workload_from_leaving_a_cluster_that_reports_a_fault() {
    let workload = |name: &str, on: usize| {
        let placement = placement("state", "broken").replace("name: web", &format!("name: {name}"));
        let work = work_set(name, &format!("{{name: {name}}}"), &[(name, "one")]);
        format!("{placement}  numberOfClusters: {on}\n---\n{work}")
    };
    let repo = ocm(&[("site.yaml", &workload("site", 6)), ("web.yaml", &workload("web", 2))]);
    repo.publish().expect(0);
    assert_eq!(clusters_with(&repo, "web"), ["c0", "c1"]);
    repo.write("site.yaml", workload("site", 2));
    repo.commit("a typing error");
    repo.publish().expect(5);

    // What the held edit would take changes with the report.
    report(&repo, "c0", 60, "claims: {state: broken}\n");
    repo.publish().expect(5);
    let after = clusters_with(&repo, "web");
    assert!(after.len() == 2 && !after.contains(&"c0".to_owned()), "{after:?}");
    assert_eq!(clusters_with(&repo, "site"), NAMES);
    let held = held(&repo);
    assert!(held.contains("shop/site") && !held.contains("shop/web"), "{held}");
}

#[test]
fn a_held_edit_keeps_no_other_workload_from_leaving_a_silent_cluster() {
    let mut world = World::with(8, &silence::placement(2, Some(600)), &work(1));
    for name in world.names.clone() {
        world.repo.write(&format!("clusters/{name}.yaml"), labelled(&name));
    }
    let site = |tier: &str| {
        let tolerates =
            "  tolerations:\n  - {key: cluster.open-cluster-management.io/unreachable, operator: Exists}\n";
        site(tier).replace("---\n", &format!("{tolerates}---\n"))
    };
    world.repo.write("site.yaml", site("prod"));
    world.repo.commit("a site everywhere");
    world.minutes(20);
    assert_eq!(clusters_with(&world.repo, "site").len(), 8);
    assert_eq!(clusters_with(&world.repo, "web-0"), ["c00", "c01"]);
    world.repo.write("site.yaml", site("pord"));
    world.repo.commit("a typing error");
    world.minutes(10);
    let line = held(&world.repo);
    assert!(line.contains("shop/site"), "{line}");

    world.kill("c00");
    // Its last report was in minute 30, so that it is silent from minute 60 on, and tolerated until minute 70.
    world.minutes(45);
    assert_eq!(clusters_with(&world.repo, "web-0"), ["c01", "c02"]);
    assert_eq!(clusters_with(&world.repo, "site").len(), 8);
    assert_eq!(held(&world.repo), line, "nothing else is held");
    assert!(!line.contains("shop/web"), "{line}");
}

#[test]
fn workloads_that_go_together_are_held_and_approved_as_one() {
    let api = |value: &str| config_map("api", value, EVERYWHERE);
    let repo = kubefed(&NAMES, SELECTED);
    repo.write("shop/api.yaml", api("one"));
    repo.commit("an api");
    let rollouts = Rollouts::of(repo);
    let together = "  workloads: [{kind: FederatedConfigMap, name: web}, {kind: FederatedConfigMap, name: api}]\n  \
                    together: true\n  strategy: {rolloutStrategy: {type: All}}\n";
    rollouts.edit(&[("policy.yaml", &policy(together))]);
    let repo = &rollouts.repo;
    repo.write("shop/web.yaml", config_map("web", "one", MISSPELT));
    repo.write("shop/api.yaml", api("two"));
    repo.commit("a typing error beside a change");
    let ran = repo.publish().expect(5);
    let words = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("is held together with"), "{}", ran.out);
    let line = ran.approval();
    let held = held(repo);
    assert!(held.contains("shop/web") && held.contains("shop/api"), "{held}");
    let values = || [web(&rollouts), rollouts.values(&NAMES, "api")];
    assert_eq!(values(), [everywhere("one"), everywhere("one")]);

    repo.commit(&format!("web may go\n\n{line}"));
    rollouts.publish();
    for _ in 0..2 {
        rollouts.succeed(&NAMES);
        rollouts.publish();
    }
    assert_eq!(values(), [everywhere("-"), everywhere("two")]);
}

/// A placement on these clusters by name.
fn on(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("{{name: {name}}}")).collect();
    format!("{{clusters: [{}]}}", names.join(", "))
}

#[test]
fn a_removal_that_passed_the_gate_is_not_held_when_its_turn_comes() {
    let names = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9"];
    let rollouts = Rollouts::of(kubefed(&names, &on(&names)));
    rollouts.edit(&[("policy.yaml", &stages("", ""))]);
    rollouts.succeed(&names);
    rollouts.publish();
    rollouts.edit(&[("shop/web.yaml", &config_map("web", "two", &on(&names[..6])))]);
    assert_eq!(copies(&rollouts.repo, MAP), 10, "the removals come after the last stage");
    // A report lets the removals go. They are 40 % of the fleet.
    for _ in 0..12 {
        rollouts.succeed(&names);
        rollouts.publish();
    }
    assert_eq!((web(&rollouts), copies(&rollouts.repo, MAP)), (everywhere("two"), 6));
}

#[test]
fn a_workload_that_is_made_again_goes_on_counting_its_releases() {
    let record = "releases/shop/FederatedConfigMap.types.kubefed.io_web";
    let approved = "  approved:\n  - workload: {kind: FederatedConfigMap, name: web}\n    \
                    release: 1\n    stage: canary\n    task: after\n";
    let repo = kubefed(&NAMES[..2], EVERYWHERE);
    repo.write("policy.yaml", stages("{type: Approval}", approved));
    repo.commit("an approved release");
    let rollouts = Rollouts::of(repo);
    let shown = || rollouts.values(&NAMES[..2], "web");
    let release = || {
        let shown = rollouts.order(&["show", "web", "-o", "json"]).expect(0).json()["workloads"][0].take();
        shown["release"].as_u64().expect("a number")
    };
    let all_report = || {
        rollouts.succeed(&NAMES[..2]);
        rollouts.publish();
    };
    assert_eq!(shown(), "c0=one c1=-");
    all_report();
    all_report();
    assert_eq!((shown(), release()), ("c0=one c1=one".to_owned(), 1));

    rollouts.repo.git(&["rm", "-q", "shop/web.yaml"]);
    rollouts.repo.commit("retire web");
    let line = rollouts.repo.publish_at(rollouts.now()).expect(5).approval();
    rollouts.repo.commit(&format!("web may go\n\n{line}"));
    rollouts.publish();
    assert_eq!(shown(), "c0=- c1=-");
    all_report();

    rollouts.edit(&[("shop/web.yaml", &config_map("web", "two", EVERYWHERE))]);
    let number = release();
    assert!(number > 1, "release {number}");
    let files = rollouts.repo.files(RENDERED);
    assert!(files.contains_key(&format!("{record}.yaml")), "{:?}", files.keys());
    assert!(files.contains_key(&format!("{record}/{number}.yaml")), "{:?}", files.keys());
    assert_eq!(shown(), "c0=two c1=-");
    all_report();
    assert_eq!(shown(), "c0=two c1=-", "nobody approved this release");
}

/// A namespace and three ConfigMaps, of which two go everywhere.
const OBJECTS: &str = "apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: base-0, namespace: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: base-1, namespace: shop}
---
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourcePlacement
metadata: {name: shop}
spec:
  resourceSelectors: [{group: '', version: v1, kind: Namespace, name: shop, selectionScope: NamespaceOnly}]
  policy: {placementType: PickAll}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ResourcePlacement
metadata: {name: base, namespace: shop}
spec:
  resourceSelectors:
  - {group: '', version: v1, kind: ConfigMap, name: base-0}
  - {group: '', version: v1, kind: ConfigMap, name: base-1}
  policy: {placementType: PickAll}
";

#[test]
fn a_workload_that_shrinks_under_new_names_is_held_as_under_one_name() {
    let repo = Repo::new();
    let names: Vec<String> = (0..16).map(|n| format!("c{n:02}")).collect();
    for name in &names {
        repo.write(&format!("clusters/{name}.yaml"), fleet_member(name, "prod"));
    }
    repo.write("objects.yaml", OBJECTS);
    let place = |name: &str, clusters: usize| {
        let clusters = names[..clusters].join(", ");
        repo.write(
            "web.yaml",
            format!(
                "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ResourcePlacement\n\
                 metadata: {{name: {name}, namespace: shop}}\nspec:\n  \
                 resourceSelectors: [{{group: '', version: v1, kind: ConfigMap, name: web}}]\n  \
                 policy: {{placementType: PickFixed, clusterNames: [{clusters}]}}\n"
            ),
        );
        repo.commit(name);
    };
    place("web-1", 16);
    repo.publish().expect(0);
    assert_eq!(copies(&repo, MAP), 16);
    place("web-2", 8);
    repo.publish().expect(0);
    assert_eq!(copies(&repo, MAP), 8);
    place("web-3", 4);
    run(&["plan", "--repo", repo.arg(), "--fail-on", "held"]).expect(5);
    repo.publish().expect(5);
    assert_eq!(copies(&repo, MAP), 8);
}

#[test]
fn an_approval_that_comes_before_its_removal_counts_once() {
    let repo = small_fleet();
    repo.publish().expect(0);
    let retire = || {
        repo.git(&["rm", "-q", "apps/web.yaml"]);
        repo.commit("retire web");
    };
    repo.git(&["checkout", "-q", "-b", "retire"]);
    retire();
    repo.git(&["checkout", "-q", "main"]);
    let line = run(&["plan", "--repo", repo.arg(), "--head", "retire"]).expect(0).approval();
    repo.commit(&format!("web may go\n\n{line}"));
    repo.publish().expect(0);
    assert_eq!(copies(&repo, MAP), 3);
    retire();
    repo.publish().expect(0);
    assert_eq!(copies(&repo, MAP), 0);

    repo.write("apps/web.yaml", config_map("web", "one", EVERYWHERE));
    // With another one beside it, no earlier state comes back.
    repo.write("apps/api.yaml", config_map("api", "one", EVERYWHERE));
    repo.commit("web is back");
    repo.publish().expect(0);
    assert_eq!(copies(&repo, MAP), 3);
    retire();
    repo.publish().expect(5);
    assert_eq!(copies(&repo, MAP), 3);
}

#[test]
fn a_placement_without_work_keeps_its_decisions() {
    let api = work_set("api", AT_ONCE, &[("api", "one")]);
    let repo = ocm(&[("web.yaml", &by_tier("web", "prod")), ("api.yaml", &api)]);
    let decided = || {
        let files = repo.files(RENDERED);
        let is_of_web =
            |path: &&String| path.starts_with("decisions/shop/PlacementDecision") && path.contains("_web-");
        let texts: String = files.keys().filter(is_of_web).map(|path| files[path].as_str()).collect();
        NAMES.into_iter().filter(|name| texts.contains(&format!("clusterName: {name}"))).count()
    };
    repo.publish().expect(0);
    assert_eq!(decided(), 6);
    repo.write("web.yaml", by_tier("web", "pord"));
    repo.commit("a typing error");
    let line = run(&["plan", "--repo", repo.arg(), "--fail-on", "held"]).expect(5).approval();
    assert_eq!(repo.publish().expect(5).approval(), line);
    assert_eq!(decided(), 6);
    assert_eq!(copies(&repo, "ConfigMap_api.yaml"), 6);
    assert_eq!(repo.publish().expect(5).approval(), line);
    assert_eq!(decided(), 6);
}

#[test]
fn an_edit_that_empties_a_workload_is_held_at_once_while_its_canary_soaks() {
    let rollouts = Rollouts::of(kubefed(&NAMES, SELECTED));
    rollouts.edit(&[("policy.yaml", &stages("{type: TimedWait, waitTime: 1h}", ""))]);
    rollouts.edit(&[("shop/web.yaml", &config_map("web", "two", SELECTED))]);
    rollouts.succeed(&NAMES);
    rollouts.pass();
    assert_eq!(web(&rollouts), FIRST, "the canary soaks");
    let repo = &rollouts.repo;
    let planned = || {
        let now = rollouts.now().to_string();
        run(&["plan", "--repo", repo.arg(), "--now", &now, "--fail-on", "held"]).expect(5).approval()
    };
    repo.write("shop/web.yaml", config_map("web", "two", MISSPELT));
    repo.commit("a typing error");
    let line = planned();
    // Before the wait ends, and after it.
    for minutes in [0, 30, 60] {
        rollouts.wait(minutes);
        let passed = pass(&Settings::of(repo.path()), rollouts.now()).expect("a pass");
        assert!(!passed.held.is_empty(), "{minutes} minutes later");
        assert_eq!(planned(), line);
        assert_eq!(web(&rollouts), FIRST);
    }
    assert_eq!(repo.publish().expect(5).approval(), line);
    assert_eq!(web(&rollouts), FIRST);
}

#[test]
fn a_copy_of_a_workloads_file_takes_no_cluster_from_it() {
    let repo = kubefed(&NAMES, EVERYWHERE);
    repo.publish().expect(0);
    assert_eq!(copies(&repo, MAP), 6);
    // To leave three of six clusters needs no approval.
    repo.write("drafts/web.yaml", config_map("web", "one", &on(&NAMES[..3])));
    repo.commit("a draft");
    let ran = repo.publish().expect(1);
    assert!(ran.err.contains("drafts/web.yaml") && ran.err.contains("shop/web.yaml"), "{}", ran.err);
    assert_eq!(copies(&repo, MAP), 6);
}
