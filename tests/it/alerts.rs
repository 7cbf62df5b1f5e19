//! `deploy/monitoring`: each alert fires for its fault, on the page of a real process, and no other one does.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::{Value as Json, json};
use serde_yaml::Value as Yaml;

use crate::daemon::Daemon;
use crate::operate::{Running as Syncer, pause};
use crate::support::member::Member;
use crate::support::page::page;
use crate::support::programs::{made, skipped};
use crate::support::remote::{Fleet, Plain, Running, Server as _};
use crate::support::removals::report;
use crate::support::silence::World;
use crate::support::wait::until;
use crate::support::{Ran, config_map, hermetic};
use crate::watching::fleet;

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn text(path: &str) -> String {
    std::fs::read_to_string(file(path)).expect("a file")
}

fn promtool(args: &[&str]) -> Option<Ran> {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match FOUND.get_or_init(|| made(&["prometheus/ready"], "prometheus")) {
        Ok(folder) => {
            Some(Ran::of(hermetic(folder.join("promtool").to_str().expect("a text path")).args(args)))
        }
        Err(why) => {
            skipped("promtool", why);
            None
        }
    }
}

/// The numbers of a page, by name and labels as promtool writes them.
fn numbers(page: &str) -> BTreeMap<String, f64> {
    let lines = page.lines().filter(|line| line.starts_with("berth_") && !line.contains("_bucket{"));
    let number = |line: &str| {
        let (name, value) = line.rsplit_once(' ')?;
        let (name, labels) = name.split_once('{').map_or((name, "}"), |(name, labels)| (name, labels));
        let comma = if labels == "}" { "" } else { "," };
        Some((format!("{name}{{instance=\"it\"{comma}{labels}"), value.parse().ok()?))
    };
    lines.filter_map(number).collect()
}

/// Holds that these alerts fire, and no others, where a process shows one page for five minutes and then another one
/// for some minutes. Counters go on as they went from one to the other.
#[track_caller]
pub fn fires(before: &str, after: &str, minutes: usize, alerts: &[&str]) {
    let (before, after) = (numbers(before), numbers(after));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let series = names.into_iter().map(|name| {
        let is_counter = name.split('{').next().is_some_and(|name| name.ends_with("_total"));
        let first = before.get(name).or(after.get(name).filter(|_| is_counter));
        let values = match (first, after.get(name)) {
            (Some(first), Some(now)) if is_counter => format!("{first}+0x4 {now}+{}x{minutes}", now - first),
            (first, now) => {
                let first = first.map_or("_x5".to_owned(), |first| format!("{first}+0x4"));
                format!("{first} {}", now.map_or("stale".to_owned(), |now| format!("{now}+0x{minutes}")))
            }
        };
        json!({"series": name, "values": values})
    });
    let wanted = alerts.iter().map(|alert| json!({"labels": format!("{{alertname={alert:?}}}"), "value": 1}));
    let test = json!({
        "rule_files": [file("deploy/monitoring/alerts.yaml")],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": series.collect::<Vec<_>>(), "promql_expr_test": [{
            "expr": "group by (alertname) (ALERTS{alertstate=\"firing\"})",
            "eval_time": format!("{minutes}m"),
            "exp_samples": wanted.collect::<Vec<_>>(),
        }]}],
    });
    let given = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(given.path(), test.to_string()).expect("a file");
    let Some(ran) = promtool(&["test", "rules", given.path().to_str().expect("a text path")]) else { return };
    assert_eq!(ran.code, 0, "{alerts:?}\n{}{}\n{test:#}", ran.out, ran.err);
}

/// The address of a daemon's page, from its log.
pub fn address(line: &str) -> String {
    let line: Json = serde_json::from_str(line).expect("JSON");
    line["address"].as_str().expect("an address").to_owned()
}

/// The page, once it has this line.
pub fn page_with(address: &str, line: &str) -> String {
    until(line, || page(address, "/metrics").lines().any(|one| one == line));
    page(address, "/metrics")
}

