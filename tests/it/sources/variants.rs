//! Variants: some clusters get a source with other values, or from another folder.

use super::{CONFIG, SourceFleet, helm_source};
use crate::daemon::Daemon;
use crate::support::Ran;

const BLUE_IN_B: &str = "  - {name: blue, clusters: [b], values: {colour: blue}}\n";
const GREEN_IN_PROD: &str =
    "  - {name: green, labelSelector: {matchLabels: {env: prod}}, values: {colour: green}}\n";

/// Writes the source with these variants; without them, it is red.
fn write(fleet: &SourceFleet, variants: &str) {
    let more = format!("  values: {{colour: red}}\n  variants:\n{variants}");
    fleet.repo.write("apps/web.yaml", helm_source("web", "charts/web", &more));
}

/// The colours in the clusters a, b and c; empty where the object is not.
fn colours(fleet: &SourceFleet) -> [String; 3] {
    let files = fleet.repo.files("berth/rendered");
    ["a", "b", "c"].map(|cluster| {
        let text = files.get(&format!("clusters/{cluster}/shop/ConfigMap_web.yaml"));
        let line =
            text.into_iter().flat_map(|text| text.lines()).find_map(|line| line.strip_prefix("  colour: "));
        line.unwrap_or_default().to_owned()
    })
}

fn has(fleet: &SourceFleet, cluster: &str, name: &str) -> bool {
    let path = format!("clusters/{cluster}/shop/ConfigMap_{name}.yaml");
    fleet.repo.files("berth/rendered").contains_key(&path)
}

#[track_caller]
fn publish(fleet: &SourceFleet, code: i32) -> Ran {
    let ran = fleet.commit_and_publish("an edit").expect(code);
    fleet.run(&["verify"]).expect(0);
    ran
}

#[test]
#[ignore = "needs Python"]
fn a_cluster_gets_the_first_variant_that_includes_it() {
    let fleet = SourceFleet::fake();
    write(&fleet, &format!("{BLUE_IN_B}{GREEN_IN_PROD}"));
    publish(&fleet, 0);
    assert_eq!(colours(&fleet), ["green", "blue", "red"]);
    assert!(fleet.publish().expect(0).out.contains("nothing to publish"));
    let why = fleet.run(&["why", "ConfigMap/shop/web", "--cluster", "b"]).expect(0);
    assert!(why.out.contains("HelmSource web"), "{}", why.out);
    // A cluster that gets a label gets its variant.
    fleet.repo.write("clusters/c.yaml", crate::support::fleet_member("c", "prod"));
    publish(&fleet, 0);
    assert_eq!(colours(&fleet), ["green", "blue", "green"]);
    write(&fleet, GREEN_IN_PROD);
    publish(&fleet, 0);
    assert_eq!(colours(&fleet), ["green", "green", "green"]);
}

#[test]
#[ignore = "needs Python"]
fn a_variant_for_no_cluster_is_named() {
    let fleet = SourceFleet::fake();
    let nowhere = "  - {name: green, labelSelector: {matchLabels: {env: porto}}}\n";
    write(&fleet, &format!("  - {{name: blue, clusters: [bb]}}\n{nowhere}"));
    let ran = publish(&fleet, 0);
    for expected in [
        "apps/web.yaml:10:5: warning: the variant `blue` of HelmSource `web` names `bb`, which is no cluster of the fleet",
        "apps/web.yaml:11:5: warning: the variant `green` of HelmSource `web` includes no cluster of the fleet",
    ] {
        assert!(ran.err.contains(expected), "{}", ran.err);
    }
}

#[test]
#[ignore = "needs Python"]
fn a_plan_names_the_values_of_the_variant() {
    let fleet = SourceFleet::fake();
    fleet.repo.write("values/blue.yaml", "colour: blue\n");
    write(&fleet, "  - {name: blue, clusters: [b], valuesFiles: [values/blue.yaml]}\n");
    publish(&fleet, 0);
    fleet.repo.write("values/blue.yaml", "# why\ncolour: black\n");
    fleet.repo.commit("darker");
    let plan = fleet.run(&["plan", "-o", "json"]).expect(0);
    let causes = plan.json()["causes"].to_string();
    assert!(causes.contains("(by values/blue.yaml:2:1 colour)"), "{causes}");
    let plan = fleet.run(&["plan"]).expect(0).out;
    assert!(plan.contains("data.colour: blue → black") && !plan.contains("red"), "{plan}");
    publish(&fleet, 0);
    assert_eq!(colours(&fleet), ["red", "black", "red"]);
}

