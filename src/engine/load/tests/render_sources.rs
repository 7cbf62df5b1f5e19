use super::*;
use crate::load::{FileCache, FoundSources, Hooks, RenderSource, SourceKind, SourceValues, find_sources};
use berth_base::source::Rendered;

const HELM: &str = "apiVersion: berth.dev/v1alpha1\nkind: HelmSource\nmetadata: {name: web}\nspec:\n";
const LEAST: &str = "  path: charts/web\n  namespace: shop\n  kubeVersion: \"1.34\"\n";

fn helm(spec: &str) -> String {
    format!("{HELM}{spec}")
}

fn find(tree: &SourceTree) -> FoundSources {
    let paths = tree.files.keys().cloned().collect();
    find_sources(tree, &paths, &mut FileCache::default())
}

fn one(spec: &str) -> RenderSource {
    let mut found = find(&tree(&[("apps/web.yaml", &helm(spec))]));
    assert!(found.faulty.is_empty());
    found.sources.remove(0)
}

#[test]
fn a_source_is_read_with_its_defaults() {
    let source = one(LEAST);
    assert_eq!((source.path.as_str(), source.folder().as_str()), ("charts/web", "apps/web.yaml/.helm/web"));
    let SourceKind::Helm(options) = &source.kind else { panic!("a chart") };
    assert_eq!((options.release.as_str(), options.namespace.as_str()), ("web", "shop"));
    assert!(
        options.has_crds
            && options.hooks == Hooks::Refuse
            && !options.finds_nothing
            && !options.allows_secrets
    );
    assert!(options.values.is_empty() && options.api_versions.is_empty());
}

#[test]
fn a_source_is_read_in_full() {
    let more = "  release: shop-web\n  apiVersions: [example.com/v1]\n  valuesFiles: [./values/a.yaml, values/b.yaml]\n  \
                values: {big: 1000000, name: \"on\"}\n  crds: skip\n  hooks: skip\n  lookup: empty\n  secrets: allow\n";
    let source = one(&format!("{LEAST}{more}"));
    let SourceKind::Helm(options) = &source.kind else { panic!("a chart") };
    assert_eq!(options.release, "shop-web");
    assert_eq!(options.api_versions, ["example.com/v1"]);
    let values: Vec<(bool, String)> = options
        .values
        .iter()
        .map(|values| match values {
            SourceValues::File(path, _) => (true, path.clone()),
            SourceValues::Inline(node, at) => {
                assert_eq!(at.to_string(), "apps/web.yaml:11:11");
                (false, berth_base::yaml::emit(&node.to_json()))
            }
        })
        .collect();
    let inline = "big: 1000000\nname: \"on\"\n";
    let expected = [(true, "values/a.yaml"), (true, "values/b.yaml"), (false, inline)];
    assert_eq!(values, expected.map(|(is_file, text)| (is_file, text.to_owned())));
    assert!(
        !options.has_crds && options.hooks == Hooks::Skip && options.finds_nothing && options.allows_secrets
    );
}

