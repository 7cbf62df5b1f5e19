//! `berth site`: the fleet as a page of files.
//!
//! - [`folder`]: the files and their folder. [`sources`]: past publications, clones, remotes. [`branch`]: the page on a
//!   branch, by `berth run --site`. [`change`]: a change that is not published yet. [`schemas`]: the form of the data. [`truth`]: pages of random
//!   fleets.

#[cfg(unix)]
mod branch;
pub mod change;
mod folder;
mod schemas;
mod sources;
#[cfg(unix)]
mod truth;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use crate::support::removals::report;
use crate::support::rollouts::Rollouts;
use crate::support::{Ran, cluster, config_map, run, run_at, small_fleet};
use berth_base::model::Timestamp;
use berth_site::form::{ChangesForm, ClusterDetails, Head, Names, PlacementDetails, PublicationDetails};
use berth_site::{Block, CellState};

/// A page in a folder, read as its scripts read it.
struct Page {
    folder: PathBuf,
    head: Head,
}

impl Page {
    fn read(folder: &Path) -> Page {
        let text = std::fs::read_to_string(folder.join("data/head.js")).expect("a head");
        let data = text.strip_prefix("berth(\"head\",").and_then(|data| data.strip_suffix(")\n"));
        let head = serde_json::from_str(data.expect("a call")).expect("a head");
        let page = Page { folder: folder.to_owned(), head };
        schemas::check(&page);
        page
    }

    fn block<T: DeserializeOwned>(&self, key: &str) -> T {
        let hash = self.head.files.get(key).unwrap_or_else(|| panic!("no {key}"));
        let path = self.folder.join(format!("data/{key}.{hash}.js"));
        Block::read(&std::fs::read_to_string(path).expect("a block")).expect("its form")
    }

    fn blocks<T: DeserializeOwned>(&self, prefix: &str) -> BTreeMap<String, T> {
        let keys = self.head.files.keys().filter(|key| key.starts_with(prefix));
        keys.flat_map(|key| self.block::<BTreeMap<String, T>>(key)).collect()
    }

    fn placements(&self) -> BTreeMap<String, PlacementDetails> {
        self.blocks("p-")
    }

    /// All texts of the page, as one text.
    fn words(&self) -> String {
        let blocks = self.head.files.keys().filter(|key| !key.starts_with("map-"));
        let blocks: Vec<String> = blocks.map(|key| self.block::<Json>(key).to_string()).collect();
        let index = std::fs::read_to_string(self.folder.join("index.html")).expect("a page");
        format!("{index}{}{}", serde_json::to_string(&self.head).expect("text"), blocks.concat())
    }
}

fn arg(path: &Path) -> &str {
    path.to_str().expect("a text path")
}

fn site(repo: &Path, out: &Path, more: &[&str]) -> Ran {
    run(&[&["site", "--repo", arg(repo), "--out", arg(out)], more].concat())
}

fn page(repo: &Path, out: &Path, more: &[&str]) -> Page {
    site(repo, out, more).expect(0);
    Page::read(out)
}

/// A folder with the fleet of `berth demo`, whose last edit is held.
fn demo() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("demo");
    // A member that reports twice in a second dates its second report in the next one: a page is made after it.
    let before = Timestamp::from_second(Timestamp::now().as_second() - 60).expect("a moment");
    run_at(before, &["demo", arg(&dir)]).expect(0);
    (folder, dir.join("fleet"))
}

fn files(folder: &Path) -> BTreeMap<PathBuf, SystemTime> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false => drop(found.insert(path.clone(), path.metadata().unwrap().modified().unwrap())),
            }
        }
    }
    found
}