#[test]
#[ignore = "needs Python"]
fn an_object_of_one_variant_is_only_where_that_is() {
    let fleet = SourceFleet::fake();
    fleet.repo.write("charts/web/templates/more.yaml", "{{ .Values.more }}\n");
    let object = "{apiVersion: v1, kind: ConfigMap, metadata: {name: more}}";
    write(&fleet, &format!("  - {{name: blue, clusters: [b], values: {{more: '{object}'}}}}\n"));
    publish(&fleet, 0);
    assert_eq!(["a", "b", "c"].map(|cluster| has(&fleet, cluster, "more")), [false, true, false]);
    assert_eq!(colours(&fleet), ["red", "red", "red"]);
    // And one that only a variant has not.
    let more = format!(
        "  values: {{colour: red, more: '{object}'}}\n  variants:\n  - {{name: blue, clusters: [b], values: {{more: ''}}}}\n"
    );
    fleet.repo.write("apps/web.yaml", helm_source("web", "charts/web", &more));
    publish(&fleet, 0);
    assert_eq!(["a", "b", "c"].map(|cluster| has(&fleet, cluster, "more")), [true, false, true]);
}

#[test]
#[ignore = "needs Python"]
fn a_variant_that_renders_nothing_has_nothing() {
    let fleet = SourceFleet::fake();
    fleet.repo.write("charts/more/Chart.yaml", "apiVersion: v2\nname: more\nversion: 1.0.0\n");
    fleet.repo.write("charts/more/templates/more.yaml", "{{ .Values.more }}\n");
    let object = "{apiVersion: v1, kind: ConfigMap, metadata: {name: more}}";
    let more = format!(
        "  values: {{more: '{object}'}}\n  variants:\n  - {{name: without, clusters: [b], values: {{more: ''}}}}\n"
    );
    fleet.repo.write("apps/more.yaml", helm_source("more", "charts/more", &more));
    publish(&fleet, 0);
    assert_eq!(["a", "b", "c"].map(|cluster| has(&fleet, cluster, "more")), [true, false, true]);
}

#[test]
#[ignore = "needs Python"]
fn what_a_variant_renders_and_nobody_can_read_is_no_removal() {
    let fleet = SourceFleet::fake();
    let template = CONFIG.replace("name: web", "name: {{ .Values.name }}");
    fleet.repo.write("charts/web/templates/config.yaml", template);
    let write = |values: &str, blue: &str| {
        let more = format!(
            "  values: {{colour: red, {values}}}\n  variants:\n  - {{name: blue, clusters: [b], values: {{colour: blue, {blue}}}}}\n"
        );
        fleet.repo.write("apps/web.yaml", helm_source("web", "charts/web", &more));
    };
    write("name: web", "name: web");
    publish(&fleet, 0);
    for (values, blue) in [("name: web", "name: ''"), ("name: ''", "name: web"), ("name: ''", "name: ''")] {
        write(values, blue);
        let ran = publish(&fleet, 1);
        assert!(ran.err.contains("metadata.name"), "{}", ran.err);
        assert_eq!(colours(&fleet), ["red", "blue", "red"]);
    }
    write("name: web", "name: web");
    publish(&fleet, 0);
    // A second description of the object, or of the source, changes nothing either.
    let rival = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: shop}\n";
    fleet.repo.write("apps/zz.yaml", rival);
    publish(&fleet, 1);
    assert_eq!(colours(&fleet), ["red", "blue", "red"]);
    fleet.repo.write("apps/zz.yaml", helm_source("web", "charts/web", ""));
    let more = "  values: {colour: red, name: web}\n  variants:\n  - {name: blue, clusters: [c], values: {colour: blue}}\n";
    fleet.repo.write("apps/web.yaml", helm_source("web", "charts/web", more));
    publish(&fleet, 1);
    assert_eq!(colours(&fleet), ["red", "blue", "red"]);
}

