//! Generated fleets, the same for the same shape on every machine; shared by benches and tests.
//!
//! Every workload goes to one shard of the clusters. The copies that an override changes are spread so
//! that each cluster gets its share of them, which keeps clusters from having equal folders.

// Each user takes the part it needs.
#![allow(dead_code)]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Whose objects the fleet is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    KubeFed,
    KubeFleet,
    /// Has no overrides by cluster, so that the share overridden does not count.
    Ocm,
}

/// How large a fleet is.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub clusters: usize,
    pub workloads: usize,
    /// Clusters that each workload goes to; must divide the clusters.
    pub each: usize,
    /// Of a hundred copies, how many an override changes.
    pub overridden: usize,
    pub dialect: Dialect,
}

const NAMESPACES: usize = 20;

impl Shape {
    fn shards(&self) -> usize {
        (self.clusters / self.each).max(1)
    }

    pub fn manifests(&self) -> usize {
        self.workloads * self.each
    }

    /// All files by path, in order.
    pub fn files(&self) -> Vec<(String, String)> {
        let mut files: Vec<(String, String)> = (0..self.clusters).map(|n| self.cluster(n)).collect();
        files.extend(self.shared());
        files.extend((0..self.workloads).map(|n| self.workload(n, 0)));
        files.sort();
        files
    }

    /// The files that are no cluster's and no workload's.
    fn shared(&self) -> Vec<(String, String)> {
        let mut files: Vec<(String, String)> = (0..NAMESPACES).map(|n| self.namespace(n)).collect();
        if self.dialect == Dialect::Ocm {
            let set = "apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSet\nmetadata: {name: all}\n";
            files.push(("sets/all.yaml".into(), set.into()));
        }
        files
    }

    /// A cluster's file.
    pub fn cluster(&self, n: usize) -> (String, String) {
        let (name, shard, region) = (self.cluster_name(n), n % self.shards(), n % 7);
        let text = match self.dialect {
            Dialect::KubeFed => format!(
                "apiVersion: core.kubefed.io/v1beta1\nkind: KubeFedCluster\nmetadata:\n  name: {name}\n  \
                 namespace: kube-federation-system\n  labels: {{shard: s{shard}, region: r{region}}}\nspec:\n  \
                 apiEndpoint: https://{name}.example.com\n  secretRef: {{name: {name}}}\n"
            ),
            Dialect::KubeFleet => format!(
                "apiVersion: cluster.kubernetes-fleet.io/v1beta1\nkind: MemberCluster\nmetadata:\n  name: {name}\n  \
                 labels: {{shard: s{shard}, region: r{region}, name: {name}}}\nspec:\n  \
                 identity: {{kind: ServiceAccount, name: {name}, namespace: fleet-system}}\n"
            ),
            Dialect::Ocm => format!(
                "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata:\n  name: {name}\n  \
                 labels: {{cluster.open-cluster-management.io/clusterset: all, shard: s{shard}, region: r{region}}}\n\
                 spec: {{hubAcceptsClient: true}}\n"
            ),
        };
        (format!("clusters/{name}.yaml"), text)
    }

    fn namespace(&self, n: usize) -> (String, String) {
        let name = self.namespace_name(n);
        let text = match self.dialect {
            Dialect::KubeFed => format!(
                "apiVersion: types.kubefed.io/v1beta1\nkind: FederatedNamespace\nmetadata: {{name: {name}, namespace: {name}}}\n\
                 spec: {{placement: {{clusterSelector: {{}}}}}}\n"
            ),
            Dialect::KubeFleet => format!(
                "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n---\n\
                 apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterResourcePlacement\nmetadata: {{name: {name}}}\nspec:\n  \
                 resourceSelectors: [{{group: '', version: v1, kind: Namespace, name: {name}, selectionScope: NamespaceOnly}}]\n  \
                 policy: {{placementType: PickAll}}\n"
            ),
            Dialect::Ocm => {
                let mut text = format!(
                    "apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSetBinding\n\
                     metadata: {{name: all, namespace: {name}}}\nspec: {{clusterSet: all}}\n"
                );
                for shard in 0..self.shards() {
                    let _ = write!(
                        text,
                        "---\napiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n\
                         metadata: {{name: s{shard}, namespace: {name}}}\nspec:\n  predicates:\n  \
                         - requiredClusterSelector: {{labelSelector: {{matchLabels: {{shard: s{shard}}}}}}}\n"
                    );
                }
                text
            }
        };
        (format!("namespaces/{name}.yaml"), text)
    }

