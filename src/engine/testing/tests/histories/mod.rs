//! Random histories of a fleet, from its files to its publications: edits of all systems' objects, objects
//! that move, workloads with new names, people's orders, members that report, fail, lose a claim and stop,
//! time that passes, approvals that are right, wrong and late, files that are broken or duplicated.
//!
//! Each history is made from its number alone. `BERTH_HISTORIES=200000 BERTH_HISTORY=1 cargo test --profile
//! demo -p berth-engine histories` runs this many, beginning with that number. [`fleet`]: the people's fleet.
//! [`pass`]: the hub. [`promises`]: the checks in each pass; the effects of a plan come true.

mod fleet;
mod pass;
mod promises;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use berth_base::model::cluster::WorkloadName;
use berth_base::model::release::{CopyReport, Health};
use berth_base::model::{ClusterStatus, ContentId, Digest, Key, Map, Shared, Timestamp};
use berth_base::source::{SourceFile, SourceTree};

use crate::gate::{Limits, Span, Verdict};
use crate::load::{self, History as Forms};
use crate::pipeline::{self, Inputs};
use crate::release::copies;
use crate::render::MemoryContents;
use crate::state::ledger::GivenApproval;
use crate::state::{PlaceOwners, State};
use crate::testing::Dice;
use fleet::{Fleet, name_of};
use pass::{Memory, Pass, at_once, differences, published};

/// The first moment.
const START: i64 = 1_767_225_600;

/// An earlier state.
struct Past {
    state: State,
    until: Timestamp,
}

/// One history.
struct History {
    seed: u64,
    dice: Dice,
    fleet: Fleet,
    /// The last good form of each file.
    forms: BTreeMap<String, Arc<[u8]>>,
    state: State,
    /// The earlier states, by number.
    before: Vec<Past>,
    contents: MemoryContents,
    memory: Memory,
    statuses: Map<String, Shared<ClusterStatus>>,
    /// The clusters whose members report that they are not fit.
    unfit: BTreeSet<usize>,
    silent: BTreeMap<usize, Timestamp>,
    now: i64,
    /// The moment of the current state.
    then: Option<Timestamp>,
    edits: u64,
    /// The last edit that a pass has processed.
    processed: Option<u64>,
    in_messages: BTreeMap<Digest, GivenApproval>,
    limits: Limits,
}

impl History {
    fn new(seed: u64) -> History {
        let mut dice = Dice(seed.wrapping_mul(0x1234_5678_9ABC_DEF1));
        let fleet = Fleet::new(&mut dice);
        History {
            seed,
            dice,
            fleet,
            forms: BTreeMap::new(),
            state: State::default(),
            before: Vec::new(),
            contents: MemoryContents::default(),
            memory: Memory::default(),
            statuses: Map::new(),
            unfit: BTreeSet::new(),
            silent: BTreeMap::new(),
            now: START,
            then: None,
            edits: 1,
            processed: None,
            in_messages: BTreeMap::new(),
            limits: Limits { allow_risky: true, ..Limits::default() },
        }
    }

    fn moment(&self) -> Timestamp {
        Timestamp::from_second(self.now).expect("a moment")
    }

