//! Random histories of a fleet through the real hub: commits, members' reports, time, a daemon that is started again.
//!
//! The promises are judged by what is published alone, so that any version of berth can be asked.
//! `BERTH_HISTORIES=1000 BERTH_HISTORY=1 cargo test --test it histories -- --nocapture` runs so many from that number on,
//! and counts those that break each promise. `BERTH_HISTORY_EVENTS` makes them longer.

#[path = "../../../src/engine/testing/dice.rs"]
mod dice;
#[path = "../../../src/engine/testing/tests/histories/fleet.rs"]
mod fleet;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use berth_base::model::status::Applied;
use berth_base::model::{ClusterStatus, Timestamp};
use berth_hub::daemon::{Cache, PassResult, Settings, pass_with_cache};
use berth_member::sync::status;

use crate::support::{RENDERED, Repo, hermetic, run};
use dice::Dice;
use fleet::{Fleet, Order, Work, name_of};

const START: i64 = 1_767_225_600;

/// The window in which removals add up, in seconds.
const DAY: i64 = 24 * 3_600;

/// The publications of all histories.
static PUBLICATIONS: AtomicU64 = AtomicU64::new(0);

/// A promise that does not hold, with an example.
type Broken = BTreeMap<&'static str, String>;

/// The paths in each cluster's folder.
type Folders = BTreeMap<String, BTreeSet<String>>;

/// A state as it was published.
struct Published {
    at: i64,
    folders: Folders,
    /// Somebody went back to an earlier state.
    is_rollback: bool,
    /// The ConfigMaps of workloads that have several: to lose one of them is no loss of a cluster.
    shared: BTreeSet<String>,
}

struct History {
    dice: Dice,
    fleet: Fleet,
    files: BTreeMap<String, String>,
    repo: Repo,
    settings: Settings,
    cache: Cache,
    now: i64,
    unfit: BTreeSet<usize>,
    silent: BTreeMap<usize, Timestamp>,
    published: Vec<Published>,
    broken: Broken,
}

impl History {
    fn new(seed: u64) -> History {
        let mut dice = Dice(seed.wrapping_mul(0x1234_5678_9ABC_DEF1));
        let fleet = Fleet::new(&mut dice);
        let repo = Repo::new();
        let settings = Settings::of(repo.path());
        let mut history = History {
            dice,
            fleet,
            files: BTreeMap::new(),
            repo,
            settings,
            cache: Cache::default(),
            now: START,
            unfit: BTreeSet::new(),
            silent: BTreeMap::new(),
            published: Vec::new(),
            broken: Broken::new(),
        };
        history.commit("start");
        history.settle();
        history.remember(false);
        history
    }

    fn remember(&mut self, is_rollback: bool) {
        let several = self.fleet.works.values().filter(|work| work.maps.len() > 1);
        let shared = several.flat_map(|work| work.maps.keys()).map(|map| path_of(map)).collect();
        self.published.push(Published { at: self.now, folders: self.folders(), is_rollback, shared });
    }

    fn moment(&self) -> Timestamp {
        Timestamp::from_second(self.now).expect("a moment")
    }

    fn commit(&mut self, message: &str) {
        let files = self.fleet.files();
        for path in self.files.keys().filter(|path| !files.contains_key(*path)) {
            std::fs::remove_file(self.repo.path().join(path)).expect("removed");
        }
        for (path, text) in files.iter().filter(|(path, text)| self.files.get(*path) != Some(text)) {
            self.repo.write(path, text);
        }
        self.files = files;
        self.repo.git(&["add", "-A"]);
        let date = format!("{} +0000", self.now);
        let mut git = hermetic("git");
        git.current_dir(self.repo.path()).env("GIT_AUTHOR_DATE", &date).env("GIT_COMMITTER_DATE", &date);
        let made = git.args(["commit", "--quiet", "--allow-empty", "-m", message]).status();
        assert!(made.expect("git runs").success());
    }

