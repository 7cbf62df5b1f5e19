use crate::dialects::kubefleet::testing::{lower_text, messages, workload};
use berth_base::model::{Action, Applies};

const SHOP: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: web}
spec: {resourceSelectors: [{group: '', version: v1, kind: Namespace, name: shop}]}
---
";

const ALL: &str = "[{clusterSelector: {}, jsonPatchOverrides: [{op: add, path: /data/a, value: b}]}]";

fn resource_override(name: &str, placement: &str, target: &str, rules: &str) -> String {
    let placement = if placement.is_empty() { String::new() } else { format!("placement: {placement}\n  ") };
    format!(
        "---\napiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ResourceOverride\n\
         metadata: {{name: {name}, namespace: shop}}\nspec:\n  {placement}\
         resourceSelectors: [{{group: '', version: v1, kind: ConfigMap, name: {target}}}]\n  \
         policy: {{overrideRules: {rules}}}\n"
    )
}

fn cluster_override(name: &str) -> String {
    format!(
        "---\napiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterResourceOverride\n\
         metadata: {{name: {name}}}\nspec:\n  \
         clusterResourceSelectors: [{{group: '', version: v1, kind: Namespace, name: shop}}]\n  \
         policy: {{overrideRules: [{{clusterSelector: {{clusterSelectorTerms: \
         [{{labelSelector: {{matchLabels: {{env: prod}}}}}}]}}, overrideType: Delete}}]}}\n"
    )
}

#[test]
fn a_resource_override_has_the_last_word_and_namespaces_reach_their_contents() {
    let text = format!("{SHOP}{}{}", resource_override("a", "", "settings", ALL), cluster_override("z"));
    let lowered = lower_text(&text);
    let overrides = &workload(&lowered, "web").overrides;
    let by: Vec<_> = overrides.iter().map(|one| &*one.by.name).collect();
    assert_eq!(by, ["z", "a"]);
    let ids: Vec<_> =
        overrides[0].objects.iter().flat_map(|ids| ids.iter()).map(ToString::to_string).collect();
    assert_eq!(ids, ["ConfigMap shop/settings", "Namespace shop"]);
    assert_eq!(overrides[0].action, Action::Delete);
    assert!(matches!(&overrides[1].action, Action::Patch(patch) if patch[0].variables));
    assert!(lowered.diagnostics.is_empty(), "{:?}", messages(&lowered));
}

#[test]
fn an_empty_cluster_selector_is_all_clusters_and_none_is_no_cluster() {
    let rules = "[{clusterSelector: {}, overrideType: Delete}, {overrideType: Delete}]";
    let lowered = lower_text(&format!("{SHOP}{}", resource_override("a", "", "settings", rules)));
    let overrides = &workload(&lowered, "web").overrides;
    assert_eq!(overrides.len(), 1);
    assert!(
        matches!(&overrides[0].clusters, Applies::AnyOf(terms) if terms.len() == 1 && terms[0].labels.requirements.is_empty())
    );
    assert!(messages(&lowered)[0].contains("matches no cluster"), "{:?}", messages(&lowered));
}

#[test]
fn an_override_that_hits_nothing_is_warned_of() {
    let lowered = lower_text(&format!("{SHOP}{}", resource_override("a", "", "setings", ALL)));
    assert!(workload(&lowered, "web").overrides.is_empty());
    assert!(messages(&lowered)[0].contains("no placement carries ConfigMap shop/setings"));
}

#[test]
fn the_wrong_placement_scope_is_warned_of_with_the_right_one() {
    let namespaced = "{name: web, scope: Namespaced}";
    let lowered = lower_text(&format!("{SHOP}{}", resource_override("a", namespaced, "settings", ALL)));
    assert!(workload(&lowered, "web").overrides.is_empty());
    let warning = lowered.diagnostics.iter().next().expect("there is a warning");
    assert!(warning.message.contains("ResourcePlacement shop/web, which does not exist"));
    assert!(warning.hint.as_ref().is_some_and(|hint| hint.contains("`scope: Cluster`")));
}

#[test]
fn the_later_of_two_rivals_is_refused() {
    let lowered = lower_text(&format!("{SHOP}{}{}", cluster_override("b"), cluster_override("a")));
    let by: Vec<_> = workload(&lowered, "web").overrides.iter().map(|one| &*one.by.name).collect();
    assert_eq!(by, ["a"]);
    assert_eq!(lowered.diagnostics.errors().count(), 1);
    assert_eq!(lowered.faulty.len(), 1);
}

#[test]
fn paths_outside_labels_annotations_and_the_body_are_refused() {
    for path in
        ["/kind", "/apiVersion", "/status/x", "/metadata", "/metadata/name", "/spec//x", "spec/x", "/"]
    {
        let rules =
            format!("[{{clusterSelector: {{}}, jsonPatchOverrides: [{{op: add, path: {path}, value: b}}]}}]");
        let lowered = lower_text(&format!("{SHOP}{}", resource_override("a", "", "settings", &rules)));
        assert!(lowered.diagnostics.has_errors(), "{path}");
        assert!(workload(&lowered, "web").overrides.is_empty(), "{path}");
    }
}

#[test]
fn a_value_that_looks_like_a_variable_is_warned_of() {
    let rules = "[{clusterSelector: {}, jsonPatchOverrides: [{op: add, path: /data/a, value: '${MEMBER_CLUSTER_NAME}'}]}]";
    let lowered = lower_text(&format!("{SHOP}{}", resource_override("a", "", "settings", rules)));
    let found = messages(&lowered);
    assert!(found.len() == 1 && found[0].contains("`${MEMBER_CLUSTER_NAME}` is not a variable"), "{found:?}");
    let hint = lowered.diagnostics.iter().next().and_then(|one| one.hint.as_deref());
    assert_eq!(hint, Some("did you mean `${MEMBER-CLUSTER-NAME}`?"));
    assert_eq!(workload(&lowered, "web").overrides.len(), 1);
}
