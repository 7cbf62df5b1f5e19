use super::*;

const HEAD: &str = "apiVersion: berth.dev/v1alpha1\nkind: RolloutPolicy\n";

/// The specification of a policy with all fields.
pub(super) const WHOLE: &str = "  workloads: [{kind: App, name: web}, {kind: App, name: database}]
  strategy: {rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 2, minSuccessTime: 5m}}}
  onFailure: RollBack
  freeze: [{schedule: 0 14 * * FRI, for: 66h, timeZone: Europe/Berlin, reason: weekend}]
  paused: {reason: waiting for legal}
  pins: [{clusters: [eu-*], labelSelector: {matchLabels: {ring: lts}}, release: 12, reason: until the audit}]
  after: [{kind: Ap*, name: database}]
  together: true
  approved: [{workload: {kind: App, name: web}, release: 12, stage: eu, task: after}]
  aborted: [{workload: {kind: App, name: web}, release: 12, reason: broken}]
  restarted: [{workload: {kind: App, name: web}, release: 12, times: 2}]
";

pub(super) fn policy(spec: &str) -> String {
    format!("{HEAD}metadata: {{name: rings}}\nspec:\n{spec}")
}

/// Apps `web` and `database`, and a policy with this specification, whose first line is the fifth.
fn with_policy(spec: &str) -> Loaded {
    let apps = format!("{}{}{}", doc("Rule", "all", ""), doc("App", "web", ""), doc("App", "database", ""));
    load(&[("apps.yaml", &apps), ("rollouts/rings.yaml", &policy(spec))])
}

fn found(spec: &str) -> Vec<String> {
    said(&with_policy(spec)).into_iter().filter(|one| one.starts_with("rollouts/")).collect()
}

#[test]
fn a_policy_is_read_in_full() {
    let loaded = with_policy(WHOLE);
    assert!(errors(&loaded).is_empty(), "{:?}", errors(&loaded));
    let policy = loaded.fleet.rollout_policies.values().next().expect("a policy");
    assert_eq!(policy.workloads.as_ref().map(Vec::len), Some(2));
    assert_eq!(policy.freezes[0].seconds, 66 * 3_600);
    assert_eq!((policy.pins[0].release, policy.restarted[0].times), (Some(12), 2));
    assert!(policy.together && policy.strategy.is_some() && policy.on_failure.is_some());
}

#[test]
fn faults_of_a_policy_have_places_and_hints() {
    let freeze = "  freeze:\n  - {schedule: 0 14 * * FRY, for: 66h, timeZone: Europe/Berlim}\n";
    assert_eq!(
        found(freeze),
        [
            "rollouts/rings.yaml:6:16: error: spec.freeze[0].schedule `0 14 * * FRY` has the day of the week `FRY`, \
             but it must be from 0 to 7 or SUN to SAT hint: a schedule is in the form of cron, such as \
             `0 14 * * FRI`",
            "rollouts/rings.yaml:6:50: error: spec.freeze[0].timeZone `Europe/Berlim` is not a known time zone \
             hint: did you mean `Europe/Berlin`?",
        ]
    );
    let both = "  strategy:\n    rolloutStrategy: {type: All}\n    rollingUpdate: {maxSurge: 1}\n";
    assert_eq!(
        found(both),
        [
            "rollouts/rings.yaml:7:20: error: spec.strategy has rolloutStrategy and rollingUpdate, but must have \
          one strategy only"
        ]
    );
    assert_eq!(
        found("  strategy: {}\n"),
        [
            "rollouts/rings.yaml:5:13: error: spec.strategy needs one of rolloutStrategy, rollingUpdate, stages, stagedStrategy"
        ]
    );
    assert_eq!(
        found("  strategy: {stagedStrategy: rings}\n"),
        [
            "rollouts/rings.yaml:5:30: error: spec.strategy.stagedStrategy: there is no staged update strategy `rings`"
        ]
    );
    assert_eq!(
        found("  together: true\n"),
        [
            "rollouts/rings.yaml:5:13: error: spec.together needs spec.workloads: the workloads that are one release"
        ]
    );
    assert_eq!(
        found("  aborted: [{workload: {name: web*}, release: 0}]\n"),
        [
            "rollouts/rings.yaml:5:24: error: spec.aborted[0].workload must spell out one workload, not `* */web*` \
             hint: give kind, namespace and name",
            "rollouts/rings.yaml:5:47: error: spec.aborted[0].release is 0, but must be from 1 to 9223372036854775807",
        ]
    );
}

