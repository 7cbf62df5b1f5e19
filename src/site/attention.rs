//! The differences from the source: one item for each cause, the worst first.

use std::collections::{BTreeMap, BTreeSet};

use berth_base::model::{Key, MemberState, Timestamp};
use berth_base::text::{counted, cut, some_of};
use berth_engine::consequences::folded::ClusterWords;
use berth_engine::gate::messages::ALLOW_DELETE;
use berth_engine::release::workload_rollout::RolloutState;
use berth_engine::report::ClusterLine;
use berth_engine::rollouts::RolloutProgress;
use berth_engine::state::ledger::{Cause, Loss, Stage};

use crate::cell::{CellState, LONGEST};
use crate::form::{Attention, place};
use crate::grid::{Grid, PlacedCell, Row};
use crate::inputs::{Held, Members, SiteInputs};
use crate::rollouts;

/// The number of placements with failing or drifted copies that have an item of their own.
const MOST_OF_A_STATE: usize = 8;

/// The number of items.
const MOST_ITEMS: usize = 100;

/// The number of names of clusters.
const MOST_NAMED: usize = 5;

/// The length of an id of a commit in a text.
const SHORT_ID: usize = 10;

/// Returns all items.
pub(crate) fn items(inputs: &SiteInputs<'_>, grid: &Grid<'_>) -> Vec<Attention> {
    let words = inputs.fleet.map(ClusterWords::of);
    let watch = Watch { inputs, grid, words };
    let mut items = watch.stopped_rollouts();
    items.extend(watch.held());
    items.extend(watch.members());
    items.extend(watch.copies(CellState::Failing));
    items.extend(watch.copies(CellState::Drifted));
    items.extend(watch.source());
    items.sort_by_key(|item| (std::cmp::Reverse(item.state), std::cmp::Reverse(item.cells)));
    let rest = items.split_off(items.len().min(MOST_ITEMS));
    if !rest.is_empty() {
        items.push(Attention {
            state: rest.iter().map(|item| item.state).max().unwrap_or_default(),
            title: format!("{} more", counted(rest.len(), "item")),
            cells: rest.iter().map(|item| item.cells).sum(),
            to: "#/".to_owned(),
            ..Attention::default()
        });
    }
    for item in &mut items {
        (item.title, item.text) = (cut(&item.title, LONGEST), cut(&item.text, LONGEST));
    }
    items
}

/// The inputs of the items.
struct Watch<'c> {
    inputs: &'c SiteInputs<'c>,
    grid: &'c Grid<'c>,
    /// `None` without a source.
    words: Option<ClusterWords<'c>>,
}

