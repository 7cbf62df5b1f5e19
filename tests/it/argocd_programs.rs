//! Argo CD as the member: its real programs apply what berth published, and a reporter tells berth of it.

use serde_json::{Value as Json, json};

use crate::support::argocd_bed::Bed;
use crate::support::kube::{ControlPlane, Wanted};
use crate::support::registry::Registry;
use crate::support::site::{Running, comparable, is_well};
use crate::support::site_fleet::{cluster, deployment, namespace, people, settings, several, work};
use crate::support::wait::until;
use crate::support::{Ran, programs, run};

fn web(tag: &str) -> String {
    work(&[namespace("shop"), deployment(tag)])
}

/// Objects that need another one to be there first, and that only berth may remove.
fn objects() -> Vec<Json> {
    let group = "shop.example.com";
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object",
        "properties": {"percent": {"type": "integer"}, "code": {"type": "string", "default": "NONE"}}}}}});
    let mut objects = several();
    // Nothing comes before its namespace, however early it is.
    objects[1]["metadata"]["annotations"] = json!({"berth.dev/wave": "-1"});
    objects.extend([
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("coupons.{group}")}, "spec": {"group": group, "scope": "Namespaced",
                "names": {"plural": "coupons", "singular": "coupon", "kind": "Coupon"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}}),
        json!({"apiVersion": format!("{group}/v1"), "kind": "Coupon",
            "metadata": {"name": "spring", "namespace": "shop"}, "spec": {"percent": 10}}),
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "shop"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
    ]);
    objects
}

/// The result of [`several`].
const SEVERAL: [(&str, &str); 6] = [
    ("namespace", "shop"),
    ("configmap", "odd"),
    ("service", "web"),
    ("secret", "token"),
    ("clusterrole", "shop:reader"),
    ("deployment", "web"),
];

/// Expects the objects that berth makes of the same files in `turin`, which is published.
fn are_as_berth_makes_them(bed: &Bed, objects: &[(&str, &str)]) {
    let other = ControlPlane::start(Wanted::SERVER_ONLY).expect("the other one runs");
    bed.sync_turin(&other).expect(7);
    for (kind, name) in objects {
        let of = |plane: &ControlPlane| {
            let args = ["get", kind, name, "-n", "shop", "-o", "json"];
            comparable(Ran::of(plane.kubectl().args(args)).expect(0).json())
        };
        assert_eq!(of(&bed.plane), of(&other), "{kind} {name}");
    }
}

#[test]
#[ignore = "needs Argo CD"]
fn argo_cd_makes_the_same_objects_as_berth_and_its_status_is_the_member_s_report() {
    let Some(bed) = Bed::of(people("argocd", &work(&objects()))) else { return };
    bed.pass().expect(0);
    bed.join(&[]);
    let reporter = Running::start(&bed);
    bed.set_status("1", true);
    let claim = "persistentvolumeclaim";
    until("the claim", || bed.get(claim, "data").is_some());
    bed.patch_status(claim, "data", &json!({"phase": "Bound"}));
    bed.until_applied(&bed.revision());
    let report = bed.until_reported(is_well);
    assert!(report.contains("objects: 9"), "{report}");
    drop(reporter);

    // The rollout goes on with the other cluster, which berth applies.
    bed.pass().expect(0);
    let more =
        [("customresourcedefinition", "coupons.shop.example.com"), ("coupons.shop.example.com", "spring")];
    are_as_berth_makes_them(&bed, &[&SEVERAL[..], &more, &[(claim, "data")]].concat());
}

#[test]
#[ignore = "needs Argo CD"]
fn the_real_argo_cd_keeps_a_namespace_until_its_removal_is_approved() {
    let all = [namespace("shop"), namespace("extra"), namespace("more"), settings()];
    // Argo CD removes objects in the foreground, which takes the garbage collector.
    let Some(bed) = Bed::on(people("argocd", &work(&all)), Wanted::USUAL) else { return };
    bed.pass().expect(0);
    bed.join(&[]);
    let _reporter = Running::start(&bed);
    bed.until_applied(&bed.revision());
    bed.until_reported(is_well);

    // The hub holds it until an approval. Then Argo CD leaves it to the reporter, and removes the rest itself.
    let less = work(&[namespace("shop"), namespace("more")]);
    let held = bed.edit(&[("apps/web.yaml", &less)], "without extra").expect(5);
    assert!(bed.stays("namespace", "extra"));
    bed.edit(&[], &format!("yes\n\n{}", held.approval())).expect(0);
    bed.until_applied(&bed.revision());
    until("the settings are gone", || bed.get("configmap", "a").is_none());
    until("the namespace is gone", || bed.get("namespace", "extra").is_none());
    assert!(bed.stays("namespace", "shop") && bed.stays("namespace", "more"));

    // Nobody approved this one for the cluster.
    bed.edit_ungated("apps/web.yaml", &work(&[namespace("shop")]), "without more").expect(0);
    bed.until_applied(&bed.revision());
    let report = bed.until_reported(|report| report.contains("problems:"));
    assert!(report.contains("no longer wanted, but kept: namespaces, CRDs"), "{report}");
    assert!(bed.stays("namespace", "more"));
    // What is left for berth is no difference to Argo CD.
    bed.until("application", "berth-oslo", |it| it["status"]["sync"]["status"] == "Synced");
}

