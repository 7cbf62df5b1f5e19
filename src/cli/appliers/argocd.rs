//! Argo CD: an Application for one cluster, or an ApplicationSet over all clusters that a placement picks.

use serde_json::{Value as Json, json};

use super::flux::Source;

/// The parameters of Argo CD's objects for one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgoCdMember {
    pub cluster: String,
    /// Argo CD's name of the cluster.
    pub destination: String,
    pub source: Source,
    /// The namespace of Argo CD.
    pub namespace: String,
    /// The AppProject of the Application.
    pub project: String,
}

/// The usual namespace of Argo CD.
pub const NAMESPACE: &str = "argocd";

const VERSION: &str = "argoproj.io/v1alpha1";
const RBAC: &str = "rbac.authorization.k8s.io";
const DECISIONS: &str = "cluster.open-cluster-management.io";
/// The Secret that declares the registry to Argo CD, and may contain its credentials.
const REGISTRY: &str = "berth-registry";
/// The objects that let Argo CD read PlacementDecisions.
const READING: &str = "berth-placement-decisions";
/// The account of Argo CD's ApplicationSet controller in a standard installation.
const GENERATOR: &str = "argocd-applicationset-controller";

/// Returns the name of the Application for a cluster.
pub fn name_of(cluster: &str) -> String {
    format!("berth-{cluster}")
}

/// Returns Argo CD's objects for a cluster.
pub fn objects(member: &ArgoCdMember) -> Vec<Json> {
    let metadata = json!({"name": name_of(&member.cluster), "namespace": member.namespace});
    let application =
        json!({"apiVersion": VERSION, "kind": "Application", "metadata": metadata, "spec": spec(member)});
    registry(member).into_iter().chain([application]).collect()
}

/// Returns an ApplicationSet of this name, with an Application for each cluster that a placement picks, and the
/// objects that it needs. The decisions are Open Cluster Management's PlacementDecisions, in Argo CD's namespace.
/// `member` contains templates instead of names.
pub fn application_set(member: &ArgoCdMember, name: &str, placement: &str) -> Vec<Json> {
    let named = |name: &str| json!({"name": name, "namespace": member.namespace});
    let reads = json!([{"apiGroups": [DECISIONS], "resources": ["placementdecisions"],
        "verbs": ["get", "list", "watch"]}]);
    let mut objects = vec![
        // Argo CD expects the plural as the kind.
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": named(READING), "data": {
            "apiVersion": format!("{DECISIONS}/v1beta1"), "kind": "placementdecisions",
            "statusListKey": "decisions", "matchKey": "clusterName"}}),
        json!({"apiVersion": format!("{RBAC}/v1"), "kind": "Role", "metadata": named(READING), "rules": reads}),
        json!({"apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding", "metadata": named(READING),
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": READING},
            "subjects": [{"kind": "ServiceAccount", "name": GENERATOR, "namespace": member.namespace}]}),
    ];
    objects.extend(registry(member));
    let decisions = json!({"matchLabels": {format!("{DECISIONS}/placement"): placement}});
    objects.push(json!({"apiVersion": VERSION, "kind": "ApplicationSet", "metadata": named(name), "spec": {
        "goTemplate": true,
        "goTemplateOptions": ["missingkey=error"],
        "generators": [{"clusterDecisionResource": {
            "configMapRef": READING, "labelSelector": decisions, "requeueAfterSeconds": 60}}],
        // A cluster that is briefly missing in all decisions keeps its Application and its objects.
        "syncPolicy": {"applicationsSync": "create-update", "preserveResourcesOnDeletion": true},
        "template": {"metadata": {"name": name_of(&member.cluster)}, "spec": spec(member)},
    }}));
    objects
}

/// The parameters of an ApplicationSet's template: the cluster's name in the decision, and its name in Argo CD.
pub const TEMPLATES: [&str; 2] = ["{{.clusterName}}", "{{.name}}"];

/// Returns the Secret that declares a registry's repositories as OCI to Argo CD. Users add `username` and `password`
/// to it.
fn registry(member: &ArgoCdMember) -> Option<Json> {
    let Source::Registry { url, is_insecure, .. } = &member.source else { return None };
    let prefix = url.rsplit_once('/').map_or(url.as_str(), |(prefix, _)| prefix);
    let mut data = json!({"type": "oci", "url": prefix});
    if *is_insecure {
        data["insecureOCIForceHttp"] = "true".into();
    }
    Some(json!({"apiVersion": "v1", "kind": "Secret", "stringData": data, "metadata": {
        "name": REGISTRY, "namespace": member.namespace,
        "labels": {"argocd.argoproj.io/secret-type": "repo-creds"}}}))
}

