//! The page of random fleets, of all dialects and with random reports: each cell, list and total is what `status`,
//! `explain`, `rollout` and `log` say, and what the rendered branch has.
//!
//! More of them: `BERTH_SITE_FLEETS=300 BERTH_SITE_SEED=7 cargo test --release --test it site::truth`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::{Page, cells, spread};
use crate::caching::edits::Fleet;
use crate::caching::members::report;
use crate::caching::sides::{MAIN, Side};
use crate::support::random::{Random, rounds};
use crate::support::run_at;
use berth_base::model::{Key, Timestamp};
use berth_engine::state::ledger::Stage;
use berth_git::TreeId;
use berth_git::shared_refs::STATUS_FILE;
use berth_hub::history::{Events, Subject};
use berth_hub::publish::{CurrentState, read_current_at};
use berth_site::CellState;
use berth_site::form::{Names, PlacementDetails, RolloutDetails};

/// The passes of a fleet before its page is made.
const PASSES: u64 = 8;

const LIMITS: &str = "clusters=50%/2 objects=50%/10 evictions=30%/2 risky=held rollback=5 window=24h \
     rollback-window=24h trailers=on labels=region failover=on";

/// A random fleet after some passes, and its page.
struct Shown {
    side: Side,
    clock: Timestamp,
    current: CurrentState,
    /// Members reported, or time went on, after the publication.
    is_past: bool,
    page: Page,
    names: Names,
    placements: BTreeMap<String, PlacementDetails>,
    cells: BTreeMap<(String, String), u8>,
    _folder: tempfile::TempDir,
}

impl Shown {
    /// Makes a fleet. `None` if it published nothing.
    fn of(seed: u64) -> Option<Shown> {
        let mut random = Random::new(seed);
        let mut clock = Timestamp::from_second(1_767_225_630).expect("a moment");
        let mut side = Side::new();
        side.settings.limits = LIMITS.parse().expect("limits");
        let mut fleet = Fleet::new(clock, &mut random);
        let (mut tip, mut message) = (None, "start\n".to_owned());
        let is_quiet = random.below(2) == 0;
        let mut last = clock;
        for pass in 0..PASSES {
            last = clock;
            tip = Some(side.commit(&fleet.files, tip, &message, clock));
            side.point(MAIN, tip);
            let said = side.process(clock);
            message = match said.approvals.first().filter(|_| random.below(2) == 0) {
                Some(approval) => format!("approve\n\n{approval}\n"),
                None => "edit\n".to_owned(),
            };
            if pass + 1 < PASSES || !is_quiet {
                reports(&side, clock, &mut random);
            }
            let seconds = random.pick(&[60, 600, 3_600, 40_000]);
            clock = Timestamp::from_second(clock.as_second() + seconds).expect("a moment");
            for _ in 0..random.below(3) {
                fleet.edit(clock, &mut random);
            }
        }
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("page");
        let repo = side.repo();
        let rendered = repo.read_ref(&side.settings.refs.rendered).expect("a ref")?;
        let args = ["site", "--repo", side.path().to_str()?, "--out", out.to_str()?, "--causes", "1"];
        run_at(clock, &args).expect(0);
        let current = read_current_at(&repo, &side.settings.refs.rendered, rendered).expect("a state");
        let is_past = !is_quiet || current.trailers.now != Some(last);
        let page = Page::read(&out);
        let (names, placements, cells) = (page.block("names"), page.placements(), cells(&page));
        Some(Shown { side, clock, current, is_past, page, names, placements, cells, _folder: folder })
    }

    fn json(&self, command: &[&str]) -> Json {
        let repo = self.side.path().to_str().expect("text");
        let ran = run_at(self.clock, &[command, &["--repo", repo, "-o", "json"]].concat());
        assert!(!ran.out.is_empty(), "{command:?}: {}", ran.err);
        ran.json()
    }

    /// The page's name of a placement.
    fn id(&self, key: &Key) -> &str {
        let kinds = [key.kind.to_string(), key.kind_and_group()];
        let ids = kinds.map(|kind| format!("{kind}/{}", key.full_name()));
        let known = ids.iter().find_map(|id| self.placements.get_key_value(id));
        known.unwrap_or_else(|| panic!("no {key} on the page")).0
    }

    fn state(&self, id: &str, cluster: &str) -> Option<CellState> {
        let number = *self.cells.get(&(id.to_owned(), cluster.to_owned()))?;
        CellState::ALL.into_iter().find(|state| state.number() == number)
    }
}

/// Lets half of the members report.
fn reports(side: &Side, clock: Timestamp, random: &mut Random) {
    let (repo, prefix) = (side.repo(), side.settings.refs.clusters.clone());
    for (name, commit) in repo.list_refs(&prefix).expect("refs") {
        let cluster = name.strip_prefix(prefix.as_str()).expect("a name");
        if random.below(2) == 0 {
            continue;
        }
        let tree: TreeId = repo.commit(commit).expect("a commit").tree;
        let text = report(cluster, tree, clock, random);
        let files = [(STATUS_FILE.to_owned(), text)].into();
        let commit = side.commit(&files, None, "status\n", Timestamp::UNIX_EPOCH);
        side.point(&side.settings.refs.status_of(cluster), Some(commit));
    }
}

