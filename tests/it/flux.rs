//! Flux as the member: the real controllers apply what berth published, and a reporter tells berth of it.

use serde_json::{Value as Json, json};

use crate::support::flux::condition;
use crate::support::flux_bed::{Bed, Running, image};
use crate::support::kube::{ControlPlane, Wanted};
use crate::support::remote::Server as _;
use crate::support::removals::GLOBAL_SET;
use crate::support::wait::until;
use crate::support::{RENDERED, Ran, Repo, berth, run};

const EVERYWHERE: &str = "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n\
     metadata: {name: web, namespace: shop}\nspec: {}\n";

/// A fleet whose cluster `oslo` is applied by Flux, and whose cluster `turin` is applied by berth.
pub fn people(workload: &str) -> Repo {
    let repo = Repo::new();
    repo.write("clusters/oslo.yaml", cluster("oslo", "annotations: {berth.dev/applier: flux}"));
    repo.write("clusters/turin.yaml", cluster("turin", "labels: {a: b}"));
    repo.write("sets.yaml", GLOBAL_SET);
    repo.write("apps/placement.yaml", EVERYWHERE);
    repo.write("apps/web.yaml", workload);
    repo.commit("begin");
    repo
}

fn cluster(name: &str, more: &str) -> String {
    format!(
        "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {{name: {name}, {more}}}\n\
         spec: {{hubAcceptsClient: true}}\n"
    )
}

pub fn work(manifests: &[Json]) -> String {
    json!({
        "apiVersion": "work.open-cluster-management.io/v1alpha1", "kind": "ManifestWorkReplicaSet",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "placementRefs": [{"name": "web", "rolloutStrategy": {"type": "Progressive", "progressive": {"maxConcurrency": 1}}}],
            "manifestWorkTemplate": {"workload": { "manifests": manifests }},
        },
    })
    .to_string()
}

pub fn namespace(name: &str) -> Json {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

pub fn deployment(tag: &str) -> Json {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": image(tag), "ports": [{"containerPort": 80}]}]},
            },
        },
    })
}

/// Objects of several kinds, with values that readers of YAML like to change.
fn several() -> Vec<Json> {
    vec![
        namespace("shop"),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "odd", "namespace": "shop"},
            "data": {"yes": "on", "number": "012", "date": "2001-01-01", "dollar": "${HOME} $(x)", "empty": "", "lines": "a\nb\n"}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 80, "protocol": "TCP"}]}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token", "namespace": "shop"}, "data": {"a": "aHVudGVyMg=="}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "shop:reader"},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]}),
        deployment("1"),
    ]
}

/// An object without what differs from server to server, and what Flux adds for itself.
fn comparable(mut object: Json) -> Json {
    let metadata = object["metadata"].as_object_mut().expect("metadata");
    for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"] {
        metadata.remove(field);
    }
    let own = |name: &str| {
        name.starts_with("kustomize.toolkit.fluxcd.io/")
            || name.starts_with("applyset.kubernetes.io/")
            || name == "berth.dev/applied"
    };
    for map in ["labels", "annotations"] {
        if let Some(map) = metadata.get_mut(map).and_then(Json::as_object_mut) {
            map.retain(|name, _| !own(name));
        }
        if metadata.get(map).is_some_and(|map| map.as_object().is_some_and(serde_json::Map::is_empty)) {
            metadata.remove(map);
        }
    }
    if let Some(spec) = object.get_mut("spec").and_then(Json::as_object_mut) {
        spec.remove("clusterIP");
        spec.remove("clusterIPs");
    }
    object.as_object_mut().expect("an object").remove("status");
    object
}

