//! Rollouts and failover of the real thing: a Git server, the binary, members with control planes.

use berth_base::model::Timestamp;
use serde_json::json;

use crate::support::real_fleet::RealFleet;
use crate::support::remote::Running;
use crate::support::removals::{GLOBAL_SET, label, managed};
use crate::support::wait::until;
use crate::support::{RENDERED, Repo, run};

const MEMBERS: [&str; 3] = ["a", "b", "c"];

const EVERYWHERE: &str = "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n\
     metadata: {name: web, namespace: shop}\nspec: {}\n";

fn fleet(placement: &str, workload: &str) -> Repo {
    let repo = Repo::new();
    for name in MEMBERS {
        repo.write(&format!("clusters/{name}.yaml"), managed(name, ""));
    }
    repo.write("sets.yaml", GLOBAL_SET);
    repo.write("apps/placement.yaml", placement);
    repo.write("apps/web.yaml", workload);
    repo.commit("begin with web:1");
    repo
}

/// A Deployment in its namespace, which goes to one cluster after the other.
fn web(tag: &str) -> String {
    format!(
        "apiVersion: work.open-cluster-management.io/v1alpha1
kind: ManifestWorkReplicaSet
metadata: {{name: web, namespace: shop}}
spec:
  placementRefs:
  - name: web
    rolloutStrategy: {{type: Progressive, progressive: {{maxConcurrency: 1}}}}
  manifestWorkTemplate:
    workload:
      manifests:
      - apiVersion: v1
        kind: Namespace
        metadata: {{name: shop}}
      - apiVersion: apps/v1
        kind: Deployment
        metadata: {{name: web, namespace: shop}}
        spec:
          replicas: 1
          selector: {{matchLabels: {{app: web}}}}
          template:
            metadata: {{labels: {{app: web}}}}
            spec: {{containers: [{{name: web, image: '{}'}}]}}
",
        image(tag)
    )
}

fn image(tag: &str) -> String {
    format!("registry.example.com/web:{tag}")
}

/// The image of each member's Deployment.
fn images(real: &RealFleet) -> Vec<Option<String>> {
    real.members.iter().map(|member| member.image()).collect()
}

fn is_well(report: &str) -> bool {
    !report.contains("progressing:") && !report.contains("problems:")
}

