//! `berth rollout list` and `show`, and the line of a plan that says how a change will roll.

use crate::support::removals::report;
use crate::support::rollouts::Rollouts;
use crate::support::{Ran, Repo, cluster, config_map, namespace, run};

const WAVES: &str = "apiVersion: berth.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: waves, namespace: shop}
spec:
  workloads: [{kind: FederatedConfigMap, name: web}]
  strategy: {rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 1, minSuccessTime: 10m}}}
";

fn fleet() -> Repo {
    Repo::with(&[
        ("clusters/a.yaml", &cluster("a", &[])),
        ("clusters/b.yaml", &cluster("b", &[])),
        ("clusters/c.yaml", &cluster("c", &[])),
        ("apps/shop.yaml", &namespace("shop")),
        ("apps/web.yaml", &config_map("web", "one", "{clusterSelector: {}}")),
        ("apps/api.yaml", &config_map("api", "one", "{clusterSelector: {}}")),
        ("waves.yaml", WAVES),
    ])
}

fn go(repo: &Repo, args: &[&str]) -> Ran {
    run(&[args, &["--repo", repo.arg()]].concat())
}

#[test]
fn a_plan_says_how_a_change_will_roll() {
    let repo = fleet();
    let ran = go(&repo, &["plan", "--first"]).expect(0);
    let words =
        "FederatedConfigMap shop/web: 1 cluster at a time (3 in all); about 30 minutes if all goes well";
    let plan = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(plan.contains(words), "{}", ran.out);
    // The other goes to all at once, as ever.
    assert!(!plan.contains("shop/api: "), "{}", ran.out);
    let markdown = go(&repo, &["plan", "--first", "-o", "markdown"]).expect(0);
    assert!(markdown.out.contains("**rollouts that this change begins**"), "{}", markdown.out);
    assert!(markdown.out.contains(words), "{}", markdown.out);
    let frozen = format!("{WAVES}  freeze: [{{schedule: 0 0 1 1 *, for: 8784h, reason: all year}}]\n");
    repo.write("waves.yaml", frozen);
    repo.commit("a freeze");
    let json = go(&repo, &["plan", "--first", "-o", "json"]).expect(0).json();
    let rollout = &json["rollouts"][0];
    assert_eq!(
        (&rollout["name"], &rollout["waves"], &rollout["seconds"]),
        (&"web".into(), &3.into(), &1_800.into())
    );
    let held = rollout["held"]["reason"].as_str().expect("held");
    assert!(held.starts_with("frozen until ") && held.ends_with("UTC: all year"), "{held}");
}

#[test]
fn list_and_show_tell_how_far_a_rollout_is() {
    let repo = fleet();
    let ran = go(&repo, &["rollout", "list"]).expect(2);
    assert!(ran.err.contains("nothing is published yet"), "{}", ran.err);
    repo.publish().expect(0);
    let ran = go(&repo, &["rollout", "list"]).expect(0);
    let rows: Vec<Vec<&str>> = ran.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows.len(), 2, "{}", ran.out);
    assert_eq!(
        rows[1],
        ["FederatedConfigMap", "shop/web", "progressive", "1", "1", "of", "3", ">..", "rolling"],
        "{}",
        ran.out
    );
    let ran = go(&repo, &["rollout", "show", "web"]).expect(0);
    let row = |name: &str| {
        let line = ran.out.lines().find(|line| line.starts_with(name));
        line.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).unwrap_or_default()
    };
    assert!(row("a ").starts_with("a 1 applying"), "{}", ran.out);
    assert!(row("b ").starts_with("b - - - ") && row("b ").len() > 12, "it says why: {}", ran.out);
    let json = go(&repo, &["rollout", "show", "web", "-o", "json"]).expect(0).json()["workloads"][0].take();
    assert_eq!(
        (&json["release"], &json["state"], &json["lastGood"]),
        (&1.into(), &"rolling".into(), &serde_json::Value::Null)
    );
    assert_eq!(json["clusters"].as_array().map(Vec::len), Some(3));
    assert!(json["clusters"][2]["waits"].is_string(), "{json}");
    let ran = go(&repo, &["rollout", "show", "api"]).expect(2);
    assert!(ran.err.contains("does not roll out step by step"), "{}", ran.err);
    // A pause shows its reason.
    go(&repo, &["rollout", "pause", "web", "--reason", "waiting for legal", "--commit"]).expect(0);
    repo.publish().expect(0);
    let ran = go(&repo, &["rollout", "list"]).expect(0);
    assert!(ran.out.contains("held") && ran.out.contains("paused: waiting for legal"), "{}", ran.out);
}

