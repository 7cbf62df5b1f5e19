//! What a source may never do: remove objects because it fails, publish the data of Secrets, or escape a proof.

use std::path::Path;

use super::{CONFIG, SourceFleet, helm_source};
use crate::daemon::Daemon;
use crate::support::{RENDERED, Ran};

const WEB: &str = "shop/ConfigMap_web.yaml";

#[test]
#[ignore = "needs Python"]
fn a_source_is_placed_like_plain_objects() {
    let fleet = SourceFleet::fake();
    let copy = fleet.copy(WEB).expect("a copy");
    assert!(copy.contains("colour: red") && copy.contains("namespace: shop"), "{copy}");
    fleet.run(&["validate", "--strict"]).expect(0);
    let explained = fleet.run(&["explain", "shop"]).expect(0);
    assert!(explained.out.contains('a') && explained.out.contains('b'), "{}", explained.out);
    fleet.run(&["verify"]).expect(0);
    assert!(fleet.publish().expect(0).out.contains("nothing to publish"));
}

#[test]
#[ignore = "needs Python"]
fn an_edit_of_values_is_a_plan_with_its_place() {
    let fleet = SourceFleet::fake();
    fleet.repo.write("apps/web.yaml", helm_source("web", "charts/web", "  values: {colour: blue}\n"));
    fleet.repo.commit("blue");
    let plan = fleet.run(&["plan"]).expect(0);
    assert!(plan.out.contains("apps/web.yaml/.helm/web/templates/config.yaml:"), "{}", plan.out);
    assert!(plan.out.contains("data.colour: red → blue"), "{}", plan.out);
    assert!(!plan.out.contains("change no cluster"), "{}", plan.out);
    fleet.publish().expect(0);
    assert!(fleet.copy(WEB).expect("a copy").contains("colour: blue"));
    fleet.run(&["verify"]).expect(0);
}

#[test]
#[ignore = "needs Python"]
fn a_plan_names_the_edit_of_values_behind_a_rendered_line() {
    let fleet = SourceFleet::fake();
    fleet.repo.write("values/prod.yaml", "colour: blue\n");
    fleet
        .repo
        .write("apps/web.yaml", helm_source("web", "charts/web", "  valuesFiles: [values/prod.yaml]\n"));
    fleet.commit_and_publish("a file of values").expect(0);
    fleet.repo.write("values/prod.yaml", "# why\ncolour: green\n");
    fleet.repo.commit("an edit");
    let causes = |plan: &Ran| plan.json()["causes"].to_string();
    let plan = fleet.run(&["plan", "-o", "json"]).expect(0);
    assert!(
        causes(&plan).contains("data.colour: blue → green (by values/prod.yaml:2:1 colour)"),
        "{}",
        plan.out
    );
    fleet.publish().expect(0);
    fleet.repo.write(
        "charts/web/templates/config.yaml",
        CONFIG.replace("name: web", "name: web\n  labels: {a: b}"),
    );
    fleet.repo.commit("a template");
    let plan = fleet.run(&["plan", "-o", "json"]).expect(0);
    assert!(causes(&plan).contains("(by charts/web/templates/config.yaml:"), "{}", plan.out);
}

#[test]
#[ignore = "needs Python"]
fn values_come_from_files_and_inline_values_win() {
    let fleet = SourceFleet::fake();
    fleet.repo.write("values/shop.yaml", "colour: green\n");
    fleet
        .repo
        .write("apps/web.yaml", helm_source("web", "charts/web", "  valuesFiles: [values/shop.yaml]\n"));
    let ran = fleet.commit_and_publish("files").expect(0);
    assert!(!ran.err.contains("not a Kubernetes object"), "{}", ran.err);
    assert!(fleet.copy(WEB).expect("a copy").contains("colour: green"));
    let both = "  valuesFiles: [values/shop.yaml]\n  values: {colour: black}\n";
    fleet.repo.write("apps/web.yaml", helm_source("web", "charts/web", both));
    fleet.commit_and_publish("both").expect(0);
    assert!(fleet.copy(WEB).expect("a copy").contains("colour: black"));
    fleet.repo.write("apps/web.yaml", helm_source("web", "charts/web", "  valuesFiles: [values/no.yaml]\n"));
    let ran = fleet.commit_and_publish("missing").expect(1);
    assert!(ran.err.contains("apps/web.yaml:8:17: error: there is no file `values/no.yaml`"), "{}", ran.err);
    assert!(fleet.copy(WEB).expect("a copy").contains("colour: black"));
}

