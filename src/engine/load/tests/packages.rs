//! Charts and bases, which no source names.

use super::super::{FileCache, load_with_cache};
use super::*;
use crate::dialects::DIALECTS;

const CHART: &str = "apiVersion: v2\nname: web\nversion: 1.0.0\n";
const KUSTOMIZATION: &str =
    "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [web.yaml]\n";
const TEMPLATE: &str = "kind: {{ .Values.kind }}\n{{- if }}\n";
const PLAIN: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: shop}\n";

#[test]
fn charts_and_bases_are_skipped_with_one_note() {
    let loaded = load(&[
        ("a.yaml", &doc("Member", "a", "")),
        ("charts/web/Chart.yaml", CHART),
        ("charts/web/charts/db/Chart.yaml", CHART),
        ("charts/web/charts/db/templates/x.yaml", TEMPLATE),
        ("charts/web/templates/web.yaml", TEMPLATE),
        ("charts/web/values.yaml", "kind: ConfigMap\n"),
        ("bases/web/kustomization.yaml", KUSTOMIZATION),
        ("bases/web/web.yaml", PLAIN),
        ("bases/prod/kustomization.yml", KUSTOMIZATION),
        ("bases/prod/web.yaml", PLAIN),
    ]);
    let note = "note: skipped 1 Helm chart and 2 Kustomize bases, which no source names";
    assert_eq!((said(&loaded), clusters(&loaded)), (vec![note.to_owned()], vec!["a"]));
}

#[test]
fn a_folder_with_fleet_objects_is_no_base_and_the_root_is_neither() {
    let member = doc("Member", "a", "");
    let loaded = load(&[
        ("Chart.yaml", CHART),
        ("kustomization.yaml", KUSTOMIZATION),
        ("fleet/kustomization.yaml", KUSTOMIZATION),
        ("fleet/clusters/a.yaml", &member),
        ("fleet/web/kustomization.yaml", KUSTOMIZATION),
        ("fleet/web/web.yaml", PLAIN),
    ]);
    assert_eq!(clusters(&loaded), ["a"]);
    let said = said(&loaded);
    assert!(said.contains(&"note: skipped 1 Kustomize base, which no source names".to_owned()), "{said:?}");
    assert!(errors(&loaded).is_empty(), "{said:?}");
    // A file that cannot be read may describe a fleet object.
    let broken = load(&[("fleet/kustomization.yaml", KUSTOMIZATION), ("fleet/a.yaml", "kind: [\n")]);
    assert_eq!(errors(&broken).len(), 1, "{:?}", super::said(&broken));
}

#[test]
fn settings_still_exclude_and_rules_are_always_read() {
    let config = "apiVersion: berth.dev/v1alpha1\nkind: FleetConfig\nspec: {exclude: [charts]}\n";
    let loaded =
        load(&[("berth.yaml", config), ("charts/web/Chart.yaml", CHART), ("charts/web/x.yaml", TEMPLATE)]);
    assert_eq!(said(&loaded), [""; 0]);
    let loaded = load(&[("access/Chart.yaml", CHART), ("access/team.yaml", "kind: [\n")]);
    let said = said(&loaded);
    assert_eq!(errors(&loaded).len(), 2, "{said:?}");
    assert!(!said.iter().any(|line| line.contains("Helm")), "{said:?}");
}

/// Each step of a repository loads as it would alone, whatever was loaded before.
#[test]
fn packages_that_come_and_go_are_seen_by_a_daemon() {
    let cluster = |name: &str| {
        format!(
            "apiVersion: core.kubefed.io/v1beta1\nkind: KubeFedCluster\nmetadata: {{name: {name}, namespace: k}}\nspec: {{apiEndpoint: 'https://x', secretRef: {{name: x}}}}\n"
        )
    };
    let mut files: BTreeMap<&str, String> = BTreeMap::new();
    for (index, path) in ["c/a.yaml", "c/b.yaml", "c/d.yaml", "x/e.yaml", "x/f.yaml"].into_iter().enumerate()
    {
        files.insert(path, cluster(&format!("c{index}")));
    }
    let mut cache = FileCache::default();
    let steps: [(&str, Option<String>); 10] = [
        ("x/kustomization.yaml", Some(KUSTOMIZATION.to_owned())),
        ("x/e.yaml", Some(PLAIN.to_owned())),
        ("x/f.yaml", Some(PLAIN.replace("web", "other"))),
        ("x/f.yaml", Some(PLAIN.replace("web", "third"))),
        ("x/f.yaml", Some(cluster("back"))),
        ("c/Chart.yaml", Some(CHART.to_owned())),
        ("c/a.yaml", Some(TEMPLATE.to_owned())),
        ("c/a.yaml", Some(cluster("again"))),
        ("c/Chart.yaml", None),
        ("x/kustomization.yaml", None),
    ];
    for (path, text) in steps {
        match text {
            Some(text) => files.insert(path, text),
            None => files.remove(path),
        };
        let listed: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        let tree = tree(&listed);
        let warm = super::super::again(&tree, &mut cache)
            .unwrap_or_else(|| load_with_cache(&tree, History::None, &mut cache));
        let cold = super::super::load_with(&tree, History::None, DIALECTS);
        assert_eq!(said(&warm), said(&cold), "{path}");
        assert_eq!(clusters(&warm), clusters(&cold), "{path}");
    }
}
