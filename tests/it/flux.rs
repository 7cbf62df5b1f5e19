//! Flux as the member: the real controllers apply what berth published, and a reporter tells berth of it.

use serde_json::Value as Json;

use crate::support::flux::condition;
use crate::support::flux_bed::Bed;
use crate::support::kube::{ControlPlane, Wanted};
use crate::support::site::{Running, comparable, is_well};
use crate::support::site_fleet::{cluster, deployment, namespace, people, settings, several, work};
use crate::support::wait::until;
use crate::support::{RENDERED, Ran, run};

#[test]
#[ignore = "needs Flux"]
fn flux_makes_the_same_objects_as_berth_and_its_status_is_the_member_s_report() {
    let Some(bed) = Bed::of(people("flux", &work(&several()))) else { return };
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
    let report = bed.until_reported(is_well);
    assert!(report.contains("objects: 6"), "{report}");
    drop(reporter);

    // The rollout goes on with the other cluster, which berth applies.
    let ran = bed.pass().expect(0);
    assert!(ran.out.contains("turin") || ran.err.contains("turin"), "{}{}", ran.out, ran.err);
    bed.sync_turin(&other).expect(7);
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
#[ignore = "needs Flux"]
fn a_namespace_stays_until_its_removal_is_approved_and_goes_by_the_reporter_then() {
    let two = |more: &[Json]| work(&[&[namespace("shop"), namespace("extra")][..], more].concat());
    let Some(bed) = Bed::of(people("flux", &two(&[settings()]))) else { return };
    bed.pass().expect(0);
    bed.join(&[]);
    let reporter = Running::start(&bed);
    bed.until_reported(is_well);
    let extra = bed.get("namespace", "extra").expect("it");
    assert_eq!(extra["metadata"]["annotations"]["kustomize.toolkit.fluxcd.io/prune"], "disabled");

    // The hub holds it.
    let less = work(&[namespace("shop"), settings()]);
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
    assert!(bed.stays("namespace", "shop"));
}

#[test]
#[ignore = "needs Flux"]
fn a_removal_that_nobody_approved_for_this_cluster_is_left_and_reported() {
    let both = work(&[namespace("shop"), namespace("extra")]);
    let Some(bed) = Bed::of(people("flux", &both)) else { return };
    bed.pass().expect(0);
    bed.join(&[]);
    let reporter = Running::start(&bed);
    bed.until_reported(is_well);
    // The gate is off, so that the folder loses it without an approval that travels to the member.
    bed.edit_ungated("apps/web.yaml", &work(&[namespace("shop")]), "without extra").expect(0);
    let report = bed.until_reported(|report| report.contains("problems:"));
    assert!(report.contains("no longer wanted, but kept: namespaces, CRDs"), "{report}");
    drop(reporter);
    assert!(bed.stays("namespace", "extra"));
}

#[test]
#[ignore = "needs Flux"]
fn a_bad_image_halts_a_rollout_through_flux_s_status_and_the_fix_completes_it() {
    let web = |tag: &str| work(&[namespace("shop"), deployment(tag)]);
    let Some(bed) = Bed::of(people("flux", &web("1"))) else { return };
    bed.pass().expect(0);
    bed.join(&[]);
    let _reporter = Running::start(&bed);
    let said = bed.halts_at_a_bad_image(&web, || bed.pass());
    assert!(said.contains("Flux: HealthCheckFailed") || said.contains("ProgressDeadlineExceeded"), "{said}");
    run(&["verify", "--repo", bed.fleet.bare_path().to_str().expect("text")]).expect(0);
}

#[test]
fn a_branch_that_somebody_moved_is_put_right_by_the_next_pass() {
    let repo = people("flux", &work(&[namespace("shop")]));
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
