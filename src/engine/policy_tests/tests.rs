//! Policy tests, from their documents to their findings.

use std::sync::Arc;

use super::{GivenFleet, Item, PolicyFinding, PolicyTest, check, failing_workloads, read};
use berth_base::diag::{Diagnostics, Severity};
use berth_base::yaml::{self, Limits, Scope};

/// Reads one test from its specification.
fn test(spec: &str) -> Result<Arc<PolicyTest>, Vec<String>> {
    let text =
        format!("apiVersion: berth.dev/v1alpha1\nkind: PolicyTest\nmetadata: {{name: t}}\nspec:\n{spec}");
    let root = yaml::read(text.as_bytes(), &Limits::default()).documents.remove(0).root;
    let scope = Scope::new("policy-tests/t.yaml".into(), Severity::Error);
    let test = read(&scope, &root);
    let faults: Vec<String> = scope.into_diagnostics().iter().map(ToString::to_string).collect();
    test.map(Arc::new).ok_or(faults)
}

/// Returns the specification of a test with one example, which has these sides and expects no failure.
fn with_example(rule: &str, sides: &str) -> String {
    format!("{rule}  examples:\n  - name: one\n{sides}")
}

const NORTH: &str =
    "{name: oslo, labels: {region: north, pci: 'yes'}}, {name: bergen, labels: {region: north}}";
const SOUTH: &str = "{name: turin, labels: {region: south}}";

/// Returns one side of an example: three clusters, and one workload in some of them.
fn side(which: &str, clusters: &str) -> String {
    format!(
        "    {which}:\n      clusters: [{NORTH}, {SOUTH}]\n      workloads:\n      \
         - {{kind: Web, name: web, namespace: shop, labels: {{pci: 'yes'}}, clusters: [{clusters}]}}\n"
    )
}

/// Returns the findings of an example that expects no failure.
fn found(spec: &str) -> Vec<String> {
    let test = test(spec).expect("a sound test");
    let unread = |_: &str| Err(Diagnostics::new());
    let verdicts = check(&test, &unread);
    verdicts.iter().flat_map(|verdict| verdict.mismatches.iter().map(|one| one.message.clone())).collect()
}

const PCI: &str = "  for: workloads\n  match: {labels: {matchLabels: {pci: 'yes'}}}\n  \
                   rule: workload.clusters.all(c, has(c.labels.pci))\n  messageExpression: >-\n    \
                   'it leaves pci clusters: ' + workload.clusters.filter(c, !has(c.labels.pci)).map(c, c.name).join(', ')\n";

#[test]
fn a_rule_is_asked_about_each_workload_that_matches() {
    assert!(found(&with_example(PCI, &side("after", "oslo"))).is_empty());
    let failed = found(&with_example(PCI, &side("after", "oslo, turin, bergen")));
    assert_eq!(failed, ["Web shop/web must pass, but fails: it leaves pci clusters: bergen, turin"]);
    let other = PCI.replace("matchLabels: {pci: 'yes'}", "matchLabels: {pci: 'no'}");
    assert!(found(&with_example(&other, &side("after", "turin"))).is_empty());
}

#[test]
fn every_region_keeps_two_copies() {
    let rule = "  for: workloads\n  match: {names: [web]}\n  rule: |\n    after.clusters.all(c,\n      \
                workload.clusters.filter(d, d.labels.region == c.labels.region).size() >= 1)\n";
    assert!(found(&with_example(rule, &side("after", "oslo, turin"))).is_empty());
    let failed = found(&with_example(rule, &side("after", "oslo")));
    assert_eq!(failed, ["Web shop/web must pass, but fails: its rule does not hold"]);
}

#[test]
fn no_cluster_holds_too_many_of_the_replicas() {
    let rule = "  for: workloads\n  message: too many in one place\n  \
                rule: workload.clusters.all(c, c.replicas * 100 <= workload.replicas * 40)\n";
    let spread = "{name: oslo, replicas: 4}, {name: bergen, replicas: 3}, {name: turin, replicas: 3}";
    assert!(found(&with_example(rule, &side("after", spread))).is_empty());
    let uneven = spread.replace('4', "5");
    let failed = found(&with_example(rule, &side("after", &uneven)));
    assert_eq!(failed, ["Web shop/web must pass, but fails: too many in one place"]);
}

#[test]
fn the_earlier_form_and_removed_workloads_are_seen() {
    let rule = "  for: workloads\n  rule: workload.clusters.size() >= oldWorkload.clusters.size()\n";
    let two = side("before", "oslo, turin");
    assert!(found(&with_example(rule, &format!("{two}{}", side("after", "oslo, bergen")))).is_empty());
    let gone = "    after: {clusters: [{name: oslo}]}\n";
    let failed = found(&with_example(rule, &format!("{two}{gone}")));
    assert_eq!(failed, ["Web shop/web must pass, but fails: its rule does not hold"]);
    let new = format!("    before: {{clusters: [{{name: oslo}}]}}\n{}", side("after", "oslo"));
    assert!(found(&with_example(rule, &new)).is_empty());
}

#[test]
fn clusters_and_the_fleet_are_items_too() {
    let rule = "  for: clusters\n  rule: cluster.workloads.size() == 0\n";
    let failed = found(&with_example(rule, &side("after", "turin")));
    assert_eq!(failed, ["cluster turin must pass, but fails: its rule does not hold"]);
    let rule =
        "  for: fleet\n  rule: after.workloads.all(w, w.replicas > 0) && before.clusters.size() == 3\n";
    let failed = found(&with_example(rule, &side("after", "turin")));
    assert_eq!(failed, ["the fleet must pass, but fails: its rule does not hold"]);
    assert!(found(&with_example(rule, &side("after", "{name: turin, replicas: 1}"))).is_empty());
}

