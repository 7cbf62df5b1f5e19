//! `berth rollout next`: the table for people, faulty facts, and the orders of people.

use crate::archive::Archive;
use crate::support::{Ran, fixtures, run};

struct Case(tempfile::TempDir);

impl Case {
    fn unpack(case: &str) -> Case {
        let folder = tempfile::tempdir().expect("a folder");
        Archive::read(&fixtures(case)).unpack(folder.path());
        Case(folder)
    }

    fn write(&self, path: &str, text: &str) {
        std::fs::write(self.0.path().join(path), text).expect("a file");
    }

    fn next(&self) -> Ran {
        let path = |name: &str| self.0.path().join(name).to_str().expect("text").to_owned();
        let (fleet, previous, works) = (path("fleet"), path("previous.json"), path("works.json"));
        let files = ["--repo", &fleet, "--previous", &previous, "--works", &works];
        run(&[&["rollout", "next", "--now", "2026-06-01T12:00:00Z"], &files[..]].concat())
    }
}

#[test]
fn the_table_says_who_waits_and_why() {
    let case = Case::unpack("ocm-rollout/soak-running.txtar");
    let ran = case.next().expect(0);
    let reason = "1 of 1 cluster is under way: ams-1 (must stay healthy until 2026-06-01T12:05:00Z)";
    let expected = format!(
        "ManifestWorkReplicaSet shop/web\n\
         without any report, the answer changes at 2026-06-01T12:05:00Z\n\
         CLUSTER  ANSWER  REASON\n\
         ams-1    has it  succeeded\n\
         ams-2    wait    {reason}\n\
         ams-3    wait    {reason}\n"
    );
    assert_eq!(ran.out, expected);
}

#[test]
fn a_limit_without_effect_is_told() {
    let case = Case::unpack("ocm-rollout/max-failures-above-the-number-of-clusters.txtar");
    let ran = case.next().expect(0);
    let warning = "the limit of 10 failures exceeds the number of clusters, 3, and counts as 0";
    assert!(ran.err.contains(warning), "{}", ran.err);
    assert!(ran.out.contains("halted: ams-1 failed; no failures are allowed\n"), "{}", ran.out);
}

#[test]
fn faults_of_the_facts_name_entry_and_field() {
    let case = Case::unpack("kubefleet-rollout/update-one-of-four.txtar");
    for (works, fault) in [
        (
            r#"[{"workload": "wep", "cluster": "a", "has": "none"}]"#,
            ":1:15: error: [0].workload: no workload of this fleet is named `wep`\n  hint: did you mean `web`?",
        ),
        (
            r#"[{"workload": "web", "cluster": "a", "has": "knew"}]"#,
            "[0].has is `knew`, but must be one of none, old, new",
        ),
        (
            r#"[{"workload": "web", "cluster": "a", "has": "new", "status": "failed"}]"#,
            "[0].since is required",
        ),
        (
            r#"[{"workload": "web", "cluster": "a", "has": "none", "status": "failed"}]"#,
            "[0].status is set, but the cluster has no copy",
        ),
        (
            r#"[{"workload": "web", "cluster": "a", "has": "none"}, {"workload": "web", "cluster": "a", "has": "none"}]"#,
            "[1]: another entry is about ClusterResourcePlacement web in cluster `a` too",
        ),
        (r#"{"workload": "web"}"#, "a works file must hold a list of entries, not a mapping"),
        ("", "the file of `--works` is empty, but must hold a list"),
    ] {
        case.write("works.json", works);
        let ran = case.next().expect(2);
        assert!(ran.err.contains(fault), "{works}: {}", ran.err);
    }
}

#[test]
fn nobody_goes_on_while_people_pause_the_rollout() {
    let case = Case::unpack("kubefleet-rollout/update-one-of-four.txtar");
    assert!(case.next().expect(0).out.contains("amber    take it\n"));
    let policy = "apiVersion: berth.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {name: all}\n\
                  spec: {workloads: [{kind: ClusterResourcePlacement}], paused: {reason: waiting for legal}}\n";
    case.write("fleet/policy.yaml", policy);
    let ran = case.next().expect(0);
    assert!(!ran.out.contains("take it") && ran.out.contains("waiting for legal"), "{}{}", ran.out, ran.err);
}
