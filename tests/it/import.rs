//! A live KubeFed host becomes a fleet repository, and nothing moves.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::support::kube::{ControlPlane, Wanted};
use crate::support::kubefed::{CONFIG_MAP, DEPLOYMENT, Host, PREFERENCE, SECRET};
use crate::support::{Ran, Repo, berth, run};

/// Runs the import into the repository's root.
fn import(kubeconfig: &Path, repo: &Repo, more: &[&str]) -> Ran {
    let mut command = berth();
    command.args(["import", "kubefed", "--out", repo.arg(), "--repo", repo.arg(), "--kubeconfig"]);
    Ran::of(command.arg(kubeconfig).args(more))
}

/// Commits the files and runs the commands that must find nothing to do.
#[track_caller]
fn nothing_moves(repo: &Repo) {
    let verified = repo.commit_import();
    assert!(verified.out.starts_with("root "), "{}", verified.out);
    assert!(verified.out.contains("trusted as the root: imported from kubefed https://"), "{}", verified.out);
}

#[tokio::test]
#[ignore = "needs Kubernetes"]
async fn a_whole_host_becomes_files_and_a_first_commit_and_nothing_moves() {
    let Some(plane) = ControlPlane::start(Wanted::SERVER_ONLY) else { return };
    let host = Host::stocked(plane).await;
    let repo = Repo::new();
    let ran = import(host.plane.kubeconfig(), &repo, &["--context", ControlPlane::CONTEXT]).expect(0);
    assert!(ran.out.contains("3  KubeFedCluster.core.kubefed.io"), "{}", ran.out);
    assert!(ran.out.contains("all as berth places them"), "{}", ran.out);
    assert!(!ran.err.contains("warning"), "{}", ran.err);

    let text = |path: &str| std::fs::read_to_string(repo.path().join(path)).expect(path);
    assert_eq!(
        text("clusters/oslo.yaml"),
        "apiVersion: core.kubefed.io/v1beta1\nkind: KubeFedCluster\nmetadata:\n  name: oslo\n  namespace: \
         kube-federation-system\n  labels:\n    region: north\nspec:\n  apiEndpoint: \
         https://oslo.example.com:6443\n  caBundle: Y2E=\n  secretRef:\n    name: oslo-abc12\n"
    );
    assert_eq!(
        text("namespaces/shop/namespace.yaml"),
        "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n  labels:\n    team: sales\n"
    );
    for path in [
        "hub/kubefedconfig/kubefed.yaml",
        "hub/federatedtypeconfig/boats.harbour.example.com.yaml",
        "namespaces/shop/federatednamespace/shop.yaml",
        "namespaces/shop/federateddeployment/web.yaml",
        "namespaces/shop/federatedconfigmap/settings.yaml",
        "namespaces/shop/federatedboat.types.example.com/ferry.yaml",
        "cluster-scoped/federatedclusterrole/viewer.yaml",
    ] {
        let text = text(path);
        for field in ["uid", "resourceVersion", "managedFields", "generation", "creationTimestamp", "status"]
        {
            assert!(!text.contains(field), "{path} has {field}:\n{text}");
        }
    }

    let rendered = repo.files("berth/rendered");
    let turin = &rendered["clusters/turin/shop/Deployment.apps_web.yaml"];
    assert!(turin.contains("replicas: 5"), "{turin}");
    assert!(
        rendered.contains_key("clusters/turin/shop/Boat.harbour.example.com_ferry.yaml"),
        "{:?}",
        rendered.keys()
    );
    assert!(!rendered.contains_key("clusters/oslo/shop/Deployment.apps_web.yaml"));
    let decision = &rendered["decisions/shop/FederatedDeployment.types.kubefed.io_web.yaml"];
    assert!(decision.contains("digest:"), "{decision}");
    let message = repo.git(&["log", "-1", "--format=%B", "berth/rendered"]);
    assert!(message.contains("\nBerth-Import: kubefed https://"), "{message}");
    nothing_moves(&repo);

    // The import serves the other commands like any commit that was decided.
    run(&["status", "--repo", repo.arg()]).expect(0);
    let explained = run(&["explain", "web", "--repo", repo.arg()]).expect(0);
    assert!(explained.out.contains("turin"), "{}", explained.out);
    let member = tempfile::tempdir().expect("a folder");
    repo.sync("turin", member.path(), &[]).expect(0);
    assert!(member.path().join("shop/Deployment.apps_web.yaml").exists());

    // What follows is proven from the root.
    let path = "namespaces/shop/federatedconfigmap/settings.yaml";
    repo.write(path, text(path).replace("fast", "slow"));
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "slower"]);
    repo.publish().expect(0);
    assert_eq!(
        repo.changed("berth/rendered~1", "berth/rendered"),
        ["clusters/oslo/shop/ConfigMap_settings.yaml"]
    );
    let verified = run(&["verify", "--repo", repo.arg()]).expect(0);
    assert!(verified.err.contains("1 commit proven, 1 trusted as the root"), "{}", verified.err);
    run(&["verify", "--repo", repo.arg(), "--root", &repo.id("berth/rendered~1")]).expect(0);
    let other = run(&["verify", "--repo", repo.arg(), "--root", &repo.id("main")]).expect(3);
    assert!(other.out.contains("it begins the branch, but only the import"), "{}", other.out);
}