/// One cluster after the other gets the release, proves it, and lets the next one follow.
#[track_caller]
fn goes_well(real: &RealFleet, tag: &str) {
    for name in MEMBERS {
        real.pass().expect(0);
        real.member(name).pods_run(&image(tag));
        real.until_reported(name, is_well);
    }
    real.pass().expect(0);
    assert_eq!(images(real), [tag; 3].map(|tag| Some(image(tag))));
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_bad_image_halts_at_the_first_wave_and_says_why_and_the_fix_completes_it() {
    let Some(mut real) = RealFleet::of(fleet(EVERYWHERE, &web("1")), &MEMBERS) else { return };
    for name in MEMBERS {
        real.start(name, &["--health-timeout", "3600"]);
    }
    goes_well(&real, "1");

    real.edit("apps/web.yaml", &web("2-typo"), "web:2-typo");
    real.pass().expect(0);
    real.member("a").pods_fail(&image("2-typo"));
    real.until_reported("a", |report| report.contains("problems:"));
    let why = "release 2 is halted: a failed: Deployment.apps shop/web: failed: Progressing is False: \
               ProgressDeadlineExceeded: ReplicaSet \"web-6d4cf56db6\" has timed out progressing.\n";
    for outcome in ["published", "nothing to publish"] {
        let ran = real.pass().expect(0);
        assert!(ran.err.contains(why), "{}", ran.err);
        assert!(ran.out.starts_with("no changes\n") && ran.out.contains(outcome), "{}", ran.out);
    }
    assert_eq!(images(&real), ["2-typo", "1", "1"].map(|tag| Some(image(tag))));

    real.edit("apps/web.yaml", &web("3"), "web:3 fixes it");
    goes_well(&real, "3");
    assert_eq!(real.story(), STORY);
    let verified = real.verify().out;
    assert_eq!(verified.lines().filter(|line| line.starts_with("ok ")).count(), 10, "{verified}");
}

const STORY: &str = r#"1. berth: first state, 1 workload on 1 cluster
   ManifestWorkReplicaSet shop/web: release 1 assigned to a
2. berth: web added to 1 cluster
   ManifestWorkReplicaSet shop/web: release 1 assigned to b
3. berth: web added to 1 cluster
   ManifestWorkReplicaSet shop/web: release 1 assigned to c
4. berth: ManifestWorkReplicaSet shop/web: release 1 proven
   ManifestWorkReplicaSet shop/web: release 1 proven
5. berth: web changed in 1 cluster
   ManifestWorkReplicaSet shop/web: release 2 begins; assigned to a
6. berth: ManifestWorkReplicaSet shop/web: release 2 halted: a failed: Deployment.apps sh…
   ManifestWorkReplicaSet shop/web: release 2 halted: a failed: Deployment.apps shop/web: failed: Progressing is False: ProgressDeadlineExceeded: ReplicaSet "web-6d4cf56db6" has timed out progressing.
7. berth: web changed in 1 cluster
   ManifestWorkReplicaSet shop/web: release 3 begins; assigned to a
8. berth: web changed in 1 cluster
   ManifestWorkReplicaSet shop/web: release 3 assigned to b
9. berth: web changed in 1 cluster
   ManifestWorkReplicaSet shop/web: release 3 assigned to c
10. berth: ManifestWorkReplicaSet shop/web: release 3 proven
   ManifestWorkReplicaSet shop/web: release 3 proven
"#;

/// One cluster at a time, which may be unreachable for ten seconds.
const ONE: &str = "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n\
     metadata: {name: web, namespace: shop}\nspec:\n  numberOfClusters: 1\n  tolerations:\n  \
     - {key: cluster.open-cluster-management.io/unreachable, operator: Exists, tolerationSeconds: 10}\n";

/// The Deployment's place in a cluster's folder.
const WEB: &str = "shop/Deployment.apps_web.yaml";

/// The clusters whose folder has the Deployment.
fn placed(real: &RealFleet, revision: &str) -> Vec<String> {
    if !real.fleet.has(revision) {
        return Vec::new();
    }
    let files = real.files(revision);
    let of =
        |path: &str| path.strip_prefix("clusters/")?.strip_suffix(WEB)?.strip_suffix('/').map(str::to_owned);
    files.lines().filter_map(of).collect()
}

/// The workload `web` without its namespace, which every cluster has from another one.
fn web_alone() -> String {
    let namespace = "      - apiVersion: v1\n        kind: Namespace\n        metadata: {name: shop}\n";
    let web = web("1");
    assert!(web.contains(namespace));
    web.replace(namespace, "")
}

fn namespace() -> String {
    format!(
        "{}---\napiVersion: work.open-cluster-management.io/v1alpha1\nkind: ManifestWorkReplicaSet\n\
         metadata: {{name: base, namespace: shop}}\nspec:\n  placementRefs: [{{name: all}}]\n  manifestWorkTemplate:\n    \
         workload:\n      manifests:\n      - {{apiVersion: v1, kind: Namespace, metadata: {{name: shop}}}}\n",
        EVERYWHERE.replace("name: web", "name: all")
    )
}

/// The moment that a text gives by some name.
#[track_caller]
fn moment(text: &str, name: &str) -> i64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let moment = line.unwrap_or_else(|| panic!("no {name} in {text}")).trim_matches('"');
    moment.parse::<Timestamp>().expect("a moment").as_second()
}

/// The flags of members that report every few seconds.
const OFTEN: [&str; 4] = ["--heartbeat", "4", "--health-timeout", "3600"];