#[test]
fn publications_have_causes_with_places_and_consequences() {
    let (folder, fleet) = demo();
    let page = page(&fleet, &folder.path().join("page"), &[]);
    let publications: BTreeMap<String, PublicationDetails> = page.blocks("n-");
    let second = &publications["2"];
    let counts = ChangesForm { removed: 1, changed: 1, added: 1, clusters: 3 };
    assert_eq!(second.changes, Some(counts));
    let sections = second.sections.as_ref().expect("causes");
    let first = &sections[0];
    assert_eq!(first.causes[0].at, Some(("shop/web.yaml".to_owned(), 23)));
    assert_eq!(first.consequences[0].move_, "leaves");
    assert_eq!(first.consequences[0].places[0].clusters, ["oslo"]);
    assert_eq!(first.consequences[0].places[0].placements, ["FederatedDeployment/shop/web"]);
    assert_eq!(publications["3"].held[0].placement, "FederatedDeployment/shop/web");
    let web = &page.placements()["FederatedDeployment/shop/web"];
    let numbers: Vec<u64> = web.history.iter().map(|line| line.sequence).collect();
    assert_eq!(numbers, [2, 1]);
    assert_eq!(web.overrides[0].after.as_deref(), Some("registry.example.com/web:1.5.0-rc1"));
    let clusters: BTreeMap<String, ClusterDetails> = page.blocks("c-");
    assert_eq!(clusters["turin"].labels["region"], "south");
    assert_eq!(clusters["oslo"].history[0].move_, "leaves");
}

#[test]
fn numbers_equal_those_of_status() {
    let (folder, fleet) = demo();
    let page = page(&fleet, &folder.path().join("page"), &[]);
    let status = run(&["status", "--repo", arg(&fleet), "-o", "json"]).expect(0).json();
    let workloads = status["fleet"]["workloads"].as_array().expect("workloads");
    let count = |field: &str| {
        workloads.iter().map(|workload| workload[field].as_u64().expect("a number")).sum::<u64>()
    };
    let numbers = page.head.numbers;
    assert_eq!(numbers.copies as u64, count("placed"));
    // Every copy has one state; a placement without objects has cells that are published and nothing else.
    let published = page.head.totals[CellState::Published as usize];
    assert_eq!(page.head.totals.iter().sum::<usize>() - published, numbers.copies);
    assert_eq!(page.head.totals[CellState::Held as usize], 3);
    assert_eq!(serde_json::to_value(&page.head.clusters).unwrap(), status["fleet"]["totals"]);
    assert_eq!(page.head.shown.commit, status["rendered"]["commit"].as_str().unwrap());
    let names: Names = page.block("names");
    let listed: Vec<&str> = status["fleet"]["clusters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cluster| cluster["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names.clusters.iter().map(String::as_str).collect::<BTreeSet<_>>(),
        listed.into_iter().collect()
    );
}

/// A fleet whose second release has reached one of two clusters.
fn rolling() -> Rollouts {
    let rollouts = Rollouts::with_a_proven_release();
    rollouts.edit(&[("apps/web.yaml", &config_map("web", "two", "{clusterSelector: {}}"))]);
    rollouts
}

#[test]
fn a_rollout_is_as_far_as_rollout_list_says() {
    let rollouts = rolling();
    let folder = tempfile::tempdir().expect("a folder");
    let page = page(rollouts.repo.path(), &folder.path().join("page"), &[]);
    let list = run(&["rollout", "list", "--repo", rollouts.repo.arg(), "-o", "json"]).expect(0).json();
    let placements = page.placements();
    let workloads = list["workloads"].as_array().expect("workloads");
    assert_eq!(placements.values().filter(|placement| placement.rollout.is_some()).count(), workloads.len());
    for workload in workloads {
        let [kind, namespace, name] =
            ["kind", "namespace", "name"].map(|part| workload[part].as_str().unwrap());
        let rollout = placements[&format!("{kind}/{namespace}/{name}")].rollout.as_ref().expect("a rollout");
        let shown = serde_json::to_value(rollout).unwrap();
        for field in ["strategy", "release", "state", "reason", "reached", "picked"] {
            assert_eq!(shown[field], workload[field], "{field} of {name}");
        }
    }
    let rolling = &page.head.rolling[0];
    assert_eq!((rolling.name.as_str(), rolling.reached, rolling.picked), ("shop/web", 1, 2));
    assert_eq!(page.head.totals[CellState::Waits as usize], 1);
}