    fn folders(&self) -> Folders {
        let mut folders = Folders::new();
        for path in self.repo.git(&["ls-tree", "-r", "--name-only", RENDERED, "clusters/"]).lines() {
            if let Some((cluster, path)) = path.trim_start_matches("clusters/").split_once('/') {
                folders.entry(cluster.to_owned()).or_default().insert(path.to_owned());
            }
        }
        folders
    }

    /// Passes until nothing changes.
    fn settle(&mut self) -> PassResult {
        let mut tip = String::new();
        for _ in 0..60 {
            let passed = pass_with_cache(&self.settings, self.moment(), &mut self.cache).expect("a pass");
            let now = self.repo.id(RENDERED);
            if now == tip {
                return passed;
            }
            tip = now;
        }
        self.breaks("comes to rest", || "60 passes over the same inputs".to_owned());
        pass_with_cache(&self.settings, self.moment(), &mut self.cache).expect("a pass")
    }

    fn breaks(&mut self, promise: &'static str, example: impl FnOnce() -> String) {
        self.broken.entry(promise).or_insert_with(example);
    }

    /// A member reports on its folder.
    fn report(&self, cluster: usize) {
        let name = name_of(cluster);
        let tree = self.repo.git(&["ls-tree", RENDERED, &format!("clusters/{name}")]);
        let tree = tree.split_whitespace().nth(2).unwrap_or("4b825dc642cb6eb9a060e54bf8d69288fbee4904");
        let fit = if self.unfit.contains(&cluster) { "no" } else { "yes" };
        let status = ClusterStatus {
            cluster: name,
            reported: Some(self.moment()),
            silent: self.silent.get(&cluster).copied(),
            claims: [("fit".into(), fit.into())].into_iter().collect(),
            applied: Some(Applied { tree: tree.to_owned(), ..Applied::default() }),
            ..ClusterStatus::default()
        };
        let repo = berth_git::Repo::open(self.repo.path()).expect("a repository");
        status::write(&repo, &self.settings.refs, &status, self.moment()).expect("a report");
    }

    /// Something happens. Returns true for what people do.
    fn happen(&mut self) -> bool {
        let clusters: Vec<usize> = self.fleet.clusters.iter().copied().collect();
        match self.dice.roll(12) {
            0..=4 => {
                let now = self.moment().to_string();
                self.fleet.edit(&mut self.dice, &now);
                self.commit("edit");
                return true;
            }
            5..=7 => {
                for cluster in clusters {
                    if !self.dice.one_in(4) && !self.silent.contains_key(&cluster) {
                        self.report(cluster);
                    }
                }
            }
            8..=9 => {
                let share = 1 + self.dice.roll(6);
                for cluster in clusters {
                    if self.dice.one_in(share) && !self.unfit.remove(&cluster) {
                        self.unfit.insert(cluster);
                    }
                    self.report(cluster);
                }
            }
            10 => self.cache = Cache::default(),
            _ => self.now += [60, 3_600, 8 * 3_600, 30 * 3_600][self.dice.roll(4)],
        }
        false
    }

    fn run(mut self) -> Broken {
        let clusters: Vec<usize> = self.fleet.clusters.iter().copied().collect();
        clusters.iter().for_each(|cluster| self.report(*cluster));
        self.settle();
        for _ in 0..number("BERTH_HISTORY_EVENTS").unwrap_or(8 + self.dice.roll(12) as u64) {
            let held = self.held_pairs();
            let is_edit = self.happen();
            self.now += 10;
            let passed = self.settle();
            let folders = self.folders();
            let message = self.repo.git(&["log", "-1", "--format=%B", RENDERED]);
            let is_rollback = is_edit && message.contains("Berth-Rollback");
            self.limits_hold(&folders, is_rollback);
            self.nothing_that_people_want_goes(&folders);
            self.units_stay_together(&passed, &folders, &held);
            self.remember(is_rollback);
        }
        self.come_to_rest();
        if run(&["verify", "--repo", self.repo.arg()]).code != 0 {
            self.breaks("is proven", String::new);
        }
        let count = self.repo.git(&["rev-list", "--count", RENDERED]);
        PUBLICATIONS.fetch_add(count.parse().expect("a number"), Ordering::Relaxed);
        self.broken
    }