fn text<'j>(json: &'j Json, field: &str) -> &'j str {
    json[field].as_str().unwrap_or_else(|| panic!("{field} of {json}"))
}

/// Returns a placement's name in the page, from its parts in a command's answer.
fn id_of(json: &Json) -> String {
    let [kind, namespace, name] =
        ["kind", "namespace", "name"].map(|part| json[part].as_str().unwrap_or_default());
    let separator = if namespace.is_empty() { "" } else { "/" };
    format!("{kind}/{namespace}{separator}{name}")
}

/// The cells are the picks of the published decisions.
fn check_branch(shown: &Shown) {
    let mut picked = BTreeSet::new();
    for (key, decision) in &shown.current.state.decisions {
        let id = shown.id(key);
        picked.extend(decision.picks.iter().map(|pick| (id.to_owned(), pick.cluster.to_string())));
        let details = &shown.placements[id];
        assert_eq!(details.object_count, decision.objects.len(), "{id}");
    }
    let cells: BTreeSet<(String, String)> = shown.cells.keys().cloned().collect();
    assert_eq!(cells, picked);
    let mut totals = vec![0; CellState::ALL.len()];
    shown.cells.values().for_each(|state| totals[usize::from(*state)] += 1);
    assert_eq!(shown.page.head.totals, totals);
    assert_eq!(shown.page.head.shown.commit, shown.current.commit.to_string());
}

/// Each copy has the state of `berth status`, or a worse one that something else gives it.
fn check_status(shown: &Shown) {
    let status = shown.json(&["status"]);
    let workloads = status["fleet"]["workloads"].as_array().expect("workloads");
    let placed: u64 = workloads.iter().map(|one| one["placed"].as_u64().expect("a number")).sum();
    assert_eq!(shown.page.head.numbers.copies as u64, placed);
    assert_eq!(serde_json::to_value(&shown.page.head.clusters).expect("JSON"), status["fleet"]["totals"]);
    let clusters: Vec<&str> = status["fleet"]["clusters"]
        .as_array()
        .expect("clusters")
        .iter()
        .map(|one| text(one, "name"))
        .collect();
    let known: BTreeSet<&str> = shown.names.clusters.iter().map(String::as_str).collect();
    // The page has clusters without a folder too: it says why nothing is there yet.
    let listed: BTreeSet<&str> = clusters.iter().copied().collect();
    assert!(listed.is_subset(&known), "{listed:?} {known:?}");
    let folders = &shown.current.state.folders;
    assert!(known.difference(&listed).all(|name| folders.get(*name).is_none()), "{listed:?} {known:?}");
    let losses = shown.current.state.ledger.losses.iter();
    let held: BTreeSet<(&Key, &str)> = losses
        .filter(|(_, loss)| loss.stage == Stage::Held)
        .map(|((cluster, _), loss)| (&loss.owner, cluster.as_str()))
        .collect();
    let each = shown.json(&[&["status"], &clusters[..]].concat());
    for cluster in each["fleet"]["clusters"].as_array().expect("clusters") {
        let (name, word) = (text(cluster, "name"), text(cluster, "state"));
        for workload in cluster["has"]["workloads"].as_array().expect("workloads") {
            let id = id_of(workload);
            let Some(state) = shown.state(&id, name) else { panic!("{id} in {name} is not on the page") };
            let by_status = match text(workload, "state") {
                "in sync" => CellState::InSync,
                "progressing" => CellState::Progressing,
                "waits for its turn" => CellState::Waits,
                "problems" => CellState::Drifted,
                "failed to render" => CellState::Failing,
                "not applied" => CellState::Waits,
                other => panic!("no state for {other}"),
            };
            assert!(state >= by_status, "{id} in {name}: {state:?}, by status {by_status:?}");
            if state == CellState::Held {
                let is_held = held.iter().any(|(key, cluster)| *cluster == name && shown.id(key) == id);
                assert!(is_held, "{id} in {name} is not held");
            }
            if state == CellState::Silent {
                assert_eq!(CellState::of_cluster(word), CellState::Silent, "{id} in {name}: {word}");
            }
        }
    }
}

