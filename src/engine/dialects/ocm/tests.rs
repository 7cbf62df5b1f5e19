//! Open Cluster Management's objects: single faults and warnings, and whole fleets.
//!
//! The diagnostics of single objects.

use crate::dialects::Claim;
use crate::load::{History, Loaded, load};
use berth_base::model::rollout::{Amount, Pace, Strategy};
use berth_base::model::{Source, Taint};
use berth_base::source::{SourceFile, SourceTree};

const GROUP: &str = "cluster.open-cluster-management.io";

fn read(text: &str) -> Loaded {
    let file = SourceFile::new("a.yaml", text.as_bytes());
    load(&SourceTree { files: [file].into(), ..SourceTree::default() }, History::None)
}

fn messages(loaded: &Loaded) -> Vec<String> {
    loaded.diagnostics.iter().filter(|one| one.at.is_some()).map(|one| one.to_string()).collect()
}

fn placement(spec: &str) -> String {
    format!(
        "apiVersion: {GROUP}/v1beta1\nkind: Placement\nmetadata: {{name: web, namespace: shop}}\nspec:\n{spec}"
    )
}

#[test]
fn all_faults_of_a_placement_are_reported_at_their_places() {
    let text = placement(
        "  numberOfCluster: 3\n  prioritizerPolicy:\n    configurations:\n    - weight: 11\n      scoreCoordinate: {builtIn: Stedy}\n  tolerations:\n  - {operator: Exist, key: a}\n",
    );
    let found = messages(&read(&text));
    let expected = [
        "a.yaml:5:3: error: unknown field `spec.numberOfCluster`\n  hint: did you mean `numberOfClusters`?",
        "a.yaml:8:15: error: spec.prioritizerPolicy.configurations[0].weight is 11, but must be from -10 to 10",
        "a.yaml:9:34: error: spec.prioritizerPolicy.configurations[0].scoreCoordinate.builtIn is `Stedy`, but must be one of Balance, Steady, ResourceAllocatableCPU, ResourceAllocatableMemory\n  hint: did you mean `Steady`?",
        "a.yaml:11:16: error: spec.tolerations[0].operator is `Exist`, but must be one of Equal, Exists\n  hint: did you mean `Exists`?",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_condition_that_says_unavailable_is_a_taint_unless_the_file_has_it() {
    let read_one = |status: &str, taints: &str| {
        let text = format!(
            "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {{name: oslo}}\n\
             spec: {{hubAcceptsClient: true, taints: [{taints}]}}\nstatus:\n  conditions:\n  - {{type: \
             ManagedClusterConditionAvailable, status: \"{status}\", lastTransitionTime: \"2026-01-02T03:04:05Z\"}}\n"
        );
        let fleet = read(&text).fleet;
        let taints = fleet.clusters["oslo"].taints.iter();
        let one = |taint: &Taint| format!("{} {:?}", taint.key, taint.since.map(|since| since.to_string()));
        taints.map(one).collect::<Vec<_>>()
    };
    let of =
        |name: &str, since: &str| vec![format!("cluster.open-cluster-management.io/{name} Some({since:?})")];
    assert!(read_one("True", "").is_empty());
    assert_eq!(read_one("False", ""), of("unavailable", "2026-01-02T03:04:05Z"));
    assert_eq!(read_one("Unknown", ""), of("unreachable", "2026-01-02T03:04:05Z"));
    let known = "{key: cluster.open-cluster-management.io/unavailable, effect: NoSelect, timeAdded: \"2026-01-01T00:00:00Z\"}";
    assert_eq!(read_one("False", known), of("unavailable", "2026-01-01T00:00:00Z"));
}

#[test]
fn a_binding_of_the_default_set_is_warned_of_unless_it_is_meant() {
    let binding = "apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSetBinding\n\
                   metadata: {name: default, namespace: shop}\nspec: {clusterSet: default}\n";
    let set = "---\napiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSet\n\
               metadata: {name: default}\n";
    let found = |text: &str| read(text).diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert!(
        matches!(found(binding).as_slice(), [one] if one.contains("is in `default`: placements of `shop` pick it"))
    );
    assert!(found(&format!("{binding}{set}")).is_empty());
}

#[test]
fn a_taint_without_effect_is_said() {
    let text = format!(
        "apiVersion: {GROUP}/v1\nkind: ManagedCluster\nmetadata: {{name: a}}\nspec:\n  taints:\n  - {{key: gpu, effect: PreferNoSelect}}\n"
    );
    let found = messages(&read(&text));
    assert_eq!(
        found,
        [
            "a.yaml:6:24: warning: spec.taints[0].effect is `PreferNoSelect`, which has no effect on placement\n  hint: use `NoSelect` to keep work away, or `NoSelectIfNew` to keep new work away"
        ]
    );
}

#[test]
fn an_expression_is_read_with_its_placement() {
    let text = placement(
        "  predicates:\n  - requiredClusterSelector:\n      celSelector:\n        celExpressions:\n        - managedCluster.metadata.name.startWith('a')\n        - manageCluster.spec == 1\n",
    );
    let path = "spec.predicates[0].requiredClusterSelector.celSelector.celExpressions";
    assert_eq!(
        messages(&read(&text)),
        [
            format!(
                "a.yaml:9:11: error: {path}[0]: at character 29: there is no method `startWith`\n  hint: did you mean `startsWith`?"
            ),
            format!(
                "a.yaml:10:11: error: {path}[1]: at character 1: there is nothing named `manageCluster`, only `managedCluster`\n  hint: did you mean `managedCluster`?"
            ),
        ]
    );
}

#[test]
fn a_binding_without_its_set_is_a_warning_with_the_nearest_name() {
    let text = format!(
        "apiVersion: {GROUP}/v1beta2\nkind: ManagedClusterSetBinding\nmetadata: {{name: globl, namespace: shop}}\nspec: {{clusterSet: globl}}\n"
    );
    let found = messages(&read(&text));
    assert_eq!(
        found,
        [
            "a.yaml:4:20: warning: there is no ManagedClusterSet `globl`, so this binding has no effect\n  hint: did you mean `global`?"
        ]
    );
}

#[test]
fn a_cluster_is_read_with_all_a_placement_may_look_at() {
    let text = format!(
        "apiVersion: {GROUP}/v1\nkind: ManagedCluster\nmetadata: {{name: a}}\nspec:\n  taints:\n  - {{key: gpu, effect: NoSelectIfNew, timeAdded: \"2024-02-01T00:00:00Z\"}}\nstatus:\n  allocatable: {{cpu: 12, memory: 64Gi}}\n  capacity: {{cpu: 16}}\n  clusterClaims: [{{name: id, value: x}}, {{name: id, value: z}}]\n"
    );
    let loaded = read(&text);
    assert_eq!(messages(&loaded), [] as [&str; 0]);
    let cluster = &loaded.fleet.clusters["a"];
    assert_eq!(cluster.labels["cluster.open-cluster-management.io/clusterset"], "default");
    assert_eq!((cluster.allocatable["cpu"].as_str(), cluster.claims["id"].as_str()), ("12", "z"));
    assert_eq!(
        cluster.taints[0].since.map(|since| since.to_string()).as_deref(),
        Some("2024-02-01T00:00:00Z")
    );
}

#[test]
fn a_work_set_follows_placements_of_its_namespace() {
    let text = format!(
        "{}---\napiVersion: work.open-cluster-management.io/v1alpha1\nkind: ManifestWorkReplicaSet\nmetadata: {{name: w, namespace: shop}}\nspec:\n  placementRefs:\n  - name: web\n    rolloutStrategy: {{type: Progressive, progressive: {{maxConcurrency: 25%}}}}\n  manifestWorkTemplate:\n    workload:\n      manifests:\n      - {{apiVersion: v1, kind: Namespace, metadata: {{name: x}}}}\n",
        placement("  numberOfClusters: 1\n")
    );
    let loaded = read(&text);
    let found = messages(&loaded);
    assert!(found.is_empty(), "{found:?}");
    let (key, workload) = loaded.fleet.workloads.first_key_value().expect("there is a workload");
    assert_eq!(workload.templates.len(), 1);
    let Source::Follows(follow) = &loaded.fleet.placements[key].source else { panic!("it follows") };
    assert_eq!(follow.placements[0].describe(), "Placement shop/web");
    let Strategy::Progressive(rollouts) = &workload.strategy else { panic!("it rolls out") };
    assert_eq!(rollouts[0].pace, Pace::ByCluster(Some(Amount::Percent(25))));
}

#[test]
fn a_work_set_must_name_placements_and_objects() {
    let text = "apiVersion: work.open-cluster-management.io/v1alpha1\nkind: ManifestWorkReplicaSet\nmetadata: {name: w, namespace: shop}\nspec:\n  placementRefs: []\n  manifestWorkTemplate:\n    workload:\n      manifests:\n      - {apiVersion: v1, kind: Namespace, metadata: {generateName: x}}\n";
    let found = messages(&read(text));
    for fault in [
        "spec.placementRefs must name at least one",
        "metadata.name is required",
        "generateName is not possible",
    ] {
        assert!(found.iter().any(|one| one.contains(fault)), "{fault}: {found:?}");
    }
}

#[test]
fn kinds_are_told_apart() {
    let claims = |kind: &str, group: &str| {
        let loaded = crate::dialects::ParsedDocument {
            key: berth_base::model::Key::new(group, kind, "", "x"),
            version: "v1".to_owned(),
            at: berth_base::diag::Pos::file("a.yaml"),
            root: crate::testing::node(&serde_json::json!({})).pack(),
            ..crate::dialects::ParsedDocument::default()
        };
        (super::DIALECT.claim)(&[loaded.into()])
    };
    assert_eq!(claims("ManagedCluster", GROUP), [Claim::Inventory]);
    assert_eq!(claims("Placement", GROUP), [Claim::Policy]);
    assert_eq!(claims("PlacementDecision", GROUP), [Claim::Bookkeeping]);
    assert_eq!(claims("Placment", GROUP), [Claim::Unknown]);
    assert_eq!(claims("Placement", "example.org"), [Claim::Foreign]);
    assert_eq!(claims("ManifestWorkReplicaSet", "work.open-cluster-management.io"), [Claim::Workload]);
}

const WORKS: &str = "apiVersion: work.open-cluster-management.io/v1alpha1\nkind: ManifestWorkReplicaSet\n\
                     metadata: {name: web, namespace: shop}\nspec:\n  placementRefs: [{name: all}]\n  \
                     manifestWorkTemplate:\n    workload:\n      manifests:\n      \
                     - {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}\n      \
                     - {apiVersion: apps/v1, kind: Deployment, metadata: {name: b, namespace: shop}}\n";

/// Returns the syncer's annotations on a work's two objects, and the diagnostics of the work.
fn options(text: &str) -> (Vec<String>, Vec<String>) {
    let loaded = read(&format!("{WORKS}{text}"));
    let workload = loaded.fleet.workloads.values().next();
    let templates = workload.map(|workload| workload.templates.as_slice()).unwrap_or_default();
    let words = templates.iter().map(|template| {
        let all = template.sync_annotations.iter();
        all.map(|(name, value)| format!("{}={value}", &name["berth.dev/".len()..]))
            .collect::<Vec<_>>()
            .join(" ")
    });
    let about = |one: &String| one.contains("manifestWorkTemplate");
    (words.collect(), messages(&loaded).into_iter().filter(about).collect())
}

#[test]
fn how_a_work_is_deleted_becomes_annotations() {
    let foreground = r#"delete-options={"propagationPolicy":"Foreground"}"#;
    for (option, wanted) in [
        ("{propagationPolicy: Foreground}", [foreground, foreground]),
        ("{propagationPolicy: Orphan}", ["orphan=true", "orphan=true"]),
        (
            "{propagationPolicy: SelectivelyOrphan, selectivelyOrphans: {orphaningRules: \
             [{group: apps, resource: deployments, namespace: shop, name: b}]}}",
            ["", "orphan=true"],
        ),
    ] {
        let (found, said) = options(&format!("    deleteOption: {option}\n"));
        assert_eq!((found, said), (wanted.map(str::to_owned).to_vec(), vec![]), "{option}");
    }
    let (_, said) = options("    deleteOption: {propagationPolicy: SelectivelyOrphan}\n");
    assert!(said[0].contains("selectivelyOrphans is required with SelectivelyOrphan"), "{said:?}");
    let (_, said) = options("    deleteOption: {ttlSecondsAfterFinished: 60}\n");
    assert!(said[0].contains("warning") && said[0].contains("stay until the work is removed"), "{said:?}");
}

#[test]
fn how_an_object_is_updated_becomes_annotations() {
    let config = |strategy: &str| {
        options(&format!(
            "    manifestConfigs:\n    - resourceIdentifier: {{group: apps, resource: deployments, namespace: shop, name: b}}\n      \
             updateStrategy: {strategy}\n"
        ))
    };
    for (strategy, wanted) in [
        ("{type: Update}", "on-conflict=force"),
        ("{type: CreateOnly}", "apply=create-only"),
        ("{type: ReadOnly}", "apply=read-only"),
        ("{type: ServerSideApply}", ""),
        (
            "{type: ServerSideApply, serverSideApply: {force: true, fieldManager: work-agent}}",
            "on-conflict=force",
        ),
        (
            "{type: ServerSideApply, serverSideApply: {ignoreFields: [{condition: OnSpokePresent, \
             jsonPaths: [.spec.replicas], jsonPointers: [/metadata/labels]}, {condition: OnSpokeChange, \
             jqPathExpressions: ['.spec.template.spec.containers[].image']}]}}",
            "initial=/metadata/labels,/spec/replicas tolerate=/spec/template/spec/containers/*/image",
        ),
    ] {
        let (found, said) = config(strategy);
        assert_eq!((found, said), (vec![String::new(), wanted.to_owned()], vec![]), "{strategy}");
    }
    for (strategy, fault) in [
        ("{type: ServerSideApply, serverSideApply: {fieldManager: me}}", "must start with `work-agent`"),
        (
            "{type: ServerSideApply, serverSideApply: {fieldManager: work-agent-2}}",
            "members apply as `berth/<fleet>`",
        ),
        (
            "{type: ServerSideApply, serverSideApply: {ignoreFields: [{jsonPaths: ['.a[?(@.b==1)]']}]}}",
            "is not a plain path",
        ),
    ] {
        let (_, said) = config(strategy);
        assert!(said.len() == 1 && said[0].contains(fault), "{strategy}: {said:?}");
    }
    let (_, said) = options(
        "    manifestConfigs:\n    - resourceIdentifier: {group: apps, resource: deployments, namespace: shop, name: b}\n      \
         feedbackRules: [{type: WellKnownStatus}]\n",
    );
    assert!(said.len() == 1 && said[0].contains("feedbackRules has no effect"), "{said:?}");
    let (_, said) = options(
        "    manifestConfigs:\n    - resourceIdentifier: {resource: secrets, namespace: shop, name: a}\n",
    );
    assert!(said[0].contains("warning") && said[0].contains("matches no object of this work"), "{said:?}");
}

#[test]
fn an_objects_resource_is_what_its_definition_in_the_tree_says() {
    let work = WORKS.replace("apps/v1, kind: Deployment", "search.io/v1, kind: Index");
    let option = "    deleteOption: {propagationPolicy: SelectivelyOrphan, selectivelyOrphans: {orphaningRules: \
                  [{group: search.io, resource: indices, namespace: shop, name: b}]}}\n";
    let definition = "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: indices.search.io}\n\
                      spec: {group: search.io, names: {kind: Index, plural: indices}, scope: Namespaced, versions: []}\n";
    let fitting = |text: &str| {
        let loaded = read(text);
        let templates = loaded.fleet.workloads.values().flat_map(|workload| &workload.templates);
        templates.filter(|template| template.sync_annotations.contains_key("berth.dev/orphan")).count()
    };
    assert_eq!(fitting(&format!("{work}{option}{definition}")), 1);
    assert_eq!(fitting(&format!("{work}{option}")), 0);
}

#[test]
fn what_was_to_be_left_alone_and_is_not_found_is_an_error() {
    let nothing = "{resource: secrets, namespace: shop, name: a}";
    for text in [
        format!(
            "    deleteOption: {{propagationPolicy: SelectivelyOrphan, selectivelyOrphans: {{orphaningRules: [{nothing}]}}}}\n"
        ),
        format!(
            "    manifestConfigs:\n    - {{resourceIdentifier: {nothing}, updateStrategy: {{type: ReadOnly}}}}\n"
        ),
        format!(
            "    manifestConfigs:\n    - {{resourceIdentifier: {nothing}, updateStrategy: {{type: CreateOnly}}}}\n"
        ),
    ] {
        let (_, said) = options(&text);
        assert!(said.len() == 1 && said[0].contains("error: "), "{text} {said:?}");
        assert!(said[0].contains("matches no object of this work"), "{said:?}");
    }
}

#[test]
fn sets_that_a_hub_makes_can_not_be_changed() {
    let set = |name: &str, annotations: &str, selector: &str| {
        format!(
            "apiVersion: {GROUP}/v1beta2\nkind: ManagedClusterSet\nmetadata: {{name: {name}, annotations: {annotations}}}\nspec: {{clusterSelector: {selector}}}\n"
        )
    };
    let by_label = "{selectorType: ExclusiveClusterSetLabel}";
    let everything = "{selectorType: LabelSelector, labelSelector: {}}";
    for (name, selector) in [("default", by_label), ("global", everything), ("blue", everything)] {
        assert_eq!(messages(&read(&set(name, "{}", selector))), Vec::<String>::new(), "{name}");
    }
    for (name, selector) in [("default", everything), ("global", by_label)] {
        let found = messages(&read(&set(name, "{}", selector)));
        let wanted =
            format!("a.yaml:3:18: error: the set `{name}` cannot be changed: a hub would restore it");
        assert!(found.len() == 1 && found[0].starts_with(&wanted), "{found:?}");
        let left_alone = "{cluster.open-cluster-management.io/autoupdate: \"false\"}";
        assert_eq!(messages(&read(&set(name, left_alone, selector))), Vec::<String>::new());
    }
}

#[test]
fn a_cluster_labelled_with_a_set_that_there_is_not_is_warned_of() {
    let cluster = |set: &str| {
        format!(
            "apiVersion: {GROUP}/v1beta2\nkind: ManagedClusterSet\nmetadata: {{name: blue}}\n---\napiVersion: {GROUP}/v1\nkind: ManagedCluster\nmetadata: {{name: a, labels: {{{GROUP}/clusterset: {set}}}}}\n"
        )
    };
    assert_eq!(messages(&read(&cluster("blue"))), Vec::<String>::new());
    assert_eq!(
        messages(&read(&cluster("bleu"))),
        [
            "a.yaml:5:1: warning: the label of cluster `a` names the set `bleu`, which does not exist\n  hint: did you mean `blue`?"
        ]
    );
}

#[test]
fn a_work_goes_to_the_cluster_in_whose_namespace_it_stands() {
    let work = |metadata: &str| {
        format!(
            "apiVersion: work.open-cluster-management.io/v1\nkind: ManifestWork\nmetadata: {{name: web, namespace: oslo{metadata}}}\nspec:\n  workload:\n    manifests:\n    - {{apiVersion: v1, kind: ConfigMap, metadata: {{name: web}}}}\n"
        )
    };
    let read = |metadata: &str| read(&work(metadata)).fleet;
    let fleet = read("");
    let (key, workload) = fleet.workloads.iter().next().expect("a workload");
    assert_eq!((key.to_string().as_str(), workload.templates.len()), ("ManifestWork oslo/web", 1));
    for made in [
        ", labels: {work.open-cluster-management.io/manifestworkreplicaset: shop.web}",
        ", labels: {open-cluster-management.io/addon-name: network}",
        ", ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: a, uid: x}]",
    ] {
        assert!(read(made).workloads.is_empty(), "{made}");
    }
}