#[tokio::test]
#[ignore = "needs Kubernetes"]
async fn a_file_that_breaks_right_after_the_import_changes_no_cluster() {
    let Some(plane) = ControlPlane::start(Wanted::SERVER_ONLY) else { return };
    let host = Host::stocked(plane).await;
    let repo = Repo::new();
    import(host.plane.kubeconfig(), &repo, &[]).expect(0);
    nothing_moves(&repo);
    repo.write("namespaces/shop/federateddeployment/web.yaml", "spec: [unclosed");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "slip"]);
    repo.publish().expect(1);
    assert_eq!(
        repo.git(&["diff", "--name-only", "berth/rendered~1", "berth/rendered", "--", "clusters"]),
        ""
    );
    run(&["verify", "--repo", repo.arg()]).expect(0);
}

#[tokio::test]
#[ignore = "needs Kubernetes"]
async fn what_kubefed_had_not_done_yet_is_named_and_is_all_the_first_plan_shows() {
    let Some(plane) = ControlPlane::start(Wanted::SERVER_ONLY) else { return };
    let host = Host::stocked(plane).await;
    let everywhere = json!({"template": {"data": {"a": "b"}}, "placement": {"clusterSelector": {}}});
    let clusters = ["oslo", "turin (CreationFailed)", "paris (UpdateFailed)"];
    host.placed(CONFIG_MAP, "shop", "failed", everywhere.clone(), &clusters).await;
    let oslo = json!({"template": {"data": {"a": "b"}}, "placement": {"clusters": [{"name": "oslo"}]}});
    host.placed(CONFIG_MAP, "shop", "leaving", oslo.clone(), &["oslo", "turin (WaitingForRemoval)"]).await;
    host.make(CONFIG_MAP, "shop", "untouched", oslo, json!({})).await;
    let repo = Repo::new();
    let ran = import(host.plane.kubeconfig(), &repo, &[]).expect(0);
    for said in [
        "FederatedConfigMap shop/failed differs from berth's decision: it is not on `turin` (CreationFailed), and berth places it there",
        "FederatedConfigMap shop/leaving differs from berth's decision: it is on `turin` (WaitingForRemoval), and berth does not place it there",
        "FederatedConfigMap shop/untouched differs from berth's decision: it is not on `oslo`",
        "the host reports UpdateFailed for 1 object on `paris`",
    ] {
        assert!(ran.err.contains(said), "{said}\n{}", ran.err);
    }
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "import"]);
    let plan = run(&["plan", "--repo", repo.arg(), "-o", "json"]).expect(0).json();
    let shown: Vec<String> = plan["workloads"]
        .as_array()
        .expect("a list")
        .iter()
        .flat_map(|workload| {
            let name = workload["name"].as_str().expect("a name").to_owned();
            let changes = workload["changes"].as_array().expect("a list").clone();
            changes.into_iter().map(move |one| {
                format!("{name} {} {}", one["change"].as_str().unwrap(), one["cluster"].as_str().unwrap())
            })
        })
        .collect();
    assert_eq!(shown, ["failed added turin", "leaving removed turin", "untouched added oslo"]);
    repo.publish().expect(0);
    run(&["verify", "--repo", repo.arg()]).expect(0);
    assert_eq!(run(&["plan", "--repo", repo.arg()]).expect(0).out, "no changes\n");
}