    /// Runs with the last good forms of files.
    fn with_forms<T>(&self, run: impl FnOnce(Forms<'_>) -> T) -> T {
        match self.processed {
            None => run(Forms::None),
            Some(_) => run(Forms::Known(&|path| self.forms.get(path).cloned())),
        }
    }

    fn look<'h>(
        &'h self,
        fleet: &Fleet,
        statuses: &'h Map<String, Shared<ClusterStatus>>,
        memory: &mut Memory,
        contents: &mut MemoryContents,
    ) -> Pass<'h> {
        let files = fleet.files().into_iter();
        let files = files.map(|(path, text)| SourceFile::new(path, text.into_bytes())).collect();
        let tree = SourceTree { files, ..SourceTree::default() };
        let is_edited = self.processed != Some(self.edits);
        let (loaded, built) = self.with_forms(|forms| {
            let loaded = load::load_with_cache(&tree, forms, &mut memory.parsed);
            memory.parsed.forget_unused();
            let (inputs, last) = (self.inputs(&tree, forms, statuses), memory.built.take());
            let (built, next) = pipeline::build_loaded(loaded.clone(), inputs, last.as_ref(), contents)
                .unwrap_or_else(|error| panic!("{error}"));
            memory.built = Some(next);
            (loaded, built)
        });
        Pass { history: self, loaded, built, tree, statuses, is_edited, at_once: None }
    }

    fn inputs<'i>(
        &'i self,
        tree: &'i SourceTree,
        history: Forms<'i>,
        statuses: &'i Map<String, Shared<ClusterStatus>>,
    ) -> Inputs<'i> {
        Inputs { tree, history, current: &self.state, statuses, now: self.moment() }
    }

    /// Runs one pass, publishes the gate's result, and checks its promises.
    fn pass(&mut self) -> Verdict {
        let mut contents = std::mem::take(&mut self.contents);
        let (mut memory, fresh) = (std::mem::take(&mut self.memory), Memory::default);
        let mut pass = self.look(&self.fleet, &self.statuses, &mut memory, &mut contents);
        if pass.is_edited {
            let at_once = at_once(&self.fleet);
            pass.at_once = Some(self.look(&at_once, &self.statuses, &mut fresh(), &mut contents).into());
        }
        let verdict = pass.verdict();
        let kept: Vec<_> = pass
            .loaded
            .kept
            .iter()
            .map(|(path, bytes)| (path.clone(), Arc::from(bytes.as_slice())))
            .collect();
        let forms: Vec<(String, Arc<[u8]>)> =
            pass.tree.files.iter().map(|(path, file)| (path.to_string(), file.bytes.clone())).collect();
        promises::hold(&pass, &verdict);
        let state = published(&verdict.state);
        let is_proven = state != self.state || self.before.len().is_multiple_of(4);
        if self.processed.is_some() && is_proven {
            // A proof has no cache, and reads reports from the facts only.
            let facts = &verdict.state.facts;
            let proof = self.look(&self.fleet, facts, &mut fresh(), &mut contents).verdict();
            let proven = published(&proof.state);
            self.is_true(proven == state, || {
                format!("the proof of a pass gives another state: {:?}", differences(&proven, &state))
            });
        }
        (self.contents, self.memory) = (contents, memory);
        self.forms = forms.into_iter().chain(kept).collect();
        if state != self.state {
            let before = std::mem::replace(&mut self.state, state);
            self.before.push(Past { state: before, until: self.moment() });
            self.then = Some(self.moment());
        }
        self.processed = Some(self.edits);
        self.in_messages.clear();
        verdict
    }

    #[track_caller]
    fn is_true(&self, holds: bool, what: impl FnOnce() -> String) {
        assert!(holds, "history {}, after {} edits: {}", self.seed, self.edits, what());
    }

    /// Lets a member report on its folder.
    fn report(&mut self, cluster: usize, health: Health) {
        let name = name_of(cluster);
        let owners = PlaceOwners::of(&self.state);
        let folder = self.state.folders.get(&name);
        let mut copied: BTreeMap<WorkloadName, Vec<(String, ContentId)>> = BTreeMap::new();
        let before = self.statuses.get(&name);
        let known = before.into_iter().flat_map(|status| status.copies.keys().cloned());
        let decided = self.state.decisions.keys().map(WorkloadName::of);
        for workload in known.chain(decided) {
            copied.entry(workload).or_default();
        }
        for (path, content) in folder.into_iter().flat_map(|folder| folder.iter()) {
            for owner in owners.holders(&name, path) {
                if owners.uses(owner.key, &name, path) {
                    copied.entry(WorkloadName::of(owner.key)).or_default().push((path.to_string(), *content));
                }
            }
        }
        let report = |(workload, copied): (WorkloadName, Vec<(String, ContentId)>)| {
            let digest = copies::digest(copied.iter().map(|(path, id)| (path.as_str(), *id)));
            let health = if copied.is_empty() { Health::Succeeded } else { health };
            (workload, CopyReport { digest, health, since: None, message: String::new() })
        };
        let fit = if self.unfit.contains(&cluster) { "no" } else { "yes" };
        let status = ClusterStatus {
            cluster: name.clone(),
            reported: Some(self.moment()),
            claims: [("fit".into(), fit.into())].into_iter().collect(),
            silent: self.silent.get(&cluster).copied(),
            copies: copied.into_iter().map(report).collect(),
            ..ClusterStatus::default()
        };
        self.statuses.insert(name, status.into());
    }

    /// Lets all members report that their copies are healthy.
    fn all_is_well(&mut self) {
        let clusters: Vec<usize> = self.fleet.clusters.iter().copied().collect();
        clusters.into_iter().for_each(|cluster| self.report(cluster, Health::Succeeded));
    }

    /// Lets a random event happen.
    fn happen(&mut self, last: &Verdict) {
        let clusters: Vec<usize> = self.fleet.clusters.iter().copied().collect();
        match self.dice.roll(13) {
            // The daemon restarts.
            12 => self.memory = Memory::default(),
            0..=3 => {
                let now = self.moment().to_string();
                self.fleet.edit(&mut self.dice, &now);
                self.edits += 1;
            }
            4..=6 => {
                for cluster in &clusters {
                    if !self.dice.one_in(4) && !self.silent.contains_key(cluster) {
                        let fails = self.dice.one_in(12);
                        self.report(*cluster, if fails { Health::Failed } else { Health::Succeeded });
                    }
                }
            }
            7 => {
                let share = 2 + self.dice.roll(6);
                for cluster in &clusters {
                    if self.dice.one_in(share) && !self.unfit.remove(cluster) {
                        self.unfit.insert(*cluster);
                    }
                    self.report(*cluster, Health::Succeeded);
                }
            }
            8 => {
                let moment = self.moment();
                let Some(cluster) = self.dice.pick(clusters.iter()).copied() else { return };
                if self.silent.remove(&cluster).is_none() {
                    self.silent.insert(cluster, moment);
                }
                self.report(cluster, Health::Succeeded);
            }
            9 => self.now += [60, 3_600, 8 * 3_600, 30 * 3_600][self.dice.roll(4)],
            _ => self.approve(last),
        }
        self.now += 10;
    }

    /// Gives an approval of a held change, or of something else.
    fn approve(&mut self, last: &Verdict) {
        let digest = match (self.dice.roll(4), last.held.first()) {
            (0, Some(held)) => held.digest,
            (1 | 2, Some(held)) => held.all,
            _ => Digest([self.dice.roll(256) as u8; 16]),
        };
        let until = Span::hours(7 * 24).after(self.moment());
        self.in_messages.insert(digest, GivenApproval { commit: "an approval".to_owned(), until });
        self.edits += 1;
    }

    fn run(&mut self) {
        let mut last = self.settle();
        for _ in 0..6 + self.dice.roll(14) {
            self.happen(&last);
            last = self.settle();
        }
        self.come_to_rest();
        promises::come_true(self);
    }

    /// Makes members healthy, gives approvals and ends orders, so that the fleet reaches its desired state.
    fn come_to_rest(&mut self) {
        self.fleet.calm();
        self.edits += 1;
        self.unfit.clear();
        self.silent.clear();
        let mut last = None;
        for _ in 0..60 {
            self.now += 40 * 24 * 3_600 / 60;
            self.all_is_well();
            let before = self.state.clone();
            let verdict = self.settle();
            let all: Vec<Digest> = verdict.held.iter().map(|held| held.all).collect();
            let until = Span::hours(7 * 24).after(self.moment());
            let given = all.iter().map(|all| (*all, GivenApproval { commit: "the end".to_owned(), until }));
            self.in_messages.extend(given);
            self.edits += u64::from(!all.is_empty());
            let is_quiet = before == self.state && all.is_empty();
            last = Some(verdict);
            if is_quiet {
                break;
            }
        }
        let held: Vec<Key> = last.into_iter().flat_map(|last| last.held).map(|held| held.key).collect();
        self.is_true(held.is_empty(), || format!("{held:?} held for ever"));
        let mut contents = self.contents.clone();
        let built = self.look(&self.fleet, &self.statuses, &mut Memory::default(), &mut contents).built;
        let desired = published(&built.desired);
        self.is_true(desired.folders == self.state.folders, || {
            let waits: Vec<_> =
                built.rollouts.iter().map(|(key, trace)| (key, &trace.waits, &trace.notes)).collect();
            let files = crate::plan::plan(&self.state, &desired);
            format!(
                "not all that people want came about: {files:?}\n{waits:?}\n{:?}\n{:?}",
                self.fleet, self.state.releases
            )
        });
        let ledger = &self.state.ledger;
        let rest = ledger.pending().count() + ledger.owners.len();
        self.is_true(rest == 0, || format!("the ledger has not come to rest: {:?}", self.state.ledger));
    }
}

/// Runs many histories on all processors.
fn run_many(from: u64, count: u64) {
    let (next, failed) = (AtomicU64::new(from), AtomicU64::new(0));
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= from + count {
                        break;
                    }
                    if std::panic::catch_unwind(|| History::new(seed).run()).is_err() {
                        failed.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(failed.into_inner(), 0, "of {count} histories from {from} on");
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn no_history_loses_a_place_that_nobody_permitted() {
    run_many(number("BERTH_HISTORY").unwrap_or(1), number("BERTH_HISTORIES").unwrap_or(60));
    let broke_once = [
        40_295, 52_214, 54_234, 73_779, 77_513, 103_140, 112_642, 112_825, 117_327, 127_449, 47_283, 34_822,
        96_544, 102_918, 178_344, 179_869, 79_636,
    ];
    broke_once.into_iter().for_each(|seed| run_many(seed, 1));
}
