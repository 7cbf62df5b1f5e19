use berth_base::model::cluster::{Readiness, Report};
use berth_base::source::{SourceFile, SourceTree};

use crate::load::{History, Loaded, load};

fn loaded(text: &str) -> Loaded {
    let files = vec![SourceFile::new("profiles.yaml", text.as_bytes())];
    load(&SourceTree { files: files.into_iter().collect(), ..SourceTree::default() }, History::None)
}

fn said(loaded: &Loaded) -> Vec<String> {
    loaded.diagnostics.iter().map(|one| one.to_string().replace('\n', " ")).collect()
}

fn profile(namespace: &str, status: &str) -> String {
    format!(
        "apiVersion: multicluster.x-k8s.io/v1alpha1\nkind: ClusterProfile\n\
         metadata: {{name: ams-1, namespace: {namespace}, labels: {{env: prod, x-k8s.io/cluster-manager: fleet-hub}}}}\n\
         spec: {{displayName: Amsterdam, clusterManager: {{name: fleet-hub}}}}\nstatus: {status}\n"
    )
}

const WHOLE: &str = "{version: {kubernetes: v1.34.2}, conditions: [{type: ControlPlaneHealthy, status: 'True', \
    reason: Fine, message: '', lastTransitionTime: '2026-11-01T00:00:00Z'}], properties: [{name: location, value: eu, \
    lastObservedTime: '2026-11-01T00:00:00Z'}], accessProviders: [{name: kubeconfig, cluster: {server: 'https://a'}}]}";

#[test]
fn a_profile_is_a_cluster_with_its_labels_properties_and_health() {
    let loaded = loaded(&profile("fleet", WHOLE));
    assert_eq!(said(&loaded), Vec::<String>::new());
    let cluster = &loaded.fleet.clusters["ams-1"];
    assert_eq!(cluster.labels["env"], "prod");
    assert_eq!((cluster.claims["location"].as_str(), cluster.properties["location"].as_str()), ("eu", "eu"));
    assert_eq!(cluster.standing, Readiness::Reported(Report { ready: Some(true), ..Report::default() }));
    assert_eq!(cluster.details["status.version"]["kubernetes"], "v1.34.2");
}

#[test]
fn health_is_what_all_conditions_say_and_without_any_nothing_is_known() {
    let standing = |conditions: &str| {
        let status = format!("{{conditions: {conditions}}}");
        loaded(&profile("fleet", &status)).fleet.clusters["ams-1"].standing.clone()
    };
    let ready = |ready| Readiness::Reported(Report { ready: Some(ready), ..Report::default() });
    let one = |kind: &str, status: &str| format!("{{type: {kind}, status: '{status}'}}");
    let (healthy, away) = (one("ControlPlaneHealthy", "True"), one("Joined", "False"));
    assert_eq!(standing(&format!("[{healthy}, {away}]")), ready(false));
    assert_eq!(standing(&format!("[{}]", one("ControlPlaneHealthy", "Unknown"))), ready(false));
    assert_eq!(standing(&format!("[{}]", one("Other", "False"))), Readiness::Assumed);
    assert_eq!(standing("null"), Readiness::Assumed);
}

#[test]
fn profiles_of_one_cluster_in_several_namespaces_are_one_cluster() {
    let loaded = loaded(&format!("{}---\n{}", profile("one", WHOLE), profile("two", WHOLE)));
    assert_eq!(said(&loaded), Vec::<String>::new());
    assert_eq!(loaded.fleet.clusters.len(), 1);
    assert_eq!(loaded.fleet.clusters["ams-1"].origins.len(), 2);
}

#[test]
fn faults_have_their_places_and_a_set_of_the_namespace_is_pointed_out() {
    let long = "x".repeat(1025);
    for (text, wanted) in [
        (profile("fleet", "{properties: [{name: a}]}"), "status.properties[0].value is required"),
        (
            profile("fleet", &format!("{{properties: [{{name: a, value: {long}}}]}}")),
            "status.properties[0].value must not be longer than 1024 characters",
        ),
        (
            profile("fleet", "{properties: [{name: a, value: b}, {name: a, value: c}]}"),
            "status.properties has the property `a` twice",
        ),
        (profile("fleet", WHOLE).replace("{name: fleet-hub}", "{}"), "spec.clusterManager.name is required"),
        (profile("''", WHOLE), "metadata.namespace"),
    ] {
        let loaded = loaded(&text);
        let said = said(&loaded);
        assert!(said.iter().any(|one| one.contains("error") && one.contains(wanted)), "{wanted}: {said:?}");
        assert!(loaded.fleet.clusters.is_empty(), "{wanted}");
    }
    let other = profile("fleet", WHOLE).replace("manager: fleet-hub", "manager: other");
    assert!(said(&loaded(&other))[0].contains("make them equal"), "{:?}", said(&loaded(&other)));
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: fleet, labels: {multicluster.x-k8s.io/clusterset: eu}}\n";
    let found = said(&loaded(&format!("{namespace}---\n{}", profile("fleet", WHOLE))));
    assert!(found.iter().any(|one| one.contains("is of the cluster set `eu`")), "{found:?}");
}

#[test]
fn the_applier_of_a_cluster_is_read_from_each_kind_and_a_slip_is_an_error() {
    let kinds = [
        "apiVersion: core.kubefed.io/v1beta1\nkind: KubeFedCluster\nspec: {apiEndpoint: 'https://a', secretRef: {name: s}}",
        "apiVersion: cluster.kubernetes-fleet.io/v1\nkind: MemberCluster\nspec: {identity: {kind: User, name: a}}",
        "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nspec: {hubAcceptsClient: true}",
        "apiVersion: multicluster.x-k8s.io/v1alpha1\nkind: ClusterProfile\nspec: {clusterManager: {name: a}}",
    ];
    for kind in kinds {
        let with = |applier: &str| {
            let metadata =
                format!("{{name: oslo, namespace: fleet, annotations: {{berth.dev/applier: {applier}}}}}");
            loaded(&format!(
                "{kind}\nmetadata: {}\n",
                metadata.replace(
                    "namespace: fleet, ",
                    match kind.contains("Profile") || kind.contains("KubeFed") {
                        true => "namespace: fleet, ",
                        false => "",
                    }
                )
            ))
        };
        let good = with("flux");
        assert_eq!(said(&good), Vec::<String>::new(), "{kind}");
        assert_eq!(good.fleet.clusters["oslo"].applier.map(|applier| applier.name), Some("flux"));
        let bad = said(&with("fluxx"));
        assert!(
            bad.iter()
                .any(|one| one.contains("error: unknown applier `fluxx`")
                    && one.contains("did you mean `flux`?")),
            "{bad:?}"
        );
    }
}
