//! Fleets whose members' reports decide where a workload goes.

use std::process::Stdio;

use super::{RENDERED, Repo, hermetic};

/// The global set, bound into the namespace `shop`.
pub const GLOBAL_SET: &str = "apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSetBinding\n\
     metadata: {name: global, namespace: shop}\nspec: {clusterSet: global}\n---\n\
     apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSet\nmetadata: {name: global}\n\
     spec: {clusterSelector: {selectorType: LabelSelector, labelSelector: {}}}\n";

/// Managed clusters `c00`, `c01`… with one workload of some config maps on all that the placement picks, published.
pub fn fleet_of(clusters: usize, placement: String, objects: usize) -> (Repo, Vec<String>) {
    let repo = Repo::new();
    let names: Vec<String> = (0..clusters).map(|n| format!("c{n:02}")).collect();
    for name in &names {
        repo.write(&format!("clusters/{name}.yaml"), managed(name, ""));
    }
    repo.write("sets.yaml", GLOBAL_SET);
    repo.write("apps/placement.yaml", placement);
    repo.write("apps/work.yaml", work(objects));
    repo.commit("start");
    repo.publish().expect(0);
    (repo, names)
}

/// How many clusters have an object, by its file's name.
pub fn copies(repo: &Repo, file: &str) -> usize {
    repo.files(RENDERED).keys().filter(|path| path.starts_with("clusters/") && path.ends_with(file)).count()
}

/// The first object of [`work`].
pub const WEB: &str = "ConfigMap_web-0.yaml";

/// A cluster with what else its spec says.
pub fn managed(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {{name: {name}}}\n\
         spec:\n  hubAcceptsClient: true\n{spec}"
    )
}

/// Picks all clusters but those that report this claim.
pub fn placement(claim: &str, value: &str) -> String {
    selecting(&format!(
        "claimSelector: {{matchExpressions: [{{key: {claim}, operator: NotIn, values: [{value}]}}]}}"
    ))
}

/// Picks all clusters but those with this label.
pub fn label(key: &str, value: &str) -> String {
    selecting(&format!(
        "labelSelector: {{matchExpressions: [{{key: {key}, operator: NotIn, values: [{value}]}}]}}"
    ))
}

/// Picks all clusters, and tolerates the taint `drain`, for ever or for some seconds.
pub fn tolerating(seconds: Option<i64>) -> String {
    let seconds = seconds.map_or_else(String::new, |seconds| format!(", tolerationSeconds: {seconds}"));
    format!("{}  tolerations:\n  - {{key: drain, operator: Exists{seconds}}}\n", placement("none", "none"))
}

/// A taint `drain` since some moment, for [`managed`].
pub fn drained(since: &str) -> String {
    format!("  taints:\n  - {{key: drain, effect: NoSelect, timeAdded: \"{since}\"}}\n")
}

fn selecting(selector: &str) -> String {
    format!(
        "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\nmetadata: {{name: web, namespace: shop}}\n\
         spec:\n  predicates:\n  - requiredClusterSelector:\n      {selector}\n"
    )
}

/// A workload of so many config maps.
pub fn work(objects: usize) -> String {
    let manifests: String = (0..objects)
        .map(|n| {
            format!("      - apiVersion: v1\n        kind: ConfigMap\n        metadata: {{name: web-{n}, namespace: shop}}\n")
        })
        .collect();
    format!(
        "apiVersion: work.open-cluster-management.io/v1alpha1\nkind: ManifestWorkReplicaSet\nmetadata: {{name: web, namespace: shop}}\n\
         spec:\n  placementRefs: [{{name: web}}]\n  manifestWorkTemplate:\n    workload:\n      manifests:\n{manifests}"
    )
}

/// A member's report of that minute, straight onto its ref.
pub fn report(repo: &Repo, cluster: &str, minute: u64, says: &str) {
    let text = format!(
        "apiVersion: berth.dev/v1alpha1\nkind: ClusterStatus\nmetadata: {{name: {cluster}}}\n\
         reported: \"2026-01-01T{:02}:{:02}:00Z\"\n{says}",
        minute / 60,
        minute % 60
    );
    let blob = feed(repo, &["hash-object", "-w", "--stdin"], &text);
    let tree = feed(repo, &["mktree"], &format!("100644 blob {blob}\tstatus.yaml\n"));
    let commit = feed(repo, &["commit-tree", &tree, "-m", "status"], "");
    repo.git(&["update-ref", &format!("refs/berth/status/{cluster}"), &commit]);
}

/// Runs git with this input.
pub fn feed(repo: &Repo, args: &[&str], input: &str) -> String {
    let mut child = hermetic("git")
        .current_dir(repo.path())
        .env("GIT_COMMITTER_DATE", "1767225600 +0000")
        .env("GIT_AUTHOR_DATE", "1767225600 +0000")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("git starts");
    std::io::Write::write_all(&mut child.stdin.take().expect("a pipe"), input.as_bytes()).expect("fed");
    let output = child.wait_with_output().expect("git ends");
    assert!(output.status.success(), "git {args:?}");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}
