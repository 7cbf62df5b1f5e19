//! `berth rollout pause`, `resume`, `abort`, `approve` and `restart`: small edits of rollout policies.

use crate::support::rollouts::{Rollouts, staged_shop};
use crate::support::{Ran, Repo, cluster, config_map, namespace, run};

const WEB: &str = "apiVersion: berth.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: web, namespace: shop}
spec:
  # Careful: people look at this one.
  workloads: [{kind: FederatedConfigMap, name: web}]   # and no other
  freeze:
  - {schedule: 0 14 * * FRI, for: 66h, timeZone: Europe/Berlin}
";

/// A fleet with the ConfigMaps `web` and `api`, and these files.
fn fleet(more: &[(&str, &str)]) -> Repo {
    let (web, api) = (
        config_map("web", "one", "{clusterSelector: {}}"),
        config_map("api", "one", "{clusterSelector: {}}"),
    );
    let (a, shop) = (cluster("a", &[]), namespace("shop"));
    let files = [
        ("clusters/a.yaml", &*a),
        ("apps/shop.yaml", &*shop),
        ("apps/web.yaml", &*web),
        ("apps/api.yaml", &*api),
    ];
    Repo::with(&[&files, more].concat())
}

fn text(repo: &Repo, path: &str) -> String {
    std::fs::read_to_string(repo.path().join(path)).unwrap()
}

fn go(repo: &Repo, args: &[&str]) -> Ran {
    run(&[&["rollout"], args, &["--repo", repo.arg()]].concat())
}

#[test]
fn a_pause_makes_a_policy_and_a_resume_removes_it() {
    let repo = fleet(&[]);
    let ran = go(&repo, &["pause", "web", "--reason", "waiting for legal"]).expect(0);
    assert_eq!(ran.out, "FederatedConfigMap shop/web: paused (rollouts/web.yaml)\n");
    assert!(ran.err.contains("next: commit and push"), "{}", ran.err);
    assert_eq!(
        text(&repo, "rollouts/web.yaml"),
        "apiVersion: berth.dev/v1alpha1\nkind: RolloutPolicy\nmetadata:\n  name: web\n  namespace: shop\nspec:\n  \
         workloads:\n  - kind: FederatedConfigMap\n    name: web\n    namespace: shop\n  paused:\n    \
         reason: waiting for legal\n"
    );
    run(&["validate", "--repo", repo.arg()]).expect(0);
    let again = go(&repo, &["pause", "web", "--reason", "waiting for legal"]).expect(0);
    assert!(
        again.out.contains("is paused already") && again.err.contains("nothing to change"),
        "{}",
        again.err
    );
    go(&repo, &["resume", "web"]).expect(0);
    assert!(!repo.path().join("rollouts/web.yaml").exists());
    let idle = go(&repo, &["resume", "web"]).expect(0);
    assert!(idle.out.contains("was not paused"), "{}", idle.out);
}

#[test]
fn a_policy_of_the_workload_is_edited_in_place() {
    let repo = fleet(&[("teams/web.yaml", WEB)]);
    go(&repo, &["pause", "shop/web", "--reason", "errors in a"]).expect(0);
    assert_eq!(text(&repo, "teams/web.yaml"), format!("{WEB}  paused:\n    reason: errors in a\n"));
    go(&repo, &["pause", "shop/web", "--reason", "errors in b"]).expect(0);
    assert!(text(&repo, "teams/web.yaml").contains("reason: errors in b"));
    go(&repo, &["resume", "shop/web"]).expect(0);
    assert_eq!(text(&repo, "teams/web.yaml"), WEB);
}