#[test]
fn an_example_says_what_must_fail() {
    let fails = |expected: &str| {
        found(&format!("{}    fails: [{expected}]\n", with_example(PCI, &side("after", "turin"))))
    };
    assert!(fails("{item: shop/web}").is_empty());
    assert!(fails("{item: Web shop/web, message: 'it leaves pci clusters: turin'}").is_empty());
    let other = fails("{item: shop/web, message: other}");
    assert_eq!(other, ["the message is `it leaves pci clusters: turin`, not `other`"]);
    let none = fails("{item: shop/vault}");
    assert_eq!(none[0], "`shop/vault` must fail, but passes");
    assert!(none[1].starts_with("Web shop/web must pass, but fails"), "{none:?}");
}

#[test]
fn faults_of_a_rule_have_their_place() {
    let faults = |spec: &str| test(spec).expect_err("a fault").join("\n");
    let plain = faults("  for: workloads\n  rule: workload.clusters.all(c, c.lables.pci == 'x')\n");
    assert!(plain.starts_with("policy-tests/t.yaml:6:35: error: spec.rule, at character 27:"), "{plain}");
    assert!(plain.contains("has no field `lables`\n  hint: did you mean `labels`?"), "{plain}");
    let block = faults("  for: clusters\n  rule: |\n\n    cluster.workloads.all(w,\n      w.replica > 1)\n");
    assert!(
        block.starts_with("policy-tests/t.yaml:9:8: error: spec.rule, at line 3, character 4:"),
        "{block}"
    );
    for (spec, words) in [
        ("  for: fleet\n  rule: workload.name == 'a'\n", "nothing named `workload`, only `after`, `before`"),
        ("  for: fleet\n  rule: after.clusters.size() == 'a'\n", "`==` is not for (int, string)"),
        ("  for: fleets\n  rule: 'true'\n", "did you mean `fleet`?"),
        ("  for: fleet\n", "spec.rule is required"),
        ("  for: fleet\n  rule: 'true'\n  hold: true\n", "did you mean `holds`?"),
        ("  for: fleet\n  rule: 'true'\n  match: {names: [a]}\n", "nothing to match"),
        (
            "  for: fleet\n  rule: 'true'\n  examples: [{name: a, after: {workloads: [{name: w, clusters: [x]}]}}]\n",
            "no cluster of this fleet is named `x`",
        ),
    ] {
        assert!(faults(spec).contains(words), "{}", faults(spec));
    }
}

#[test]
fn a_rule_that_cannot_be_evaluated_fails_as_an_error() {
    let rule =
        "  for: workloads\n  severity: warning\n  rule: workload.clusters.all(c, c.labels.pci == 'yes')\n";
    let failed = found(&with_example(rule, &side("after", "oslo, turin")));
    assert_eq!(
        failed,
        [
            "Web shop/web must pass, but fails: the rule cannot be evaluated at character 34: there is no key `pci`"
        ]
    );
}

/// Returns a test for the fleet whose rule takes many steps over 100 clusters.
fn endless() -> String {
    let clusters: Vec<String> = (0..100).map(|n| format!("{{name: c{n}}}")).collect();
    let every = "after.clusters.all(";
    let rule = format!("  for: clusters\n  rule: {every}a, {every}b, {every}c, {every}d, true))))\n");
    with_example(&rule, &format!("    after: {{clusters: [{}]}}\n", clusters.join(", ")))
}

#[test]
fn work_is_bounded_for_all_items_together() {
    let failed = found(&endless());
    assert_eq!(failed.len(), 1, "the test ends with the first item");
    assert!(
        failed[0].starts_with("the fleet must pass, but fails: the rule cannot be evaluated"),
        "{failed:?}"
    );
    assert!(failed[0].ends_with("this takes more than 10000000 steps"), "{failed:?}");
}

fn finding(item: Item) -> PolicyFinding {
    let test = test("  for: fleet\n  rule: 'true'\n").expect("sound");
    PolicyFinding {
        test: "t".to_owned(),
        severity: Severity::Error,
        item,
        message: "no".to_owned(),
        at: test.at.clone(),
        holds: true,
    }
}

/// Returns decisions of two workloads: `web` in these clusters, and `vault` always in turin.
fn decided(clusters: &str) -> GivenFleet {
    let test = test(&with_example(PCI, &side("after", clusters))).expect("sound");
    let super::Given::Fleet(given) = &test.examples[0].after else { panic!("a fleet") };
    let mut given = (**given).clone();
    for decision in given.decisions.values_mut() {
        decision.objects = vec![berth_base::model::ObjectId::new("", "ConfigMap", "shop", "web")];
    }
    given
}

#[test]
fn what_changes_its_place_is_held_and_nothing_else() {
    let [one, same, other] = ["oslo", "oslo", "oslo, turin"].map(decided);
    let key = one.decisions.keys().next().expect("one").clone();
    let held = |item: Item, after: &GivenFleet| {
        failing_workloads(&[finding(item)], &one.decisions, &after.decisions).contains_key(&key)
    };
    assert!(held(Item::Workload(key.clone()), &other), "its clusters differ");
    assert!(!held(Item::Workload(key.clone()), &same), "it is placed as before");
    assert!(held(Item::Cluster("turin".to_owned()), &other), "the cluster gets it");
    assert!(!held(Item::Cluster("oslo".to_owned()), &other), "the cluster keeps it");
    assert!(held(Item::Fleet, &other) && !held(Item::Fleet, &same));
}