#[test]
fn flux_makes_the_same_objects_as_berth_and_its_status_is_the_member_s_report() {
    let Some(bed) = Bed::of(people(&work(&several()))) else { return };
    let Some(other) = ControlPlane::start(Wanted::SERVER_ONLY) else { return };
    bed.pass().expect(0);
    bed.join(&[]);
    let reporter = Running::start(&bed);
    bed.set_status("1", true);
    let wanted = bed.revision();
    bed.flux.until(&bed.plane, "kustomization", "berth-oslo", |object| {
        object["status"]["lastAppliedRevision"] == *wanted
            && condition(object, "Ready").is_some_and(|it| it["status"] == "True")
    });
    let report =
        bed.until_reported(|report| !report.contains("progressing:") && !report.contains("problems:"));
    assert!(report.contains("objects: 6"), "{report}");
    drop(reporter);

    // The rollout goes on with the other cluster, which berth applies.
    let ran = bed.pass().expect(0);
    assert!(ran.out.contains("turin") || ran.err.contains("turin"), "{}{}", ran.out, ran.err);
    let mut command = berth();
    command.args([
        "sync",
        "--once",
        "--cluster",
        "turin",
        "--target",
        "kube",
        "--health-timeout",
        "0",
        "--kubeconfig",
    ]);
    command
        .arg(other.kubeconfig())
        .arg("--repo")
        .arg(bed.fleet.root().join("copies/turin"))
        .args(bed.server.access());
    bed.server.set_secrets(&mut command);
    Ran::of(&mut command).expect(7);
    for (kind, name) in [
        ("namespace", "shop"),
        ("configmap", "odd"),
        ("service", "web"),
        ("secret", "token"),
        ("clusterrole", "shop:reader"),
        ("deployment", "web"),
    ] {
        let of = |plane: &ControlPlane| {
            let ran =
                Ran::of(plane.kubectl().args(["get", kind, name, "-n", "shop", "-o", "json"])).expect(0);
            comparable(ran.json())
        };
        assert_eq!(of(&bed.plane), of(&other), "{kind} {name}");
    }
}

#[test]
fn a_namespace_stays_until_its_removal_is_approved_and_goes_by_the_reporter_then() {
    let two = |more: &[Json]| work(&[&[namespace("shop"), namespace("extra")][..], more].concat());
    let settings = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}, "data": {"a": "b"}});
    let Some(bed) = Bed::of(people(&two(std::slice::from_ref(&settings)))) else { return };
    bed.pass().expect(0);
    bed.join(&[]);
    let reporter = Running::start(&bed);
    let is_well = |report: &str| !report.contains("progressing:") && !report.contains("problems:");
    bed.until_reported(is_well);
    let extra = bed.get("namespace", "extra").expect("it");
    assert_eq!(extra["metadata"]["annotations"]["kustomize.toolkit.fluxcd.io/prune"], "disabled");

    // The hub holds it.
    let less = work(&[namespace("shop"), settings]);
    let held = bed.edit(&[("apps/web.yaml", &less)], "without extra").expect(5);
    assert!(bed.get("namespace", "extra").is_some());
    // An approval of one who may is one of berth: Flux leaves the namespace, and the reporter removes it.
    let approval = held.approval();
    bed.edit(&[], &format!("yes\n\n{approval}")).expect(0);
    let wanted = bed.revision();
    bed.flux.until(&bed.plane, "kustomization", "berth-oslo", |object| {
        object["status"]["lastAppliedRevision"] == *wanted
    });
    until("the namespace is going", || {
        bed.get("namespace", "extra").is_none_or(|it| it["metadata"]["deletionTimestamp"].is_string())
    });
    drop(reporter);
    assert!(bed.get("namespace", "shop").is_some_and(|it| it["metadata"]["deletionTimestamp"].is_null()));
}

#[test]
fn a_removal_that_nobody_approved_for_this_cluster_is_left_and_reported() {
    let both = work(&[namespace("shop"), namespace("extra")]);
    let Some(bed) = Bed::of(people(&both)) else { return };
    bed.pass().expect(0);
    bed.join(&[]);
    let reporter = Running::start(&bed);
    bed.until_reported(|report| !report.contains("progressing:") && !report.contains("problems:"));
    // The gate is off, so that the folder loses it without an approval that travels to the member.
    bed.fleet.people.write("apps/web.yaml", work(&[namespace("shop")]));
    bed.fleet.people.commit("without extra");
    bed.fleet.push();
    let ran = bed.fleet.run_once(
        &bed.server,
        &["--allow-risky-removals", "--max-removed-objects", "100%", "--max-removed-clusters", "100%"],
    );
    ran.expect(0);
    let report = bed.until_reported(|report| report.contains("problems:"));
    assert!(report.contains("no longer wanted, but kept: namespaces, CRDs"), "{report}");
    drop(reporter);
    assert!(bed.get("namespace", "extra").is_some_and(|it| it["metadata"]["deletionTimestamp"].is_null()));
}

