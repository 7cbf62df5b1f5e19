//! The state of one copy: the worst of all its states.
//!
//! The state comes from the functions that `berth status` and `berth rollout` use. Without reports, only the record on
//! the rendered branch counts.

use std::collections::{BTreeMap, BTreeSet};

use berth_base::model::release::{Health, Releases};
use berth_base::model::status::{Problem, ProblemKind};
use berth_base::model::{ClusterStatus, Decision, Key, MemberState, Pick, Timestamp};
use berth_base::text::cut;
use berth_engine::report::{CopyLine, CopyState};
use berth_engine::rollouts::RolloutClusterProgress;
use berth_engine::state::Ledger;
use berth_engine::state::ledger::Stage;

/// The length of the words of a state, and of other texts of members and people.
pub(crate) const LONGEST: usize = 400;

/// The state of a workload's copy in one cluster, the most urgent last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CellState {
    /// The state has it, and nothing more is known: it has no objects, or no report was read.
    Published,
    InSync,
    /// It waits for its turn, or people suspended the cluster.
    Waits,
    Progressing,
    Drifted,
    Silent,
    Held,
    Failing,
}

impl CellState {
    pub const ALL: [CellState; 8] = [
        CellState::Published,
        CellState::InSync,
        CellState::Waits,
        CellState::Progressing,
        CellState::Drifted,
        CellState::Silent,
        CellState::Held,
        CellState::Failing,
    ];

    /// Returns the number of the state in the page's data.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Returns the word for people, as the page has it.
    pub fn word(self) -> &'static str {
        match self {
            CellState::Published => "published",
            CellState::InSync => "in sync",
            CellState::Waits => "waits",
            CellState::Progressing => "progressing",
            CellState::Drifted => "drifted",
            CellState::Silent => "silent",
            CellState::Held => "held",
            CellState::Failing => "failing",
        }
    }

    /// Reports whether somebody should look at it.
    pub fn is_in_order(self) -> bool {
        self < CellState::Drifted
    }

    /// Returns the state of a whole cluster, by its word in `berth status`.
    pub fn of_cluster(word: &str) -> CellState {
        match MemberState::of_word(word) {
            Some(MemberState::InSync) => CellState::InSync,
            Some(MemberState::Suspended) => CellState::Waits,
            Some(MemberState::Progressing | MemberState::Behind) => CellState::Progressing,
            Some(MemberState::WithProblems | MemberState::Failing) => CellState::Failing,
            // A member that is behind and does not answer has a word of its own.
            Some(MemberState::Silent | MemberState::NeverReported) | None => CellState::Silent,
        }
    }
}

/// A copy, with the reason for its state if it has one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    pub state: CellState,
    pub words: String,
    pub since: Option<Timestamp>,
}

/// The knowledge about one copy beside its decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known<'s> {
    pub decision: &'s Decision,
    /// The copy as the report judges it, and the state of its cluster. `None` without reports.
    pub reported: Option<(&'s CopyLine<'s>, Option<MemberState>)>,
    /// The member is behind and does not answer.
    pub is_unanswered: bool,
    pub status: Option<&'s ClusterStatus>,
    pub facts: Option<&'s ClusterStatus>,
    pub releases: Option<&'s Releases>,
    pub rollout: Option<&'s RolloutClusterProgress>,
    /// The clusters in which the ledger holds a removal of the workload.
    pub held: Option<&'s BTreeSet<&'s str>>,
}

impl Cell {
    fn new(state: CellState, words: impl Into<String>) -> Cell {
        Cell { state, words: shortened(&words.into()), since: None }
    }

    fn since(self, since: Option<Timestamp>) -> Cell {
        Cell { since, ..self }
    }

    /// Judges a copy.
    pub(crate) fn of(pick: &Pick, known: &Known<'_>) -> Cell {
        let candidates = [
            Some(known.applied(pick)),
            known.member_fault(),
            known.held(pick),
            known.verdict(),
            known.drift(),
        ];
        let worst = candidates.into_iter().flatten().rev().max_by_key(|cell| cell.state);
        worst.unwrap_or_else(|| Cell::new(CellState::Published, ""))
    }
}