#[test]
fn reasons_equal_those_of_explain() {
    let (folder, fleet) = demo();
    let page = page(&fleet, &folder.path().join("page"), &[]);
    let names: Names = page.block("names");
    for (id, placement) in page.placements() {
        let explained = run(&["explain", &id, "--repo", arg(&fleet), "-o", "json"]).json();
        let reasons: Vec<&str> =
            spread(&placement.reason_of).map(|index| placement.reasons[index as usize].as_str()).collect();
        for cluster in explained["placements"][0]["clusters"].as_array().expect("clusters") {
            let column =
                names.clusters.iter().position(|name| cluster["name"] == name.as_str()).expect("a cluster");
            // A held copy keeps the reason for which it was picked.
            if !reasons[column].is_empty() && id != "FederatedDeployment/shop/web" {
                assert_eq!(cluster["reason"], reasons[column], "{id} in {}", names.clusters[column]);
            }
        }
    }
}

/// The values of runs, one by one.
fn spread(runs: &[u32]) -> impl Iterator<Item = u32> {
    runs.chunks(2).flat_map(|run| std::iter::repeat_n(run[1], run[0] as usize))
}

/// The state of each copy, by placement and cluster.
fn cells(page: &Page) -> BTreeMap<(String, String), u8> {
    let names: Names = page.block("names");
    let text = page.head.files.get("map-0").map(|hash| page.folder.join(format!("data/map-0.{hash}.js")));
    let bytes =
        Block::read_bytes(&std::fs::read_to_string(text.expect("a map")).expect("a block")).expect("bytes");
    let mut bytes = bytes.into_iter();
    let mut next = move || {
        let (mut value, mut shift) = (0_usize, 0);
        loop {
            let byte = bytes.next().expect("a byte");
            value |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    };
    let namespaces: Vec<u32> = spread(&names.namespace_of).collect();
    let mut cells = BTreeMap::new();
    for (index, name) in names.placements.iter().enumerate() {
        let namespace = &names.namespaces[namespaces[index] as usize];
        let separator = if namespace.is_empty() { "" } else { "/" };
        let id = format!("{}/{namespace}{separator}{name}", names.kinds[names.kind_of[index] as usize]);
        let mut end = 0;
        for _ in 0..next() {
            let start = end + next();
            let packed = next();
            end = start + packed / 8;
            for cluster in &names.clusters[start..end] {
                cells.insert((id.clone(), cluster.clone()), (packed % 8) as u8);
            }
        }
    }
    cells
}

#[test]
fn cells_equal_what_status_says_of_each_cluster() {
    let repo = small_fleet();
    repo.publish().expect(0);
    let tree = |cluster: &str| repo.git(&["rev-parse", &format!("berth/rendered:clusters/{cluster}")]);
    let problem = "  problems: [{kind: ConfigMap, namespace: shop, name: web, message: \"<b>no</b>\"}]\n";
    report(&repo, "a", 1, &format!("applied:\n  sequence: 1\n  tree: {}\n  objects: 2\n", tree("a")));
    report(
        &repo,
        "b",
        1,
        &format!("applied:\n  sequence: 1\n  tree: {}\n  objects: 2\n{problem}", tree("b")),
    );
    let folder = tempfile::tempdir().expect("a folder");
    let page = page(repo.path(), &folder.path().join("page"), &[]);
    let states = |word: &str| -> &[CellState] {
        match word {
            "in sync" => &[CellState::InSync],
            "problems" => &[CellState::Failing],
            "not applied" => &[CellState::Silent, CellState::Progressing],
            other => panic!("no state for {other}"),
        }
    };
    let (cells, mut seen) = (cells(&page), BTreeSet::new());
    let status = run(&["status", "a", "b", "c", "--repo", repo.arg(), "-o", "json"]).json();
    for cluster in status["fleet"]["clusters"].as_array().expect("clusters") {
        for workload in cluster["has"]["workloads"].as_array().expect("workloads") {
            let [kind, namespace, name] =
                ["kind", "namespace", "name"].map(|part| workload[part].as_str().unwrap());
            let place = (format!("{kind}/{namespace}/{name}"), cluster["name"].as_str().unwrap().to_owned());
            let word = workload["state"].as_str().expect("a state");
            assert!(states(word).iter().any(|state| state.number() == cells[&place]), "{place:?}: {word}");
            seen.insert(word.to_owned());
        }
    }
    assert_eq!(seen.len(), 3, "{seen:?}");
    assert_eq!(cells.len(), 6);
    let item = &page.head.attention[0];
    assert_eq!(
        (item.title.as_str(), item.text.as_str()),
        ("shop/web fails in b", "ConfigMap shop/web: <b>no</b>")
    );
    let index = std::fs::read_to_string(page.folder.join("index.html")).expect("a page");
    assert!(index.contains("&lt;b&gt;no&lt;/b&gt;") && !index.contains("<b>no"), "{index}");
}

#[test]
fn hostile_names_and_subjects_stay_text() {
    let (folder, fleet) = demo();
    let hostile = folder.path().join("<script>alert(1)<\u{202e}x");
    std::fs::rename(&fleet, &hostile).expect("renamed");
    let out = folder.path().join("page");
    page(&hostile, &out, &[]);
    let index = std::fs::read_to_string(out.join("index.html")).expect("a page");
    assert!(index.contains("&lt;script&gt;alert(1)&lt;\u{fffd}x"), "{index}");
    assert!(!index.contains("<script>alert"), "{index}");
    // Scripts set texts, and never parse them.
    for path in files(&out.join("page")).into_keys() {
        let script = std::fs::read_to_string(&path).expect("a script");
        for way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
            assert!(!script.contains(way), "{} in {}", way, path.display());
        }
    }
}