/// Breaks a fleet, and insists that nothing is removed, now or later, and that the proof holds.
#[track_caller]
fn assert_nothing_goes(fleet: &SourceFleet, expected: &str) {
    let before = fleet.copy(WEB).expect("a copy");
    fleet.repo.commit("break");
    let plan = fleet.run(&["plan"]).expect(1);
    assert!(!plan.out.contains("removed in") || plan.out.contains("0 removed"), "{}", plan.out);
    let ran = fleet.publish().expect(1);
    assert!(ran.err.contains(expected), "{}", ran.err);
    assert_eq!(fleet.copy(WEB).as_deref(), Some(&*before));
    // Another change is published all the same.
    let more = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more, namespace: shop}\n";
    fleet.repo.write("apps/more.yaml", more);
    fleet.commit_and_publish("more").expect(1);
    assert!(fleet.copy("shop/ConfigMap_more.yaml").is_some());
    assert_eq!(fleet.copy(WEB).as_deref(), Some(&*before));
    fleet.run(&["verify"]).expect(0);
}

#[test]
#[ignore = "needs Python"]
fn a_failing_template_removes_nothing() {
    let fleet = SourceFleet::fake();
    fleet.repo.write("charts/web/templates/config.yaml", "kind: x\n{{ fail }}\n");
    assert_nothing_goes(
        &fleet,
        "charts/web/templates/config.yaml:2:3: error: HelmSource `web` cannot be rendered: it fails; its last published \
         objects stay",
    );
    fleet.repo.write("charts/web/templates/config.yaml", CONFIG.replace("colour:", "color:"));
    fleet.commit_and_publish("mended").expect(0);
    assert!(fleet.copy(WEB).expect("a copy").contains("color: red"));
    fleet.run(&["verify"]).expect(0);
}

#[test]
#[ignore = "needs Python"]
fn a_missing_chart_removes_nothing() {
    let fleet = SourceFleet::fake();
    std::fs::remove_dir_all(fleet.repo.path().join("charts/web")).expect("a folder");
    assert_nothing_goes(&fleet, "apps/web.yaml:5:9: error: there is no folder `charts/web`");
}

#[test]
#[ignore = "needs Python"]
fn a_crashing_renderer_removes_nothing_and_is_proven() {
    let fleet = SourceFleet::fake();
    fleet.repo.write("charts/web/templates/config.yaml", "{{ crash }}\n");
    assert_nothing_goes(&fleet, "HelmSource `web` is not rendered, for a fault of the renderer");
    let message = fleet.repo.git(&["log", "-1", "--format=%B", RENDERED]);
    assert!(message.contains("Berth-Unrendered: apps/web.yaml/.helm/web"), "{message}");
    // The renderer that works again renders it.
    fleet.repo.write("charts/web/templates/config.yaml", CONFIG);
    fleet.repo.write("apps/web.yaml", helm_source("web", "charts/web", "  values: {colour: blue}\n"));
    fleet.commit_and_publish("mended").expect(0);
    let message = fleet.repo.git(&["log", "-1", "--format=%B", RENDERED]);
    assert!(!message.contains("Berth-Unrendered"), "{message}");
    fleet.run(&["verify"]).expect(0);
}

#[test]
#[ignore = "needs Python"]
fn a_missing_renderer_removes_nothing_and_says_what_to_install() {
    let fleet = SourceFleet::fake();
    let none = Path::new("");
    let ran = fleet.run_with(none, &["validate"]).expect(1);
    let expected = "apps/web.yaml:1:1: error: HelmSource `web` is not rendered, for a fault of the renderer; its last \
                    published objects stay";
    assert!(ran.err.contains(expected), "{}", ran.err);
    assert!(ran.err.contains("install `berth-renderer` beside berth or on the PATH"), "{}", ran.err);
    let before = fleet.copy(WEB);
    fleet.repo.write("charts/web/values.yaml", "other: value\n");
    fleet.repo.write(
        "apps/more.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more, namespace: shop}\n",
    );
    fleet.repo.commit("more");
    fleet.run_with(none, &["run", "--once"]).expect(1);
    assert!(fleet.copy("shop/ConfigMap_more.yaml").is_some());
    assert_eq!(fleet.copy(WEB), before);
    // A machine with the renderer proves it; one without cannot.
    fleet.run(&["verify"]).expect(0);
    let ran = fleet.run_with(none, &["verify"]).expect(6);
    assert!(ran.out.contains("charts and bases need the program `berth-renderer`"), "{}", ran.out);
    let wrong = fleet.run_with(Path::new("/nowhere/renderer"), &["validate"]).expect(1);
    assert!(wrong.err.contains("BERTH_RENDERER names `/nowhere/renderer`"), "{}", wrong.err);
}

