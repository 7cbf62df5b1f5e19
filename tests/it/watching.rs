//! `berth run --metrics` and `--events`: those who look after a fleet hear of rollouts that halt.

use serde_json::{Value as Json, json};

use crate::daemon::Daemon;
use crate::support::kube::{ControlPlane, Wanted};
use crate::support::page::page;
use crate::support::removals::report;
use crate::support::rollouts::Rollouts;
use crate::support::wait::{eventually, until};
use crate::support::{Ran, Repo, cluster, config_map, namespace, run};

/// One cluster after the other, of `a`, `b` and `c`.
pub fn fleet() -> Rollouts {
    let policy = "apiVersion: berth.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {name: waves, namespace: shop}\n\
        spec:\n  workloads: [{kind: FederatedConfigMap, name: web}]\n  \
        strategy: {rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 1}}}\n";
    Rollouts::of(Repo::with(&[
        ("clusters/a.yaml", &cluster("a", &[])),
        ("clusters/b.yaml", &cluster("b", &[])),
        ("clusters/c.yaml", &cluster("c", &[])),
        ("apps/shop.yaml", &namespace("shop")),
        ("apps/web.yaml", &config_map("web", "one", "{clusterSelector: {}}")),
        ("policy.yaml", policy),
    ]))
}

const WEB: &str = "FederatedConfigMap shop/web";

#[test]
fn the_page_says_which_rollouts_are_halted_and_how_passes_go() {
    let fleet = fleet();
    let daemon = Daemon::start_with(&["--repo", fleet.repo.arg(), "--metrics", "0", "--poll", "1"]);
    let line: Json = serde_json::from_str(&daemon.wait_for(&["serving /metrics"])).expect("JSON");
    let address = line["address"].as_str().expect("an address").to_owned();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    let see = |lines: &[&str]| {
        for line in lines {
            until(line, || page(&address, "/metrics").lines().any(|one| one == *line));
        }
    };
    daemon.wait_for(&["pass done"]);
    see(&[
        "berth_run_passes_total{result=\"unchanged\"} 1",
        "berth_run_passes_total{result=\"failed\"} 0",
        "berth_run_pass_seconds_count 1",
        "berth_run_sequence 1",
        "berth_run_problems{severity=\"error\"} 0",
        "berth_run_held_removals 0",
        "berth_rollouts{state=\"rolling\"} 1",
        "berth_rollouts{state=\"halted\"} 0",
        "berth_rollout_waiting_clusters 2",
        "berth_members{state=\"timely\"} 0",
    ]);
    assert!(page(&address, "/healthz").starts_with("HTTP/1.1 200 "));
    assert!(page(&address, "/readyz").starts_with("HTTP/1.1 200 "));

    fleet.fail("a", "web", "no room");
    let line: Json = serde_json::from_str(&daemon.wait_for(&["\"rollout halted\""])).expect("JSON");
    assert_eq!(
        (&line["level"], &line["workload"], &line["release"]),
        (&json!("WARN"), &json!(WEB), &json!(1))
    );
    assert_eq!(line["reason"], "a failed: ConfigMap shop/web: no room");
    report(&fleet.repo, "b", 5, "nextDue: \"2026-01-01T00:10:00Z\"\n");
    let halted = format!("berth_rollout_halted{{workload=\"{WEB}\"}} 1");
    see(&[
        &halted,
        "berth_rollouts{state=\"rolling\"} 0",
        "berth_rollouts{state=\"halted\"} 1",
        "berth_rollout_waiting_clusters 2",
        "berth_members{state=\"late\"} 1",
    ]);
    fleet.succeed(&["a"]);
    let line: Json = serde_json::from_str(&daemon.wait_for(&["\"rollout continues\""])).expect("JSON");
    assert_eq!(line["level"], "INFO");
    see(&["berth_rollouts{state=\"rolling\"} 1", "berth_rollout_waiting_clusters 1"]);
    assert!(!page(&address, "/metrics").contains("berth_rollout_halted{"), "{}", page(&address, "/metrics"));

    fleet.repo.git(&["commit", "-q", "--amend", "-m", "rewritten"]);
    daemon.wait_for(&["pass failed"]);
    until("it is not ready", || page(&address, "/readyz").contains("the last pass failed"));
    let whole = page(&address, "/metrics");
    assert!(!whole.contains("berth_run_failures_total{reason=\"refused\"} 0"), "{whole}");
    assert!(!whole.contains("room"), "no member's words: {whole}");
    assert!(page(&address, "/healthz").starts_with("HTTP/1.1 200 "));
    assert_eq!(daemon.stop(), 0);
}

/// The rights that the page of rollouts asks for, in the namespace of the object.
fn documented_rights() -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/rollouts.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let blocks =
        page.split("```").find(|block| block.starts_with("yaml\n") && block.contains("kind: Role\n"));
    blocks.expect("the rights").trim_start_matches("yaml\n").to_owned()
}

