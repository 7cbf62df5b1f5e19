//! Behaviour that the fixtures do not show.

use super::testing::{lower, lower_text, lower_with, messages, objects, policy, workload};
use berth_base::model::cluster::Readiness;
use berth_base::model::rollout::Strategy;

#[test]
fn a_status_without_agents_or_conditions_says_nothing_of_health() {
    let lowered = lower_text(&format!("{MEMBER}status: {{properties: {{x: {{value: '1'}}}}}}\n"));
    assert_eq!(lowered.clusters[0].standing, Readiness::Assumed);
    assert_eq!(lowered.clusters[0].properties.get("x").map(String::as_str), Some("1"));
    let lowered = lower_text(&format!("{MEMBER}status: {{conditions: []}}\n"));
    assert!(matches!(lowered.clusters[0].standing, Readiness::Reported(_)));
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
fn what_a_strategy_says_becomes_annotations_with_the_defaults_of_a_hub() {
    let force = "co-owners=refused on-conflict=force take-over=";
    for (strategy, wanted) in [
        ("{}", format!("{force}true")),
        (
            "{applyStrategy: {type: ClientSideApply, comparisonOption: PartialComparison}}",
            format!("{force}true"),
        ),
        ("{applyStrategy: {whenToTakeOver: IfNoDiff}}", format!("{force}if-no-diff")),
        ("{applyStrategy: {whenToTakeOver: Never, whenToApply: Always}}", format!("{force}never")),
        ("{applyStrategy: {whenToApply: IfNotDrifted}}", format!("apply-when=if-not-drifted {force}true")),
        (
            "{applyStrategy: {comparisonOption: FullComparison}}",
            "co-owners=refused compare=full on-conflict=force take-over=true".to_owned(),
        ),
        ("{applyStrategy: {allowCoOwnership: true}}", "on-conflict=force take-over=true".to_owned()),
        ("{applyStrategy: {type: ServerSideApply}}", "co-owners=refused take-over=true".to_owned()),
        (
            "{applyStrategy: {type: ServerSideApply, serverSideApplyConfig: {force: true}}}",
            format!("{force}true"),
        ),
        (
            "{applyStrategy: {type: ReportDiff}}",
            "apply=report-diff co-owners=refused take-over=true".to_owned(),
        ),
        (
            "{deleteStrategy: {propagationPolicy: Abandon}}",
            "co-owners=refused on-conflict=force orphan=true take-over=true".to_owned(),
        ),
        ("{deleteStrategy: {propagationPolicy: Delete}}", format!("{force}true")),
    ] {
        let lowered = lower_text(&format!("{ROLE}spec:\n  strategy: {strategy}\n{SELECTORS}"));
        assert!(lowered.diagnostics.is_empty(), "{strategy}: {:?}", messages(&lowered));
        let annotations = &workload(&lowered, "roles").templates[0].sync_annotations;
        let parts =
            annotations.iter().map(|(name, value)| format!("{}={value}", &name["berth.dev/".len()..]));
        assert_eq!(parts.collect::<Vec<_>>().join(" "), wanted, "{strategy}");
    }
}

#[test]
fn strategies_are_read_and_a_hubs_defaults_are_nobodys_wish() {
    for (strategy, asked) in [
        ("{type: RollingUpdate}", Some(false)),
        ("{rollingUpdate: {maxUnavailable: 25%, maxSurge: 25%, unavailablePeriodSeconds: 60}}", Some(false)),
        ("{rollingUpdate: {maxUnavailable: 1}}", Some(true)),
        ("{type: External}", None),
    ] {
        let lowered = lower_text(&format!("{ROLE}spec:\n  strategy: {strategy}\n{SELECTORS}"));
        assert_eq!(messages(&lowered), Vec::<String>::new(), "{strategy}");
        let read = match &workload(&lowered, "roles").strategy {
            Strategy::Rolling(rolling) => Some(rolling.asked),
            Strategy::Runs => None,
            other => panic!("{strategy}: {other:?}"),
        };
        assert_eq!(read, asked, "{strategy}");
    }
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
fn an_envelope_of_the_old_form_is_unwrapped_where_that_is_asked_for() {
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: e, namespace: shop, \
         annotations: {kubernetes-fleet.io/envelope-configmap: 'true'}}\n\
         data:\n  q.yaml: |\n    {apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: shop}}\n---\n\
         apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ResourcePlacement\n\
         metadata: {name: web, namespace: shop}\nspec:\n  \
         resourceSelectors: [{group: '', version: v1, kind: ConfigMap, name: e}]\n";
    for (unwrap, travels) in [(true, "ResourceQuota shop/q"), (false, "ConfigMap shop/e")] {
        let lowered = lower_with(&[("fleet.yaml", text)], unwrap);
        let found = messages(&lowered);
        assert!(
            found.len() == 1 && found[0].starts_with("warning") && found[0].contains("old form"),
            "{found:?}"
        );
        assert_eq!(objects(&lowered, "web"), [travels]);
    }
}

