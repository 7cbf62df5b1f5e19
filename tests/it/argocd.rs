//! Argo CD as the member: what `berth join` writes fits its kinds, and its Application's status is the member's
//! report. The tests play its controller.

use std::process::{Child, Stdio};

use serde_json::json;

use crate::support::argocd::{ArgoCd, operation, synced};
use crate::support::kube::{ControlPlane, Wanted};
use crate::support::pod::Pod;
use crate::support::remote::{Fleet, Plain, Server as _};
use crate::support::site::{is_well, tags};
use crate::support::site_fleet::{deployment, namespace, people, settings, work};
use crate::support::wait::{eventually, until};
use crate::support::{RENDERED, Ran, Repo, berth, run};

const SOURCE: [&str; 2] = ["--applier-source", "https://git.example.com/team/fleet.git"];
const APPLICATION: &str = "berth-oslo";

/// A fleet at a Git server, and the plane of `oslo`.
struct Bed<'p> {
    fleet: Fleet,
    server: Plain,
    plane: &'p ControlPlane,
    argocd: ArgoCd<'p>,
}

impl<'p> Bed<'p> {
    fn of(people: Repo, plane: &'p ControlPlane) -> Option<Bed<'p>> {
        let argocd = ArgoCd::on(plane)?;
        let fleet = Fleet::of(people);
        let server = Plain::new(fleet.root());
        let bed = Bed { fleet, server, plane, argocd };
        bed.pass().expect(0);
        let repo = bed.fleet.people.arg();
        let joining = ["join", "oslo", "--dialect", "ocm", "--applier", "argocd", "--repo", repo];
        bed.argocd.apply(&run(&[&joining[..], &SOURCE].concat()).expect(0).out);
        Some(bed)
    }

    fn pass(&self) -> Ran {
        self.fleet.run_once(&self.server, &[])
    }

    /// Commits the workload, pushes and publishes it.
    fn edit(&self, workload: &str, message: &str) -> Ran {
        self.fleet.people.write("apps/web.yaml", workload);
        self.fleet.people.commit(message);
        self.fleet.push();
        self.pass()
    }

    /// `berth sync` of the cluster that Argo CD applies, with the rights of a pod.
    fn reporter(&self, pod: &Pod) -> std::process::Command {
        let mut command = berth();
        pod.set_credentials(&mut command);
        command.args(["sync", "--cluster", "oslo", "--target", "kube", "--applier", "argocd"]);
        command.args(["--interval", "1", "--fetch-interval", "1"]);
        command.arg("--repo").arg(self.fleet.root().join("copies/oslo")).args(self.server.access());
        command
    }

    /// A pod with the account that `berth install member --applier argocd` makes for a folder of these kinds.
    fn installed(&self, kinds: &str) -> Pod {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = folder.path().to_str().expect("a text path");
        run(&[
            "install",
            "member",
            "oslo",
            "--applier",
            "argocd",
            "--kinds",
            kinds,
            "--remote",
            SOURCE[1],
            "--image",
            "example.com/berth:1",
            "--dir",
            dir,
        ])
        .expect(0);
        self.argocd.kubectl(&["apply", "-k", dir]).expect(0);
        let token = self.argocd.kubectl(&["create", "token", "berth-fleet", "-n", "berth-system"]).expect(0);
        Pod::new(self.plane, token.out.trim())
    }

    fn keeps_reporting(&self, pod: &Pod) -> Reporter {
        let mut command = self.reporter(pod);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Reporter(child.expect("berth starts"))
    }

    fn report(&self) -> String {
        match self.fleet.has("refs/berth/status/oslo") {
            true => self.fleet.bare(&["show", "refs/berth/status/oslo:status.yaml"]),
            false => String::new(),
        }
    }

    /// Waits for a report on the cluster's present folder.
    #[track_caller]
    fn until_reported(&self, holds: impl Fn(&str) -> bool) -> String {
        let tree = self.fleet.bare(&["rev-parse", &format!("{RENDERED}:clusters/oslo")]);
        eventually("the report of oslo", || {
            Some(self.report()).filter(|report| report.contains(&tree) && holds(report))
        })
    }

    /// Plays Argo CD's sync, and the Deployment's controller after it.
    fn syncs(&self, is_well: bool) {
        self.argocd.sync(APPLICATION, &self.fleet, "oslo");
        let web = self.argocd.get("deployment", "web").expect("a Deployment");
        let (status, reason) =
            if is_well { ("True", "NewReplicaSetAvailable") } else { ("False", "ProgressDeadlineExceeded") };
        let ready = i32::from(is_well);
        let said = json!({"replicas": 1, "updatedReplicas": 1, "readyReplicas": ready, "availableReplicas": ready,
            "observedGeneration": web["metadata"]["generation"],
            "conditions": [{"type": "Progressing", "status": status, "reason": reason, "message": "said so",
                "lastUpdateTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}]});
        let patch = json!({ "status": said }).to_string();
        let args = [
            "patch",
            "deployment",
            "web",
            "-n",
            "shop",
            "--subresource=status",
            "--type=merge",
            "-p",
            &patch,
        ];
        self.argocd.kubectl(&args).expect(0);
    }
}

/// A reporter that keeps running.
struct Reporter(Child);

impl Drop for Reporter {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "needs Kubernetes"]
fn what_is_written_for_argo_cd_fits_its_kinds() {
    let Some(plane) = ControlPlane::start(Wanted::SERVER_ONLY) else { return };
    let Some(bed) = Bed::of(people("argocd", &work(&[namespace("shop")])), &plane) else { return };
    let repo = bed.fleet.people.arg();
    let registry = ["--applier-source", "oci://registry.example.com/fleet", "--insecure-registry"];
    let joining = ["join", "oslo", "--dialect", "ocm", "--applier", "argocd", "--repo", repo];
    let more = ["--argocd-destination", "in-cluster", "--argocd-project", "fleet"];
    let again = run(&[&joining[..], &registry, &more].concat()).expect(0);
    // Another run replaces what the first one wrote.
    bed.argocd.kubectl(&["delete", "applications.argoproj.io", APPLICATION, "-n", "argocd"]).expect(0);
    bed.argocd.apply(&again.out);
    let application =
        bed.argocd.kubectl(&["get", "applications.argoproj.io", APPLICATION, "-n", "argocd", "-o", "json"]);
    let spec = &application.expect(0).json()["spec"];
    assert_eq!(spec["source"]["repoURL"], "oci://registry.example.com/fleet/clusters/oslo");
    assert_eq!(
        spec["syncPolicy"]["automated"],
        json!({"prune": true, "selfHeal": true, "allowEmpty": false})
    );
    for source in ["oci://registry.example.com/fleet", "https://git.example.com/team/fleet.git"] {
        let set =
            run(&["install", "application-set", "--source", source, "--placement", "everywhere"]).expect(0);
        bed.argocd.kubectl(&["delete", "applicationsets", "--all", "-n", "argocd"]).expect(0);
        bed.argocd.apply(&set.out);
    }
    let refused = run(&[&joining[..], &SOURCE, &["--source-secret", "pull"]].concat()).expect(2);
    assert!(refused.err.contains("--source-secret is for Flux alone"), "{}", refused.err);
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_bad_image_halts_a_rollout_through_argo_cd_s_status_and_the_fix_completes_it() {
    let web = |tag: &str| work(&[namespace("shop"), deployment(tag)]);
    let Some(plane) = ControlPlane::start(Wanted::SERVER_ONLY) else { return };
    let Some(bed) = Bed::of(people("argocd", &web("1")), &plane) else { return };
    let pod = bed.installed("deployments.apps,namespaces");
    let _reporter = bed.keeps_reporting(&pod);
    // Argo CD is content with what it has, which is not this folder.
    bed.argocd.set_status(APPLICATION, &synced(&"0".repeat(40)));
    let report = bed.until_reported(|report| report.contains("progressing:"));
    assert!(!report.contains("problems:"), "{report}");
    assert_eq!(tags(&bed.fleet), ["1", "-"]);
    bed.syncs(true);
    bed.until_reported(is_well);
    bed.pass().expect(0);
    assert_eq!(tags(&bed.fleet), ["1", "1"]);

    bed.edit(&web("2-typo"), "web:2-typo").expect(0);
    bed.syncs(false);
    bed.until_reported(|report| report.contains("ProgressDeadlineExceeded"));
    let ran = bed.pass().expect(0);
    assert!(ran.err.contains("is halted: oslo failed: Deployment.apps shop/web"), "{}{}", ran.out, ran.err);
    assert_eq!(tags(&bed.fleet), ["2-typo", "1"]);

    // Argo CD could not apply the next one at all, and says so with the object's name.
    bed.edit(&web("3"), "web:3 fixes it").expect(0);
    let revision = bed.fleet.bare(&["rev-parse", "refs/heads/berth/clusters/oslo"]);
    let mut failed = operation("Failed", &revision, "one or more objects failed to apply");
    failed["syncResult"]["resources"] = json!([{"group": "apps", "version": "v1", "kind": "Deployment",
        "namespace": "shop", "name": "web", "status": "SyncFailed", "message": "field is immutable"}]);
    let sync = json!({"status": "OutOfSync", "revision": revision});
    bed.argocd.set_status(APPLICATION, &json!({"sync": sync, "operationState": failed}));
    bed.until_reported(|report| report.contains("Argo CD: [Deployment/shop/web] field is immutable"));
    bed.syncs(true);
    bed.until_reported(is_well);
    bed.pass().expect(0);
    assert_eq!(tags(&bed.fleet), ["3", "3"]);
    run(&["verify", "--repo", bed.fleet.bare_path().to_str().expect("text")]).expect(0);
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_namespace_stays_at_argo_cd_until_its_removal_is_approved() {
    let Some(plane) = ControlPlane::start(Wanted::SERVER_ONLY) else { return };
    let all = [namespace("shop"), namespace("extra"), namespace("more"), settings()];
    let Some(bed) = Bed::of(people("argocd", &work(&all)), &plane) else { return };
    let pod = bed.installed("configmaps,namespaces");
    let _reporter = bed.keeps_reporting(&pod);
    bed.argocd.sync(APPLICATION, &bed.fleet, "oslo");
    bed.until_reported(is_well);
    let extra = bed.argocd.get("namespace", "extra").expect("it");
    let guards = &extra["metadata"]["annotations"];
    assert_eq!(guards["argocd.argoproj.io/sync-options"], "Prune=false,Delete=false");
    assert_eq!(guards["argocd.argoproj.io/compare-options"], "IgnoreExtraneous");

    // The hub holds it until an approval, and then Argo CD leaves it to the reporter. What needs none goes at once.
    let held = bed.edit(&work(&[namespace("shop"), namespace("more")]), "without extra").expect(5);
    assert!(bed.argocd.get("namespace", "extra").is_some());
    bed.edit(&work(&[namespace("shop"), namespace("more")]), &format!("yes\n\n{}", held.approval()))
        .expect(0);
    assert!(
        bed.argocd.get("namespace", "extra").is_some_and(|it| it["metadata"]["deletionTimestamp"].is_null())
    );
    bed.argocd.sync(APPLICATION, &bed.fleet, "oslo");
    assert!(bed.argocd.get("configmap", "a").is_none());
    until("the namespace is going", || {
        bed.argocd.get("namespace", "extra").is_none_or(|it| it["metadata"]["deletionTimestamp"].is_string())
    });

    // The gate is off, so that a folder loses one without an approval that travels to the member.
    bed.fleet.people.write("apps/web.yaml", work(&[namespace("shop")]));
    bed.fleet.people.commit("without more");
    bed.fleet.push();
    let ungated =
        ["--allow-risky-removals", "--max-removed-objects", "100%", "--max-removed-clusters", "100%"];
    bed.fleet.run_once(&bed.server, &ungated).expect(0);
    bed.argocd.sync(APPLICATION, &bed.fleet, "oslo");
    let report = bed.until_reported(|report| report.contains("problems:"));
    assert!(report.contains("no longer wanted, but kept: namespaces, CRDs"), "{report}");
    assert!(
        bed.argocd.get("namespace", "more").is_some_and(|it| it["metadata"]["deletionTimestamp"].is_null())
    );
    // The rights of the account were enough for all this, and it has no others.
    let may = |what: &[&str]| {
        let account = "--as=system:serviceaccount:berth-system:berth-fleet";
        bed.argocd.kubectl(&[&["auth", "can-i"], what, &[account]].concat()).code == 0
    };
    assert!(
        may(&["delete", "namespaces"])
            && may(&["get", "applications.argoproj.io/berth-oslo", "-n", "argocd"])
    );
    for what in [
        &["delete", "persistentvolumeclaims", "-A"][..],
        &["delete", "configmaps", "-A"],
        &["patch", "configmaps", "-A"],
        &["create", "namespaces"],
        &["list", "secrets", "-A"],
        &["get", "applications.argoproj.io/berth-turin", "-n", "argocd"],
        &["patch", "applications.argoproj.io/berth-oslo", "-n", "argocd"],
        &["create", "configmaps", "-n", "berth-system"],
    ] {
        assert!(!may(what), "{what:?}");
    }
}

#[test]
#[ignore = "needs Kubernetes"]
fn the_application_may_be_in_another_cluster() {
    let Some(plane) = ControlPlane::start(Wanted::SERVER_ONLY) else { return };
    let Some(hub) = ControlPlane::start(Wanted::SERVER_ONLY) else { return };
    let Some(bed) = Bed::of(people("argocd", &work(&[settings()])), &hub) else { return };
    let at = |kubeconfig: &std::path::Path| kubeconfig.to_str().expect("a text path").to_owned();
    let [member, argocd] = [at(plane.kubeconfig()), at(hub.kubeconfig())];
    let sync = |more: &[&str]| {
        let mut command = berth();
        command.args(["sync", "--once", "--cluster", "oslo", "--target", "kube", "--applier", "argocd"]);
        command.args(["--kubeconfig", &member, "--health-timeout", "0"]).args(more);
        command.arg("--repo").arg(bed.fleet.root().join("copies/oslo")).args(bed.server.access());
        Ran::of(&mut command)
    };
    let lost = sync(&[]);
    assert!(
        lost.code != 0 && lost.err.contains("the cluster serves no Application.argoproj.io"),
        "{}",
        lost.err
    );
    let revision = bed.fleet.bare(&["rev-parse", "refs/heads/berth/clusters/oslo"]);
    bed.argocd.set_status(APPLICATION, &synced(&revision));
    // The Application says that all is well, and the cluster has nothing.
    let missing = sync(&["--applier-kubeconfig", &argocd]).expect(7);
    assert!(missing.err.contains("it does not exist"), "{}{}", missing.out, missing.err);
    for args in [
        &["create", "namespace", "shop"][..],
        &["create", "configmap", "a", "-n", "shop", "--from-literal=a=b"],
    ] {
        Ran::of(plane.kubectl().args(args)).expect(0);
    }
    sync(&["--applier-kubeconfig", &argocd]).expect(0);
}
