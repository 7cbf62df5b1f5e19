//! Policy tests through the binary: what plans report, what runs hold, whose rules count, and their examples.

use crate::support::{RENDERED, Ran, Repo, cluster, config_map, namespace, run};

const PCI: &str = "apiVersion: berth.dev/v1alpha1
kind: PolicyTest
metadata: {name: pci-stays}
spec:
  for: workloads
  match: {labels: {matchLabels: {pci: 'yes'}}}
  rule: workload.clusters.all(c, has(c.labels.pci))
  messageExpression: >-
    'it leaves the pci clusters: '
    + workload.clusters.filter(c, !has(c.labels.pci)).map(c, c.name).join(', ')
";

const REGIONS: &str = "apiVersion: berth.dev/v1alpha1
kind: PolicyTest
metadata: {name: two-copies}
spec:
  for: workloads
  match: {names: [web]}
  message: a region has less than two copies
  rule: |
    after.clusters.all(c,
      workload.clusters.filter(d, d.labels.region == c.labels.region).size() >= 2)
";

const SHARES: &str = "apiVersion: berth.dev/v1alpha1
kind: PolicyTest
metadata: {name: no-big-share}
spec:
  for: workloads
  message: a cluster has more than 40 % of the replicas
  rule: workload.clusters.all(c, c.replicas * 100 <= workload.replicas * 40)
";

/// A config map with the label `pci`, in the clusters of a selector.
fn web(labels: &str) -> String {
    let text = config_map("web", "one", &format!("{{clusterSelector: {{matchLabels: {labels}}}}}"));
    text.replace("metadata: {name: web,", "metadata: {name: web, labels: {pci: 'yes'},")
}

fn holding(test: &str) -> String {
    format!("{test}  holds: true\n")
}

/// Two regions of two clusters each, and one config map in all clusters with the label `pci`.
fn fleet(tests: &[(&str, &str)]) -> Repo {
    let member = |name: &str, region: &str, pci: bool| {
        let pci: &[(&str, &str)] = if pci { &[("pci", "yes")] } else { &[] };
        cluster(name, &[&[("region", region)], pci].concat())
    };
    let repo = Repo::new();
    repo.write("clusters/oslo.yaml", member("oslo", "north", true));
    repo.write("clusters/bergen.yaml", member("bergen", "north", true));
    repo.write("clusters/turin.yaml", member("turin", "south", true));
    repo.write("clusters/rome.yaml", member("rome", "south", true));
    repo.write("clusters/york.yaml", member("york", "north", false));
    repo.write("apps/shop.yaml", namespace("shop"));
    repo.write("apps/web.yaml", web("{pci: 'yes'}"));
    for (path, text) in tests {
        repo.write(path, text);
    }
    repo.commit("start");
    repo
}

fn plan(repo: &Repo) -> Ran {
    run(&["plan", "--repo", repo.arg()])
}

#[track_caller]
fn proven(repo: &Repo) {
    run(&["verify", "--repo", repo.arg()]).expect(0);
}

#[track_caller]
fn has(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "no {word:?} in\n{text}");
    }
}

fn is_in(repo: &Repo, cluster: &str) -> bool {
    repo.files(RENDERED).contains_key(&format!("clusters/{cluster}/shop/ConfigMap_web.yaml"))
}

#[test]
fn pci_workloads_never_leave_pci_clusters() {
    let repo = fleet(&[("policy-tests/pci.yaml", PCI)]);
    repo.publish().expect(0);
    assert!(run(&["validate", repo.arg()]).expect(0).out.contains("1 policy test"));
    repo.write("apps/web.yaml", web("{region: north}"));
    repo.commit("by region");
    let planned = plan(&repo).expect(1);
    has(
        &planned.out,
        &[
            "policy tests: 1 test ran, 1 failed",
            "! policy pci-stays: FederatedConfigMap shop/web: it leaves the pci clusters:",
            "error at policy-tests/pci.yaml:1:1",
        ],
    );
    let found = run(&["plan", "--repo", repo.arg(), "-o", "json"]).expect(1).json()["policyTests"][0].take();
    assert_eq!(found["item"], "FederatedConfigMap shop/web");
    assert_eq!(
        (&found["message"], &found["counts"]),
        (&"it leaves the pci clusters: york".into(), &true.into())
    );
    let validated = run(&["validate", repo.arg()]).expect(1);
    has(
        &validated.err,
        &["error: policy pci-stays: FederatedConfigMap shop/web: it leaves the pci clusters"],
    );
    // It does not hold, so it is published.
    repo.publish().expect(0);
    assert!(is_in(&repo, "york"));
    proven(&repo);
}