#[tokio::test]
#[ignore = "needs Kubernetes"]
async fn a_divided_workload_keeps_its_numbers_without_what_the_scheduler_wrote() {
    let Some(plane) = ControlPlane::start(Wanted::SERVER_ONLY) else { return };
    let host = Host::stocked(plane).await;
    host.cluster("vienna", json!({"region": "south"}), false).await;
    let numbers = [("oslo", 1), ("paris", 4), ("turin", 4)];
    let overrides: Vec<_> = numbers
        .iter()
        .map(|(name, count)| json!({"clusterName": name, "clusterOverrides": [{"path": "/spec/replicas", "value": count}]}))
        .collect();
    let names: Vec<_> = numbers.iter().map(|(name, _)| json!({"name": name})).collect();
    let spec = json!({
        "template": {"spec": {"replicas": 1, "selector": {"matchLabels": {"app": "api"}}, "template": {"metadata": {"labels": {"app": "api"}}}}},
        "placement": {"clusters": names}, "overrides": overrides,
    });
    host.placed(DEPLOYMENT, "shop", "api", spec, &["oslo", "paris", "turin"]).await;
    let preference =
        json!({"targetKind": "FederatedDeployment", "totalReplicas": 9, "clusters": {"*": {"weight": 1}}});
    host.make(PREFERENCE, "shop", "api", preference, json!({})).await;
    let repo = Repo::new();
    let ran = import(host.plane.kubeconfig(), &repo, &[]).expect(0);
    assert!(ran.err.contains("cluster `vienna` is not ready on the host"), "{}", ran.err);
    let file =
        std::fs::read_to_string(repo.path().join("namespaces/shop/federateddeployment/api.yaml")).unwrap();
    assert!(!file.contains("overrides") && file.contains("clusterSelector: {}"), "{file}");
    let rendered = repo.files("berth/rendered");
    for (name, count) in numbers {
        let copy = &rendered[&format!("clusters/{name}/shop/Deployment.apps_api.yaml")];
        assert!(copy.contains(&format!("replicas: {count}\n")), "{name}: {copy}");
    }
    // The namespace is not on the cluster that was not there when it was placed: KubeFed would do that next.
    assert!(
        ran.err.contains("FederatedNamespace shop/shop differs from berth's decision: it is not on `vienna`")
    );
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "import"]);
    let plan = run(&["plan", "--repo", repo.arg()]).expect(0);
    assert!(!plan.out.contains("FederatedDeployment shop/api"), "{}", plan.out);
}

#[tokio::test]
#[ignore = "needs Kubernetes"]
async fn secrets_come_with_a_loud_warning_or_not_at_all() {
    let Some(plane) = ControlPlane::start(Wanted::SERVER_ONLY) else { return };
    let host = Host::stocked(plane).await;
    let spec = json!({"template": {"data": {"password": "c2VjcmV0"}}, "placement": {"clusterSelector": {}}});
    host.placed(SECRET, "shop", "login", spec, &["oslo", "paris", "turin"]).await;
    let path = "namespaces/shop/federatedsecret/login.yaml";
    let repo = Repo::new();
    let ran = import(host.plane.kubeconfig(), &repo, &[]).expect(0);
    assert!(
        ran.err.contains("THE DATA OF 1 SECRET WAS WRITTEN INTO FILES, and into the rendered branch"),
        "{}",
        ran.err
    );
    assert!(!ran.err.contains("c2VjcmV0") && !ran.out.contains("c2VjcmV0"));
    assert!(repo.path().join(path).exists());
    nothing_moves(&repo);

    let without = Repo::new();
    let ran = import(host.plane.kubeconfig(), &without, &["--no-secrets"]).expect(0);
    assert!(ran.err.contains("no FederatedSecret was imported (--no-secrets)"), "{}", ran.err);
    assert!(!without.path().join(path).exists());
    nothing_moves(&without);
}