    /// One workload's file; another version is another image, as after an edit.
    pub fn workload(&self, n: usize, version: usize) -> (String, String) {
        let (shards, name) = (self.shards(), format!("app-{n:05}"));
        let (shard, namespace) = (n % shards, self.namespace_name(n / shards));
        let path = format!("apps/{namespace}/{name}.yaml");
        let deployment = deployment_spec(&name, version);
        let text = match self.dialect {
            Dialect::KubeFed => {
                let mut text = format!(
                    "apiVersion: types.kubefed.io/v1beta1\nkind: FederatedDeployment\nmetadata:\n  name: {name}\n  \
                     namespace: {namespace}\nspec:\n  placement:\n    clusterSelector:\n      matchLabels: {{shard: s{shard}}}\n  \
                     template:\n    metadata:\n      labels: {{app: {name}}}\n    spec:\n{}",
                    indented(&deployment, 6)
                );
                let overridden = self.overridden(n);
                if !overridden.is_empty() {
                    text.push_str("  overrides:\n");
                }
                for cluster in overridden {
                    let _ = write!(
                        text,
                        "  - clusterName: {}\n    clusterOverrides:\n    - path: /spec/replicas\n      value: {}\n",
                        self.cluster_name(cluster),
                        10 + cluster % 9
                    );
                }
                text
            }
            Dialect::KubeFleet => {
                let mut text = format!(
                    "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\n  namespace: {namespace}\n  \
                     labels: {{app: {name}}}\nspec:\n{}---\n\
                     apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ResourcePlacement\nmetadata: {{name: {name}, namespace: {namespace}}}\n\
                     spec:\n  resourceSelectors: [{{group: apps, version: v1, kind: Deployment, name: {name}}}]\n  policy:\n    \
                     placementType: PickAll\n    affinity:\n      clusterAffinity:\n        requiredDuringSchedulingIgnoredDuringExecution:\n          \
                     clusterSelectorTerms: [{{labelSelector: {{matchLabels: {{shard: s{shard}}}}}}}]\n",
                    indented(&deployment, 2)
                );
                let overridden = self.overridden(n);
                if !overridden.is_empty() {
                    let _ = write!(
                        text,
                        "---\napiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ResourceOverride\n\
                         metadata: {{name: {name}, namespace: {namespace}}}\nspec:\n  \
                         resourceSelectors: [{{group: apps, version: v1, kind: Deployment, name: {name}}}]\n  policy:\n    overrideRules:\n"
                    );
                }
                for cluster in overridden {
                    let _ = write!(
                        text,
                        "    - clusterSelector: {{clusterSelectorTerms: [{{labelSelector: {{matchLabels: {{name: {}}}}}}}]}}\n      \
                         jsonPatchOverrides: [{{op: replace, path: /spec/replicas, value: {}}}]\n",
                        self.cluster_name(cluster),
                        10 + cluster % 9
                    );
                }
                text
            }
            Dialect::Ocm => format!(
                "apiVersion: work.open-cluster-management.io/v1alpha1\nkind: ManifestWorkReplicaSet\n\
                 metadata: {{name: {name}, namespace: {namespace}}}\nspec:\n  placementRefs: [{{name: s{shard}}}]\n  \
                 manifestWorkTemplate:\n    workload:\n      manifests:\n      - apiVersion: apps/v1\n        kind: Deployment\n        \
                 metadata: {{name: {name}, namespace: {namespace}, labels: {{app: {name}}}}}\n        spec:\n{}",
                indented(&deployment, 10)
            ),
        };
        (path, text)
    }