#[test]
fn every_region_keeps_two_copies_of_web() {
    let repo = fleet(&[("policy-tests/regions.yaml", REGIONS)]);
    repo.publish().expect(0);
    run(&["validate", repo.arg()]).expect(0);
    repo.git(&["rm", "-q", "clusters/rome.yaml"]);
    repo.commit("rome leaves");
    has(
        &plan(&repo).expect(1).out,
        &["! policy two-copies: FederatedConfigMap shop/web: a region has less than two"],
    );
}

#[test]
fn no_cluster_holds_more_than_its_share_of_the_replicas() {
    let replicas = |weights: &str| {
        format!(
            "apiVersion: types.kubefed.io/v1beta1\nkind: FederatedDeployment\nmetadata: {{name: api, namespace: shop}}\n\
             spec:\n  template:\n    spec:\n      replicas: 1\n      selector: {{matchLabels: {{a: b}}}}\n      template:\n        \
             metadata: {{labels: {{a: b}}}}\n        spec: {{containers: [{{name: c, image: i}}]}}\n  \
             placement: {{clusters: [{{name: oslo}}, {{name: turin}}, {{name: rome}}]}}\n---\n\
             apiVersion: scheduling.kubefed.io/v1alpha1\nkind: ReplicaSchedulingPreference\n\
             metadata: {{name: api, namespace: shop}}\nspec:\n  targetKind: FederatedDeployment\n  totalReplicas: 9\n  \
             clusters: {weights}\n"
        )
    };
    let repo = fleet(&[("policy-tests/shares.yaml", SHARES)]);
    repo.write("apps/api.yaml", replicas("{oslo: {weight: 1}, turin: {weight: 1}, rome: {weight: 1}}"));
    repo.commit("evenly");
    run(&["validate", repo.arg()]).expect(0);
    repo.write("apps/api.yaml", replicas("{oslo: {weight: 7}, turin: {weight: 1}, rome: {weight: 1}}"));
    let found = run(&["validate", repo.arg()]).expect(1);
    has(
        &found.err,
        &["no-big-share: FederatedDeployment shop/api: a cluster has more than 40 % of the replicas"],
    );
}

#[test]
fn a_change_is_judged_by_the_tests_before_it() {
    let repo = fleet(&[("policy-tests/pci.yaml", PCI)]);
    repo.publish().expect(0);
    repo.git(&["switch", "-q", "-c", "change"]);
    repo.write("policy-tests/pci.yaml", PCI.replace("rule: workload", "rule: true || workload"));
    repo.write("policy-tests/new.yaml", REGIONS.replace(">= 2", ">= 3"));
    repo.write("apps/web.yaml", web("{region: north}"));
    repo.commit("easier rules, and one more");
    let planned = plan(&repo).expect(1);
    has(
        &planned.out,
        &[
            "policy tests: 1 test ran, 1 failed",
            "! policy pci-stays",
            "! policy two-copies",
            "warning at policy-tests/new.yaml:1:1 (after the merge)",
        ],
    );
    has(&planned.err, &["note: this adds, changes or removes 2 policy tests (`pci-stays`, `two-copies`)"]);
    repo.git(&["rm", "-q", "-r", "policy-tests"]);
    repo.commit("no rules");
    has(&plan(&repo).expect(1).out, &["! policy pci-stays"]);
    has(&run(&["validate", repo.arg()]).expect(1).err, &["error: policy pci-stays"]);
    // Once it is processed, the test is gone.
    repo.git(&["switch", "-q", "main"]);
    repo.git(&["merge", "-q", "change"]);
    repo.publish().expect(0);
    run(&["validate", repo.arg()]).expect(0);
}