#[test]
#[ignore = "needs Argo CD"]
fn a_bad_image_halts_a_rollout_through_the_real_argo_cd_and_the_fix_completes_it() {
    let Some(bed) = Bed::of(people("argocd", &web("1"))) else { return };
    bed.pass().expect(0);
    bed.join(&[]);
    let _reporter = Running::start(&bed);
    bed.halts_at_a_bad_image(&web, || bed.pass());
    run(&["verify", "--repo", bed.fleet.bare_path().to_str().expect("text")]).expect(0);
}

#[test]
#[ignore = "needs a container registry"]
fn argo_cd_takes_folders_from_a_registry() {
    let all = |tag: &str| {
        let mut objects = several();
        objects.pop();
        objects.push(deployment(tag));
        work(&objects)
    };
    let Some(registry) = Registry::start() else { return };
    let Some(bed) = Bed::of(people("argocd", &all("1"))) else { return };
    let source = format!("oci://{}/fleet", registry.host());
    let publish = || bed.fleet.run_once(&bed.server, &["--publish", &source]);
    publish().expect(0);
    let repo = bed.fleet.people.arg();
    let joining = ["join", "oslo", "--dialect", "ocm", "--applier", "argocd", "--applier-source", &source];
    let written = run(&[&joining[..], &["--insecure-registry", "--repo", repo]].concat()).expect(0);
    bed.apply(&written.out);
    let _reporter = Running::start(&bed);
    bed.halts_at_a_bad_image(&all, publish);
    let (_, digest) = registry.manifest("fleet/clusters/oslo", "current").expect("the folder is there");
    bed.until_applied(&digest);
    are_as_berth_makes_them(&bed, &SEVERAL);
}

#[test]
#[ignore = "needs definitions of others"]
fn an_application_set_follows_berth_s_decisions() {
    let kinds = match programs::made(&["ready", "sig-apis"], "sig_apis") {
        Ok(folder) => folder,
        Err(why) => return programs::skipped("the published CRDs", &why),
    };
    let people = people("argocd", &work(&[namespace("shop"), settings()]));
    people.git(&["rm", "-q", "clusters/turin.yaml"]);
    people.commit("turin is not there yet");
    let Some(mut bed) = Bed::of(people) else { return };
    bed.kubectl(&["apply", "--server-side", "-f", kinds.to_str().expect("text")]).expect(0);
    let served = "placementdecisions.cluster.open-cluster-management.io";
    until("the decisions' kind", || bed.kubectl(&["get", served, "-A"]).code == 0);
    bed.start_sets();
    let kubeconfig = bed.plane.kubeconfig().display().to_string();
    let publishing =
        ["--publish-decisions", "kube", "--decisions-namespace", "argocd", "--kubeconfig", &kubeconfig];
    bed.fleet.run_once(&bed.server, &publishing).expect(0);
    let source = bed.server.url();
    let set = run(&["install", "application-set", "--source", &source, "--placement", "shop.web"]).expect(0);
    bed.apply(&set.out);
    bed.until_applied(&bed.revision());
    assert!(bed.get("configmap", "a").is_some());
    let is_there =
        |name: &str| bed.kubectl(&["get", "applications.argoproj.io", name, "-n", "argocd"]).code == 0;
    assert!(!is_there("berth-turin"));

    // A further cluster.
    bed.add_cluster("turin");
    bed.fleet
        .people
        .write("clusters/turin.yaml", cluster("turin", "annotations: {berth.dev/applier: argocd}"));
    bed.fleet.people.commit("turin joins");
    bed.fleet.push();
    bed.fleet.run_once(&bed.server, &publishing).expect(0);
    bed.refresh_set();
    bed.until("application", "berth-turin", |it| it["spec"]["destination"]["name"] == "turin");

    // A placement that picks nobody for a moment takes no Application and no object along.
    let nobody = r#"{"status": {"decisions": []}}"#;
    let decision = ["patch", served, "shop.web-decision-1", "-n", "argocd"];
    bed.kubectl(&[&decision[..], &["--subresource=status", "--type=merge", "-p", nobody]].concat()).expect(0);
    bed.refresh_set();
    assert!(is_there("berth-oslo") && is_there("berth-turin") && bed.stays("namespace", "shop"));
}
