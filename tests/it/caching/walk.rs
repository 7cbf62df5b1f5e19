//! Random walks: edits, reports and time, over all dialects.
//!
//! More of them, from another beginning:
//!
//! ```text
//! BERTH_WALK_EDITS=10000 BERTH_WALK_SEED=7 cargo test --profile demo --test it caching::walk -- --nocapture
//! ```
//!
//! A walk that fails prints its edits, and the seed and number that repeat it alone.

use std::fmt::Write as _;

use berth_base::model::Timestamp;
use berth_git::CommitId;
use berth_hub::daemon::Settings;

use super::damage::{Damage, Stock, WAYS};
use super::edits::{Fleet, any};
use super::members::report;
use super::sides::{MAIN, Said, Side, Sides};
use super::strange::Strange;
use crate::support::random::{Random, rounds};

/// The steps of one walk.
const STEPS: u64 = 50;

/// The limits of the gate that a walk may have.
const LIMITS: [&str; 3] = [
    "clusters=50%/2 objects=50%/10 evictions=30%/2 risky=held rollback=5 window=24h rollback-window=24h \
     trailers=on labels=region failover=on",
    "clusters=100%/0 objects=100%/0 evictions=100%/0 risky=allowed rollback=5 window=24h rollback-window=24h \
     trailers=on labels=region failover=on",
    "clusters=100%/0 objects=100%/0 evictions=100%/0 risky=allowed rollback=5 window=1h rollback-window=1h \
     trailers=off labels=none failover=on",
];

struct Walk {
    seed: u64,
    edits: u64,
    random: Random,
    sides: Sides,
    fleet: Fleet,
    clock: Timestamp,
    last: Said,
    /// A ref that was put back, and its commit before.
    moved: Option<(String, CommitId)>,
    /// The ways of damage, with chances of their own: the walk goes the same way whatever is damaged.
    way: u64,
    harm: Random,
    stock: Stock,
    /// Seldom events, but in the walks of old.
    strange: Option<Strange>,
    /// For whoever repeats the walk.
    log: String,
}

impl Drop for Walk {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (edits, seed) = (self.edits + 1, self.seed);
            eprintln!("BERTH_WALK_EDITS={edits} BERTH_WALK_SEED={seed} repeats this walk:\n{}", self.log);
        }
    }
}

#[derive(Debug, Default)]
struct Tally {
    edits: u64,
    passes: u64,
    published: u64,
    held: u64,
    idle: u64,
    refused: u64,
}

impl Walk {
    fn new(seed: u64) -> Walk {
        let mut random = Random::new(seed);
        let clock = Timestamp::from_second(1_767_225_630).unwrap();
        let mut settings = Settings::of("");
        settings.limits = random.pick(&LIMITS).parse().expect("limits");
        settings.heartbeat = (random.below(3) == 0).then_some(600);
        let fleet = Fleet::new(clock, &mut random);
        let sides = Sides::new(&settings);
        Walk {
            seed,
            edits: 0,
            random,
            sides,
            fleet,
            clock,
            last: Said::default(),
            moved: None,
            way: seed * STEPS,
            harm: Random::new(!seed),
            stock: Stock::new(),
            strange: Some(Strange::new(seed)),
            log: String::new(),
        }
    }

    /// Time goes on: hardly, for a while, or up to a deadline.
    fn wait(&mut self) {
        let due = self.last.next_change.map(|at| at.as_second() - self.clock.as_second());
        let due = due.filter(|seconds| (0..172_800).contains(seconds)).unwrap_or(30);
        let minutes = i64::try_from(self.random.below(60)).unwrap();
        let choices =
            [0, 0, 1, 20, 60, 60 * minutes, 60 * minutes, due, due, due + 1, due - 1, 1_440 * minutes];
        let seconds = self.random.pick(&choices).max(0);
        self.clock = Timestamp::from_second(self.clock.as_second() + seconds).unwrap();
    }

    fn note(&mut self, words: &str) {
        let _ = writeln!(self.log, "  {words}");
    }

    fn edit(&mut self, tally: &mut Tally) {
        let mut message = "edit\n".to_owned();
        for _ in 0..self.random.pick(&[0, 1, 1, 1, 2, 3]) {
            let edit = self.fleet.edit(self.clock, &mut self.random);
            self.note(&edit);
            tally.edits += 1;
            self.edits += 1;
        }
        if let Some(edit) = self.strange.as_mut().and_then(|strange| strange.edit(&mut self.fleet)) {
            self.note(&edit);
            tally.edits += 1;
            self.edits += 1;
        }
        if let Some(line) = any(&mut self.random, &self.last.approvals).filter(|_| self.random.below(2) == 0)
        {
            let line = line.clone();
            self.note(&line);
            if self.random.below(2) == 0 {
                let _ = write!(message, "\n{line}\n");
            } else {
                let (_, digest) = line.split_once(": ").unwrap();
                let approval = format!(
                    "apiVersion: berth.dev/v1alpha1\nkind: Approval\nmetadata: {{name: a}}\nspec: {{digest: {digest}, \
                     expires: \"2026-06-30T18:00:00Z\", reason: good}}\n"
                );
                self.fleet.files.insert("approvals/a.yaml".to_owned(), approval);
            }
        }
        self.sides.commit(&self.fleet.files, &message, self.clock);
        self.fleet.remember();
    }