#[tokio::test]
#[ignore = "needs Kubernetes"]
async fn more_objects_than_a_page_holds_all_come() {
    let Some(plane) = ControlPlane::start(Wanted::AUDITED) else { return };
    let host = Host::stocked(plane).await;
    for index in 0..600 {
        let spec = json!({"template": {"data": {"n": index.to_string()}}, "placement": {"clusters": [{"name": "oslo"}]}});
        host.make(CONFIG_MAP, "shop", &format!("many-{index:03}"), spec, json!({})).await;
    }
    let out = tempfile::tempdir().expect("a folder");
    let ran = Ran::of(
        berth()
            .args(["import", "kubefed", "-o", "json", "--out"])
            .arg(out.path())
            .arg("--kubeconfig")
            .arg(host.plane.kubeconfig()),
    )
    .expect(0);
    assert_eq!(ran.json()["objects"]["FederatedConfigMap.types.kubefed.io"], 601);
    let folder = out.path().join("namespaces/shop/federatedconfigmap");
    assert_eq!(std::fs::read_dir(folder).expect("a folder").count(), 601);
    // Nothing but questions was asked of the host.
    let by_berth = host
        .plane
        .requests()
        .into_iter()
        .filter(|event| event["userAgent"].as_str().is_some_and(|agent| agent.starts_with("berth/")));
    let verbs: std::collections::BTreeSet<String> =
        by_berth.map(|event| event["verb"].as_str().unwrap_or_default().to_owned()).collect();
    assert!(verbs.contains("list") && verbs.iter().all(|verb| verb == "list" || verb == "get"), "{verbs:?}");
}

#[tokio::test]
#[ignore = "needs Kubernetes"]
async fn a_type_that_may_not_be_listed_is_named_and_the_others_are_imported() {
    let Some(plane) = ControlPlane::start(Wanted::SERVER_ONLY) else { return };
    let host = Host::stocked(plane).await;
    let kubeconfig = with_rights(
        &host,
        &["federatednamespaces", "federateddeployments", "federatedclusterroles", "federatedboats"],
    )
    .await;
    let repo = Repo::new();
    let ran = import(&kubeconfig.1, &repo, &[]).expect(6);
    assert!(ran.err.contains("listing federatedconfigmaps.types.kubefed.io is not allowed"), "{}", ran.err);
    assert!(
        ran.err.contains("hint: ask for the right to list federatedconfigmaps.types.kubefed.io"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("no first commit was written"), "{}", ran.err);
    assert!(repo.path().join("namespaces/shop/federateddeployment/web.yaml").exists());
    assert!(!repo.path().join("namespaces/shop/federatedconfigmap").exists());
    // With the rights, the same command completes what is there.
    import(host.plane.kubeconfig(), &repo, &[]).expect(0);
    nothing_moves(&repo);
}

/// A kubeconfig of somebody who may list these of the federated types, and KubeFed's own objects.
async fn with_rights(host: &Host, types: &[&str]) -> (tempfile::TempDir, PathBuf) {
    use std::io::Write as _;
    let rules = json!([
        {"apiGroups": ["core.kubefed.io", "scheduling.kubefed.io"], "resources": ["*"], "verbs": ["list"]},
        {"apiGroups": ["types.kubefed.io", "types.example.com"], "resources": types, "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list"]},
    ]);
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "some"}, "rules": rules},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "some"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "some"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}],
        },
    ]});
    let mut apply = host
        .plane
        .kubectl()
        .args(["apply", "-f", "-"])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("kubectl");
    apply.stdin.take().expect("a pipe").write_all(list.to_string().as_bytes()).expect("it reads");
    assert!(apply.wait().expect("it ends").success());
    // The administrator, speaking for somebody with fewer rights.
    let text = std::fs::read_to_string(host.plane.kubeconfig()).expect("a kubeconfig");
    let mut config: serde_yaml::Value = serde_yaml::from_str(&text).expect("YAML");
    for user in config["users"].as_sequence_mut().expect("users") {
        user["user"]["as"] = "ann".into();
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, serde_yaml::to_string(&config).expect("YAML")).expect("a file");
    (folder, path)
}

