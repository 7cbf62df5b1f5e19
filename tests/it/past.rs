//! `berth log` and `berth why`: what happened to placements, clusters and objects, by whom and why.

use serde_json::Value as Json;

use crate::support::random::{Random, rounds};
use crate::support::{RENDERED, Repo, cluster, config_map, namespace, run, small_fleet};

fn answer(repo: &Repo, args: &[&str]) -> Json {
    run(&[args, &["--repo", repo.arg(), "-o", "json"]].concat()).expect(0).json()
}

fn text(repo: &Repo, args: &[&str]) -> String {
    run(&[args, &["--repo", repo.arg()]].concat()).expect(0).out
}

/// A published fleet whose workload `web` moves, changes, leaves by an approval and comes back.
fn moved() -> Repo {
    let repo = small_fleet();
    repo.publish().expect(0);
    repo.write("apps/web.yaml", config_map("web", "one", "{clusters: [{name: a}, {name: b}]}"));
    repo.commit("web leaves c");
    repo.publish().expect(0);
    repo.write("apps/web.yaml", config_map("web", "two", "{clusters: [{name: a}, {name: b}]}"));
    repo.commit("web has another value");
    repo.publish().expect(0);
    repo.git(&["rm", "-q", "apps/web.yaml"]);
    repo.commit("retire web");
    let approval = repo.publish().expect(5).approval();
    let by = "--author=Olga <olga@example.com>";
    repo.git(&["commit", "-q", by, "--allow-empty", "-m", "go on", "-m", &approval]);
    repo.publish().expect(0);
    repo
}

#[test]
fn a_placement_has_its_changes_with_lines_and_people() {
    let repo = moved();
    let log = answer(&repo, &["log", "shop/web", "--causes", "9"]);
    let items = log["items"].as_array().expect("items");
    let changes = |field: &str| -> Vec<Json> { items.iter().map(|item| item[field].clone()).collect() };
    assert_eq!(
        changes("left"),
        [
            serde_json::json!(["a", "b"]),
            serde_json::json!([]),
            serde_json::json!(["c"]),
            serde_json::json!([])
        ]
    );
    assert_eq!(items[3]["joined"], serde_json::json!(["a", "b", "c"]));
    assert_eq!(items[0]["approvals"][0]["edit"]["author"], "Olga");
    assert_eq!(items[1]["causes"][0]["at"], "apps/web.yaml:7:7");
    assert_eq!(items[1]["causes"][0]["edit"]["subject"], "web has another value");
    let shown = text(&repo, &["log", "shop/web"]);
    assert!(shown.contains("approved in") && shown.contains("Olga"), "{shown}");
}

#[test]
fn why_names_the_publication_since_which_something_is_so() {
    let repo = moved();
    let then = ["--at", "3"];
    let here = answer(&repo, &[&["why", "ConfigMap/shop/web", "--cluster", "a"], &then[..]].concat());
    assert_eq!(
        [&here["isThere"], &here["since"]["sequence"], &here["lastChange"]["sequence"]],
        [&Json::from(true), &Json::from(1), &Json::from(3)]
    );
    assert_eq!(here["placements"][0]["picked"], true);
    let gone = answer(&repo, &[&["why", "web", "--cluster", "c"], &then[..]].concat());
    assert_eq!([&gone["isThere"], &gone["since"]["sequence"]], [&Json::from(false), &Json::from(2)]);
    assert_eq!(gone["since"]["causes"][0]["edit"]["subject"], "web leaves c");
    assert_eq!(gone["placements"][0]["picked"], false);
    let now = answer(&repo, &["why", "ConfigMap/shop/web", "--cluster", "a"]);
    assert_eq!([&now["isThere"], &now["since"]["sequence"]], [&Json::from(false), &Json::from(5)]);
    let runs = answer(&repo, &[&["why", "web"], &then[..]].concat());
    assert_eq!(runs["runs"][0]["clusters"], serde_json::json!(["a", "b"]));
    let newest = repo.git(&["log", "-1", "--format=%cI", RENDERED]);
    let at_newest = answer(&repo, &["log", "cluster/a", "--at", newest.trim()]);
    assert_eq!(at_newest["items"][0]["sequence"], 5);
}

#[test]
fn an_unknown_name_and_an_ambiguous_one_are_errors_with_hints() {
    let repo = small_fleet();
    repo.write(
        "apps/other.yaml",
        config_map("web", "one", "{clusters: [{name: a}]}").replace("namespace: shop", "namespace: other"),
    );
    repo.write("apps/ns.yaml", namespace("other"));
    repo.commit("another web");
    repo.publish().expect(0);
    let failed = |args: &[&str]| run(&[args, &["--repo", repo.arg()]].concat()).expect(2).err;
    assert!(failed(&["log", "wbe"]).contains("did you mean `web`?"));
    assert!(failed(&["log", "web"]).contains("name the kind and the namespace too"));
    assert!(failed(&["why", "cluster/a"]).contains("`berth log cluster/a`"));
    assert!(failed(&["why", "shop/web", "--cluster", "aa"]).contains("no cluster `aa`"));
    assert!(
        failed(&["log", "shop/web", "--at", "2001-01-01T00:00:00Z"]).contains("nothing was published before")
    );
}