    fn reports(&mut self) {
        for (cluster, folder) in self.sides.folders() {
            match self.random.below(10) {
                0..4 => {
                    let text = report(&cluster, folder, self.clock, &mut self.random);
                    self.sides.report(&cluster, Some(text));
                }
                4 if self.random.below(8) == 0 => self.sides.report(&cluster, None),
                _ => {}
            }
        }
        let clock = self.clock;
        let said = self.strange.as_mut().map(|strange| strange.report(&self.sides, clock));
        said.into_iter().flatten().for_each(|words| self.note(&words));
    }

    /// Somebody else moves a ref: deletes a derived one, puts the source or the state back for a while, or adds a commit
    /// to the state.
    fn meddle(&mut self) {
        let refs = self.sides.cold.settings.refs.clone();
        let own =
            [refs.report, refs.processed, format!("{}k0", refs.clusters), format!("{}m0", refs.clusters)];
        match self.random.below(5) {
            0 => self.put_back(MAIN),
            1 => self.put_back(&refs.rendered),
            2 => {
                let text = self.clock.to_string();
                self.sides.add(&refs.rendered, "notes.txt", &text, self.clock);
                self.note("somebody adds a file to the state");
            }
            _ => {
                let name = any(&mut self.random, &own).unwrap();
                self.sides.point(name, None);
                self.note(&format!("{name} is deleted"));
            }
        }
    }

    fn put_back(&mut self, name: &str) {
        let repo = self.sides.cold.repo();
        let Some(now) = repo.read_ref(name).unwrap() else {
            return;
        };
        let Some(parent) = repo.commit(now).unwrap().parents.first().copied() else {
            return;
        };
        self.sides.point(name, Some(parent));
        self.moved = Some((name.to_owned(), now));
        self.note(&format!("{name} goes back"));
    }

    fn pass(&mut self) -> Said {
        let damage = Damage::way(usize::try_from(self.way).unwrap() % WAYS);
        self.way += 1;
        self.note(&format!("{damage:?}"));
        let prepared = damage.prepare(&self.sides, &mut self.stock, &mut self.harm);
        let said = self.sides.pass(self.clock);
        prepared.strike(&self.sides, self.clock, &said);
        said
    }

    fn step(&mut self, tally: &mut Tally) {
        self.wait();
        self.note(&format!("-- {}", self.clock));
        if let Some((name, commit)) = self.moved.take() {
            self.sides.point(&name, Some(commit));
        }
        match self.random.below(20) {
            0..14 => self.edit(tally),
            14 => self.meddle(),
            // Time and reports alone.
            _ => {}
        }
        if self.random.below(5) < 3 {
            self.reports();
        }
        if self.strange.as_mut().is_some_and(Strange::restarts) {
            self.sides.restart();
            self.note("the daemon begins anew");
        }
        let mut said = self.pass();
        // After a pass that had nothing to do, a process ends at once.
        while self.random.below(4) == 0 {
            let again = self.pass();
            tally.idle += u64::from(again.is_idle);
            said.next_change = again.next_change;
        }
        if self.random.below(10) == 0 {
            self.sides.prove(self.clock);
        }
        tally.passes += 1;
        tally.published += u64::from(said.is_published);
        tally.held += u64::from(!said.approvals.is_empty());
        tally.refused += u64::from(said.is_refused);
        self.last = said;
    }
}

/// Walks from a beginning, until so many edits were made.
fn walk(mut walk: Walk, edits: u64, tally: &mut Tally) {
    walk.sides.commit(&walk.fleet.files, "start\n", walk.clock);
    walk.fleet.remember();
    walk.last = walk.sides.pass(walk.clock);
    walk.sides.other.process(walk.clock);
    for _ in 0..STEPS {
        if tally.edits < edits {
            walk.step(tally);
        }
    }
    walk.sides.all().for_each(Side::check);
}

#[test]
fn all_memories_lead_to_the_same_commits() {
    let edits = rounds("BERTH_WALK_EDITS", 30);
    let first = rounds("BERTH_WALK_SEED", 1);
    let mut tally = Tally::default();
    for seed in first.. {
        walk(Walk::new(seed), edits, &mut tally);
        eprintln!("seed {seed}: {tally:?}");
        if tally.edits >= edits {
            break;
        }
    }
}

/// A process published an object that its last pass had rendered, that no cluster was told of, and that is gone. A
/// daemon counted a cluster without objects that had left, after a pass that published nothing.
#[test]
fn walks_that_once_differed_lead_to_the_same_commits() {
    for (seed, edits) in [(1009, 27), (144, 40)] {
        let mut plain = Walk::new(seed);
        plain.strange = None;
        walk(plain, edits, &mut Tally::default());
    }
}