#[test]
#[ignore = "needs Python"]
fn only_plain_objects_may_differ() {
    let fleet = SourceFleet::fake();
    let federated = "apiVersion: types.kubefed.io/v1beta1\nkind: FederatedConfigMap\nmetadata: {name: fed}\nspec:\n  \
                     template: {data: {colour: \"{{ .Values.colour }}\"}}\n  placement: {clusters: [{name: a}]}\n";
    fleet.repo.write("charts/web/templates/fed.yaml", federated);
    write(&fleet, BLUE_IN_B);
    let ran = publish(&fleet, 1);
    let expected = "FederatedConfigMap shop/fed differs between the variants of HelmSource web";
    assert!(ran.err.contains(expected), "{}", ran.err);
}

#[test]
#[ignore = "needs Python"]
fn a_variant_that_fails_keeps_its_objects_and_the_others_go_on() {
    let fleet = SourceFleet::fake();
    write(&fleet, BLUE_IN_B);
    publish(&fleet, 0);
    write(&fleet, "  - {name: blue, clusters: [b], valuesFiles: [values/no.yaml]}\n");
    fleet.repo.write(
        "charts/web/templates/config.yaml",
        CONFIG.replace("name: web", "name: web\n  labels: {a: b}"),
    );
    let ran = publish(&fleet, 1);
    let expected = "apps/web.yaml:10:47: error: there is no file `values/no.yaml` in the repository; its last published \
                    objects stay";
    assert!(ran.err.contains(expected), "{}", ran.err);
    assert_eq!(colours(&fleet), ["red", "blue", "red"]);
    assert!(fleet.copy("shop/ConfigMap_web.yaml").expect("a copy").contains("a: b"));
}

#[test]
#[ignore = "needs Python"]
fn a_variant_that_never_worked_changes_nothing() {
    let fleet = SourceFleet::fake();
    let missing = "  - {name: blue, clusters: [b], valuesFiles: [values/no.yaml]}\n";
    // Nobody knows what b should get, and so the whole workload waits.
    write(&fleet, missing);
    fleet.repo.write("charts/web/templates/config.yaml", CONFIG.replace("colour:", "color:"));
    publish(&fleet, 1);
    assert_eq!(colours(&fleet), ["red", "red", "red"]);
    fleet.repo.write("charts/web/templates/config.yaml", CONFIG);
    write(&fleet, &format!("{missing}{GREEN_IN_PROD}"));
    publish(&fleet, 1);
    assert_eq!(colours(&fleet), ["red", "red", "red"]);
    fleet.repo.write("values/no.yaml", "colour: blue\n");
    publish(&fleet, 0);
    assert_eq!(colours(&fleet), ["green", "blue", "red"]);
    // A faulty document keeps what its variants made.
    write(&fleet, &format!("{missing}  - {{name: green, values: {{colour: white}}}}\n"));
    let ran = publish(&fleet, 1);
    assert!(ran.err.contains("spec.variants[1] needs clusters or a labelSelector"), "{}", ran.err);
    assert_eq!(colours(&fleet), ["green", "blue", "red"]);
}

#[test]
#[ignore = "needs Python"]
fn overrides_of_people_come_after_variants() {
    let fleet = SourceFleet::fake();
    write(&fleet, &format!("{BLUE_IN_B}{GREEN_IN_PROD}"));
    fleet.repo.write(
        "apps/override.yaml",
        "apiVersion: placement.kubernetes-fleet.io/v1\nkind: ResourceOverride\nmetadata: {name: web, namespace: shop}\nspec:\n  \
         placement: {name: shop, scope: Cluster}\n  resourceSelectors: [{group: \"\", version: v1, kind: ConfigMap, name: web}]\n  \
         policy:\n    overrideRules:\n    - clusterSelector: {clusterSelectorTerms: [{labelSelector: {matchLabels: {env: prod}}}]}\n      \
         jsonPatchOverrides: [{op: replace, path: /data/colour, value: pink}]\n",
    );
    publish(&fleet, 0);
    assert_eq!(colours(&fleet), ["pink", "pink", "red"]);
}