/// The release of each cluster, as `rollout show` tells it, and how many have the current one.
fn told(repo: &Repo) -> (Vec<String>, u64) {
    let json = go(repo, &["rollout", "show", "web", "-o", "json"]).expect(0).json()["workloads"][0].take();
    let clusters = json["clusters"].as_array().expect("clusters").iter();
    let releases =
        clusters.map(|one| format!("{}={}", one["cluster"].as_str().expect("a name"), one["release"]));
    (releases.collect(), json["reached"].as_u64().expect("a number"))
}

#[test]
fn a_cluster_that_a_release_leaves_as_it_is_has_it_and_a_pinned_one_has_its_pin() {
    let repo = fleet();
    repo.write("waves.yaml", "");
    repo.commit("no waves yet");
    repo.publish_at(repo.dated()).expect(0);
    // What all clusters have when a strategy comes is proven.
    repo.write("waves.yaml", WAVES);
    repo.commit("waves");
    repo.publish_at(repo.dated()).expect(0);
    assert_eq!(told(&repo), (["a=1", "b=1", "c=1"].map(str::to_owned).to_vec(), 3));
    let overrides =
        "  overrides:\n  - {clusterName: b, clusterOverrides: [{path: /data/text, value: two}]}\n";
    repo.write("apps/web.yaml", config_map("web", "one", "{clusterSelector: {}}") + overrides);
    repo.commit("another text for b alone");
    repo.publish().expect(0);
    assert_eq!(told(&repo), (["a=2", "b=2", "c=2"].map(str::to_owned).to_vec(), 3));
    let pins = "  pins: [{clusters: [c], release: 1, reason: an audit}]\n";
    repo.write("waves.yaml", format!("{WAVES}{pins}"));
    repo.write("apps/web.yaml", config_map("web", "three", "{clusterSelector: {}}"));
    repo.commit("the next text, and a pin");
    repo.publish().expect(0);
    assert_eq!(told(&repo), (["a=3", "b=2", "c=1"].map(str::to_owned).to_vec(), 1));
    run(&["verify", "--repo", repo.arg()]).expect(0);
    // A look at the folder renders the pinned release again, too, and finds nothing new.
    let validated = go(&repo, &["validate", "--strict"]).expect(0);
    assert!(validated.err.contains("web: release 3: 1 of 3 clusters wait"), "{}", validated.err);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let rendered = go(&repo, &["render", "--out", out.to_str().unwrap()]).expect(0);
    assert!(!rendered.err.contains("warning"), "{}", rendered.err);
    let manifest = std::fs::read_to_string(out.join("clusters/c/shop/ConfigMap_web.yaml")).unwrap();
    assert!(manifest.contains("value: one"), "{manifest}");
}

#[test]
fn a_cluster_that_was_just_told_is_applying_since_then() {
    let rollouts = Rollouts::of(fleet());
    let of_a = || {
        let json = rollouts.order(&["show", "web", "-o", "json"]).expect(0).json();
        let a = json["workloads"][0]["clusters"][0].clone();
        (a["release"].as_u64(), a["health"].clone(), a["since"].as_str().unwrap_or_default().to_owned())
    };
    rollouts.succeed(&["a"]);
    rollouts.pass();
    let (release, health, reported) = of_a();
    assert_eq!((release, health), (Some(1), "succeeded".into()));
    // In the same second: the report is no older than the order, and about other copies all the same.
    rollouts.repo.write("apps/web.yaml", config_map("web", "two", "{clusterSelector: {}}"));
    rollouts.repo.commit("the next text");
    rollouts.pass();
    let (release, health, since) = of_a();
    assert_eq!((release, health), (Some(2), "applying".into()), "the old report is about other copies");
    assert!(!since.is_empty() && since >= reported, "{since} after {reported}");
}

#[test]
fn a_member_that_says_nothing_of_its_copies_any_more_is_no_success_in_the_proof_either() {
    let rollouts = Rollouts::of(fleet());
    rollouts.succeed(&["a"]);
    rollouts.pass();
    report(&rollouts.repo, "a", 65, "");
    rollouts.wait(20);
    rollouts.repo.write("apps/api.yaml", config_map("api", "two", "{clusterSelector: {}}"));
    rollouts.repo.commit("another workload");
    rollouts.pass();
    assert_eq!(rollouts.values(&["a", "b"], "web"), "a=one b=-");
    rollouts.verify();
}