    /// One workload's file with a ConfigMap of one key.
    fn small_workload(&self, n: usize) -> (String, String) {
        let (shards, name) = (self.shards(), format!("app-{n:05}"));
        let (shard, namespace) = (n % shards, self.namespace_name(n / shards));
        let text = match self.dialect {
            Dialect::KubeFed => format!(
                "apiVersion: types.kubefed.io/v1beta1\nkind: FederatedConfigMap\nmetadata: {{name: {name}, namespace: {namespace}}}\n\
                 spec:\n  placement: {{clusterSelector: {{matchLabels: {{shard: s{shard}}}}}}}\n  \
                 template: {{data: {{greeting: hello from {name}}}}}\n"
            ),
            Dialect::KubeFleet => format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}}}\n\
                 data: {{greeting: hello from {name}}}\n---\n\
                 apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ResourcePlacement\nmetadata: {{name: {name}, namespace: {namespace}}}\n\
                 spec:\n  resourceSelectors: [{{group: '', version: v1, kind: ConfigMap, name: {name}}}]\n  \
                 policy: {{placementType: PickFixed, clusterNames: [{}]}}\n",
                self.cluster_name(n % self.clusters)
            ),
            Dialect::Ocm => format!(
                "apiVersion: work.open-cluster-management.io/v1alpha1\nkind: ManifestWorkReplicaSet\n\
                 metadata: {{name: {name}, namespace: {namespace}}}\nspec:\n  placementRefs: [{{name: s{shard}}}]\n  \
                 manifestWorkTemplate: {{workload: {{manifests: [{{apiVersion: v1, kind: ConfigMap, \
                 metadata: {{name: {name}, namespace: {namespace}}}, data: {{greeting: hello from {name}}}}}]}}}}\n"
            ),
        };
        (format!("apps/{namespace}/{name}.yaml"), text)
    }

    /// Namespaces of different dialects have different names too.
    fn namespace_name(&self, n: usize) -> String {
        match self.dialect {
            Dialect::KubeFed => namespace_name(n),
            Dialect::KubeFleet => format!("squad-{:02}", n % NAMESPACES),
            Dialect::Ocm => format!("group-{:02}", n % NAMESPACES),
        }
    }

    /// Clusters of different dialects have different names, so that one fleet may have all dialects.
    fn cluster_name(&self, n: usize) -> String {
        match self.dialect {
            Dialect::KubeFed => cluster_name(n),
            Dialect::KubeFleet => format!("m{n:05}"),
            Dialect::Ocm => format!("o{n:05}"),
        }
    }

    /// The clusters whose copy of a workload an override changes, ascending.
    fn overridden(&self, workload: usize) -> Vec<usize> {
        let (shards, count) = (self.shards(), self.each * self.overridden / 100);
        let first = (workload / shards) * count;
        let mut clusters: Vec<usize> =
            (first..first + count).map(|place| (place % self.each) * shards + workload % shards).collect();
        clusters.sort_unstable();
        clusters
    }

    /// A bare repository whose branch `main` holds the fleet.
    pub fn repository(&self, folder: &Path) {
        git(folder, &["init", "-q", "--bare", "-b", "main", "."]);
        commit(folder, &self.files(), 0);
    }
}

/// The size of a workload's document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// A ConfigMap with one key.
    Small,
    /// A Deployment of some thirty lines.
    Usual,
}

/// The files of a fleet whose objects are not placed yet: MemberClusters, and ConfigMaps with one key.
pub fn of_plain_objects(files: usize, clusters: usize) -> Vec<(String, String)> {
    let shape = Shape { clusters, workloads: 0, each: clusters, overridden: 0, dialect: Dialect::KubeFleet };
    let object = |n: usize| {
        let (name, namespace) = (format!("app-{n:05}"), shape.namespace_name(n));
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}}}\n\
             data: {{greeting: hello from {name}}}\n"
        );
        (format!("apps/{namespace}/{name}.yaml"), text)
    };
    let objects = (0..files.saturating_sub(clusters)).map(object);
    (0..clusters).map(|n| shape.cluster(n)).chain(objects).collect()
}

