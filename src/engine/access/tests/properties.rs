//! Properties over random small rules and files.

use proptest::prelude::*;

use super::*;

/// Generates small rules.
fn specs() -> impl Strategy<Value = String> {
    let words = |of: &'static [&'static str]| {
        proptest::sample::subsequence(of, 0..=of.len()).prop_map(|some| format!("[{}]", some.join(", ")))
    };
    let names: &[&str] = &["blue", "red", "default", "'*'"];
    let sets = (words(names), words(names), words(names));
    let rest = (
        words(&["shop", "bank", "'*'"]),
        words(&["ConfigMap", "Role", "'*'"]),
        words(&["Namespace", "ClusterRole", "'*'"]),
        words(&["oslo", "turin"]),
    );
    let folders = proptest::sample::subsequence(&["a", "b", "/"][..], 1..=3).prop_map(|some| some.join(", "));
    (folders, sets, rest).prop_map(|(folders, (bind, join, admin), (namespaces, kinds, cluster_kinds, edit))| {
        format!(
            "{{folders: [{folders}], clusterSets: {{bind: {bind}, join: {join}, admin: {admin}}}, clusters: {{edit: {edit}}}, \
             namespaces: {namespaces}, kinds: {kinds}, clusterKinds: {cluster_kinds}}}"
        )
    })
}

/// Generates a few files of all sorts that rules read.
fn files() -> impl Strategy<Value = Vec<(String, String)>> {
    let sets = || proptest::sample::select(vec!["blue", "red"]);
    let one = prop_oneof![
        (proptest::sample::select(vec!["oslo", "turin"]), sets()).prop_map(|(name, set)| in_set(name, set)),
        Just(cluster("oslo", "env: prod")),
        proptest::sample::select(vec!["shop", "bank"]).prop_map(|space| object(
            "v1",
            "ConfigMap",
            space,
            "x"
        )),
        Just(object("rbac.authorization.k8s.io/v1", "Role", "shop", "x")),
        Just(object("v1", "Namespace", "", "shop")),
        sets().prop_map(|set| object(
            "cluster.open-cluster-management.io/v1beta2",
            "ManagedClusterSet",
            "",
            set
        )),
        sets().prop_map(|set| {
            let binding = "ManagedClusterSetBinding";
            object("cluster.open-cluster-management.io/v1beta2", binding, "shop", set)
        }),
    ];
    let path = proptest::sample::select(vec!["a", "b", "a/c"]);
    proptest::collection::vec((path, one), 0..5).prop_map(|files| {
        let numbered = files.into_iter().enumerate();
        numbered.map(|(number, (folder, text))| (format!("{folder}/{number}.yaml"), text)).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn one_more_grant_never_adds_an_error_and_without_rules_there_is_none(
        specs_before in proptest::collection::vec(specs(), 1..3),
        more in specs(),
        before in files(),
        now in files(),
    ) {
        let errors = |specs: &[String]| {
            let texts: Vec<String> = specs.iter().map(|spec| rule_of("r", spec)).collect();
            let mut files: Vec<(&str, &str)> = texts.iter().map(|text| ("access/r.yaml", text.as_str())).collect();
            files.extend(before.iter().map(|(path, text)| (path.as_str(), text.as_str())));
            let now: Vec<(&str, &str)> = now.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
            let judged = judge(&files, &now);
            (judged.refused, judged.stays)
        };
        let few = errors(&specs_before);
        let all: Vec<String> = specs_before.iter().cloned().chain([more]).collect();
        let many = errors(&all);
        prop_assert!(many.0.is_subset(&few.0) && many.1.is_subset(&few.1), "{many:?}\nis more than {few:?}");
        prop_assert_eq!(errors(&[]), Default::default());
    }
}