#[test]
fn a_fleet_without_sources_needs_no_renderer() {
    let repo = crate::support::small_fleet();
    repo.publish().expect(0);
    let message = repo.git(&["log", "-1", "--format=%B", RENDERED]);
    assert!(!message.contains("Berth-Renderer"), "{message}");
}

#[test]
#[ignore = "needs Python"]
fn an_unreadable_or_faulty_document_removes_nothing() {
    for (text, expected) in [
        ("kind: [HelmSource\n", "apps/web.yaml:"),
        ("no: [source\n---\n", "apps/web.yaml:"),
        (&helm_source("web", "charts/web", "  valuez: {}\n"), "unknown field `spec.valuez`"),
        (&helm_source("web", "../charts", ""), "spec.path must be a folder from the root"),
    ] {
        let fleet = SourceFleet::fake();
        fleet.repo.write("apps/web.yaml", text);
        assert_nothing_goes(&fleet, expected);
    }
}

#[test]
#[ignore = "needs Python"]
fn of_a_file_with_an_unreadable_part_the_other_sources_count() {
    let fleet = SourceFleet::fake();
    let other = helm_source("other", "charts/other", "  values: {colour: red}\n");
    fleet.repo.write("charts/other/Chart.yaml", "apiVersion: v2\nname: other\nversion: 1.0.0\n");
    fleet.repo.write("charts/other/templates/config.yaml", CONFIG.replace("name: web", "name: other"));
    let web = helm_source("web", "charts/web", "  values: {colour: red}\n");
    fleet.repo.write("apps/web.yaml", format!("{web}---\n{other}"));
    fleet.commit_and_publish("two").expect(0);
    let edited = web.replace("red", "blue");
    fleet.repo.write("apps/web.yaml", format!("{edited}---\nkind: [HelmSource\n"));
    fleet.commit_and_publish("half").expect(1);
    assert!(fleet.copy(WEB).expect("a copy").contains("colour: blue"));
    assert!(fleet.copy("shop/ConfigMap_other.yaml").expect("a copy").contains("colour: red"));
    fleet.run(&["verify"]).expect(0);
}

#[test]
#[ignore = "needs Python"]
fn a_second_source_of_the_same_name_changes_nothing() {
    let fleet = SourceFleet::fake();
    fleet.repo.write("apps/a.yaml", helm_source("web", "charts/web", "  values: {colour: blue}\n"));
    assert_nothing_goes(&fleet, "described twice");
}

#[test]
#[ignore = "needs Python"]
fn an_object_that_moves_into_a_chart_that_fails_stays() {
    let fleet = SourceFleet::fake();
    let moved = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: moved, namespace: shop}\n";
    fleet.repo.write("apps/moved.yaml", moved);
    fleet.commit_and_publish("plain").expect(0);
    assert!(fleet.copy("shop/ConfigMap_moved.yaml").is_some());
    std::fs::remove_file(fleet.repo.path().join("apps/moved.yaml")).expect("a file");
    fleet.repo.write("charts/web/templates/moved.yaml", moved);
    fleet.repo.write("charts/web/templates/config.yaml", "{{ fail }}\n");
    for _ in 0..2 {
        fleet.commit_and_publish("moved").expect(1);
        assert!(fleet.copy("shop/ConfigMap_moved.yaml").is_some());
        assert!(fleet.copy(WEB).is_some());
        fleet.repo.write("apps/note.txt", "another commit");
    }
    fleet.repo.write("charts/web/templates/config.yaml", CONFIG);
    fleet.commit_and_publish("mended").expect(0);
    assert!(fleet.copy("shop/ConfigMap_moved.yaml").is_some());
    fleet.run(&["verify"]).expect(0);
}

