//! What the cases of the fixtures do not show.

use super::testing::{lower_text, messages, policy, workload};
use crate::model::cluster::Standing;

#[test]
fn a_status_without_agents_or_conditions_says_nothing_of_health() {
    let lowered = lower_text(&format!("{MEMBER}status: {{properties: {{x: {{value: '1'}}}}}}\n"));
    assert_eq!(lowered.clusters[0].standing, Standing::Assumed);
    assert_eq!(lowered.clusters[0].properties.get("x").map(String::as_str), Some("1"));
    let lowered = lower_text(&format!("{MEMBER}status: {{conditions: []}}\n"));
    assert!(matches!(lowered.clusters[0].standing, Standing::Reported(_)));
}

#[test]
fn namespaces_count_only_where_they_were_collected() {
    let lowered = lower_text(&format!("{MEMBER}status: {{namespaces: {{shop: ''}}}}\n"));
    assert_eq!(lowered.clusters[0].namespaces, None);
    let collected = "conditions: [{type: NamespaceCollectionSucceeded, status: 'False'}]";
    let lowered = lower_text(&format!("{MEMBER}status: {{{collected}}}\n"));
    assert_eq!(lowered.clusters[0].namespaces.as_ref().map(|names| names.len()), Some(0));
}

#[test]
fn a_members_spec_is_checked_and_its_status_may_hold_more() {
    let lowered =
        lower_text(&format!("{MEMBER}status: {{whatever: 1, agentStatus: [{{type: X, more: 2}}]}}\n"));
    assert!(lowered.diagnostics.is_empty(), "{:?}", messages(&lowered));
    let text = MEMBER.replace("spec:\n", "spec:\n  heartbeatPeriodSeconds: 0\n  taint: []\n");
    let lowered = lower_text(&text);
    assert_eq!(lowered.diagnostics.errors().count(), 2, "{:?}", messages(&lowered));
    assert!(lowered.clusters.is_empty());
}

#[test]
fn take_over_follows_the_apply_strategy() {
    for (strategy, take_over) in [
        ("{}", "true"),
        ("{applyStrategy: {whenToTakeOver: IfNoDiff}}", "if-no-diff"),
        ("{applyStrategy: {whenToTakeOver: Never}}", "never"),
    ] {
        let lowered = lower_text(&format!("{ROLE}spec:\n  strategy: {strategy}\n{SELECTORS}"));
        let annotations = &workload(&lowered, "roles").templates[0].sync_annotations;
        assert_eq!(annotations.get("berth.dev/take-over").map(String::as_str), Some(take_over));
    }
}

#[test]
fn report_diff_writes_nothing_new() {
    let lowered =
        lower_text(&format!("{ROLE}spec:\n  strategy: {{applyStrategy: {{type: ReportDiff}}}}\n{SELECTORS}"));
    assert!(policy(&lowered, "roles").blocked.as_ref().is_some_and(|blocked| blocked.keep_earlier));
    assert!(messages(&lowered)[0].contains("ReportDiff"));
}

#[test]
fn kinds_for_later_are_warned_of() {
    let lowered = lower_text(
        "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterResourcePlacementEviction\n\
         metadata: {name: e}\nspec: {placementName: web, clusterName: a}\n",
    );
    assert!(messages(&lowered)[0].starts_with("warning"), "{:?}", messages(&lowered));
}

#[test]
fn an_envelope_of_the_old_form_goes_as_it_is_with_a_warning() {
    let lowered = lower_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: e, namespace: shop, \
         annotations: {kubernetes-fleet.io/envelope-configmap: 'true'}}\n---\n\
         apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ResourcePlacement\n\
         metadata: {name: web, namespace: shop}\nspec:\n  \
         resourceSelectors: [{group: '', version: v1, kind: ConfigMap, name: e}]\n",
    );
    assert!(messages(&lowered)[0].contains("old form"), "{:?}", messages(&lowered));
    assert_eq!(workload(&lowered, "web").templates.len(), 1);
}

const MEMBER: &str = "apiVersion: cluster.kubernetes-fleet.io/v1beta1\nkind: MemberCluster\n\
    metadata: {name: m}\nspec:\n  identity: {kind: ServiceAccount, name: a}\n";

const ROLE: &str = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: viewer}\n---\n\
    apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterResourcePlacement\n\
    metadata: {name: roles}\n";

const SELECTORS: &str =
    "  resourceSelectors: [{group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole}]\n";