#[test]
fn no_value_of_a_secret_is_in_the_page() {
    let secret = "apiVersion: types.kubefed.io/v1beta1\nkind: FederatedSecret\nmetadata: {name: key, namespace: shop}\n\
                  spec:\n  template:\n    stringData: {token: first-VALUE}\n  placement: {clusterSelector: {}}\n  \
                  overrides:\n  - clusterName: a\n    clusterOverrides: [{path: /stringData/token, value: other-VALUE}]\n";
    let repo = small_fleet();
    repo.write("apps/key.yaml", secret);
    repo.commit("a secret");
    repo.publish().expect(0);
    repo.write("apps/key.yaml", secret.replace("first", "second"));
    repo.commit("another value");
    repo.publish().expect(0);
    let folder = tempfile::tempdir().expect("a folder");
    let page = page(repo.path(), &folder.path().join("page"), &[]);
    let words = page.words();
    assert!(words.contains("FederatedSecret/shop/key") && words.contains("(not shown)"), "{words}");
    assert!(!words.contains("VALUE"), "{words}");
}

#[test]
fn a_member_that_is_behind_is_on_its_way_and_problems_elsewhere_are_listed() {
    let repo = small_fleet();
    repo.publish().expect(0);
    let tree = |cluster: &str| repo.git(&["rev-parse", &format!("berth/rendered:clusters/{cluster}")]);
    for cluster in ["a", "b", "c"] {
        let tree = repo.git(&["rev-parse", &format!("berth/rendered:clusters/{cluster}")]);
        report(&repo, cluster, 1, &format!("applied:\n  sequence: 1\n  tree: {tree}\n  objects: 2\n"));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("page");
    assert_eq!(page(repo.path(), &out, &[]).head.title, "all in sync");
    let old = tree("a");
    repo.write("apps/web.yaml", config_map("web", "two", "{clusterSelector: {}}"));
    repo.commit("two");
    repo.publish().expect(0);
    for cluster in ["b", "c"] {
        let tree = tree(cluster);
        report(&repo, cluster, 2, &format!("applied:\n  sequence: 2\n  tree: {tree}\n  objects: 2\n"));
    }
    // Soon after the publication, the member is on its way; later it counts as silent.
    let published: i64 =
        repo.git(&["log", "-1", "--format=%ct", "berth/rendered"]).parse().expect("a number");
    let after = |seconds: i64| {
        let moment = Timestamp::from_second(published + seconds).expect("a moment");
        run_at(moment, &["site", "--repo", repo.arg(), "--out", arg(&out)]).expect(0);
        Page::read(&out)
    };
    let behind = after(10);
    assert_eq!((behind.head.title.as_str(), behind.head.attention.len()), ("1 on its way", 0), "{old}");
    let state = |page: &Page| cells(page)[&("FederatedConfigMap/shop/web".to_owned(), "a".to_owned())];
    assert_eq!(state(&behind), CellState::Progressing.number());
    // A member that is behind makes no page anew before it counts as silent.
    let moment = Timestamp::from_second(published + 20).expect("a moment");
    let again = run_at(moment, &["site", "--repo", repo.arg(), "--out", arg(&out)]).expect(0);
    assert!(again.err.contains("is up to date"), "{}", again.err);
    let silent = after(100);
    assert_eq!(silent.head.attention[0].title, "The member of a is silent");
    assert_eq!(state(&silent), CellState::Silent.number());
    let problem = "  problems: [{kind: Namespace, name: other, message: stuck}]\n";
    let applied = format!("applied:\n  sequence: 2\n  tree: {}\n  objects: 2\n{problem}", tree("a"));
    report(&repo, "a", 2, &applied);
    let elsewhere = page(repo.path(), &out, &[]).head;
    let item = &elsewhere.attention[0];
    assert_eq!((item.title.as_str(), item.text.as_str()), ("Problems in a", "Namespace other: stuck"));
}

#[test]
fn members_that_are_silent_or_fail_have_cells_items_and_words_with_bounds() {
    let repo = small_fleet();
    repo.write("clusters/a.yaml", cluster("a", &[("env", "prod"), ("owner", "<i>ops</i>\u{202e}")]));
    repo.commit("<script>alert(1)</script>\u{202e}");
    repo.publish().expect(0);
    let applied = |cluster: &str, more: &str| {
        let tree = repo.git(&["rev-parse", &format!("berth/rendered:clusters/{cluster}")]);
        format!("applied:\n  sequence: 1\n  tree: {tree}\n  objects: 2\n{more}")
    };
    let words = format!("<b>down</b>\u{202e}{}", "x".repeat(50_000));
    let failing = format!("  failing: {{since: \"2026-01-01T00:00:00Z\", message: \"{words}\"}}\n");
    report(&repo, "a", 1, &applied("a", ""));
    report(&repo, "b", 1, &applied("b", &failing));
    report(&repo, "c", 1, &format!("nextDue: \"2026-01-01T00:02:00Z\"\n{}", applied("c", "")));
    let folder = tempfile::tempdir().expect("a folder");
    let page = page(repo.path(), &folder.path().join("page"), &[]);
    let cells = cells(&page);
    let state = |cluster: &str| cells[&("FederatedConfigMap/shop/web".to_owned(), cluster.to_owned())];
    let expected = [CellState::InSync, CellState::Failing, CellState::Silent].map(CellState::number);
    assert_eq!(["a", "b", "c"].map(state), expected);
    let titles: Vec<&str> = page.head.attention.iter().map(|item| item.title.as_str()).collect();
    assert_eq!(titles, ["The member of b fails", "The member of c is silent"]);
    assert_eq!(page.head.sentence, "2 things differ from what the source says.");
    // Nobody's words are markup, turn the text, or make the page large.
    let index = std::fs::read_to_string(page.folder.join("index.html")).expect("a page");
    assert!(index.contains("&lt;b&gt;down&lt;/b&gt;\u{fffd}xxx"), "{index}");
    assert!(!index.contains("<b>down") && !index.contains('\u{202e}'), "{index}");
    let clusters: BTreeMap<String, ClusterDetails> = page.blocks("c-");
    assert!(clusters["b"].words[0].len() < 1_000, "{}", clusters["b"].words[0].len());
    assert_eq!(clusters["c"].state.as_deref(), Some("silent"));
    assert!(page.words().len() < 50_000, "{}", page.words().len());
}

#[test]
fn a_member_whose_clock_is_ahead_does_not_make_the_page_look_new() {
    let repo = small_fleet();
    let published = repo.dated().as_second();
    repo.publish_at(repo.dated()).expect(0);
    report(&repo, "a", 60 * 24 - 1, "");
    let folder = tempfile::tempdir().expect("a folder");
    let moment = Timestamp::from_second(published + 10).expect("a moment");
    run_at(moment, &["site", "--repo", repo.arg(), "--out", arg(folder.path())]).expect(0);
    let as_of = Page::read(folder.path()).head.as_of;
    assert_eq!(as_of, published + 10);
}