impl Watch<'_> {
    fn describe(&self, clusters: &[&str]) -> String {
        match &self.words {
            Some(words) => words.describe(clusters.iter().copied()),
            None => some_of(clusters, MOST_NAMED),
        }
    }

    /// Lists the rollouts that go on only if somebody acts.
    fn stopped_rollouts(&self) -> Vec<Attention> {
        let is_stopped = |rollout: &&RolloutProgress| {
            matches!(rollout.state, RolloutState::Halted | RolloutState::Stuck | RolloutState::Faulty)
        };
        self.inputs.rollouts.iter().filter(is_stopped).map(|rollout| self.stopped_rollout(rollout)).collect()
    }

    fn stopped_rollout(&self, rollout: &RolloutProgress) -> Attention {
        let name = rollout.key.full_name();
        let release = rollout.release.unwrap_or_default();
        let (reached, picked) = rollout.reached();
        let failing = self.row(&rollout.key).map(|row| count(row, CellState::Failing)).unwrap_or_default();
        let releases = self.inputs.state.releases.get(&rollout.key);
        let halted = releases.and_then(|releases| releases.halted.as_ref());
        let waiting = picked - reached;
        let keep = rollout.good.map_or_else(String::new, |good| format!(" and keep release {good}"));
        let placement = self.inputs.fleet.and_then(|fleet| fleet.workloads.get(&rollout.key));
        let is_halted = rollout.state == RolloutState::Halted;
        Attention {
            state: if is_halted { CellState::Failing } else { CellState::Held }.number(),
            title: format!("Release {release} of {name} is {}", rollout.state.word()),
            text: rollout.reason.clone(),
            since: halted.map(|halt| halt.since.as_second()).or(rollout.begun.map(Timestamp::as_second)),
            cells: failing,
            to: format!("#/r/{}", rollouts::id(rollout)),
            at: placement.map(|workload| place(&workload.origin)),
            then: Some(format!("{} wait{}{keep}", counted(waiting, "cluster"), third_person(waiting))),
            remedy: is_halted
                .then(|| format!("berth rollout abort {}", shell_word(&self.grid.id(&rollout.key)))),
            ..Attention::default()
        }
    }

    /// Lists the removals that wait for an approval.
    fn held(&self) -> Vec<Attention> {
        let mut by_owner: BTreeMap<&Key, Vec<(&str, &Loss)>> = BTreeMap::new();
        let pending = self.inputs.state.ledger.pending();
        for ((cluster, _), loss) in pending.filter(|(_, loss)| loss.stage == Stage::Held) {
            by_owner.entry(&loss.owner).or_default().push((cluster.as_str(), loss));
        }
        let losses = |held: &Held| by_owner.get(&held.key).map(Vec::as_slice).unwrap_or_default();
        self.inputs.held.iter().map(|held| self.held_removal(held, losses(held))).collect()
    }

    fn held_removal(&self, held: &Held, losses: &[(&str, &Loss)]) -> Attention {
        let clusters: BTreeSet<&str> = losses.iter().map(|(cluster, _)| *cluster).collect();
        let row = self.row(&held.key);
        let all = row.map_or(clusters.len(), |row| row.cells.len());
        let share = if clusters.len() == all { "all" } else { "some" };
        let placement = self.inputs.fleet.and_then(|fleet| fleet.placements.get(&held.key));
        let cause = losses.iter().map(|(_, loss)| cause_in_words(&loss.cause)).next();
        let (lost, name) = (counted(clusters.len(), "cluster"), held.key.full_name());
        Attention {
            state: CellState::Held.number(),
            title: match share {
                _ if clusters.is_empty() => format!("A removal of {name} is held"),
                "all" => format!("{name} is held: it would lose all of its {lost}"),
                _ => format!("{name} is held: it would lose {lost} of {all}"),
            },
            text: match losses.len() {
                0 => String::new(),
                count => format!("{} would be removed", counted(count, "object")),
            },
            since: losses.iter().map(|(_, loss)| loss.since.as_second()).min(),
            cells: clusters.len(),
            to: format!("#/p/{}", address(&self.grid.id(&held.key))),
            at: placement.map(|placement| place(&placement.origin)),
            cause,
            then: Some("every cluster keeps its copy until somebody undoes or approves the edit".to_owned()),
            remedy: Some(format!("{ALLOW_DELETE}: {}", held.digest)),
        }
    }

    /// Lists the clusters that do not report, whose members fail, or that have problems no copy shows.
    fn members(&self) -> Vec<Attention> {
        let lines = self.inputs.members.map(|members| members.lines).unwrap_or_default();
        let of_state = |state: CellState, is_own: &dyn Fn(&ClusterLine) -> bool| -> Vec<&ClusterLine> {
            lines.iter().filter(|line| CellState::of_cluster(line.state) == state && is_own(line)).collect()
        };
        let Some(members) = self.inputs.members else { return self.recorded_silence().into_iter().collect() };
        let silent = of_state(CellState::Silent, &|_| true);
        let failing = of_state(CellState::Failing, &|line| line.state == MemberState::Failing.word());
        let mut items = Vec::new();
        items.extend(self.silent(&silent));
        let mut alike: BTreeMap<&str, Vec<&ClusterLine>> = BTreeMap::new();
        for line in failing {
            alike.entry(line.failing.as_deref().unwrap_or_default()).or_default().push(line);
        }
        items.extend(alike.iter().map(|(words, lines)| self.failing_members(words, lines)));
        let problems = of_state(CellState::Failing, &|line| line.state == MemberState::WithProblems.word());
        items.extend(self.problems_elsewhere(members, &problems));
        items
    }

    /// Lists the clusters whose record says that their members were silent.
    fn recorded_silence(&self) -> Option<Attention> {
        let facts = self.inputs.state.facts.iter();
        let silent: Vec<(&str, Timestamp)> =
            facts.filter_map(|(name, facts)| Some((name.as_str(), facts.silent?))).collect();
        let names: Vec<&str> = silent.iter().map(|(name, _)| *name).collect();
        let first = names.first()?;
        Some(Attention {
            state: CellState::Silent.number(),
            title: match names.len() {
                1 => format!("The member of {first} was silent"),
                count => format!("{count} members were silent"),
            },
            text: format!("{}: no report when the state was published", self.describe(&names)),
            since: silent.iter().map(|(_, since)| since.as_second()).max(),
            cells: self.cells_in(&names, CellState::Silent),
            to: if names.len() == 1 { format!("#/c/{}", address(first)) } else { "#/?is=silent".to_owned() },
            ..Attention::default()
        })
    }

    /// Lists the clusters with problems that no copy shows: objects outside of all placements.
    fn problems_elsewhere(&self, members: Members<'_>, lines: &[&ClusterLine]) -> Vec<Attention> {
        let cells = self.grid.rows.iter().flat_map(|row| &row.cells);
        let shows =
            |placed: &&PlacedCell<'_>| matches!(placed.cell.state, CellState::Failing | CellState::Drifted);
        let shown: BTreeSet<&str> = cells.filter(shows).map(|placed| &*placed.pick.cluster).collect();
        let mut alike: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for line in lines.iter().filter(|line| !shown.contains(line.name.as_str())) {
            let first = members.summary.problems_on(&line.name).first();
            let words = first.map(|problem| format!("{}: {}", problem.object, problem.message));
            alike.entry(words.unwrap_or_default()).or_default().push(&line.name);
        }
        let item = |(text, names): (String, Vec<&str>)| Attention {
            state: CellState::Failing.number(),
            title: format!("Problems in {}", self.describe(&names)),
            text,
            to: names.first().map(|name| format!("#/c/{}", address(name))).unwrap_or_default(),
            ..Attention::default()
        };
        alike.into_iter().map(item).collect()
    }

    fn silent(&self, lines: &[&ClusterLine]) -> Option<Attention> {
        let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
        let never = lines.iter().filter(|line| line.reported.is_none()).count();
        let last = lines.iter().filter_map(|line| line.reported).max();
        let (first, is_one) = (lines.first()?, lines.len() == 1);
        let reports = match never {
            0 => "no report for three intervals".to_owned(),
            _ if never == lines.len() => "never reported".to_owned(),
            _ => format!("{never} of them never reported"),
        };
        Some(Attention {
            state: CellState::Silent.number(),
            title: match (is_one, never == lines.len()) {
                (true, false) => format!("The member of {} is silent", first.name),
                (true, true) => format!("The member of {} has never reported", first.name),
                (false, false) => format!("{} members are silent", lines.len()),
                (false, true) => format!("{} members have never reported", lines.len()),
            },
            text: if is_one { reports } else { format!("{}: {reports}", self.describe(&names)) },
            since: last.map(Timestamp::as_second),
            cells: self.cells_in(&names, CellState::Silent),
            to: if is_one { format!("#/c/{}", address(&first.name)) } else { "#/?is=silent".to_owned() },
            then: Some("rollouts count them as neither success nor failure".to_owned()),
            ..Attention::default()
        })
    }

    fn failing_members(&self, words: &str, lines: &[&ClusterLine]) -> Attention {
        let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
        Attention {
            state: CellState::Failing.number(),
            title: match names.as_slice() {
                [cluster] => format!("The member of {cluster} fails"),
                several => format!("{} members fail: {}", several.len(), self.describe(several)),
            },
            text: words.to_owned(),
            cells: self.cells_in(&names, CellState::Failing),
            to: names.first().map(|name| format!("#/c/{}", address(name))).unwrap_or_default(),
            ..Attention::default()
        }
    }

    /// Lists the placements with copies in a state, as far as no other item has them.
    fn copies(&self, state: CellState) -> Vec<Attention> {
        let mut found: Vec<(&Row<'_>, Vec<&PlacedCell<'_>>)> = Vec::new();
        let is_listed = |row: &Row<'_>| state == CellState::Failing && self.is_halted(&row.decision.key);
        for row in self.grid.rows.iter().filter(|row| !is_listed(row)) {
            let cells = row
                .cells
                .iter()
                .filter(|placed| placed.cell.state == state && !self.has_failing_member(placed));
            let cells: Vec<&PlacedCell<'_>> = cells.collect();
            if !cells.is_empty() {
                found.push((row, cells));
            }
        }
        found.sort_by_key(|(_, cells)| std::cmp::Reverse(cells.len()));
        let rest = found.split_off(found.len().min(MOST_OF_A_STATE));
        let mut items: Vec<Attention> =
            found.iter().map(|(row, cells)| self.copies_of(row, cells, state)).collect();
        if !rest.is_empty() {
            items.push(others(&rest, state));
        }
        items
    }

    fn copies_of(&self, row: &Row<'_>, cells: &[&PlacedCell<'_>], state: CellState) -> Attention {
        let names: Vec<&str> = cells.iter().map(|placed| &*placed.pick.cluster).collect();
        let mut words: BTreeMap<&str, usize> = BTreeMap::new();
        for placed in cells {
            *words.entry(placed.cell.words.as_str()).or_default() += 1;
        }
        let usual = words.iter().max_by_key(|(_, count)| **count).map(|(words, _)| *words);
        let place_of = self.inputs.fleet.and_then(|fleet| fleet.placements.get(&row.decision.key));
        Attention {
            state: state.number(),
            title: format!("{} {} in {}", row.decision.key.full_name(), verb(state), self.describe(&names)),
            text: usual.unwrap_or_default().to_owned(),
            since: cells.iter().filter_map(|placed| placed.cell.since).min().map(Timestamp::as_second),
            cells: cells.len(),
            to: format!("#/p/{}", address(&row.id)),
            at: place_of.map(|placement| place(&placement.origin)),
            ..Attention::default()
        }
    }

    /// Lists the reasons why the newest source is not published.
    fn source(&self) -> Vec<Attention> {
        let source = &self.inputs.source;
        let commit = source.commit.as_deref().unwrap_or_default();
        let short = commit.get(..SHORT_ID).unwrap_or(commit);
        let errors = (source.errors > 0).then(|| Attention {
            state: CellState::Held.number(),
            title: format!("The source has {}", counted(source.errors, "error")),
            text: "a document with an error keeps its last good form; all others are published".to_owned(),
            to: "#/pubs".to_owned(),
            remedy: Some(format!("berth validate --rev {short}")),
            ..Attention::default()
        });
        let pending = source.pending.as_ref().map(|(commits, branch)| Attention {
            state: CellState::Progressing.number(),
            title: match commits {
                1 => format!("1 commit of `{branch}` waits for the next pass"),
                commits => format!("{commits} commits of `{branch}` wait for the next pass"),
            },
            text: "the next pass of the daemon processes them".to_owned(),
            to: "#/pubs".to_owned(),
            remedy: Some("berth run --once".to_owned()),
            ..Attention::default()
        });
        errors.into_iter().chain(pending).collect()
    }

    fn row(&self, key: &Key) -> Option<&Row<'_>> {
        self.grid.row(key).map(|row| &self.grid.rows[row])
    }

    /// Reports whether an item about a halted rollout has the failing copies of a workload.
    fn is_halted(&self, key: &Key) -> bool {
        self.inputs.rollout(key).is_some_and(|rollout| rollout.state == RolloutState::Halted)
    }

    /// Reports whether an item about the cluster's member has the copy.
    fn has_failing_member(&self, placed: &PlacedCell<'_>) -> bool {
        let lines = self.inputs.members.map(|members| members.summary.clusters());
        let line = lines.and_then(|lines| lines.get(&*placed.pick.cluster));
        line.is_some_and(|line| line.state == MemberState::Failing.word())
    }

    fn cells_in(&self, clusters: &[&str], state: CellState) -> usize {
        let clusters: BTreeSet<&str> = clusters.iter().copied().collect();
        let cells = self.grid.rows.iter().flat_map(|row| &row.cells);
        cells.filter(|placed| placed.cell.state == state && clusters.contains(&*placed.pick.cluster)).count()
    }
}