#[test]
fn each_wrong_field_has_its_place() {
    for (spec, expected) in [
        ("  namespace: shop\n  kubeVersion: \"1.34\"\n", "apps/web.yaml:5:3: error: spec.path is required"),
        (
            "  path: charts/web\n  kubeVersion: \"1.34\"\n",
            "apps/web.yaml:5:3: error: spec.namespace is required",
        ),
        ("  path: charts/web\n  namespace: shop\n", "apps/web.yaml:5:3: error: spec.kubeVersion is required"),
        (
            "  path: /charts\n  namespace: shop\n  kubeVersion: \"1.34\"\n",
            "apps/web.yaml:5:9: error: spec.path must be",
        ),
        (
            "  path: a/../b\n  namespace: shop\n  kubeVersion: \"1.34\"\n",
            "apps/web.yaml:5:9: error: spec.path must be",
        ),
        (
            "  path: a\n  namespace: Shop\n  kubeVersion: \"1.34\"\n",
            "apps/web.yaml:6:14: error: spec.namespace must be",
        ),
        (
            "  path: a\n  namespace: shop\n  kubeVersion: new\n",
            "apps/web.yaml:7:16: error: spec.kubeVersion must be",
        ),
        (&format!("{LEAST}  release: Web_1\n"), "apps/web.yaml:8:12: error: the release `Web_1` must be"),
        (&format!("{LEAST}  values: [1]\n"), "apps/web.yaml:8:11: error: spec.values must be a mapping"),
        (
            &format!("{LEAST}  valuesFiles: [../x]\n"),
            "apps/web.yaml:8:17: error: spec.valuesFiles must be paths",
        ),
        (
            &format!("{LEAST}  valuesFiles: [a, a]\n"),
            "apps/web.yaml:8:20: error: spec.valuesFiles has `a` twice",
        ),
        (&format!("{LEAST}  hooks: run\n"), "apps/web.yaml:8:10: error: spec.hooks"),
        (&format!("{LEAST}  secrets: yes\n"), "apps/web.yaml:8:12: error: spec.secrets"),
        (
            &format!("{LEAST}  crd: skip\n"),
            "apps/web.yaml:8:3: error: unknown field `spec.crd` hint: did you mean `crds`?",
        ),
    ] {
        let text = helm(spec);
        let loaded = load(&[("apps/web.yaml", &text)]);
        let found = said(&loaded);
        assert!(found.iter().any(|one| one.starts_with(expected)), "{spec}: {found:?}");
        let found = find(&tree(&[("apps/web.yaml", &text)]));
        assert!(found.sources.is_empty() && found.faulty.contains("apps/web.yaml/.helm/web"), "{spec}");
    }
}

#[test]
fn a_source_has_no_namespace_and_is_in_no_folder_of_rules() {
    let text = format!("{}{LEAST}", HELM.replace("{name: web}", "{name: web, namespace: shop}"));
    assert!(
        said(&load(&[("a.yaml", &text)])).iter().any(|one| one.contains("a HelmSource has no namespace"))
    );
    for folder in ["access/", "approvals/", "policy-tests/"] {
        let found = said(&load(&[(&format!("{folder}web.yaml"), &helm(LEAST))]));
        let expected = format!("a HelmSource cannot be under `{folder}`");
        assert!(found.iter().any(|one| one.contains(&expected)), "{found:?}");
    }
}

#[test]
fn of_two_sources_with_one_name_neither_is_rendered() {
    let text = helm(LEAST);
    let found = find(&tree(&[("a.yaml", &text), ("b.yaml", &text)]));
    assert!(found.sources.is_empty());
    assert_eq!(
        found.faulty.iter().map(String::as_str).collect::<Vec<_>>(),
        ["a.yaml/.helm/web", "b.yaml/.helm/web"]
    );
}

#[test]
fn a_source_within_a_chart_or_an_excluded_folder_is_none() {
    let chart = ("charts/web/Chart.yaml", "name: web\n");
    let config = "apiVersion: berth.dev/v1alpha1\nkind: FleetConfig\nspec: {exclude: ['old/']}\n";
    let text = helm(LEAST);
    let files = [chart, ("berth.yaml", config), ("charts/web/a.yaml", &text), ("old/a.yaml", &text)];
    assert!(find(&tree(&files)).sources.is_empty());
}

#[test]
fn rendered_files_are_read_whatever_is_excluded_or_packaged() {
    let config = "apiVersion: berth.dev/v1alpha1\nkind: FleetConfig\nspec: {exclude: ['**/templates/**']}\n";
    let rendered = "apps/web.yaml/.helm/web/charts/x/templates/rule.yaml";
    let mut tree = tree(&[
        ("berth.yaml", config),
        ("apps/web.yaml", &helm(LEAST)),
        ("apps/web.yaml/.helm/web/templates/Chart.yaml.yaml", &doc("Rule", "all", "")),
        (rendered, &doc("App", "web", "")),
    ]);
    let files = tree.files.keys().filter(|path| path.contains("/.helm/")).cloned().collect();
    tree.rendered = Rendered { files, ..Rendered::default() }.into();
    let loaded = super::super::load_with(&tree, History::None, &[&TEST]);
    assert!(errors(&loaded).is_empty(), "{:?}", errors(&loaded));
    let workload = loaded.fleet.workloads.values().next().expect("a workload");
    assert_eq!(&*workload.origin.file, rendered);
}