impl Known<'_> {
    /// Judges the copy by what its member applied or, without a report, by the record.
    fn applied(&self, pick: &Pick) -> Cell {
        if self.decision.objects.is_empty() {
            return Cell::new(CellState::Published, "");
        }
        let Some((copy, member)) = self.reported else { return self.recorded(pick) };
        match copy.state {
            CopyState::InSync => Cell::new(CellState::InSync, ""),
            CopyState::Progressing => Cell::new(CellState::Progressing, "its objects are not healthy yet"),
            CopyState::WithProblems => self.problem(),
            CopyState::Waiting => self.waits(pick),
            CopyState::Unmade => Cell::new(CellState::Failing, self.failure(&pick.cluster)),
            CopyState::NotApplied => self.not_applied(member),
        }
    }

    fn recorded(&self, pick: &Pick) -> Cell {
        if self.decision.failures.iter().any(|failure| *failure.cluster == *pick.cluster) {
            return Cell::new(CellState::Failing, self.failure(&pick.cluster));
        }
        if let Some(silent) = self.facts.and_then(|facts| facts.silent) {
            return Cell::new(CellState::Silent, "its member was silent").since(Some(silent));
        }
        match Releases::has_waiting(self.releases, pick) {
            true => self.waits(pick),
            false => Cell::new(CellState::Published, ""),
        }
    }

    fn not_applied(&self, member: Option<MemberState>) -> Cell {
        let status = self.status.and_then(|status| status.applied.as_ref());
        match member {
            Some(MemberState::Failing) => {
                let failing = status.and_then(|applied| applied.failing.as_ref());
                let words = failing.map_or("its member fails", |failing| &failing.message);
                Cell::new(CellState::Failing, words).since(failing.map(|failing| failing.since))
            }
            Some(MemberState::Suspended) => Cell::new(CellState::Waits, "its cluster is suspended"),
            Some(MemberState::Silent) => {
                Cell::new(CellState::Silent, "its member does not report").since(self.silent_since())
            }
            Some(MemberState::NeverReported) | None => {
                Cell::new(CellState::Silent, "its member has never reported")
            }
            Some(_) => Cell::new(CellState::Progressing, "its member has not applied it yet"),
        }
    }

    /// Finds the fault of a member that does not report or fails, whatever its copy waits for.
    fn member_fault(&self) -> Option<Cell> {
        if self.decision.objects.is_empty() {
            return None;
        }
        let (_, member) = self.reported?;
        match member {
            _ if self.is_unanswered => {
                let words = "its member is behind and does not answer";
                Some(Cell::new(CellState::Silent, words).since(self.silent_since()))
            }
            Some(MemberState::Silent | MemberState::NeverReported | MemberState::Failing) => {
                Some(self.not_applied(member))
            }
            _ => None,
        }
    }

    fn silent_since(&self) -> Option<Timestamp> {
        self.status.and_then(|status| status.reported)
    }

    /// Judges an object that differs from its wanted form: an unwanted change is drift, all else a failure.
    fn problem(&self) -> Cell {
        let problems = self.reported.and_then(|(copy, _)| copy.member).map(|member| member.problems);
        let own = || {
            problems
                .unwrap_or_default()
                .iter()
                .filter(|problem| self.decision.objects.contains(&problem.object))
        };
        let is_drift =
            |problem: &Problem| matches!(problem.kind, ProblemKind::Drifted | ProblemKind::Different);
        match (own().find(|problem| !is_drift(problem)), own().next()) {
            (Some(failure), _) => Cell::new(CellState::Failing, words(failure)),
            (None, Some(drift)) => Cell::new(CellState::Drifted, words(drift)),
            (None, None) => Cell::new(CellState::Failing, "an object differs from its wanted form"),
        }
    }

    fn waits(&self, pick: &Pick) -> Cell {
        let has = self.releases.and_then(|releases| releases.of_pick(pick));
        let keeps = match has {
            Some(release) => format!("waits for its turn with release {release}"),
            None => "waits for its turn".to_owned(),
        };
        let why = self.rollout.and_then(|rollout| rollout.waits.as_deref());
        let words = why.map_or_else(|| keeps.clone(), |why| format!("{keeps}: {why}"));
        Cell::new(CellState::Waits, words).since(self.releases.map(|releases| releases.current.begun))
    }

    fn failure(&self, cluster: &str) -> String {
        let mut failures = self.decision.failures.iter().filter(|failure| failure.cluster == cluster);
        failures.next().map_or_else(String::new, |failure| format!("{}: {}", failure.object, failure.reason))
    }

    fn held(&self, pick: &Pick) -> Option<Cell> {
        let in_ledger = self.held.is_some_and(|held| held.contains(&*pick.cluster));
        let words = "its removal is held until somebody approves it; the cluster keeps its copy";
        (in_ledger || (pick.leaving && pick.held)).then(|| Cell::new(CellState::Held, words))
    }

    /// Judges the copy by its member's verdict on the release.
    fn verdict(&self) -> Option<Cell> {
        let rollout = self.rollout?;
        let report = rollout.report.as_ref();
        let health = report.map(|report| report.health).or(rollout.assigned_at.map(|_| Health::Applying))?;
        let words = report.map(|report| report.message.as_str()).unwrap_or_default();
        match health {
            Health::Failed => Some(Cell::new(CellState::Failing, words).since(rollout.since())),
            Health::Progressing | Health::Applying => {
                let words = if words.is_empty() { "its member applies the release" } else { words };
                Some(Cell::new(CellState::Progressing, words).since(rollout.since()))
            }
            Health::Succeeded => None,
        }
    }

    /// Finds an object that is only compared, and differs.
    fn drift(&self) -> Option<Cell> {
        let applied = self.status?.applied.as_ref()?;
        let mut differences = applied.differences.iter();
        let differs = differences.find(|problem| self.decision.objects.contains(&problem.object))?;
        Some(Cell::new(CellState::Drifted, words(differs)))
    }
}

/// Cuts a text of members or people.
pub(crate) fn shortened(text: &str) -> String {
    cut(text, LONGEST)
}

fn words(problem: &Problem) -> String {
    format!("{}: {}", problem.object, problem.message)
}

/// Returns the clusters of each workload in which the ledger holds a removal.
pub(crate) fn held_in(ledger: &Ledger) -> BTreeMap<&Key, BTreeSet<&str>> {
    let mut held: BTreeMap<&Key, BTreeSet<&str>> = BTreeMap::new();
    for ((cluster, _), loss) in ledger.pending().filter(|(_, loss)| loss.stage == Stage::Held) {
        held.entry(&loss.owner).or_default().insert(cluster);
    }
    held
}