/// Starts all members and a daemon, and waits until each reported and the first one is well.
fn all_report(real: &mut RealFleet) -> Running {
    for name in MEMBERS {
        real.start(name, &OFTEN);
    }
    let daemon = Running::daemon(&real.fleet, &real.server, &[]);
    real.member("a").pods_run(&image("1"));
    until("a is well", || is_well(&real.report("a")));
    until("all report", || MEMBERS.iter().all(|name| real.report(name).contains("applied:")));
    daemon
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_workload_of_a_member_that_stops_moves_after_its_toleration_and_not_back() {
    let repo = fleet(ONE, &web_alone());
    repo.write("apps/base.yaml", namespace());
    repo.commit("the namespace");
    let Some(mut real) = RealFleet::of(repo, &MEMBERS) else { return };
    let _daemon = all_report(&mut real);

    real.stop("a");
    until("it moves", || placed(&real, RENDERED) == ["b"]);
    let moves = real.fleet.bare(&["log", "--format=%H", RENDERED, "--", &format!("clusters/b/{WEB}")]);
    assert_eq!(placed(&real, &format!("{moves}^")), ["a"], "until then it stays");
    let silent = moment(&real.fleet.bare(&["show", &format!("{moves}:facts/a.yaml")]), "silent");
    let moved = moment(&real.fleet.bare(&["show", "-s", "--format=%B", &moves]), "Berth-Now");
    assert!(moved - silent >= 10, "silent since {silent}, moved at {moved}");
    let last = real.report("a");
    let (reported, due) = (moment(&last, "reported"), moment(&last, "nextDue"));
    assert!(silent - reported >= 3 * (due - reported), "{last}");
    real.member("b").pods_run(&image("1"));
    assert_eq!(real.member("a").image(), Some(image("1")), "nobody is there to remove it");

    real.start("a", &OFTEN);
    until("its silence ends", || !real.files(RENDERED).contains("facts/a.yaml"));
    until("it removes its copy", || real.member("a").image().is_none());
    let clusters = |revision: &str| real.fleet.bare(&["rev-parse", &format!("{revision}:clusters")]);
    assert_eq!(clusters(RENDERED), clusters(&moves), "nothing moves back");
    assert_eq!(images(&real), [None, Some(image("1")), None]);
    real.verify();
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_workload_with_its_namespace_comes_up_elsewhere_and_leaves_the_dead_cluster_with_an_approval() {
    let Some(mut real) = RealFleet::of(fleet(ONE, &web("1")), &MEMBERS) else { return };
    let _daemon = all_report(&mut real);

    real.stop("a");
    until("it comes up elsewhere", || placed(&real, RENDERED) == ["a", "b"]);
    real.member("b").pods_run(&image("1"));
    real.start("a", &OFTEN);
    until("its silence ends", || {
        !real.files(RENDERED).contains("facts/a.yaml") || {
            !real.fleet.bare(&["show", &format!("{RENDERED}:facts/a.yaml")]).contains("silent")
        }
    });
    assert_eq!(placed(&real, RENDERED), ["a", "b"]);
    assert_eq!(images(&real), [Some(image("1")), Some(image("1")), None]);

    let status = run(&["status", "--repo", real.fleet.bare_path().to_str().expect("text")]).expect(0).out;
    let held = status.lines().find_map(|line| line.strip_prefix("held for approval: ")).expect("it is held");
    let line = held.split_once('(').expect("an approval").1.trim_end_matches(')');
    real.edit("apps/web.yaml", &web("2"), &format!("web:2, and a may go\n\n{line}"));
    until("a removes its copy", || real.member("a").image().is_none());
    until("b has the new one", || real.member("b").image() == Some(image("2")));
    assert_eq!(placed(&real, RENDERED), ["b"]);
    real.verify();
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_cluster_picked_again_waits_for_the_end_of_its_removal() {
    let repo = fleet(&label("web", "none"), &web_alone().replace(STRATEGY, ""));
    repo.write("apps/base.yaml", namespace());
    repo.write("policy.yaml", BUDGET);
    repo.commit("a budget");
    let Some(mut real) = RealFleet::of(repo, &MEMBERS) else { return };
    for name in MEMBERS {
        real.start(name, &["--health-timeout", "3600"]);
    }
    real.pass().expect(0);
    for name in MEMBERS {
        real.member(name).pods_run(&image("1"));
        real.until_reported(name, is_well);
    }
    real.pass().expect(0);

    real.member("c").hold_back(&json!(["example.com/backup"]));
    let without = managed("c", "").replace("{name: c}", "{name: c, labels: {web: none}}");
    real.edit("clusters/c.yaml", &without, "web leaves c");
    real.pass().expect(0);
    real.until_reported("c", |report| report.contains("removing:"));
    real.edit("clusters/c.yaml", &managed("c", ""), "web comes back to c");
    let waits = "c: waiting for the removal of earlier copies in: c";
    let ran = real.pass().expect(0);
    assert!(ran.err.contains(waits), "{}", ran.err);
    assert_eq!(placed(&real, RENDERED), ["a", "b"]);

    real.member("c").hold_back(&json!(null));
    real.until_reported("c", |report| !report.contains("removing:"));
    real.pass().expect(0);
    assert_eq!(placed(&real, RENDERED), MEMBERS);
    real.member("c").pods_run(&image("1"));
    real.verify();
}

const STRATEGY: &str = "\n    rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 1}}";

const BUDGET: &str = "apiVersion: berth.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {name: web, namespace: shop}\n\
     spec:\n  workloads: [{kind: ManifestWorkReplicaSet, name: web}]\n  \
     strategy: {rollingUpdate: {maxUnavailable: 1, maxSurge: 0}}\n";