#[test]
fn a_bad_image_halts_a_rollout_through_flux_s_status_and_the_fix_completes_it() {
    let web = |tag: &str| work(&[namespace("shop"), deployment(tag)]);
    let Some(bed) = Bed::of(people(&web("1"))) else { return };
    bed.pass().expect(0);
    bed.join(&[]);
    let _reporter = Running::start(&bed);
    let is_well = |report: &str| !report.contains("progressing:") && !report.contains("problems:");
    bed.set_status("1", true);
    bed.until_reported(is_well);
    let tags = || {
        let of = |cluster: &str| {
            let path = format!("{RENDERED}:clusters/{cluster}/shop/Deployment.apps_web.yaml");
            let text = if bed.fleet.has(&path) { bed.fleet.bare(&["show", &path]) } else { String::new() };
            let image =
                text.lines().find_map(|line| line.trim().trim_start_matches("- ").strip_prefix("image: "));
            image.unwrap_or("-").rsplit(':').next().unwrap_or_default().to_owned()
        };
        [of("oslo"), of("turin")]
    };
    bed.pass().expect(0);
    assert_eq!(tags(), ["1", "1"]);

    bed.edit(&[("apps/web.yaml", &web("2-typo"))], "web:2-typo").expect(0);
    bed.set_status("2-typo", false);
    let report = bed.until_reported(|report| report.contains("problems:"));
    assert!(
        report.contains("Flux: HealthCheckFailed") || report.contains("ProgressDeadlineExceeded"),
        "{report}"
    );
    let ran = bed.pass().expect(0);
    assert!(ran.err.contains("is halted: oslo failed: Deployment.apps shop/web"), "{}{}", ran.out, ran.err);
    assert_eq!(tags(), ["2-typo", "1"]);

    bed.edit(&[("apps/web.yaml", &web("3"))], "web:3 fixes it").expect(0);
    bed.set_status("3", true);
    bed.until_reported(is_well);
    bed.pass().expect(0);
    assert_eq!(tags(), ["3", "3"]);
    run(&["verify", "--repo", bed.fleet.bare_path().to_str().expect("text")]).expect(0);
}

#[test]
fn a_branch_that_somebody_moved_is_put_right_by_the_next_pass() {
    let repo = people(&work(&[namespace("shop")]));
    repo.publish().expect(0);
    let branch = "refs/heads/berth/clusters/oslo";
    let made = repo.id(branch);
    assert_eq!(repo.id(&format!("{made}^{{tree}}")), repo.id(&format!("{RENDERED}:clusters/oslo")));
    let others = repo.git(&["for-each-ref", "--format=%(refname)", "refs/heads/berth/clusters"]);
    assert_eq!(others, branch, "berth's own members have no branch");
    // A commit of somebody else, with the same folder or another one, and a branch of no cluster.
    let forged = repo.git(&["commit-tree", &format!("{made}^{{tree}}"), "-m", "mine"]);
    for target in [forged.as_str(), "HEAD"] {
        repo.git(&["update-ref", branch, target]);
        repo.git(&["update-ref", "refs/heads/berth/clusters/nobody", "HEAD"]);
        repo.publish().expect(0);
        assert_eq!(repo.id(branch), made);
        assert_eq!(repo.git(&["for-each-ref", "--format=%(refname)", "refs/heads/berth/clusters"]), branch);
    }
    // An edit moves it, and the same folder has the same commit again.
    repo.write("apps/web.yaml", work(&[namespace("shop"), namespace("more")]));
    repo.commit("more");
    repo.publish().expect(0);
    assert_ne!(repo.id(branch), made);
    repo.git(&["revert", "--no-edit", "HEAD"]);
    repo.publish_ungated().expect(0);
    assert_eq!(repo.id(branch), made);
    // Without the annotation it goes.
    repo.write("clusters/oslo.yaml", cluster("oslo", "labels: {a: b}"));
    repo.commit("berth applies it");
    repo.publish_ungated().expect(0);
    assert_eq!(repo.git(&["for-each-ref", "--format=%(refname)", "refs/heads/berth/clusters"]), "");
}