fn others(rest: &[(&Row<'_>, Vec<&PlacedCell<'_>>)], state: CellState) -> Attention {
    let cells = rest.iter().map(|(_, cells)| cells.len()).sum();
    let word = if state == CellState::Failing { "failing" } else { "drifted" };
    let copies = if cells == 1 { "1 other copy".to_owned() } else { format!("{cells} other copies") };
    Attention {
        state: state.number(),
        title: format!("{copies} of {} {word}", counted(rest.len(), "placement")),
        text: some_of(rest.iter().map(|(row, _)| row.decision.key.full_name()), MOST_NAMED),
        cells,
        to: format!("#/?is={word}"),
        ..Attention::default()
    }
}

fn count(row: &Row<'_>, state: CellState) -> usize {
    row.cells.iter().filter(|placed| placed.cell.state == state).count()
}

fn verb(state: CellState) -> &'static str {
    if state == CellState::Failing { "fails" } else { "drifts" }
}

fn third_person(count: usize) -> &'static str {
    if count == 1 { "s" } else { "" }
}

fn cause_in_words(cause: &Cause) -> String {
    match cause {
        Cause::Edit { commit } => format!("edited by {}", commit.get(..SHORT_ID).unwrap_or(commit)),
        Cause::Report => "reports of members".to_owned(),
        Cause::Time => "time".to_owned(),
    }
}

/// Quotes a name for a shell, if the shell would read it as more than a name.
pub(crate) fn shell_word(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._/".contains(c);
    if name.chars().all(is_plain) { name.to_owned() } else { format!("'{}'", name.replace('\'', "'\\''")) }
}

/// Encodes a name for the page's address, as `encodeURIComponent` of its scripts does; `/` stays.
pub(crate) fn address(name: &str) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
            char::from(byte).to_string()
        }
        // The scripts' function leaves these as well.
        b'!' | b'\'' | b'(' | b')' | b'*' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    name.bytes().map(byte).collect()
}