#[test]
#[ignore = "needs Python"]
fn a_daemon_publishes_what_a_new_process_proves_with_variants() {
    let fleet = SourceFleet::fake();
    let renderer = fleet.renderer.to_str().expect("a text path").to_owned();
    let daemon = Daemon::start_with_env(&["--repo", fleet.repo.arg()], &[("BERTH_RENDERER", &renderer)]);
    for (variants, expected) in [
        (BLUE_IN_B, ["red", "blue", "red"]),
        (GREEN_IN_PROD, ["green", "green", "red"]),
        ("    []\n", ["red", "red", "red"]),
        (BLUE_IN_B, ["red", "blue", "red"]),
    ] {
        write(&fleet, variants);
        let commit = fleet.repo.commit("an edit");
        daemon.wait_for(&["\"pass done\"", &commit]);
        assert_eq!(colours(&fleet), expected);
    }
    assert_eq!(daemon.stop_with_log().0, 0);
    fleet.run(&["verify"]).expect(0);
}

#[test]
#[ignore = "needs the renderer"]
fn the_merged_values_of_a_cluster_have_the_lines_that_set_them() {
    let Some(fleet) = SourceFleet::real() else { return };
    fleet.repo.write(
        "charts/web/values.yaml",
        "colour: white\nimage:\n  name: web\n  tag: 1.0.0\nrootPassword: s3cret\n",
    );
    fleet.repo.write("charts/web/charts/cache/Chart.yaml", "apiVersion: v2\nname: cache\nversion: 1.0.0\n");
    fleet.repo.write("charts/web/charts/cache/values.yaml", "size: 3\n");
    fleet.repo.write("values/blue.yaml", "# b alone\nimage:\n  tag: 2.0.0\n");
    write(
        &fleet,
        "  - {name: blue, clusters: [b], valuesFiles: [values/blue.yaml], values: {colour: blue}}\n",
    );
    fleet.repo.commit("values");
    let explained = fleet.run(&["explain", "web", "--render", "--cluster", "b"]).expect(0).out;
    for line in [
        "HelmSource web (apps/web.yaml:10:5): b gets the variant blue",
        "charts/web/charts/cache/values.yaml:1\n",
        "\"blue\"      apps/web.yaml:10\n",
        "\"web\" ",
        "\"2.0.0\" ",
        "values/blue.yaml:3\n",
        "\"(hidden)\"  charts/web/values.yaml:5\n",
    ] {
        assert!(explained.contains(line), "{explained}");
    }
    let of_others = fleet.run(&["explain", "web", "--render", "-o", "json"]).expect(0).json();
    let colour =
        of_others["values"].as_array().expect("a list").iter().find(|value| value["path"] == "colour");
    assert_eq!(colour.expect("a colour")["value"], "red", "{of_others}");
    let unknown = fleet.run(&["explain", "wen", "--render"]).expect(2);
    assert!(unknown.err.contains("did you mean `web`?"), "{}", unknown.err);
    fleet.repo.write("charts/web/templates/config.yaml", "{{ fail \"no\" }}\n");
    let faulty = fleet.run(&["explain", "web", "--render", "--cluster", "b"]).expect(1);
    assert!(faulty.err.contains("charts/web/templates/config.yaml:1"), "{}", faulty.err);
}

#[test]
#[ignore = "needs the renderer"]
fn an_overlay_for_each_region_is_a_variant_of_a_base() {
    let Some(fleet) = SourceFleet::real() else { return };
    let base =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: site, namespace: shop}\ndata: {where: anywhere}\n";
    fleet.repo.write("site/base/site.yaml", base);
    fleet.repo.write("site/base/kustomization.yaml", "resources: [site.yaml]\n");
    fleet.repo.write(
        "site/prod/kustomization.yaml",
        "resources: [../base]\npatches:\n- patch: |\n    - {op: replace, path: /data/where, value: prod}\n  target: {kind: ConfigMap}\n",
    );
    fleet.repo.write(
        "apps/site.yaml",
        "apiVersion: berth.dev/v1alpha1\nkind: KustomizeSource\nmetadata: {name: site}\nspec:\n  path: site/base\n  variants:\n  \
         - {name: prod, path: site/prod, labelSelector: {matchLabels: {env: prod}}}\n",
    );
    publish(&fleet, 0);
    let files = fleet.repo.files("berth/rendered");
    let places = ["a", "c"]
        .map(|cluster| files[&format!("clusters/{cluster}/shop/ConfigMap_site.yaml")].contains("prod"));
    assert_eq!(places, [true, false]);
}