/// Reasons are those of `berth explain`, which reads the newest reports, and not those of the publication.
fn check_reasons(shown: &Shown, random: &mut Random) -> bool {
    if shown.is_past {
        return false;
    }
    let trailers = &shown.current.trailers;
    let source = trailers.source.expect("a source").to_string();
    let moment = trailers.now.expect("a moment").to_string();
    for (key, decision) in &shown.current.state.decisions {
        if random.below(4) != 0 {
            continue;
        }
        let id = shown.id(key);
        let details = &shown.placements[id];
        let reasons: Vec<&str> =
            spread(&details.reason_of).map(|index| details.reasons[index as usize].as_str()).collect();
        let explained = shown.json(&["explain", id, "--rev", &source, "--now", &moment]);
        let placements = explained["placements"].as_array().expect("placements");
        let Some(own) = placements.iter().find(|one| id_of(one) == id_of(&named(key))) else { continue };
        for cluster in own["clusters"].as_array().expect("clusters") {
            let name = text(cluster, "name");
            let Some(column) = shown.names.clusters.iter().position(|known| known == name) else { continue };
            let is_picked = cluster["picked"].as_bool().expect("a flag");
            // A picked cluster has the reason that was recorded when it was picked.
            match decision.pick(name) {
                Some(pick) => assert_eq!(pick.reason, reasons[column], "{id} in {name}"),
                None if is_picked || reasons[column].is_empty() => {}
                None => assert_eq!(text(cluster, "reason"), reasons[column], "{id} in {name}"),
            }
        }
    }
    true
}

fn named(key: &Key) -> Json {
    serde_json::json!({"kind": &*key.kind, "namespace": &*key.namespace, "name": &*key.name})
}

/// Rollouts are those of `berth rollout`.
fn check_rollouts(shown: &Shown) {
    let list = shown.json(&["rollout", "list"]);
    let workloads = list["workloads"].as_array().expect("workloads");
    let with_rollout = shown.placements.values().filter(|one| one.rollout.is_some()).count();
    assert_eq!(with_rollout, workloads.len());
    for workload in workloads {
        let id = id_of(workload);
        let rollout = shown.placements[&id].rollout.as_ref().expect("a rollout");
        let own = serde_json::to_value(rollout).expect("JSON");
        for field in ["strategy", "release", "state", "reached", "picked"] {
            assert_eq!(own[field], workload[field], "{field} of {id}");
        }
        let Some(block) = &rollout.id else { continue };
        let details: RolloutDetails = shown.page.block(&format!("r-{block}"));
        let name = format!("{}/{}", text(workload, "kind"), id.split_once('/').expect("a name").1);
        let one = shown.json(&["rollout", "show", &name]);
        let clusters = one["workloads"][0]["clusters"].as_array().expect("clusters");
        let listed: BTreeSet<&str> = clusters.iter().map(|cluster| text(cluster, "cluster")).collect();
        assert_eq!(details.clusters.iter().map(|one| one.cluster.as_str()).collect::<BTreeSet<_>>(), listed);
        for cluster in clusters {
            let own =
                details.clusters.iter().find(|one| one.cluster == text(cluster, "cluster")).expect("it");
            assert_eq!(serde_json::to_value(own.release).expect("JSON"), cluster["release"], "{id}");
        }
    }
}

/// Histories are those of `berth log`, and each copy is as it is since the publication that changed it last.
fn check_history(shown: &Shown, random: &mut Random) {
    let repo = shown.side.repo();
    let newest = shown.current.commit;
    for (key, decision) in &shown.current.state.decisions {
        let details = &shown.placements[shown.id(key)];
        let subject = Subject::Placement { key: key.clone(), cluster: None };
        let events = Events::of(&repo, newest, subject).expect("a history");
        let numbers: Vec<u64> =
            events.map(|event| event.expect("an event").publication.trailers.seq).collect();
        let shown_numbers: Vec<u64> = details.history.iter().map(|line| line.sequence).collect();
        assert_eq!(shown_numbers, numbers, "{key}");
        if decision.objects.is_empty() {
            continue;
        }
        let id = shown.id(key);
        let order: Vec<&String> =
            shown.names.clusters.iter().filter(|name| shown.state(id, name).is_some()).collect();
        let since: Vec<u32> = spread(&details.since).collect();
        assert_eq!(since.len(), order.len(), "{id}");
        for (cluster, since) in order.into_iter().zip(since).filter(|_| random.below(3) == 0) {
            let subject = Subject::Placement { key: key.clone(), cluster: Some(cluster.clone()) };
            let mut events = Events::of(&repo, newest, subject).expect("a history").map(Result::unwrap);
            let changed = events.find(|event| event.change.copies.clusters > 0);
            let number = changed.map_or(1, |event| event.publication.trailers.seq);
            assert_eq!(u64::from(since), number, "{id} in {cluster}");
        }
    }
}

#[test]
fn every_cell_list_and_total_is_what_the_commands_and_the_branch_say() {
    let (fleets, first) = (rounds("BERTH_SITE_FLEETS", 3), rounds("BERTH_SITE_SEED", 1));
    let (mut checked, mut explained) = (0, 0);
    for seed in first..first + fleets {
        let Some(shown) = Shown::of(seed) else { continue };
        eprintln!("BERTH_SITE_SEED={seed}: {} cells", shown.cells.len());
        let mut random = Random::new(!seed);
        check_branch(&shown);
        check_status(&shown);
        explained += usize::from(check_reasons(&shown, &mut random));
        check_rollouts(&shown);
        check_history(&shown, &mut random);
        checked += 1;
    }
    eprintln!("{checked} pages, {explained} with reasons as they are now");
    assert!(checked > 0);
}