#[tokio::test]
#[ignore = "needs Kubernetes"]
async fn a_cluster_without_kubefed_and_a_context_that_is_not_there_are_told() {
    let Some(plane) = ControlPlane::start(Wanted::SERVER_ONLY) else { return };
    let repo = Repo::new();
    let ran = import(plane.kubeconfig(), &repo, &[]).expect(6);
    assert!(ran.err.contains("serves no `core.kubefed.io`, so there is no KubeFed on it"), "{}", ran.err);
    let ran = import(plane.kubeconfig(), &repo, &["--context", "nowhere"]).expect(2);
    assert!(ran.err.contains("there is no context `nowhere`"), "{}", ran.err);
    assert!(ran.err.contains("hint: "), "{}", ran.err);
}

const UNREACHABLE: &str = "\
apiVersion: v1
kind: Config
current-context: gone
contexts: [{name: gone, context: {cluster: gone, user: me}}]
clusters: [{name: gone, cluster: {server: \"https://127.0.0.1:1\"}}]
users: [{name: me, user: {}}]
";

#[test]
fn a_cluster_out_of_reach_and_a_missing_kubeconfig_end_with_6() {
    let repo = Repo::new();
    repo.write(".kubeconfig", UNREACHABLE);
    let ran = import(&repo.path().join(".kubeconfig"), &repo, &[]).expect(6);
    assert!(ran.err.contains("the API server https://127.0.0.1:1 cannot be reached: "), "{}", ran.err);
    assert!(ran.err.contains("hint: check that the cluster runs"), "{}", ran.err);
    let ran = import(&repo.path().join("none"), &repo, &[]).expect(6);
    assert!(ran.err.contains("no kubeconfig can be read from "), "{}", ran.err);
    assert!(ran.err.contains("hint: name the file with `--kubeconfig`"), "{}", ran.err);
    assert!(repo.git(&["for-each-ref"]).is_empty());
}

#[test]
fn a_server_that_takes_its_time_is_given_up_on() {
    // It listens, and never says a word.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("an address").port();
    let repo = Repo::new();
    repo.write(".kubeconfig", UNREACHABLE.replace("127.0.0.1:1", &format!("127.0.0.1:{port}")));
    let ran = import(&repo.path().join(".kubeconfig"), &repo, &["--timeout", "1"]).expect(6);
    assert!(ran.err.contains(&format!("the API server https://127.0.0.1:{port} ")), "{}", ran.err);
    assert!(ran.err.contains("hint: check that the cluster runs"), "{}", ran.err);
}

#[test]
fn an_import_begins_a_branch_and_goes_into_the_work_tree() {
    let repo = crate::support::small_fleet();
    repo.publish().expect(0);
    let nowhere = Path::new("/nonexistent/kubeconfig");
    let ran = import(nowhere, &repo, &[]).expect(5);
    assert!(ran.err.contains("`refs/heads/berth/rendered` already exists"), "{}", ran.err);
    let (fresh, elsewhere) = (Repo::new(), tempfile::tempdir().expect("a folder"));
    let out = elsewhere.path().to_str().expect("text");
    let ran = run(&["import", "kubefed", "--out", out, "--repo", fresh.arg()]).expect(2);
    assert!(ran.err.contains("is not in the repository"), "{}", ran.err);
}

#[test]
fn a_commit_that_only_says_it_was_imported_fails_its_proof() {
    let repo = crate::support::small_fleet();
    repo.publish().expect(0);
    let tree = repo.git(&["rev-parse", "berth/rendered^{tree}"]);
    let digest = "0".repeat(32);
    let message = format!(
        "berth: first state\n\nBerth-Seq: 1\nBerth-Import: kubefed https://x\nBerth-Digest: {digest}"
    );
    let forged = repo.git(&["commit-tree", &tree, "-m", &message]);
    let ran = run(&["verify", "--repo", repo.arg(), &forged]).expect(3);
    assert!(ran.out.contains("it claims to be an import"), "{}", ran.out);
    let late = repo.git(&["commit-tree", &tree, "-p", "berth/rendered", "-m", &message]);
    run(&["verify", "--repo", repo.arg(), &late]).expect(3);
}