fn spec(member: &ArgoCdMember) -> Json {
    let (repository, revision) = match &member.source {
        // With the short name, Argo CD could resolve the member's ref instead of the branch, whose commit is another
        // one.
        Source::Git { url, branch } => (url.as_str(), format!("refs/heads/{branch}")),
        Source::Registry { url, .. } => (url.as_str(), "current".to_owned()),
    };
    json!({
        "project": member.project,
        "source": {"repoURL": repository, "targetRevision": revision, "path": ".", "directory": {"recurse": true}},
        "destination": {"name": member.destination},
        "syncPolicy": {
            "automated": {"prune": true, "selfHeal": true, "allowEmpty": false},
            "syncOptions": ["ServerSideApply=true", "PruneLast=true", "ApplyOutOfSyncOnly=true"],
            // A retry uses the newest folder, so that a broken folder never delays its fix.
            "retry": {"limit": 5, "refresh": true,
                "backoff": {"duration": "5s", "factor": 2, "maxDuration": "3m"}},
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(source: Source) -> ArgoCdMember {
        let [cluster, destination] = ["oslo", "in-cluster"].map(str::to_owned);
        let [namespace, project] = [NAMESPACE, "default"].map(str::to_owned);
        ArgoCdMember { cluster, destination, source, namespace, project }
    }

    #[test]
    fn an_application_applies_one_folder_and_never_all_of_nothing() {
        let [url, branch] = ["https://g/fleet.git", "berth/clusters/oslo"].map(str::to_owned);
        let objects = objects(&member(Source::Git { url, branch }));
        assert_eq!(objects.len(), 1, "a Git repository needs nothing else");
        let spec = &objects[0]["spec"];
        assert_eq!(spec["source"]["targetRevision"], "refs/heads/berth/clusters/oslo");
        assert_eq!(spec["destination"], json!({"name": "in-cluster"}));
        assert_eq!(spec["syncPolicy"]["automated"]["allowEmpty"], false);
        // With a finalizer, removing the Application would remove all objects.
        assert_eq!(objects[0]["metadata"]["finalizers"], Json::Null);
    }

    #[test]
    fn a_registry_is_known_as_one() {
        let registry = |is_insecure| {
            let url = "oci://r/fleet/clusters/oslo".to_owned();
            objects(&member(Source::Registry { url, keys: None, is_insecure }))
        };
        let objects = registry(false);
        assert_eq!(objects[0]["stringData"], json!({"type": "oci", "url": "oci://r/fleet/clusters"}));
        assert_eq!(objects[1]["spec"]["source"]["targetRevision"], "current");
        assert_eq!(registry(true)[0]["stringData"]["insecureOCIForceHttp"], "true");
    }

    #[test]
    fn an_application_set_takes_nothing_away_by_itself() {
        let [cluster, destination] = TEMPLATES.map(str::to_owned);
        let url = format!("oci://r/fleet/clusters/{cluster}");
        let templates = ArgoCdMember {
            cluster,
            destination,
            ..member(Source::Registry { url, keys: None, is_insecure: false })
        };
        let objects = application_set(&templates, "berth", "everywhere");
        let kinds: Vec<&str> = objects.iter().filter_map(|object| object["kind"].as_str()).collect();
        assert_eq!(kinds, ["ConfigMap", "Role", "RoleBinding", "Secret", "ApplicationSet"]);
        let set = &objects[4]["spec"];
        let keeps = json!({"applicationsSync": "create-update", "preserveResourcesOnDeletion": true});
        assert_eq!(set["syncPolicy"], keeps);
        assert_eq!(set["template"]["metadata"]["name"], "berth-{{.clusterName}}");
        assert_eq!(set["template"]["spec"]["destination"], json!({"name": "{{.name}}"}));
        let repository = "oci://r/fleet/clusters/{{.clusterName}}";
        assert_eq!(set["template"]["spec"]["source"]["repoURL"], repository);
        assert_eq!(objects[3]["stringData"]["url"], "oci://r/fleet/clusters");
    }
}