#[test]
#[ignore = "needs Prometheus"]
fn the_alerts_of_a_daemon_fire_for_their_faults() {
    let fleet = fleet();
    fleet.edit(&[("apps/old.yaml", &config_map("old", "one", "{clusterSelector: {}}"))]);
    let repo = &fleet.repo;
    let daemon = Daemon::start_with(&["--repo", repo.arg(), "--metrics", "0", "--poll", "1"]);
    let address = address(&daemon.wait_for(&["serving /metrics"]));
    let see = |line: &str| page_with(&address, line);
    let calm = see("berth_rollouts{state=\"rolling\"} 1");
    fires(&calm, &calm, 300, &[]);
    fires("", "", 15, &["BerthDaemonIsAway"]);

    fleet.fail("a", "web", "no room");
    let halted = see("berth_rollouts{state=\"halted\"} 1");
    fires(&calm, &halted, 60, &["BerthRolloutIsHalted"]);
    shows_what_is_documented(&halted, &["berth_run_", "berth_rollout", "berth_members"]);

    report(repo, "b", 5, "nextDue: \"2026-01-01T00:10:00Z\"\n");
    let late = see("berth_members{state=\"late\"} 1");
    fires(&calm, &late, 60, &["BerthMembersAreLate", "BerthRolloutIsHalted"]);

    fleet.succeed(&["a"]);
    repo.write("apps/broken.yaml", "kind: [\n");
    repo.commit("a typing error");
    let faulty = see("berth_run_problems{severity=\"error\"} 1");
    fires(&calm, &faulty, 60, &["BerthMembersAreLate", "BerthSourceHasErrors"]);

    repo.git(&["rm", "-q", "apps/broken.yaml", "apps/old.yaml"]);
    repo.commit("a workload goes");
    let held = see("berth_run_held_removals 3");
    fires(&calm, &held, 300, &["BerthMembersAreLate", "BerthRemovalsWaitForApproval"]);

    repo.git(&["commit", "-q", "--amend", "-m", "rewritten"]);
    daemon.wait_for(&["pass failed"]);
    let refused = see("berth_run_failures_total{reason=\"refused\"} 1");
    fires(&held, &refused, 20, &["BerthPassIsRefused"]);
    assert_eq!(daemon.stop(), 0);
}

#[test]
#[ignore = "needs Prometheus"]
fn an_alert_fires_where_members_are_silent() {
    let mut world = World::of(8, 2, Some(3_600));
    world.minutes(20);
    world.kill("c00");
    world.minutes(31);
    let daemon = Daemon::start_with(&["--repo", world.repo.arg(), "--metrics", "0"]);
    let address = address(&daemon.wait_for(&["serving /metrics"]));
    let silent = page_with(&address, "berth_members{state=\"silent\"} 1");
    let calm = silent.replace("{state=\"silent\"} 1", "{state=\"silent\"} 0");
    fires(&calm, &silent, 10, &["BerthMembersAreSilent"]);
    assert_eq!(daemon.stop(), 0);
}

#[test]
#[ignore = "needs Prometheus"]
fn an_alert_fires_where_the_git_server_is_away() {
    let fleet = Fleet::new();
    let mut server = Plain::new(fleet.root());
    let daemon = Running::daemon(&fleet, &server, &["--metrics", "0"]);
    daemon.wait_for(&["pass done"]);
    let log = daemon.log();
    let address = address(log.lines().find(|line| line.contains("serving /metrics")).expect("a line"));
    let calm = page_with(&address, "berth_run_failures_total{reason=\"remote\"} 0");
    server.stop();
    let away = page_with(&address, "berth_run_failures_total{reason=\"remote\"} 1");
    fires(&calm, &away, 30, &["BerthPassesFail"]);
    daemon.stop();
}