#[test]
#[ignore = "needs Python"]
fn a_removed_source_is_a_removal_like_any_other() {
    let fleet = SourceFleet::fake();
    std::fs::remove_file(fleet.repo.path().join("apps/web.yaml")).expect("a file");
    fleet.repo.commit("remove");
    let plan = fleet.run(&["plan"]);
    assert!(plan.out.starts_with("3 objects removed"), "{}", plan.out);
    // The placement stays where it is, with its namespace.
    assert!(!plan.out.contains("leaves"), "{}", plan.out);
    fleet
        .run(&["run", "--once", "--max-removed-objects", "100%", "--max-removed-clusters", "100%"])
        .expect(0);
    assert!(fleet.copy(WEB).is_none());
    let kept: Vec<String> = fleet.repo.files("berth/rendered").into_keys().collect();
    assert!(!kept.iter().any(|path| path.starts_with("kept/")), "{kept:?}");
    fleet.run(&["verify"]).expect(0);
}

#[test]
#[ignore = "needs Python"]
fn data_of_secrets_is_refused_and_the_usual_value_is_named() {
    let fleet = SourceFleet::fake();
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {password: hunter2}\n";
    fleet.repo.write("charts/web/templates/secret.yaml", secret);
    let ran = fleet.commit_and_publish("secret").expect(1);
    assert!(
        ran.err.contains(
            "charts/web/templates/secret.yaml: error: HelmSource `web`: the template renders the Secret `db`"
        ),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("name a Secret of the cluster in `auth.existingSecret`"), "{}", ran.err);
    assert!(!fleet.repo.files("berth/rendered").values().any(|text| text.contains("hunter2")));
    assert!(fleet.copy(WEB).is_some());
    fleet.repo.write("apps/web.yaml", helm_source("web", "charts/web", "  secrets: allow\n"));
    fleet.commit_and_publish("allowed").expect(0);
    assert!(fleet.copy("shop/Secret_db.yaml").is_some());
    fleet.run(&["verify"]).expect(0);
}

#[test]
#[ignore = "needs Python"]
fn hooks_are_refused_by_name_or_left_out() {
    let fleet = SourceFleet::fake();
    fleet.repo.write("charts/web/hooks/migrate.yaml", "x: 1\n");
    let ran = fleet.commit_and_publish("hook").expect(1);
    assert!(
        ran.err.contains("the Job `migrate` is a hook (pre-install), which berth does not run"),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains("write `hooks: waves` into apps/web.yaml:1:1 to make an object of it"),
        "{}",
        ran.err
    );
    assert!(fleet.copy(WEB).is_some());
    fleet.repo.write("apps/web.yaml", helm_source("web", "charts/web", "  hooks: skip\n"));
    fleet.commit_and_publish("skipped").expect(0);
    assert!(fleet.copy(WEB).expect("a copy").contains("colour: white"));
}

#[test]
#[ignore = "needs Python"]
fn a_chart_writes_no_kind_of_berth() {
    let fleet = SourceFleet::fake();
    let approval = "apiVersion: berth.dev/v1alpha1\nkind: Approval\nmetadata: {name: x}\nspec: {}\n";
    fleet.repo.write("charts/web/templates/approval.yaml", approval);
    let ran = fleet.commit_and_publish("approval").expect(1);
    assert!(
        ran.err.contains("renders berth's own kind `Approval`, which only people may write"),
        "{}",
        ran.err
    );
}

#[test]
#[ignore = "needs Python"]
fn custom_objects_are_in_the_namespace_unless_a_definition_says_otherwise() {
    let fleet = SourceFleet::fake();
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: gadgets.example.com}\n\
        spec: {group: example.com, scope: Cluster, names: {kind: Gadget, plural: gadgets}}\n";
    let object = |kind: &str| format!("apiVersion: example.com/v1\nkind: {kind}\nmetadata:\n  name: one\n");
    fleet.repo.write("charts/web/crds/gadgets.yaml", definition);
    for kind in ["Gadget", "Widget"] {
        fleet.repo.write(&format!("charts/web/templates/{kind}.yaml"), object(kind));
    }
    let source = |more: &str| fleet.repo.write("apps/web.yaml", helm_source("web", "charts/web", more));
    // The rendered objects: the one in a namespace is placed, the other is as it was rendered.
    let assert_scopes = |title: &str| {
        fleet.commit_and_publish(title).expect(0);
        let files = fleet.repo.files("berth/rendered");
        let kept = |kind: &str| {
            let end = format!("/templates/{kind}.yaml");
            files
                .iter()
                .find(|(path, _)| path.ends_with(&end))
                .map(|(_, text)| text.clone())
                .unwrap_or_default()
        };
        assert_eq!(kept("Gadget"), object("Gadget").trim_end(), "{title}");
        assert!(kept("Widget").contains("namespace: shop"), "{title}: {}", kept("Widget"));
        assert!(fleet.copy("shop/Widget.example.com_one.yaml").is_some(), "{title}: {:?}", files.keys());
    };
    assert_scopes("the definition comes with the chart");
    source("  crds: skip\n");
    assert_scopes("the definition is left out");
    fleet.repo.write("apps/definitions.yaml", definition);
    std::fs::remove_file(fleet.repo.path().join("charts/web/crds/gadgets.yaml")).expect("a file");
    assert_scopes("the definition is a file of the fleet");
    std::fs::remove_file(fleet.repo.path().join("apps/definitions.yaml")).expect("a file");
    source("  clusterScoped: [Gadget.example.com]\n");
    assert_scopes("the source names the kind");
    fleet.run(&["verify"]).expect(0);
}