    /// Without an approval or a rollback, no object leaves all or most of its clusters within a day.
    fn limits_hold(&mut self, after: &Folders, is_rollback: bool) {
        if is_rollback {
            return;
        }
        let since = self.published.iter().rposition(|one| one.is_rollback).unwrap_or_default();
        // What was published last before the window is what there was as it began.
        let ends = self.published.iter().skip(since + 1).map(|next| next.at).chain([self.now]);
        let lately = self.published[since..].iter().zip(ends).filter(|(_, until)| *until > self.now - DAY);
        let lately: Vec<&Published> = lately.map(|(one, _)| one).collect();
        let last = lately.last().map(|last| &last.folders);
        let named: BTreeSet<&String> = self.fleet.works.values().flat_map(|work| work.maps.keys()).collect();
        for Published { folders: before, shared, .. } in &lately {
            let paths: BTreeSet<&String> = before.values().flatten().collect();
            for path in paths.difference(&shared.iter().collect()).copied() {
                let has = |folders: &Folders, cluster: &String| {
                    folders.get(cluster).is_some_and(|paths| paths.contains(path))
                };
                let had: Vec<&String> = before.keys().filter(|cluster| has(before, cluster)).collect();
                let gone = had.iter().filter(|cluster| !has(after, cluster)).count();
                let goes_now = had
                    .iter()
                    .any(|cluster| last.is_some_and(|last| has(last, cluster)) && !has(after, cluster));
                let stays = after.values().any(|paths| paths.contains(path));
                let is_most = gone > 2 && gone * 2 > had.len();
                let is_all = gone == had.len() && !(had.len() == 1 && stays);
                if goes_now && (is_most || is_all) {
                    let is_named = named.iter().any(|map| path.contains(map.as_str()));
                    let text = format!("{path}: {gone} of {}; still described: {is_named}", had.len());
                    self.broken.entry("no mass removal").or_insert(text);
                }
            }
        }
    }

    /// The ConfigMaps that people want in each cluster, as far as it is certain.
    fn wanted(&self) -> Folders {
        let mut wanted = Folders::new();
        let is_certain = |name: &&String, work: &&Work| {
            let unclear = [&self.fleet.broken, &self.fleet.copied].iter().any(|names| names.contains(*name));
            !unclear && !work.by_claim && !work.is_bare
        };
        for (_, work) in self.fleet.works.iter().filter(|(name, work)| is_certain(name, work)) {
            for cluster in work.clusters.intersection(&self.fleet.clusters) {
                let is_drained = self.fleet.drained.contains_key(cluster);
                if !is_drained
                    && !self.fleet.relabelled.contains(cluster)
                    && !self.silent.contains_key(cluster)
                {
                    let maps = work.maps.keys().map(|map| path_of(map));
                    wanted.entry(name_of(*cluster)).or_default().extend(maps);
                }
            }
        }
        wanted
    }

    /// A copy that was there, and that people want there, stays.
    fn nothing_that_people_want_goes(&mut self, after: &Folders) {
        let wanted = self.wanted();
        let Some(Published { folders: before, .. }) = self.published.last() else { return };
        for (cluster, paths) in before {
            let has = |path: &String| after.get(cluster).is_some_and(|after| after.contains(path));
            let wants = |path: &String| wanted.get(cluster).is_some_and(|wanted| wanted.contains(path));
            if let Some(path) = paths.iter().find(|path| wants(path) && !has(path)) {
                let text = format!("{path} went from {cluster}");
                self.broken.entry("what is wanted stays").or_insert(text);
            }
        }
    }

    /// The workloads that a policy puts together.
    fn held_pairs(&self) -> BTreeSet<(String, String)> {
        let orders = self.fleet.orders.iter();
        let pairs = orders.filter_map(|order| match order {
            Order::Together(one, other) => Some((one.clone(), other.clone())),
            _ => None,
        });
        pairs
            .filter(|(one, other)| [one, other].iter().all(|name| self.fleet.works.contains_key(*name)))
            .collect()
    }