#[test]
#[ignore = "needs Kubernetes"]
fn the_alerts_of_a_member_fire_for_their_faults() {
    let Some(member) = Member::new("alarms") else { return };
    member.publish(&[member.config_map("web", "one")]);
    let first = member.repo.id("refs/berth/clusters/alarms");
    let running = Syncer::start(&member, &["--metrics", "0"]);
    let address = address(&running.hear("serving /metrics"));
    let see = |line: &str| page_with(&address, line);
    let daemon = "berth_run_passes_total{result=\"published\"} 1\n";
    let calm = see("berth_sync_objects{state=\"applied\"} 1") + daemon;
    fires(&calm, &calm, 1_500, &[]);
    shows_what_is_documented(&calm, &["berth_sync_"]);

    let impossible = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "namespace": "alarms"}, "spec": {"ports": [{"port": 99_999}]}});
    member.publish(&[member.config_map("web", "one"), impossible]);
    let faulty = see("berth_sync_objects{state=\"problem\"} 1") + daemon;
    fires(&calm, &faulty, 60, &["BerthObjectsAreNotAsWanted"]);

    member.publish(&[member.config_map("web", "two")]);
    see("berth_sync_objects{state=\"problem\"} 0");
    pause(&member, &["suspend", "--reason", "disk full"]).expect(0);
    let suspended = see("berth_sync_suspended 1") + daemon;
    fires(&calm, &suspended, 1_500, &["BerthMemberIsSuspended"]);
    pause(&member, &["resume"]).expect(0);
    let calm = see("berth_sync_suspended 0") + daemon;

    member.repo.git(&["update-ref", "refs/berth/clusters/alarms", &first]);
    let refused = see("berth_sync_failures_total{reason=\"refused\"} 1") + daemon;
    fires(&calm, &refused, 30, &["BerthMemberRefusesItsFolder"]);
    member.repo.git(&["update-ref", "-d", "refs/berth/clusters/alarms"]);
    let gone = see("berth_sync_failures_total{reason=\"folder\"} 1") + daemon;
    let calm = gone.replace("{reason=\"folder\"} 1", "{reason=\"folder\"} 0");
    fires(&calm, &gone, 30, &["BerthMemberDoesNotSync"]);
    assert_eq!(running.stop(), 0);
}

#[test]
#[ignore = "needs Prometheus"]
fn the_alerts_of_a_members_remote_fire_for_their_faults() {
    let fleet = Fleet::new();
    let mut server = Plain::new(fleet.root());
    fleet.run_once(&server, &[]).expect(0);
    let first = fleet.bare(&["rev-parse", "refs/berth/clusters/a"]);
    fleet.edit("two");
    fleet.run_once(&server, &[]).expect(0);
    let member = Running::member(&fleet, "a", &server, &["--metrics", "0"]);
    let address = member.address("serving /metrics");
    let daemon = "berth_run_passes_total{result=\"published\"} 1\n";
    let see = |line: &str| page_with(&address, line) + daemon;
    let calm = see("berth_sync_folder{state=\"newest\"} 1");
    fires(&calm, &calm, 60, &[]);

    server.stop();
    let away = see("berth_sync_folder{state=\"unreachable\"} 1");
    fires(&calm, &away, 30, &["BerthMemberIsCutOff"]);
    server.start();

    let back = see("berth_sync_folder{state=\"newest\"} 1");
    let newest = fleet.bare(&["rev-parse", "refs/berth/clusters/a"]);
    fleet.bare(&["update-ref", "refs/berth/clusters/a", &first]);
    let refused = see("berth_sync_folder{state=\"refused\"} 1");
    fires(&back, &refused, 30, &["BerthMemberRefusesItsFolder"]);
    // Where the daemon has put it right before anybody looked, it was counted.
    fleet.bare(&["update-ref", "refs/berth/clusters/a", &newest]);
    let over = see("berth_sync_folder{state=\"newest\"} 1");
    fires(&back, &over, 10, &["BerthMemberRefusesItsFolder"]);
}

