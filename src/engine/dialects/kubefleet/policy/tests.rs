use crate::dialects::kubefleet::testing::{lower_text, messages, policy};
use berth_base::model::decision::Outcome;
use berth_base::model::placement::{Rule, ScoreRule, Selection};
use berth_base::model::{Comparison, Measure};

fn with_policy(policy: &str) -> crate::dialects::Lowered {
    lower_text(&format!(
        "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterResourcePlacement\n\
         metadata: {{name: web}}\nspec:\n  policy: {policy}\n"
    ))
}

#[track_caller]
fn refused(policy: &str, wanted: &str) {
    let lowered = with_policy(policy);
    let found = messages(&lowered);
    assert!(found.iter().any(|one| one.starts_with("error") && one.contains(wanted)), "{policy}: {found:?}");
    assert!(lowered.placements.is_empty(), "a faulty policy must not be used");
}

#[test]
fn a_placement_without_selectors_is_a_policy_only() {
    let lowered = with_policy("{placementType: PickFixed, clusterNames: [a]}");
    assert!(lowered.workloads.is_empty() && lowered.placements.len() == 1 && lowered.diagnostics.is_empty());
}

#[test]
fn pick_all_filters_by_terms_fitness_and_taints_in_this_order() {
    let lowered = with_policy(
        "{affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: \
         {clusterSelectorTerms: [{labelSelector: {matchLabels: {env: prod}}}]}}}}",
    );
    let rules: Vec<_> = policy(&lowered, "web").filters.iter().map(|filter| &filter.rule).collect();
    assert!(matches!(rules[..], [Rule::AnyOf(_), Rule::Eligible(_), Rule::Tolerates(_)]), "{rules:?}");
}

#[test]
fn resource_properties_mean_the_resource_usage() {
    for (name, measure) in [
        ("resources.kubernetes-fleet.io/total-cpu", Measure::Capacity("cpu".into())),
        ("resources.kubernetes-fleet.io/allocatable-memory", Measure::Allocatable("memory".into())),
        (
            "resources.kubernetes-fleet.io/available-ephemeral-storage",
            Measure::Available("ephemeral-storage".into()),
        ),
        ("kubernetes-fleet.io/node-count", Measure::Property("kubernetes-fleet.io/node-count".into())),
    ] {
        let lowered = with_policy(&format!(
            "{{affinity: {{clusterAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: \
             {{clusterSelectorTerms: [{{propertySelector: {{matchExpressions: \
             [{{name: {name}, operator: Ge, values: ['4']}}]}}}}]}}}}}}}}"
        ));
        let Rule::AnyOf(terms) = &policy(&lowered, "web").filters[0].rule else { panic!("terms come first") };
        assert_eq!(terms[0].properties[0].measure, measure);
        assert_eq!(terms[0].properties[0].comparison, Comparison::GreaterOrEqual);
    }
}

#[test]
fn preferences_constraints_and_what_was_there_make_the_order() {
    let lowered = with_policy(
        "{placementType: PickN, numberOfClusters: 2, topologySpreadConstraints: [{topologyKey: region}], \
         affinity: {clusterAffinity: {preferredDuringSchedulingIgnoredDuringExecution: \
         [{weight: 7, preference: {propertySorter: {name: x, sortOrder: Ascending}}}]}}}",
    );
    let policy = policy(&lowered, "web");
    assert_eq!(policy.selection, Selection::First(2));
    let names: Vec<_> = policy.scorers.iter().map(|scorer| scorer.name.as_str()).collect();
    assert_eq!(names, ["topologySpreadScore", "affinityScore", ""]);
    let ScoreRule::Spread(constraints) = &policy.scorers[0].rule else { panic!("constraints come first") };
    assert!(constraints[0].required && constraints[0].max_skew == 1);
    assert!(policy.candidates.is_empty(), "domains and extremes are the whole fleet's");
}

#[test]
fn pick_fixed_without_names_changes_nothing() {
    let lowered = with_policy("{placementType: PickFixed}");
    let blocked = policy(&lowered, "web").blocked.as_ref().expect("nothing can be decided");
    assert!(blocked.keep_earlier && !blocked.condition.status);
    assert!(messages(&lowered)[0].contains("no cluster is named"));
}