#[test]
fn a_broken_test_keeps_its_last_good_form() {
    let repo = fleet(&[("policy-tests/pci.yaml", PCI)]);
    repo.publish().expect(0);
    repo.write("policy-tests/pci.yaml", PCI.replace("has(c.labels.pci))\n", "has(c.lables.pci))\n"));
    repo.commit("a slip");
    has(&plan(&repo).expect(1).err, &["policy-tests/pci.yaml:7:", "has no field `lables`"]);
    repo.publish().expect(1);
    repo.write("apps/web.yaml", web("{region: north}"));
    repo.commit("by region");
    has(&plan(&repo).expect(1).out, &["! policy pci-stays"]);
}

#[test]
fn what_makes_a_holding_test_fail_is_held_until_approved() {
    let repo = fleet(&[("policy-tests/pci.yaml", &holding(PCI))]);
    repo.publish().expect(0);
    repo.write("apps/web.yaml", web("{region: north}"));
    repo.write("apps/other.yaml", config_map("other", "one", "{clusterSelector: {}}"));
    repo.commit("by region");
    let planned = run(&["plan", "--repo", repo.arg(), "--fail-on", "held"]).expect(1);
    let held = repo.publish().expect(5);
    has(&held.out, &["1 workload held for approval", "policy pci-stays: it leaves the pci clusters: york"]);
    assert_eq!(planned.approval(), held.approval(), "a plan foresees it");
    assert!(!is_in(&repo, "york") && is_in(&repo, "turin"), "it stays where it was");
    assert!(
        repo.files(RENDERED).contains_key("clusters/york/shop/ConfigMap_other.yaml"),
        "the rest is published"
    );
    proven(&repo);
    repo.publish().expect(5);
    repo.commit(&format!("accepted\n\n{}", held.approval()));
    let passed = repo.publish().expect(0);
    has(&passed.err, &["approved by commit"]);
    assert!(is_in(&repo, "york") && !is_in(&repo, "turin"));
    proven(&repo);
    // The approval counts once: the same placement again, after another one, is held again.
    repo.write("apps/web.yaml", web("{pci: 'yes'}"));
    repo.commit("back");
    repo.publish().expect(0);
    repo.write("apps/web.yaml", web("{region: north}"));
    repo.commit(&format!("again\n\n{}", held.approval()));
    repo.publish().expect(5);
    assert!(!is_in(&repo, "york"));
    proven(&repo);
}

#[test]
fn an_unchanged_placement_is_not_held_for_what_it_broke_before() {
    let repo = fleet(&[]);
    repo.write("apps/web.yaml", web("{region: north}"));
    repo.commit("by region");
    repo.publish().expect(0);
    repo.write("policy-tests/pci.yaml", holding(PCI));
    repo.commit("a rule that does not hold");
    repo.publish().expect(0);
    repo.write("apps/web.yaml", web("{region: north}").replace("one", "two"));
    repo.commit("another value");
    has(&plan(&repo).expect(1).out, &["! policy pci-stays"]);
    repo.publish().expect(0);
    let text = repo.files(RENDERED).remove("clusters/york/shop/ConfigMap_web.yaml").expect("a copy");
    assert!(text.contains("two"), "{text}");
    proven(&repo);
}

#[test]
fn going_back_to_an_earlier_state_passes_no_test() {
    let repo =
        fleet(&[("policy-tests/pci.yaml", &holding(PCI).replace("has(c", "has(c.labels.x) || has(c"))]);
    let (easy, strict) = (web("{region: north}"), web("{pci: 'yes'}"));
    repo.write("apps/web.yaml", &easy);
    repo.commit("by region");
    repo.publish().expect(0);
    repo.write("apps/web.yaml", &strict);
    repo.write("policy-tests/pci.yaml", holding(PCI));
    repo.commit("only pci clusters");
    repo.publish().expect(0);
    repo.write("apps/web.yaml", &easy);
    repo.commit("back");
    has(&repo.publish().expect(5).out, &["policy pci-stays"]);
    assert!(!is_in(&repo, "york"));
    proven(&repo);
}