    /// Of two workloads that go as one, none changes while the other is held.
    fn units_stay_together(
        &mut self,
        passed: &PassResult,
        after: &Folders,
        before: &BTreeSet<(String, String)>,
    ) {
        let pairs = self.held_pairs();
        let held: BTreeSet<&str> =
            passed.held.iter().filter(|held| !held.goes_on).map(|held| &*held.key.name).collect();
        let Some(Published { folders: last, .. }) = self.published.last() else { return };
        let changed = |name: &String| {
            let paths = self.fleet.works.get(name).into_iter().flat_map(|work| work.maps.keys());
            paths.map(|map| path_of(map)).any(|path| {
                let has = |folders: &Folders| {
                    let with = folders.iter().filter(|(_, paths)| paths.contains(&path));
                    with.map(|(cluster, _)| cluster.clone()).collect::<BTreeSet<_>>()
                };
                has(last) != has(after)
            })
        };
        for (one, other) in pairs.intersection(before) {
            for (held_one, goes) in [(one, other), (other, one)] {
                if held.contains(held_one.as_str()) && !held.contains(goes.as_str()) && changed(goes) {
                    self.broken
                        .entry("units stay together")
                        .or_insert(format!("{held_one} is held, {goes} goes"));
                }
            }
        }
    }

    /// Members are healthy, approvals are given, orders end: all that people want comes about.
    fn come_to_rest(&mut self) {
        self.fleet.calm();
        self.commit("the end");
        self.unfit.clear();
        self.silent.clear();
        let mut held = Vec::new();
        for _ in 0..60 {
            self.now += 40 * DAY / 60;
            let clusters: Vec<usize> = self.fleet.clusters.iter().copied().collect();
            clusters.iter().for_each(|cluster| self.report(*cluster));
            let before = self.repo.id(RENDERED);
            let passed = self.settle();
            held = passed.held;
            if let Some(one) = held.first() {
                let message = format!("approve\n\nBerth-Allow-Delete: {}", one.all);
                self.commit(&message);
            } else if before == self.repo.id(RENDERED) {
                break;
            }
        }
        if let Some(one) = held.first() {
            let text = format!("{}: {:?}", one.key, one.why);
            self.breaks("nothing is held for ever", || text);
        }
        let (wanted, folders) = (self.wanted(), self.folders());
        for (cluster, paths) in wanted {
            let lacks =
                paths.iter().find(|path| !folders.get(&cluster).is_some_and(|has| has.contains(*path)));
            if let Some(path) = lacks {
                self.broken.entry("what is wanted comes").or_insert(format!("{cluster} never got {path}"));
            }
        }
    }
}

fn path_of(map: &str) -> String {
    format!("shop/ConfigMap_{map}.yaml")
}

/// Runs many histories on all processors. Returns the numbers of those that break each promise, with an example.
fn run_many(from: u64, count: u64) -> BTreeMap<&'static str, (Vec<u64>, String)> {
    let next = AtomicU64::new(from);
    let broken: Mutex<BTreeMap<&'static str, (Vec<u64>, String)>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, |threads| threads.get()) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= from + count {
                        break;
                    }
                    let ran = catch_unwind(AssertUnwindSafe(|| History::new(seed).run()));
                    let found = ran.unwrap_or_else(|_| Broken::from([("does not panic", String::new())]));
                    let mut broken = broken.lock().expect("no history panics here");
                    for (promise, example) in found {
                        broken.entry(promise).or_insert_with(|| (Vec::new(), example)).0.push(seed);
                    }
                }
            });
        }
    });
    broken.into_inner().expect("no history panics here")
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn no_history_through_the_hub_breaks_a_promise() {
    let count = number("BERTH_HISTORIES").unwrap_or(6);
    let broken = run_many(number("BERTH_HISTORY").unwrap_or(1), count);
    for (promise, (seeds, example)) in &broken {
        eprintln!("{promise}: broken in {} of {count} histories, as in {}: {example}", seeds.len(), seeds[0]);
    }
    eprintln!("{} publications in {count} histories", PUBLICATIONS.load(Ordering::Relaxed));
    assert!(broken.is_empty());
}