#[test]
#[ignore = "needs Prometheus"]
fn promtool_takes_the_rules_and_their_own_tests_pass() {
    for args in [
        ["check", "rules", "deploy/monitoring/alerts.yaml"],
        ["test", "rules", "deploy/monitoring/alerts_test.yaml"],
    ] {
        let path = file(args[2]);
        let Some(ran) = promtool(&[args[0], args[1], path.to_str().expect("a text path")]) else { return };
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    }
}

/// The names of all alerts.
fn alerts() -> BTreeSet<String> {
    let rules: Yaml = serde_yaml::from_str(&text("deploy/monitoring/alerts.yaml")).expect("YAML");
    let groups = rules["groups"].as_sequence().expect("groups").iter();
    let rules = groups.flat_map(|group| group["rules"].as_sequence().expect("rules"));
    rules.map(|rule| rule["alert"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn every_alert_has_a_runbook_and_a_test_of_its_own() {
    let (book, tests) = (text("docs/operations.md"), text("deploy/monitoring/alerts_test.yaml"));
    let headings: BTreeSet<String> = book
        .lines()
        .filter_map(|line| line.strip_prefix("### Berth"))
        .map(|name| format!("Berth{name}"))
        .collect();
    assert_eq!(headings, alerts());
    for alert in alerts() {
        assert!(tests.contains(&format!("alertname=\"{alert}\"")), "{alert}");
        let link = format!("docs/operations.md#{}", alert.to_lowercase());
        assert!(text("deploy/monitoring/alerts.yaml").contains(&link), "{link}");
    }
}

/// All queries of the dashboard.
fn queries(dashboard: &Json) -> Vec<String> {
    let panels = dashboard["panels"].as_array().expect("panels").iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    targets.map(|target| target["expr"].as_str().expect("a query").to_owned()).collect()
}

#[test]
#[ignore = "needs Prometheus"]
fn the_dashboard_asks_for_what_the_pages_show() {
    let dashboard: Json = serde_json::from_str(&text("deploy/monitoring/dashboard.json")).expect("JSON");
    let queries = queries(&dashboard);
    assert!(queries.len() > 10);
    let rules = queries.iter().enumerate().map(
        |(n, expr)| json!({"record": format!("panel:{n}"), "expr": expr.replace("$__rate_interval", "5m")}),
    );
    let rules = json!({"groups": [{"name": "panels", "rules": rules.collect::<Vec<_>>()}]});
    let given = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(given.path(), rules.to_string()).expect("a file");
    let Some(ran) = promtool(&["check", "rules", given.path().to_str().expect("a text path")]) else {
        return;
    };
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);

    // A name that no page has would leave a panel, or an alert, empty for good.
    let known = named(&text("docs/operations.md"));
    for text in queries.iter().chain([&text("deploy/monitoring/alerts.yaml")]) {
        for name in named(text) {
            assert!(known.contains(&name), "docs/operations.md does not name {name}");
        }
    }
}

/// The metrics that a text names.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("berth_")).map(str::to_owned).collect()
}

/// How the numbers begin that a page has only where a flag asks for what they count.
const OPTIONAL: [&str; 2] = ["berth_run_registry_", "berth_run_hub_"];

/// Holds that a page has the metrics of the documentation that begin so.
#[track_caller]
pub fn shows_what_is_documented(page: &str, begins: &[&str]) {
    let shown = named(page);
    let documented = named(&text("docs/operations.md"));
    // A registry and a hub have numbers where there is one, and tests of their own.
    let is_optional = |name: &str| OPTIONAL.iter().find(|begin| name.starts_with(**begin));
    let is_meant = |name: &&String| {
        begins.iter().any(|begin| name.starts_with(begin))
            && is_optional(name).is_none_or(|begin| begins.contains(begin))
    };
    let missing: Vec<&String> =
        documented.iter().filter(is_meant).filter(|name| !shown.contains(*name)).collect();
    assert!(missing.is_empty(), "{missing:?} are documented and not on the page\n{page}");
}