#[test]
fn a_rule_for_the_fleet_holds_every_placement_that_changes() {
    let rule = "apiVersion: berth.dev/v1alpha1\nkind: PolicyTest\nmetadata: {name: small}\nspec:\n  for: fleet\n  \
                holds: true\n  message: the fleet has too many copies\n  \
                rule: after.workloads.map(w, w.clusters.size()).sum() <= 9\n";
    let repo = fleet(&[("policy-tests/small.yaml", rule)]);
    repo.publish().expect(0);
    repo.write("apps/other.yaml", config_map("other", "one", "{clusters: [{name: oslo}]}"));
    repo.write("apps/web.yaml", web("{pci: 'yes'}").replace("one", "two"));
    repo.commit("one more");
    let held = repo.publish().expect(5);
    has(
        &held.out,
        &["1 workload held", "FederatedConfigMap shop/other", "policy small: the fleet has too many copies"],
    );
    let files = repo.files(RENDERED);
    assert!(!files.contains_key("clusters/oslo/shop/ConfigMap_other.yaml"), "{:?}", files.keys());
    assert!(files["clusters/oslo/shop/ConfigMap_web.yaml"].contains("two"), "its place is as before");
    proven(&repo);
}

#[test]
fn a_removed_workload_is_held_and_seen_as_it_was() {
    let rule = "apiVersion: berth.dev/v1alpha1\nkind: PolicyTest\nmetadata: {name: stays}\nspec:\n  for: workloads\n  \
                match: {labels: {matchLabels: {pci: 'yes'}}}\n  holds: true\n  \
                rule: workload.clusters.size() * 2 >= oldWorkload.clusters.size()\n";
    let repo = fleet(&[("policy-tests/stays.yaml", rule)]);
    repo.publish().expect(0);
    repo.git(&["rm", "-q", "apps/web.yaml"]);
    repo.commit("no web");
    has(&repo.publish().expect(5).out, &["policy stays: its rule does not hold", "from all of its clusters"]);
    assert!(is_in(&repo, "oslo"));
    proven(&repo);
}

#[test]
fn hostile_messages_reach_no_terminal() {
    let message = "  message: \"it \\e[2J\\e]0;x\\a leaves\\nerror: fake\"\n";
    let (start, _) = PCI.split_once("  messageExpression").expect("a message");
    let repo = fleet(&[("policy-tests/pci.yaml", &holding(&format!("{start}{message}")))]);
    repo.publish().expect(0);
    repo.write("apps/web.yaml", web("{region: north}"));
    repo.commit("by region");
    let (planned, held, found) =
        (plan(&repo).expect(1), repo.publish().expect(5), run(&["validate", repo.arg()]).expect(1));
    let json = run(&["plan", "--repo", repo.arg(), "-o", "json"]).expect(1);
    for text in [&planned.out, &planned.err, &held.out, &held.err, &found.out, &found.err, &json.out] {
        assert!(!text.contains(['\u{1b}', '\u{7}']), "{text:?}");
        assert!(!text.lines().any(|line| line.starts_with("error: fake")), "{text:?}");
    }
    proven(&repo);
}

#[test]
fn a_rule_without_end_is_an_error_of_its_test() {
    let every = "after.clusters.all(";
    let body = (0..12).fold("true".to_owned(), |body, n| format!("{every}c{n}, {body})"));
    let rule = format!(
        "apiVersion: berth.dev/v1alpha1\nkind: PolicyTest\nmetadata: {{name: endless}}\nspec:\n  for: fleet\n  \
         severity: warning\n  rule: \"{body}\"\n"
    );
    let repo = fleet(&[("policy-tests/endless.yaml", &rule), ("policy-tests/pci.yaml", PCI)]);
    let found = run(&["validate", repo.arg()]).expect(1);
    has(
        &found.err,
        &["error: policy endless: the fleet: the rule cannot be evaluated", "more than 10000000 steps"],
    );
    assert!(!found.err.contains("pci-stays"), "the other test passes\n{}", found.err);
}

