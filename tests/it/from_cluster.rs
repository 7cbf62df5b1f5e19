//! `berth federate --from-cluster`: objects of a live cluster become Federated objects.

use std::io::Write as _;
use std::process::Stdio;

use crate::support::kube::{ControlPlane, Wanted};
use crate::support::{Ran, Repo, berth, cluster, run};

const SHOP: &str = r#"
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {team: sales}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {mode: fast}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.com/web:1"}]}
"#;

fn apply(plane: &ControlPlane, text: &str) {
    let mut apply =
        plane.kubectl().args(["apply", "-f", "-"]).stdin(Stdio::piped()).spawn().expect("kubectl starts");
    apply.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads");
    assert!(apply.wait().expect("it ends").success());
}

fn federate(plane: &ControlPlane, args: &[&str]) -> Ran {
    Ran::of(
        berth().args(["federate", "--from-cluster"]).args(args).arg("--kubeconfig").arg(plane.kubeconfig()),
    )
}

#[tokio::test]
#[ignore = "needs Kubernetes"]
async fn one_object_or_a_whole_namespace_is_federated_from_a_live_cluster() {
    let Some(plane) = ControlPlane::start(Wanted::USUAL) else { return };
    apply(&plane, SHOP);
    let one = federate(&plane, &["deploy", "web", "-n", "shop"]).expect(0);
    assert!(
        one.out.contains("kind: FederatedDeployment") && one.out.contains("image: example.com/web:1"),
        "{}",
        one.out
    );
    for field in ["uid", "resourceVersion", "managedFields", "status", "last-applied"] {
        assert!(!one.out.contains(field), "{field}: {}", one.out);
    }

    let repo = Repo::with(&[("clusters/a.yaml", &cluster("a", &[]))]);
    let apps = repo.path().join("apps");
    let args = ["namespace", "shop", "--contents", "--output-dir", apps.to_str().expect("text")];
    federate(&plane, &args).expect(0);
    repo.commit("apps");
    run(&["validate", repo.arg()]).expect(0);
    repo.publish().expect(0);
    let rendered: Vec<String> =
        repo.files("berth/rendered").into_keys().filter(|path| path.starts_with("clusters/")).collect();
    assert_eq!(
        rendered,
        [
            "clusters/a/_cluster/Namespace_shop.yaml",
            "clusters/a/shop/ConfigMap_settings.yaml",
            "clusters/a/shop/Deployment.apps_web.yaml",
            "clusters/a/shop/Service_web.yaml",
        ]
    );
}

#[tokio::test]
#[ignore = "needs Kubernetes"]
async fn what_a_cluster_does_not_have_is_said_with_what_would_help() {
    let Some(plane) = ControlPlane::start(Wanted::SERVER_ONLY) else { return };
    let ran = federate(&plane, &["deploymnt", "web"]).expect(2);
    assert!(
        ran.err.contains("no resource type named `deploymnt`")
            && ran.err.contains("did you mean `deployment`?"),
        "{}",
        ran.err
    );
    let ran = federate(&plane, &["cm", "none"]).expect(6);
    assert!(
        ran.err.contains("no ConfigMap `none` in the namespace `default`") && ran.err.contains("-n"),
        "{}",
        ran.err
    );
    let ran = federate(&plane, &["deploy", "web", "--contents"]).expect(2);
    assert!(ran.err.contains("--contents needs a Namespace"), "{}", ran.err);
    let ran = federate(&plane, &["web"]).expect(2);
    assert!(ran.err.contains("--from-cluster requires a type and a name"), "{}", ran.err);
}