#[test]
fn what_an_old_envelope_may_not_hold_is_named() {
    for (data, fault) in [
        (
            "q.yaml: '{apiVersion: v1, kind: Secret, metadata: {name: q, namespace: other}}'",
            "is in namespace other",
        ),
        ("q.yaml: 'a: b'", "must hold objects"),
        ("q.yaml: '{'", "data.q.yaml, line"),
    ] {
        let lowered = lower_with(
            &[(
                "fleet.yaml",
                &format!(
                    "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: e, namespace: shop, \
             annotations: {{kubernetes-fleet.io/envelope-configmap: 'true'}}}}\ndata:\n  {data}\n---\n\
             apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ResourcePlacement\n\
             metadata: {{name: web, namespace: shop}}\nspec:\n  \
             resourceSelectors: [{{group: '', version: v1, kind: ConfigMap, name: e}}]\n",
                ),
            )],
            true,
        );
        assert!(
            messages(&lowered).iter().any(|one| one.starts_with("error") && one.contains(fault)),
            "{:?}",
            messages(&lowered)
        );
        assert!(lowered.workloads.is_empty());
    }
}

#[test]
fn evictions_and_budgets_are_checked_and_told_to_be_without_effect() {
    for (kind, spec, fault) in [
        ("ClusterResourcePlacementEviction", "{placementName: web, clusterName: a}", "warning"),
        ("ClusterResourcePlacementEviction", "{placementName: web}", "error: spec.clusterName is required"),
        ("ClusterResourcePlacementDisruptionBudget", "{minAvailable: 1}", "warning"),
        ("ClusterResourcePlacementDisruptionBudget", "{maxUnavailable: 50%}", "warning"),
        ("ClusterResourcePlacementDisruptionBudget", "{}", "error: spec must have exactly one"),
        (
            "ClusterResourcePlacementDisruptionBudget",
            "{minAvailable: 1, maxUnavailable: 1}",
            "error: spec must",
        ),
        (
            "ClusterResourcePlacementDisruptionBudget",
            "{minAvailable: -1}",
            "error: spec.minAvailable must be",
        ),
    ] {
        let lowered = lower_text(&format!(
            "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: {kind}\nmetadata: {{name: web}}\nspec: {spec}\n"
        ));
        let found = messages(&lowered);
        assert!(found.iter().any(|one| one.starts_with(fault)), "{spec}: {found:?}");
        assert!(fault == "warning" || lowered.faulty.len() == 1);
    }
}

#[test]
fn slips_of_the_documentation_are_read_as_they_are_meant() {
    let with = |preferred: &str| {
        lower_text(&format!(
            "{ROLE}spec:\n  policy:\n    placementType: PickN\n    numberOfClusters: 1\n    affinity:\n      clusterAffinity:\n        preferredDuringSchedulingIgnoredDuringExecution:\n{preferred}{SELECTORS}"
        ))
    };
    let slip = with(
        "          weight: 20\n          preference:\n          - labelSelector: {matchLabels: {level: 1}}\n",
    );
    let right =
        with("        - weight: 20\n          preference: {labelSelector: {matchLabels: {level: '1'}}}\n");
    assert!(right.diagnostics.is_empty(), "{:?}", messages(&right));
    let found = messages(&slip);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found.iter().all(|one| one.starts_with("warning")), "{found:?}");
    assert_eq!(policy(&slip, "roles").scorers, policy(&right, "roles").scorers);
    assert_eq!(policy(&slip, "roles").text, policy(&right, "roles").text, "mending it changes no policy");
    let two = with(
        "          weight: 20\n          preference:\n          - labelSelector: {}\n          - labelSelector: {}\n",
    );
    assert!(
        messages(&two)
            .iter()
            .any(|one| one.starts_with("error") && one.contains("preference must be a mapping"))
    );
}

#[test]
fn the_order_of_files_never_shows() {
    let over = |name: &str, path: &str| {
        format!(
            "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterResourceOverride\nmetadata: {{name: {name}}}\n\
             spec:\n  clusterResourceSelectors: [{{group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole, name: {name}}}]\n  \
             policy: {{overrideRules: [{{clusterSelector: {{}}, jsonPatchOverrides: [{{op: add, path: /metadata/labels, value: {{{path}: x}}}}]}}]}}\n"
        )
    };
    let role = ROLE.replace("name: viewer", "name: admin").split("---").next().unwrap_or_default().to_owned();
    let (first, second) = (over("viewer", "a"), over("admin", "b"));
    let placement = format!("{ROLE}spec:\n{SELECTORS}");
    let files = [
        ("a.yaml", placement.as_str()),
        ("b.yaml", &role),
        ("c.yaml", &first),
        ("d.yaml", &second),
        ("e.yaml", MEMBER),
    ];
    let forward = lower(&files);
    let mut turned = files;
    turned.reverse();
    let backward = lower(&turned);
    assert_eq!(objects(&forward, "roles").len(), 2);
    assert_eq!(workload(&forward, "roles").overrides.len(), 2);
    assert_eq!(forward.workloads, backward.workloads);
    assert_eq!(forward.clusters, backward.clusters);
    assert_eq!(messages(&forward), messages(&backward));
}

const MEMBER: &str = "apiVersion: cluster.kubernetes-fleet.io/v1beta1\nkind: MemberCluster\n\
    metadata: {name: m}\nspec:\n  identity: {kind: ServiceAccount, name: a}\n";

const ROLE: &str = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: viewer}\n---\n\
    apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterResourcePlacement\n\
    metadata: {name: roles}\n";

const SELECTORS: &str =
    "  resourceSelectors: [{group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole}]\n";