#[test]
fn examples_are_run_and_mismatches_have_their_place() {
    let examples = "  examples:
  - name: stays
    after: policy-tests/good
  - name: leaves
    before: policy-tests/good
    after:
      clusters: [{name: york}]
      workloads: [{name: web, namespace: shop, labels: {pci: 'yes'}, clusters: [york]}]
    fails: [{item: shop/web, message: 'it leaves the pci clusters: york'}]
";
    let repo = fleet(&[("policy-tests/pci.yaml", &format!("{PCI}{examples}"))]);
    repo.write("policy-tests/good/oslo.yaml", cluster("oslo", &[("pci", "yes")]));
    repo.write("policy-tests/good/shop.yaml", namespace("shop"));
    repo.write("policy-tests/good/web.yaml", web("{pci: 'yes'}"));
    assert_eq!(run(&["test", repo.arg()]).expect(0).out, "pci-stays: 2 examples pass\n");
    // The folder is no part of the fleet, which has a cluster and a workload of the same names.
    run(&["validate", repo.arg()]).expect(0);
    let wrong = examples.replace("clusters: york'", "clusters: rome'").replace("/good", "/bad");
    repo.write("policy-tests/pci.yaml", format!("{PCI}{wrong}"));
    repo.write("policy-tests/bad/york.yaml", cluster("york", &[]));
    repo.write("policy-tests/bad/shop.yaml", namespace("shop"));
    repo.write("policy-tests/bad/web.yaml", web("{x: '1'}"));
    let ran = run(&["test", repo.arg()]).expect(1);
    assert_eq!(ran.out, "pci-stays: 2 of 2 examples failed\n");
    has(
        &ran.err,
        &[
            "policy-tests/pci.yaml:12:5: error: policy pci-stays, example `stays`: FederatedConfigMap shop/web must pass",
            "policy-tests/pci.yaml:19:13: error: policy pci-stays, example `leaves`: the message is",
        ],
    );
    let ran = run(&["test", repo.arg(), "-o", "json"]).expect(1).json();
    assert_eq!(ran["policyTests"][0]["examples"][1]["passes"], false);
    repo.write("policy-tests/pci.yaml", PCI.replace("for: workloads", "for: nothing"));
    has(&run(&["test", repo.arg()]).expect(1).err, &["spec.for is `nothing`"]);
}

#[test]
fn a_folder_needs_a_right_to_hold_policy_tests() {
    let rules = "apiVersion: berth.dev/v1alpha1\nkind: AccessRule\nmetadata: {name: platform}\nspec:\n  \
                 folders: [clusters, apps]\n  clusterSets: {admin: ['*'], bind: ['*'], join: ['*']}\n  namespaces: ['*']\n  \
                 clusterKinds: [Namespace]\n";
    let repo = fleet(&[("access/rules.yaml", rules)]);
    repo.publish().expect(0);
    repo.write("policy-tests/pci.yaml", PCI);
    repo.commit("a test");
    has(&plan(&repo).expect(1).err, &["write `PolicyTest` objects", "clusterKinds: [PolicyTest"]);
    let repo = fleet(&[("apps/pci.yaml", PCI)]);
    has(
        &run(&["validate", repo.arg()]).expect(1).err,
        &["has an effect only in a file under `policy-tests/`"],
    );
}

#[test]
fn the_tests_of_the_documentation_do_what_it_says() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/policy-tests.md"))
        .expect("a page");
    let blocks: Vec<&str> =
        page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let [pci, regions, shares, examples] = blocks.as_slice() else { panic!("{} blocks", blocks.len()) };
    let named = |name: &str, spec: &str| {
        format!("apiVersion: berth.dev/v1alpha1\nkind: PolicyTest\nmetadata: {{name: {name}}}\n{spec}")
    };
    let repo = fleet(&[
        ("policy-tests/pci-stays.yaml", &format!("{pci}{examples}")),
        ("policy-tests/regions.yaml", &named("regions", regions)),
        ("policy-tests/shares.yaml", &named("shares", shares)),
        ("policy-tests/small-fleet/oslo.yaml", &cluster("oslo", &[])),
    ]);
    let ran = run(&["test", repo.arg()]).expect(0);
    assert_eq!(ran.out, "pci-stays: 2 examples pass\nregions: no examples\nshares: no examples\n");
    run(&["validate", repo.arg()]).expect(0);
}