#[test]
#[ignore = "needs Python"]
fn metadata_that_is_no_mapping_is_a_fault_and_no_crash() {
    let fleet = SourceFleet::fake();
    fleet.repo.write("charts/web/templates/odd.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: odd\n");
    let ran = fleet.commit_and_publish("odd").expect(1);
    assert!(ran.err.contains("metadata") && !ran.err.contains("panicked"), "{}", ran.err);
    assert!(fleet.copy(WEB).is_some());
}

#[test]
#[ignore = "needs Python"]
fn excludes_for_charts_do_not_hide_what_they_render() {
    let fleet = SourceFleet::fake();
    fleet.repo.write(
        "berth.yaml",
        "apiVersion: berth.dev/v1alpha1\nkind: FleetConfig\nspec: {exclude: ['**/templates/**', 'charts/']}\n",
    );
    assert!(fleet.commit_and_publish("excludes").expect(0).out.contains("nothing to publish"));
    assert!(fleet.copy(WEB).is_some());
}

#[test]
#[ignore = "needs Python"]
fn a_base_is_rendered_with_the_folders_that_it_names() {
    let fleet = SourceFleet::fake();
    let source = "apiVersion: berth.dev/v1alpha1\nkind: KustomizeSource\nmetadata: {name: site}\nspec: {path: site/prod}\n";
    fleet.repo.write("apps/site.yaml", source);
    fleet.repo.write("site/prod/kustomization.yaml", "resources: [../base]\n");
    fleet.repo.write("site/base/kustomization.yaml", "resources: [map.yaml]\n");
    fleet.repo.write(
        "site/base/map.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: site, namespace: shop}\n",
    );
    let ran = fleet.commit_and_publish("base").expect(0);
    assert!(fleet.copy("shop/ConfigMap_site.yaml").is_some(), "{}", ran.err);
    fleet.run(&["verify"]).expect(0);
}

#[test]
#[ignore = "needs Python"]
fn a_new_process_and_a_working_tree_give_what_a_commit_gives() {
    let fleet = SourceFleet::fake();
    assert!(fleet.run(&["plan", "--fail-on", "any"]).expect(0).out.contains("no changes"));
    let out = tempfile::tempdir().expect("a folder");
    let folder = out.path().to_str().expect("text");
    fleet.run(&["render", "--out", folder]).expect(0);
    let copy = std::fs::read_to_string(out.path().join("clusters/a").join(WEB)).expect("a copy");
    assert_eq!(fleet.copy(WEB).as_deref(), Some(copy.trim_end()));
}

#[test]
#[ignore = "needs Python"]
fn a_proof_by_another_renderer_names_it() {
    let fleet = SourceFleet::fake();
    // Another renderer that gives the same proves the same.
    let other = fleet.other_renderer("fake 2");
    fleet.run_with(&other, &["verify"]).expect(0);
    // One that gives something else is named, first of all.
    let text = std::fs::read_to_string(&other)
        .expect("a script")
        .replace("values.get(found[1]", "values.get(found[1] + 'x'");
    crate::support::programs::write_program(&other, &text);
    let ran = fleet.run_with(&other, &["verify"]).expect(3);
    assert!(ran.out.contains("charts and bases were rendered by another renderer (fake 1)"), "{}", ran.out);
    // A plan shows what the other renderer would change.
    let plan = fleet.run_with(&other, &["plan"]).expect(0);
    assert!(plan.out.contains("ConfigMap shop/web"), "{}", plan.out);
}