/// The files of a fleet over all dialects: a third of the files and of the clusters each, in a folder each. Every
/// workload goes to `each` clusters.
pub fn of_all_dialects(files: usize, clusters: usize, each: usize, size: Size) -> Vec<(String, String)> {
    let dialects = [(Dialect::KubeFed, "kubefed"), (Dialect::KubeFleet, "kubefleet"), (Dialect::Ocm, "ocm")];
    let mut all = Vec::new();
    for (dialect, folder) in dialects {
        let clusters = clusters / dialects.len();
        let others = clusters + NAMESPACES + usize::from(dialect == Dialect::Ocm);
        let workloads = (files / dialects.len()).saturating_sub(others);
        let shape = Shape { clusters, workloads, each, overridden: 10, dialect };
        let mut files: Vec<(String, String)> = (0..clusters).map(|n| shape.cluster(n)).collect();
        files.extend(shape.shared());
        files.extend((0..workloads).map(|n| match size {
            Size::Small => shape.small_workload(n),
            Size::Usual => shape.workload(n, 0),
        }));
        all.extend(files.into_iter().map(|(path, text)| (format!("{folder}/{path}"), text)));
    }
    all
}

/// Puts files onto `main` as one commit: the first, or one more on top. The number becomes its date.
pub fn commit(repository: &Path, files: &[(String, String)], number: usize) {
    let mut stream = Vec::new();
    let seconds = 1_767_225_600 + 60 * number;
    let _ = write!(
        stream,
        "commit refs/heads/main\ncommitter Ann Author <ann@example.com> {seconds} +0000\ndata 4\nedit\n"
    );
    if number > 0 {
        let _ = writeln!(stream, "from refs/heads/main^0");
    }
    for (path, text) in files {
        let _ = writeln!(stream, "M 100644 inline {path}\ndata {}\n{text}", text.len());
    }
    fast_import(repository, &stream, &[]);
}

/// Feeds a stream to `git fast-import`.
pub fn fast_import(repository: &Path, stream: &[u8], settings: &[&str]) {
    let mut command = hermetic_git(repository);
    for setting in settings {
        command.args(["-c", setting]);
    }
    let mut child = command
        .args(["fast-import", "--quiet", "--force"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("git starts");
    child.stdin.take().expect("a pipe").write_all(stream).expect("git reads");
    assert!(child.wait().expect("git ends").success(), "git fast-import failed");
}

/// Runs git and gives what it printed.
pub fn git(repository: &Path, args: &[&str]) -> Vec<u8> {
    let output = hermetic_git(repository).args(args).output().expect("git starts");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// git without this machine's settings.
pub fn hermetic_git(repository: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(repository).env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    command
}

/// A cluster of a KubeFed fleet.
pub fn cluster_name(n: usize) -> String {
    format!("c{n:05}")
}

fn namespace_name(n: usize) -> String {
    format!("team-{:02}", n % NAMESPACES)
}

fn deployment_spec(name: &str, version: usize) -> String {
    format!(
        "replicas: 3\nselector:\n  matchLabels: {{app: {name}}}\nstrategy:\n  type: RollingUpdate\n  rollingUpdate: {{maxSurge: 1, maxUnavailable: 0}}\n\
         template:\n  metadata:\n    labels: {{app: {name}}}\n  spec:\n    containers:\n    - name: main\n      image: registry.example.com/{name}:1.{version}\n      \
         args: [--listen=:8080, --log-level=info]\n      ports:\n      - {{name: http, containerPort: 8080}}\n      env:\n      \
         - {{name: SERVICE, value: {name}}}\n      - {{name: GREETING, value: \"hello from {name}\"}}\n      \
         resources:\n        requests: {{cpu: 100m, memory: 128Mi}}\n        limits: {{memory: 256Mi}}\n      \
         readinessProbe:\n        httpGet: {{path: /healthz, port: http}}\n        periodSeconds: 10\n"
    )
}

fn indented(text: &str, by: usize) -> String {
    text.lines().map(|line| format!("{:by$}{line}\n", "")).collect()
}