/// Events of rollouts, the first one first: type, reason, note, and whom they are about.
fn events(plane: &ControlPlane) -> Vec<[String; 5]> {
    let args = ["get", "events.events.k8s.io", "-n", "berth-system", "--sort-by=.eventTime", "-o", "json"];
    let text = |json: &Json| json.as_str().unwrap_or_default().to_owned();
    let tell = |event: &Json| {
        let named =
            |it: &Json| format!("{} {}/{}", text(&it["kind"]), text(&it["namespace"]), text(&it["name"]));
        [
            text(&event["type"]),
            text(&event["reason"]),
            text(&event["note"]),
            named(&event["regarding"]),
            named(&event["related"]),
        ]
    };
    let found = Ran::of(plane.kubectl().args(args)).expect(0).json();
    found["items"].as_array().expect("a list").iter().map(tell).collect()
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_halt_is_one_event_and_its_end_another_with_the_documented_rights() {
    let Some(plane) = ControlPlane::start(Wanted::SERVER_ONLY) else { return };
    let kubectl = |args: &[&str]| Ran::of(plane.kubectl().args(args)).expect(0).out;
    kubectl(&["create", "namespace", "berth-system"]);
    kubectl(&["create", "configmap", "berth", "-n", "berth-system"]);
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
    std::fs::write(file("rights.yaml"), documented_rights()).expect("written");
    kubectl(&["apply", "-f", &file("rights.yaml")]);
    let mut restricted: Json =
        serde_json::from_str(&kubectl(&["config", "view", "--raw", "-o", "json"])).expect("JSON");
    restricted["users"][0]["user"]["as"] = json!("system:serviceaccount:berth-system:berth");
    std::fs::write(file("kubeconfig"), restricted.to_string()).expect("written");

    let fleet = fleet();
    let kubeconfig = file("kubeconfig");
    let start = || {
        let args = ["--events", "configmap/berth-system/berth", "--kubeconfig", &kubeconfig];
        Daemon::start_with(&[&["--repo", fleet.repo.arg(), "--poll", "1"], &args[..]].concat())
    };
    let daemon = start();
    daemon.wait_for(&["pass done"]);
    fleet.fail("a", "web", "no room");
    let seen =
        |count: usize| eventually("Events", || Some(events(&plane)).filter(|found| found.len() >= count));
    let event = |severity: &str, reason: &str, note: &str| {
        let note = format!("{WEB}: release 1 {note}");
        [severity, reason, &note, "ConfigMap berth-system/berth", WEB].map(str::to_owned)
    };
    let halt = event("Warning", "RolloutHalted", "is halted: a failed: ConfigMap shop/web: no room");
    assert_eq!(seen(1), std::slice::from_ref(&halt));
    let shown = kubectl(&["describe", "configmap", "berth", "-n", "berth-system"]);
    assert!(shown.contains("RolloutHalted"), "{shown}");

    // Neither a new process nor another publication tells it again.
    assert_eq!(daemon.stop(), 0);
    let daemon = start();
    fleet.repo.write("apps/web.yaml", config_map("web", "one", "{clusterSelector: {}}") + "# the same\n");
    fleet.repo.write("apps/other.yaml", config_map("other", "one", "{clusters: [{name: a}]}"));
    let last = fleet.repo.commit("another one");
    daemon.wait_for(&["pass done", &last]);
    fleet.succeed(&["a"]);
    let goes_on = event("Normal", "RolloutGoesOn", "continues");
    assert_eq!(seen(2), [halt.clone(), goes_on.clone()]);
    assert_eq!(daemon.stop(), 0);

    // One pass tells it before it ends.
    fleet.fail("a", "web", "no room");
    let once = ["run", "--once", "--events", "configmap/berth-system/berth", "--kubeconfig", &kubeconfig];
    run(&[&once, &["--repo", fleet.repo.arg()][..]].concat()).expect(0);
    assert_eq!(events(&plane), [halt.clone(), goes_on.clone(), halt.clone()]);

    // A person takes back a release that is halted already.
    for cluster in ["a", "b", "c"] {
        fleet.succeed(&[cluster]);
        fleet.publish();
    }
    fleet.edit(&[("apps/web.yaml", &config_map("web", "two", "{clusterSelector: {}}"))]);
    fleet.fail("a", "web", "no room");
    fleet.publish();
    fleet.order(&["abort", "web", "--reason", "wrong prices"]).expect(0);
    fleet.repo.commit("an abort");
    run(&[&once, &["--repo", fleet.repo.arg()][..]].concat()).expect(0);
    let back = [
        "Warning",
        "RolloutTakenBack",
        &format!("{WEB}: release 2 is taken back to release 1: aborted: wrong prices"),
        "ConfigMap berth-system/berth",
        WEB,
    ];
    assert_eq!(events(&plane), [halt.clone(), goes_on, halt, back.map(str::to_owned)]);
}

#[test]
fn an_api_server_that_is_away_stops_no_pass_and_is_told_of_once() {
    let fleet = fleet();
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "away",
        "clusters": [{"name": "away", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "away", "context": {"cluster": "away", "user": "away"}}],
        "users": [{"name": "away", "user": {}}],
    });
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), kubeconfig.to_string()).expect("written");
    let file = file.path().to_str().expect("text");
    let args = ["--events", "pod/berth-system/berth", "--kubeconfig", file];
    let daemon = Daemon::start_with(&[&["--repo", fleet.repo.arg()], &args[..]].concat());
    fleet.fail("a", "web", "no room");
    let mut log = daemon.lines_until(&["rollout halted"]);
    let last = fleet.repo.commit("nothing");
    log.extend(daemon.lines_until(&["pass done", &last]));
    let complaints =
        |log: &[String]| log.iter().filter(|line| line.contains("Events cannot be written")).count();
    if complaints(&log) == 0 {
        log.extend(daemon.lines_until(&["Events cannot be written"]));
    }
    assert_eq!(complaints(&log), 1, "{log:#?}");
    assert_eq!(daemon.stop(), 0);

    let ran = run(&["run", "--once", "--repo", fleet.repo.arg(), "--kubeconfig", file]).expect(2);
    assert!(ran.err.contains("--events"), "{}", ran.err);
    let ran = run(&["run", "--once", "--repo", fleet.repo.arg(), "--events", "berth"]).expect(2);
    assert!(ran.err.contains("deployment/NAMESPACE/NAME"), "{}", ran.err);
}