#[test]
#[ignore = "needs Python"]
fn named_charts_are_not_counted_as_skipped() {
    let fleet = SourceFleet::fake();
    let ran = fleet.run(&["validate"]).expect(0);
    assert!(!ran.err.contains("skipped"), "{}", ran.err);
    fleet.repo.write("charts/other/Chart.yaml", "apiVersion: v2\nname: other\nversion: 1.0.0\n");
    let ran = fleet.run(&["validate"]).expect(0);
    assert!(
        ran.err.contains("skipped one Helm chart, which no source names")
            || ran.err.contains("skipped 1 Helm chart, which no source names"),
        "{}",
        ran.err
    );
}

#[test]
#[ignore = "needs Python"]
fn the_folder_of_a_source_decides_what_it_may_render() {
    let fleet = SourceFleet::fake();
    let rule = |name: &str, spec: &str| {
        format!(
            "apiVersion: berth.dev/v1alpha1\nkind: AccessRule\nmetadata: {{name: {name}}}\nspec: {spec}\n"
        )
    };
    let all = "{folders: [apps, clusters], clusters: {place: [\"*\"], edit: [\"*\"]}, namespaces: [\"*\"], clusterKinds: \
               [\"*\"]}";
    fleet.repo.write("access/all.yaml", rule("all", all));
    fleet.repo.write("access/team.yaml", rule("team", "{folders: [teams/web], namespaces: [team]}"));
    fleet.commit_and_publish("rules").expect(0);
    fleet.repo.write("charts/grab/Chart.yaml", "apiVersion: v2\nname: grab\nversion: 1.0.0\n");
    fleet.repo.write("charts/grab/templates/config.yaml", CONFIG.replace("name: web", "name: grab"));
    fleet.repo.write("teams/web/grab.yaml", helm_source("grab", "charts/grab", ""));
    let ran = fleet.commit_and_publish("grab").expect(1);
    assert!(ran.err.contains("teams/web/grab.yaml/.helm/grab/templates/config.yaml:4:"), "{}", ran.err);
    assert!(fleet.copy("shop/ConfigMap_grab.yaml").is_none());
    // The same source in a folder with the right to it is rendered.
    fleet.repo.git(&["mv", "teams/web/grab.yaml", "apps/grab.yaml"]);
    fleet.commit_and_publish("moved").expect(0);
    assert!(fleet.copy("shop/ConfigMap_grab.yaml").is_some());
    fleet.run(&["verify"]).expect(0);
}

#[test]
#[ignore = "needs Python"]
fn edits_there_and_back_are_rendered_and_proven() {
    let fleet = SourceFleet::fake();
    for (number, colour) in ["blue", "green", "blue"].iter().enumerate() {
        let values = format!("  values: {{colour: {colour}}}\n");
        fleet.repo.write("apps/web.yaml", helm_source("web", "charts/web", &values));
        fleet.repo.write("apps/more.yaml", format!("# {number}\n"));
        fleet.commit_and_publish("edit").expect(0);
        assert!(fleet.copy(WEB).expect("a copy").contains(&format!("colour: {colour}")));
    }
    fleet.run(&["verify"]).expect(0);
}

#[test]
#[ignore = "needs Python"]
fn a_daemon_publishes_what_new_processes_prove() {
    let fleet = SourceFleet::fake();
    let renderer = fleet.renderer.to_str().expect("a text path").to_owned();
    let daemon = Daemon::start_with_env(&["--repo", fleet.repo.arg()], &[("BERTH_RENDERER", &renderer)]);
    let blue = helm_source("web", "charts/web", "  values: {colour: blue}\n");
    let template = "charts/web/templates/config.yaml";
    for (path, text, expected) in [
        ("apps/web.yaml", blue.clone(), "colour: blue"),
        (template, CONFIG.replace("colour:", "color:"), "color: blue"),
        (template, "{{ fail }}\n".to_owned(), "color: blue"),
        ("apps/web.yaml", "kind: [HelmSource\n".to_owned(), "color: blue"),
        (template, CONFIG.to_owned(), "color: blue"),
        ("apps/web.yaml", blue, "colour: blue"),
    ] {
        fleet.repo.write(path, text);
        let commit = fleet.repo.commit(path);
        daemon.wait_for(&["\"pass done\"", &commit]);
        let copy = fleet.copy(WEB).expect("a copy");
        assert!(copy.contains(expected), "{copy}");
    }
    assert_eq!(daemon.stop_with_log().0, 0);
    fleet.run(&["verify"]).expect(0);
}
