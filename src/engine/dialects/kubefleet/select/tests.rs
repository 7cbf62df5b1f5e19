use crate::dialects::kubefleet::testing::{lower_text, messages, objects, policy, workload};

const SHOP: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {team: web}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web}, uid: u}
status: {replicas: 1}
---
apiVersion: v1
kind: Namespace
metadata: {name: fleet-system, labels: {team: web}}
---
apiVersion: example.test/v1
kind: Widget
metadata: {name: one, namespace: shop}
---
";

fn placed(selectors: &str) -> crate::dialects::Lowered {
    lower_text(&format!(
        "{SHOP}apiVersion: placement.kubernetes-fleet.io/v1\nkind: ClusterResourcePlacement\n\
         metadata: {{name: web}}\nspec:\n  resourceSelectors: {selectors}\n"
    ))
}

#[test]
fn a_namespace_brings_its_contents_and_nothing_else_is_selected() {
    let lowered = placed("[{group: '', version: v1, kind: Namespace, name: shop}]");
    let expected = [
        "ConfigMap shop/settings",
        "Namespace shop",
        "Deployment.apps shop/web",
        "Widget.example.test shop/one",
    ];
    assert_eq!(objects(&lowered, "web"), expected);
    assert_eq!(lowered.selected.iter().copied().collect::<Vec<_>>(), [0, 1, 2, 4]);
}

#[test]
fn what_travels_has_no_status_and_no_uid() {
    let lowered = placed("[{group: '', version: v1, kind: Namespace, name: shop}]");
    let object = workload(&lowered, "web").templates[2].object.content.to_json();
    assert!(object.get("status").is_none() && object["metadata"].get("uid").is_none());
    assert_eq!(object["metadata"]["labels"]["app"], "web");
}

#[test]
fn a_reserved_namespace_blocks_the_placement_and_leaves_the_rest_standing() {
    let lowered =
        placed("[{group: '', version: v1, kind: Namespace, labelSelector: {matchLabels: {team: web}}}]");
    let blocked = policy(&lowered, "web").blocked.as_ref().expect("it is blocked");
    assert!(blocked.keep_earlier && blocked.condition.reason == "InvalidResourceSelectors");
    assert!(messages(&lowered)[0].starts_with("warning") && messages(&lowered)[0].contains("fleet-system"));
    assert!(!objects(&lowered, "web").contains(&"Namespace fleet-system".to_owned()));
    assert!(workload(&lowered, "web").frozen, "what is placed stays as it is");
}

#[test]
fn the_bare_object_of_a_reserved_namespace_may_be_selected() {
    let lowered = placed(
        "[{group: '', version: v1, kind: Namespace, name: fleet-system, selectionScope: NamespaceOnly}]",
    );
    assert_eq!(objects(&lowered, "web"), ["Namespace fleet-system"]);
    assert!(policy(&lowered, "web").blocked.is_none());
}

#[test]
fn a_namespace_for_other_selectors_must_be_there() {
    let lowered = placed(
        "[{group: '', version: v1, kind: Namespace, name: gone, selectionScope: NamespaceWithResourceSelectors}]",
    );
    assert!(policy(&lowered, "web").blocked.is_some());
}

#[test]
fn a_version_other_than_the_files_selects_nothing_and_is_warned_of() {
    let lowered = placed("[{group: '', version: v2, kind: Namespace, name: shop}]");
    assert!(objects(&lowered, "web").is_empty());
    assert!(messages(&lowered)[0].contains("selects nothing"), "{:?}", messages(&lowered));
}

#[test]
fn the_scope_of_custom_kinds_is_told_by_the_repository() {
    let lowered = placed("[{group: example.test, version: v1, kind: Widget}]");
    assert!(messages(&lowered)[0].contains("is namespaced"), "{:?}", messages(&lowered));
    assert!(lowered.placements.is_empty() && lowered.faulty.len() == 1);
}

#[test]
fn selecting_twice_blocks_but_loses_nothing() {
    let lowered = placed(
        "[{group: '', version: v1, kind: Namespace, name: shop}, {group: '', version: v1, kind: Namespace, name: shop}]",
    );
    assert!(policy(&lowered, "web").blocked.is_some());
    assert_eq!(objects(&lowered, "web").len(), 4);
}

#[test]
fn faulty_envelopes_are_reported_and_left_out() {
    let lowered = lower_text(
        "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ResourceEnvelope\n\
         metadata: {name: e, namespace: shop}\ndata:\n  a: {kind: ConfigMap}\n  \
         b: {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: other}}\n  \
         c: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}\n",
    );
    assert_eq!(lowered.diagnostics.errors().count(), 3, "{:?}", messages(&lowered));
}