#[test]
fn a_commit_holds_the_edit_and_nothing_else() {
    let repo = fleet(&[("teams/web.yaml", WEB)]);
    repo.write("apps/api.yaml", config_map("api", "two", "{clusterSelector: {}}"));
    let before = repo.id("HEAD");
    let ran = go(&repo, &["pause", "web", "--reason", "errors in a", "--commit"]).expect(0);
    assert!(ran.err.contains("committed ") && ran.err.contains("next: push"), "{}", ran.err);
    assert_eq!(repo.id("HEAD^"), before);
    assert_eq!(repo.git(&["show", "--format=", "--name-only", "HEAD"]), "teams/web.yaml");
    assert_eq!(
        repo.git(&["log", "-1", "--format=%B"]).trim(),
        "Pause the rollout of FederatedConfigMap shop/web\n\nerrors in a"
    );
    assert_eq!(repo.git(&["status", "--porcelain"]), " M apps/api.yaml");
    // A new file is committed as well, and a removed one.
    go(&repo, &["resume", "web", "--commit"]).expect(0);
    repo.write("apps/api.yaml", config_map("api", "one", "{clusterSelector: {}}"));
    go(&repo, &["pause", "api", "--reason", "x", "--commit"]).expect(0);
    assert_eq!(repo.git(&["show", "--format=", "--name-status", "HEAD"]), "A\trollouts/api.yaml");
    go(&repo, &["resume", "api", "--commit"]).expect(0);
    assert_eq!(repo.git(&["show", "--format=", "--name-status", "HEAD"]), "D\trollouts/api.yaml");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn an_edit_of_a_changed_file_is_not_committed() {
    let repo = fleet(&[("teams/web.yaml", WEB)]);
    repo.write("teams/web.yaml", format!("{WEB}# mine\n"));
    let ran = go(&repo, &["pause", "web", "--reason", "x", "--commit"]).expect(2);
    assert!(ran.err.contains("teams/web.yaml has changes that are not committed"), "{}", ran.err);
    assert_eq!(text(&repo, "teams/web.yaml"), format!("{WEB}# mine\n"));
}

#[test]
fn a_pause_of_many_is_ended_where_it_is() {
    let all = "apiVersion: berth.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {name: all}\nspec:\n  \
               paused: {reason: holidays}\n";
    let repo = fleet(&[("all.yaml", all)]);
    let ran = go(&repo, &["resume", "web"]).expect(2);
    assert!(ran.err.contains("is paused by the policy `all` (all.yaml:1:1)"), "{}", ran.err);
    go(&repo, &["pause", "web", "--reason", "mine"]).expect(0);
    let ran = go(&repo, &["resume", "web"]).expect(0);
    assert!(ran.err.contains("stays paused by the policy `all`"), "{}", ran.err);
}

#[test]
fn a_dry_run_writes_nothing_and_json_says_it_all() {
    let repo = fleet(&[]);
    let ran = go(&repo, &["pause", "web", "--reason", "x", "--dry-run"]).expect(0);
    assert!(ran.out.contains("+    reason: x"), "{}", ran.out);
    assert!(!repo.path().join("rollouts").exists());
    let json = go(&repo, &["pause", "web", "--reason", "x", "-o", "json"]).expect(0).json();
    assert_eq!(json["workload"]["name"], "web");
    assert_eq!((&json["files"][0], &json["written"]), (&"rollouts/web.yaml".into(), &true.into()));
    let ran = go(&repo, &["pause", "wep", "--reason", "x"]).expect(2);
    assert!(ran.err.contains("did you mean `web`?"), "{}", ran.err);
    go(&repo, &["pause", "web", "--reason", " "]).expect(2);
}

const STAGES: &str = "  - name: canary
    labelSelector: {}
    afterStageTasks: [{type: Approval}]
  - name: rest
    beforeStageTasks: [{type: Approval}]
";

const RUN: &str = "apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterStagedUpdateRun
metadata: {name: shop-1}
spec:
  placementName: shop
  stagedRolloutStrategyName: rings
  state: Run   # since Monday
";

fn staged() -> Repo {
    let member = "apiVersion: cluster.kubernetes-fleet.io/v1beta1\nkind: MemberCluster\nmetadata: {name: a}\n\
                  spec: {identity: {kind: ServiceAccount, name: a}}\n";
    Repo::with(&[("a.yaml", member), ("shop.yaml", &staged_shop(STAGES)), ("runs/shop-1.yaml", RUN)])
}

#[test]
fn a_staged_run_is_stopped_and_goes_on() {
    let repo = staged();
    let ran = go(&repo, &["pause", "crp/shop", "--reason", "errors in a"]).expect(0);
    assert_eq!(ran.out, "ClusterResourcePlacement shop: paused (runs/shop-1.yaml)\n");
    assert_eq!(text(&repo, "runs/shop-1.yaml"), RUN.replace("state: Run ", "state: Stop "));
    assert!(go(&repo, &["pause", "crp/shop", "--reason", "x"]).expect(0).out.contains("is paused already"));
    go(&repo, &["resume", "crp/shop"]).expect(0);
    assert_eq!(text(&repo, "runs/shop-1.yaml"), RUN);
    assert!(go(&repo, &["resume", "crp/shop"]).expect(0).out.contains("was not paused"));
}

#[test]
fn a_stage_of_a_run_is_approved_with_the_request_that_a_hub_makes() {
    let repo = staged();
    let ran = go(&repo, &["approve", "crp/shop"]).expect(2);
    assert!(
        ran.err.contains("name one of `--stage canary --task after`, `--stage rest --task before`"),
        "{}",
        ran.err
    );
    let ran = go(&repo, &["approve", "crp/shop", "--stage", "canary", "--task", "before"]).expect(2);
    assert!(ran.err.contains("no such stage needs an approval"), "{}", ran.err);
    let approve = ["approve", "crp/shop", "--stage", "canary", "--now", "2026-01-31T12:00:00Z", "--commit"];
    let ran = go(&repo, &approve).expect(0);
    assert_eq!(
        ran.out,
        "ClusterResourcePlacement shop: approved after the stage `canary` of ClusterStagedUpdateRun shop-1 \
         (rollouts/shop-1-after-canary.yaml)\n"
    );
    assert_eq!(
        text(&repo, "rollouts/shop-1-after-canary.yaml"),
        "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterApprovalRequest\nmetadata:\n  \
         name: shop-1-after-canary\nspec:\n  parentStageRollout: shop-1\n  targetStage: canary\nstatus:\n  \
         conditions:\n  - lastTransitionTime: \"2026-01-31T12:00:00Z\"\n    message: approved\n    \
         reason: Approved\n    status: \"True\"\n    type: Approved\n"
    );
    assert_eq!(
        repo.git(&["log", "-1", "--format=%s"]),
        "Approve after canary of ClusterResourcePlacement shop"
    );
    run(&["validate", "--repo", repo.arg()]).expect(0);
    assert!(go(&repo, &approve).expect(0).err.contains("nothing to change"));
    // A request that somebody committed without an answer gets one.
    let request = "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterApprovalRequest\n\
                   metadata: {name: shop-1-before-rest}\nspec: {parentStageRollout: shop-1, targetStage: rest}\n";
    repo.write("requests.yaml", request);
    go(&repo, &["approve", "crp/shop", "--stage", "rest"]).expect(0);
    let answered = text(&repo, "requests.yaml");
    assert!(answered.starts_with(request) && answered.contains("type: Approved"), "{answered}");
}

#[test]
fn releases_are_aborted_restarted_and_approved_by_number() {
    let stages =
        "  strategy: {stages: [{name: canary, labelSelector: {}, afterStageTasks: [{type: Approval}]}]}\n";
    let policy = format!("{WEB}{stages}");
    let repo = fleet(&[("teams/web.yaml", &policy)]);
    let ran = go(&repo, &["abort", "web", "--release", "12", "--reason", "errors in a"]).expect(0);
    assert_eq!(ran.out, "FederatedConfigMap shop/web: release 12 aborted (teams/web.yaml)\n");
    let ran = go(&repo, &["abort", "web", "--release", "12"]).expect(0);
    assert!(ran.out.contains("is aborted already"), "{}", ran.out);
    go(&repo, &["abort", "web", "--release", "13"]).expect(0);
    go(&repo, &["restart", "web", "--release", "13"]).expect(0);
    go(&repo, &["restart", "web", "--release", "13"]).expect(0);
    go(&repo, &["approve", "web", "--release", "13"]).expect(0);
    let edited = text(&repo, "teams/web.yaml");
    assert!(edited.starts_with(&policy), "{edited}");
    let json = run(&["validate", "--repo", repo.arg()]).expect(0);
    assert!(!json.err.contains("has no effect"), "{}", json.err);
    for wanted in ["release: 12", "release: 13", "times: 2", "stage: canary", "task: after", "errors in a"] {
        assert!(edited.contains(wanted), "{wanted}: {edited}");
    }
    assert_eq!(edited.matches("workload:").count(), 4, "{edited}");
}

#[test]
fn a_task_that_is_edited_away_holds_nothing_any_more() {
    let stages = |tasks: &str| {
        format!("{WEB}  strategy: {{stages: [{{name: canary, labelSelector: {{}}{tasks}}}]}}\n")
            .replace("  freeze:\n  - {schedule: 0 14 * * FRI, for: 66h, timeZone: Europe/Berlin}\n", "")
    };
    let approval = |side: &str| stages(&format!(", {side}StageTasks: [{{type: Approval}}]"));
    let rollouts = Rollouts::of(fleet(&[("teams/web.yaml", &approval("before"))]));
    let state = || rollouts.order(&["list", "-o", "json"]).expect(0).json()["workloads"][0]["state"].clone();
    assert_eq!((state(), &*rollouts.values(&["a"], "web")), ("waiting".into(), "a=-"));
    // Another name is no approval, and the stage that waits can be approved all the same.
    rollouts.edit(&[("teams/web.yaml", &approval("before").replace("canary", "first"))]);
    assert_eq!((state(), &*rollouts.values(&["a"], "web")), ("waiting".into(), "a=-"));
    let ran = rollouts.order(&["approve", "web", "--dry-run"]).expect(0);
    assert!(ran.out.contains("stage: canary") && ran.out.contains("task: before"), "{}", ran.out);
    rollouts.edit(&[("teams/web.yaml", &approval("after"))]);
    assert_eq!(rollouts.values(&["a"], "web"), "a=one");
    rollouts.succeed(&["a"]);
    rollouts.publish();
    assert_eq!(state(), "waiting");
    rollouts.edit(&[("teams/web.yaml", &stages(""))]);
    assert_eq!(state(), "done");
    let ran = rollouts.order(&["approve", "web"]).expect(2);
    assert!(ran.err.contains("no stage needs an approval"), "{}", ran.err);
    rollouts.verify();
}

#[test]
fn the_published_release_is_meant_where_none_is_named() {
    let waves = "  strategy: {rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 1}}}\n";
    let repo = fleet(&[("teams/web.yaml", &format!("{WEB}{waves}"))]);
    let ran = go(&repo, &["abort", "web"]).expect(2);
    assert!(ran.err.contains("no release of FederatedConfigMap shop/web is published yet"), "{}", ran.err);
    repo.publish().expect(0);
    let ran = go(&repo, &["abort", "web"]).expect(0);
    assert!(ran.out.contains("release 1 aborted"), "{}", ran.out);
}

#[test]
fn records_about_releases_from_before_the_last_good_one_go_with_the_next() {
    let waves = "  strategy: {rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 1}}}\n";
    let rollouts = Rollouts::of(fleet(&[("teams/web.yaml", &format!("{WEB}{waves}"))]));
    let map = |value: &str| config_map("web", value, "{clusterSelector: {}}");
    let prove = || {
        rollouts.succeed(&["a"]);
        rollouts.publish();
    };
    let policy = || text(&rollouts.repo, "teams/web.yaml");
    prove();
    rollouts.edit(&[("apps/web.yaml", &map("two"))]);
    rollouts.order(&["restart", "web"]).expect(0);
    rollouts.order(&["abort", "web", "--reason", "errors"]).expect(0);
    assert_eq!(policy().matches("release: 2").count(), 2, "{}", policy());
    rollouts.edit(&[("apps/web.yaml", &map("three"))]);
    // It is on its way back to the first release, and reports on that one first.
    prove();
    prove();
    assert!(rollouts.order(&["show", "web"]).expect(0).out.contains("last good: 3"));
    rollouts.edit(&[("apps/web.yaml", &map("four"))]);
    let before = policy();
    rollouts.order(&["abort", "web"]).expect(0);
    let edited = policy();
    assert!(!edited.contains("release: 2") && !edited.contains("restarted"), "{edited}");
    assert!(edited.contains("release: 4") && edited.starts_with(&format!("{WEB}{waves}")), "{edited}");
    // A comment of somebody keeps its record.
    let commented = before.replace("reason: errors", "reason: errors   # see the report of Monday");
    rollouts.repo.write("teams/web.yaml", &commented);
    rollouts.order(&["abort", "web"]).expect(0);
    let edited = policy();
    assert!(
        edited.contains("see the report of Monday") && edited.matches("release: 2").count() == 1,
        "{edited}"
    );
    run(&["validate", "--repo", rollouts.repo.arg()]).expect(0);
}