#[test]
fn a_policy_that_reaches_nothing_is_a_warning() {
    assert_eq!(
        found("  workloads: [{name: wep}]\n"),
        ["rollouts/rings.yaml:1:1: warning: the RolloutPolicy `rings` matches no workload of the fleet"]
    );
    assert_eq!(
        found("  after: [{name: databas}]\n"),
        ["rollouts/rings.yaml:5:11: warning: spec.after: no workload matches `* */databas` \
          hint: did you mean `database`?"]
    );
    let other =
        "  workloads: [{name: web}]\n  aborted: [{workload: {kind: App, name: database}, release: 1}]\n";
    assert_eq!(
        found(other),
        [
            "rollouts/rings.yaml:6:24: warning: spec.aborted has no effect: this policy is not for App */database"
        ]
    );
}

#[test]
fn a_circle_of_workloads_that_wait_is_named() {
    let policy = |name: &str, of: &str, after: &str| {
        format!(
            "{HEAD}metadata: {{name: {name}}}\nspec: {{workloads: [{{name: {of}}}], after: [{{name: {after}}}]}}\n"
        )
    };
    let apps: String =
        ["a", "b", "c", "d"].map(|name| doc("App", name, "")).concat() + &doc("Rule", "all", "");
    let (one, two) = (policy("one", "a", "b"), policy("two", "b", "c"));
    let three = policy("three", "c", "a");
    let loaded = load(&[("apps.yaml", &apps), ("1.yaml", &one), ("2.yaml", &two), ("3.yaml", &three)]);
    assert_eq!(
        errors(&loaded),
        [
            "1.yaml:4:40: error: spec.after: the workloads wait for each other: App a waits for App b, which waits for App c, which waits for App a \
          hint: remove one of them from `spec.after`"
        ]
    );
    // A workload that its own pattern matches does not wait for itself.
    let all = policy("all", "'*'", "b");
    let loaded = load(&[("apps.yaml", &apps), ("1.yaml", &all)]);
    assert!(errors(&loaded).is_empty(), "{:?}", errors(&loaded));
}

#[test]
fn a_policy_of_a_namespace_is_for_that_namespace() {
    let policy = format!(
        "{HEAD}metadata: {{name: rings, namespace: shop}}\nspec: {{workloads: [{{namespace: bank, name: web}}]}}\n"
    );
    let loaded = load(&[("1.yaml", &policy)]);
    assert_eq!(
        errors(&loaded),
        ["1.yaml:4:32: error: spec.workloads[0].namespace is not `shop`, the namespace of this policy \
          hint: leave the namespace out, or put the policy in no namespace"]
    );
}

#[test]
fn a_workload_names_a_policy_that_exists() {
    let app = "---\napiVersion: test.dev/v1\nkind: App\n\
               metadata: {name: web, annotations: {berth.dev/rollout-policy: ringz}}\n";
    let policy = format!("{HEAD}metadata: {{name: rings}}\nspec: {{workloads: []}}\n");
    let apps = doc("Rule", "all", "") + app;
    let loaded = load(&[("apps.yaml", &apps), ("1.yaml", &policy)]);
    assert_eq!(
        errors(&loaded),
        [
            "apps.yaml:9:63: error: App web names the RolloutPolicy `ringz`, which does not exist; the workload is not rolled out until this is corrected \
          hint: did you mean `rings`?"
        ]
    );
    let apps = apps.replace("ringz", "rings");
    let loaded = load(&[("apps.yaml", &apps), ("1.yaml", &policy)]);
    assert!(said(&loaded).is_empty(), "{:?}", said(&loaded));
    assert_eq!(loaded.fleet.named_policies.len(), 1);
}

#[test]
fn a_policy_that_becomes_faulty_keeps_its_last_good_form() {
    let policy = |schedule: &str| {
        format!("{HEAD}metadata: {{name: nights}}\nspec: {{freeze: [{{schedule: {schedule}, for: 12h}}]}}\n")
    };
    let (good, bad) = (policy("0 18 * * *"), policy("0 25 * * *"));
    let loaded = load_after(&[("1.yaml", &good)], &tree(&[("1.yaml", &bad)]));
    assert_eq!(errors(&loaded).len(), 1);
    let kept = loaded.fleet.rollout_policies.values().next().expect("the last good form");
    assert_eq!(kept.freezes[0].schedule.text(), "0 18 * * *");
}
