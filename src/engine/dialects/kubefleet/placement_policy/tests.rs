use crate::dialects::Lowered;
use crate::dialects::kubefleet::testing::{lower_text, messages, objects, policy, workload};
use berth_base::model::placement::{Retention, Selection};
use berth_base::model::rollout::Strategy;

const SHOP: &str = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n---\n\
    apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: shop}\n---\n";

fn with_spec(kind: &str, metadata: &str, spec: &str) -> Lowered {
    lower_text(&format!(
        "{SHOP}apiVersion: placement.kubefleet.dev/v1alpha1\nkind: {kind}\nmetadata: {{{metadata}}}\nspec: {{{spec}}}\n"
    ))
}

fn whole(more: &str) -> Lowered {
    let spec = format!("resourceSelectors: [{{apiVersion: v1, kind: Namespace, name: shop}}], {more}");
    with_spec("ClusterPlacementPolicy", "name: web", &spec)
}

#[track_caller]
fn refused(lowered: &Lowered, wanted: &str) {
    let found = messages(lowered);
    assert!(found.iter().any(|one| one.starts_with("error") && one.contains(wanted)), "{wanted}: {found:?}");
    assert!(lowered.placements.is_empty(), "a faulty policy must not be used");
}

#[test]
fn selectors_become_choices_with_the_defaults_of_the_api() {
    let lowered = whole(
        "clusterSelectors: [{terms: [{matchLabels: {env: prod}}]}, {count: 3, minCount: 2}, {count: '4'}, {count: All}]",
    );
    assert_eq!(messages(&lowered), Vec::<String>::new());
    let policy = policy(&lowered, "web");
    let Selection::InTurn(choices) = &policy.selection else { panic!("{:?}", policy.selection) };
    let numbers: Vec<_> = choices.iter().map(|choice| (choice.count, choice.least)).collect();
    assert_eq!(numbers, [(Some(1), 1), (Some(3), 2), (Some(4), 4), (None, 1)]);
    assert_eq!(choices[2].name, "clusterSelectors[2]");
    assert!(matches!(policy.retention, Retention::None));
    let names: Vec<_> = policy.scorers.iter().map(|scorer| scorer.name.as_str()).collect();
    assert_eq!(names, ["fewNodes", "availableCpu", "availableMemory"]);
}

#[test]
fn without_selectors_every_eligible_cluster_is_wanted() {
    let lowered = whole("tolerations: [{operator: Exists}]");
    assert_eq!(messages(&lowered), Vec::<String>::new());
    assert_eq!(policy(&lowered, "web").selection, Selection::All);
    assert!(matches!(workload(&lowered, "web").strategy, Strategy::Rolling(_)));
}

#[test]
fn a_namespace_comes_alone_and_what_is_in_it_is_selected_by_its_own() {
    assert_eq!(objects(&whole(""), "web"), ["Namespace shop"]);
    let spec = "resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: web, namespace: shop}]";
    let inside = with_spec("ClusterPlacementPolicy", "name: web", spec);
    assert_eq!(objects(&inside, "web"), ["ConfigMap shop/web"]);
    let own = with_spec("PlacementPolicy", "name: web, namespace: shop", spec);
    assert_eq!(objects(&own, "web"), ["ConfigMap shop/web"]);
}

#[test]
fn the_sync_strategy_becomes_what_members_read() {
    let annotations = |strategy: &str| {
        let lowered = whole(&format!("syncStrategy: {{{strategy}}}"));
        assert_eq!(messages(&lowered), Vec::<String>::new());
        let made = &workload(&lowered, "web").templates[0].sync_annotations;
        made.iter().map(|(name, value)| format!("{}={value}", &name[10..])).collect::<Vec<_>>()
    };
    assert_eq!(annotations(""), ["co-owners=refused", "on-conflict=force", "take-over=never"]);
    let all = "applyMethod: ServerSideApply, whenOwnedByOthers: ShareOwnership, whenDrifted: ReportError, \
               whenAlreadyExists: TakeOverIfNoDiff, whenPlacementDeleted: OrphanResources, comparisonOption: FullComparison";
    assert_eq!(
        annotations(all),
        ["apply-when=if-not-drifted", "compare=full", "orphan=true", "take-over=if-no-diff"]
    );
    let forced = "applyMethod: ServerSideApply, serverSideApplyOptions: {forceConflicts: true}, whenAlreadyExists: AlwaysTakeOver";
    assert_eq!(annotations(forced), ["co-owners=refused", "on-conflict=force", "take-over=true"]);
}

#[test]
fn what_an_api_server_would_refuse_is_an_error_at_its_place() {
    let selector = |text: &str| whole(&format!("clusterSelectors: [{{{text}}}]"));
    for (text, wanted) in [
        ("count: 0", "clusterSelectors[0].count must be a number from 1 to 999, or All"),
        ("count: '1000'", "clusterSelectors[0].count must be a number"),
        ("count: 2, minCount: 3", "clusterSelectors[0].minCount is 3, but must not be above count, 2"),
        ("whenUnfulfilled: Panic", "must be one of AddClusterClaim"),
        ("terms: [{}, {}, {}, {}, {}, {}]", "terms must not have more than 5 entries"),
        ("terms: [{matchLabelExpressions: [{key: a, operator: Ge, values: ['1']}]}]", "a label is text"),
        ("terms: [{matchLabelExpressions: [{key: a, operator: In}]}]", "at least one value"),
        ("terms: [{matchLabelExpressions: [{key: a, operator: Exists, values: [b]}]}]", "no values"),
        (
            "terms: [{matchClusterPropertyExpressions: [{key: a, operator: In, values: [b]}]}]",
            "berth compares properties as numbers",
        ),
        ("terms: [{matchClusterPropertyExpressions: [{key: a, operator: Ge, values: [b]}]}]", "values: `b`"),
    ] {
        refused(&selector(text), wanted);
    }
    refused(&whole("clusterSelectors: []"), "must have from 1 to 10 entries, not 0");
    refused(&whole("tolerations: [{operator: Equal, value: b}]"), "is required with operator Equal");
    let spec = "resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: a}]";
    refused(&with_spec("ClusterPlacementPolicy", "name: web", spec), "must be the version alone");
    let spec = "resourceSelectors: [{apiVersion: v1, kind: ConfigMap, namespace: other}]";
    refused(
        &with_spec("PlacementPolicy", "name: web, namespace: shop", spec),
        "selects in its own namespace",
    );
    refused(&with_spec("ClusterPlacementPolicy", "name: web", ""), "resourceSelectors");
}