#[test]
fn conditions_are_in_kubefleets_words() {
    let outcome = |picked, wanted| Outcome { picked, wanted, ..Outcome::default() };
    for (text, outcome, reason) in [
        ("{placementType: PickAll}", outcome(0, None), "SchedulingPolicyFulfilled"),
        ("{placementType: PickN, numberOfClusters: 3}", outcome(3, Some(3)), "SchedulingPolicyFulfilled"),
        ("{placementType: PickN, numberOfClusters: 3}", outcome(2, Some(3)), "SchedulingPolicyUnfulfilled"),
        (
            "{placementType: PickFixed, clusterNames: [a]}",
            Outcome { unmet: vec!["a".into()], ..outcome(0, Some(1)) },
            "SchedulingPolicyUnfulfilled",
        ),
    ] {
        let condition =
            (policy(&with_policy(text), "web").condition.function)(&outcome).expect("there is one");
        assert_eq!((condition.kind.as_str(), condition.reason.as_str()), ("Scheduled", reason), "{text}");
    }
}

#[test]
fn a_fault_in_a_field_of_the_wrong_type_is_reported_too() {
    let lowered =
        with_policy("{placementType: PickFixed, clusterNames: [a], tolerations: [{operator: Near}]}");
    let found = messages(&lowered);
    assert!(found.iter().any(|one| one.contains("tolerations belongs to PickAll and PickN")), "{found:?}");
    assert!(found.iter().any(|one| one.contains("operator is `Near`")), "{found:?}");
}

#[test]
fn contradictions_on_one_property_are_refused() {
    let term = |requirements: &[(&str, &str)]| {
        let list: Vec<_> = requirements
            .iter()
            .map(|(operator, value)| format!("{{name: x, operator: {operator}, values: ['{value}']}}"))
            .collect();
        format!(
            "{{affinity: {{clusterAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: \
             {{clusterSelectorTerms: [{{propertySelector: {{matchExpressions: [{}]}}}}]}}}}}}}}",
            list.join(", ")
        )
    };
    for bad in [
        [("Eq", "1"), ("Eq", "2")],
        [("Ne", "1"), ("Eq", "1000m")],
        [("Gt", "5"), ("Le", "5")],
        [("Ge", "1Gi"), ("Lt", "1G")],
        [("Eq", "9"), ("Lt", "5")],
    ] {
        refused(&term(&bad), "property `x`");
    }
    for (name, sound) in [
        ("kubernetes.azure.com/vm-sizes/Standard_D4s_v5/count", true),
        ("resources.kubernetes-fleet.io/total-ephemeral-storage", true),
        ("plain", true),
        ("a b", false),
        ("a//b", false),
        ("a/", false),
        ("resources.kubernetes-fleet.io/total-", false),
    ] {
        let named = term(&[("Ge", "1")]).replace("name: x", &format!("name: '{name}'"));
        match sound {
            true => assert!(with_policy(&named).diagnostics.is_empty(), "{name}"),
            false => refused(&named, "is not a valid property name"),
        }
    }
    for good in [[("Ge", "5"), ("Le", "5")], [("Ne", "5"), ("Ne", "6")], [("Gt", "1"), ("Lt", "2")]] {
        assert!(with_policy(&term(&good)).diagnostics.is_empty(), "{good:?}");
    }
}

#[test]
fn other_faults_name_their_field() {
    refused("{placementTyp: PickAll}", "unknown field `spec.policy.placementTyp`");
    refused("{placementType: PickN, numberOfClusters: two}", "numberOfClusters must be a whole number");
    refused("{tolerations: [{key: 'a b', operator: Exists}]}", "tolerations[0].key");
    refused("{tolerations: [{value: x}]}", "tolerations[0].key is required");
    let unknown = with_policy("{tolerations: [{operator: Equals, value: x}]}");
    assert_eq!(messages(&unknown).len(), 1, "no other error follows from it: {:?}", messages(&unknown));
    refused(
        "{affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: \
         {clusterSelectorTerms: [{propertySorter: {name: x, sortOrder: Ascending}}]}}}}",
        "propertySorter",
    );
    refused(
        "{affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: \
         {clusterSelectorTerms: [{propertySelector: {matchExpressions: \
         [{name: x, operator: Gt, values: [many]}]}}]}}}}",
        "`many` is not a quantity",
    );
}