#[test]
fn words_of_people_are_harmless_text() {
    let repo = small_fleet();
    repo.publish().expect(0);
    repo.write("apps/web.yaml", config_map("web", "two", "{clusterSelector: {}}"));
    repo.git(&["add", "-A"]);
    let subject = format!("\u{1b}[31m\u{202e}<b>{}", "x".repeat(100_000));
    repo.git(&["commit", "-q", "--author=script\u{202e} <a@example.com>", "-m", &subject]);
    repo.publish().expect(0);
    for args in [
        &["log", "shop/web", "--causes", "0"][..],
        &["why", "shop/web", "--cluster", "a"],
        &["log", "shop/web"],
    ] {
        let shown = text(&repo, args);
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{args:?}");
        assert!(shown.len() < 5_000, "{args:?}: {}", shown.len());
    }
}

/// The numbers of the publications that changed paths in some way, by plain Git.
fn by_git(repo: &Repo, tip: &str, how: &str, paths: &[String]) -> Vec<u64> {
    let format = "--format=%(trailers:key=Berth-Seq,valueonly,separator=)";
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let found =
        repo.git(&[&["log", "--first-parent", "--no-renames", how, format, tip, "--"], &paths[..]].concat());
    found.lines().filter(|line| !line.is_empty()).map(|line| line.parse().expect("a number")).collect()
}

/// Every kind of change.
const ANY: &str = "--diff-filter=ACDMRT";

#[test]
fn answers_equal_a_walk_by_git() {
    let mut dice = Random::new(49);
    let repo = Repo::new();
    repo.write("apps/shop.yaml", namespace("shop"));
    let clusters: Vec<String> = (0..6).map(|n| format!("c{n}")).collect();
    for name in &clusters {
        repo.write(&format!("clusters/{name}.yaml"), cluster(name, &[]));
    }
    let names: Vec<&str> = clusters.iter().map(String::as_str).collect();
    for edit in 0..30 {
        let name = format!("m{}", dice.below(4));
        let picked: Vec<String> =
            clusters.iter().filter(|_| dice.below(2) == 0).map(|name| format!("{{name: {name}}}")).collect();
        let placement = format!("{{clusters: [{}]}}", picked.join(", "));
        repo.write(&format!("apps/{name}.yaml"), config_map(&name, &dice.below(3).to_string(), &placement));
        repo.commit(&format!("edit {edit}"));
        repo.publish_ungated().expect(0);
    }
    let newest: u64 = by_git(&repo, RENDERED, ANY, &[".".to_owned()])[0];
    for _ in 0..rounds("BERTH_ANSWERS", 60) {
        let (name, cluster) = (format!("m{}", dice.below(4)), dice.pick(&names));
        let at = (newest - dice.below(10)).to_string();
        let tip = format!("{RENDERED}~{}", newest - at.parse::<u64>().unwrap());
        let file = format!("clusters/{cluster}/shop/ConfigMap_{name}.yaml");
        let object = format!("ConfigMap/shop/{name}");
        let (args, paths) = match dice.below(3) {
            0 => (vec!["log", &*object, "--cluster", cluster], vec![file]),
            1 => (vec!["log", &*object], vec![format!("clusters/*/shop/ConfigMap_{name}.yaml")]),
            _ => (vec!["log", cluster], vec![format!("clusters/{cluster}")]),
        };
        let expected = by_git(&repo, &tip, ANY, &paths);
        let ran = run(&[
            &args[..],
            &["--at", &at, "--limit", "99", "--causes", "0", "--repo", repo.arg(), "-o", "json"],
        ]
        .concat());
        if ran.code == 2 && expected.is_empty() {
            continue;
        }
        let log = ran.expect(0).json();
        let found: Vec<u64> =
            log["items"].as_array().unwrap().iter().map(|item| item["sequence"].as_u64().unwrap()).collect();
        assert_eq!(found, expected, "{args:?} at {at}");
        if !args.contains(&"--cluster") {
            continue;
        }
        let is_there = repo.files(&tip).contains_key(&paths[0]);
        let args = ["why", &object, "--cluster", cluster, "--at", &at, "--repo", repo.arg(), "-o", "json"];
        let why = run(&args).expect(0).json();
        let turn = if is_there { "--diff-filter=A" } else { "--diff-filter=D" };
        let since = by_git(&repo, &tip, turn, &paths).first().copied();
        assert_eq!((why["isThere"].as_bool(), why["since"]["sequence"].as_u64()), (Some(is_there), since));
    }
}
