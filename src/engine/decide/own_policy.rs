//! A placement's own policy → picks: filter → score → select, over the candidates.
//!
//! A recorder receives the findings of each step: in a pass it only counts them, for `explain` it keeps all.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::candidates::Open;
use super::cluster_table::{Row, Table, reaches};
use super::digest::covers_all;
use super::divide::{self, Divided};
use super::filter::{Checked, Code};
use super::findings::{Recorder, RefusalCounts};
use super::in_turn;
use super::score::{Load, ScoreContext, score};
use super::select::{self, Scored, by_what};
use berth_base::model::decision::Outcome;
use berth_base::model::placement::{Blocked, Filter, Policy, Retention, Selection};
use berth_base::model::{Condition, Decision, Pick, PickDetails, Refused};
use berth_base::packed::Packed;

const NOT_NAMED: &str = "not named by the placement";

/// The picks with their rows, ascending, and the condition.
pub(super) struct Chosen {
    pub(super) picks: Vec<(Row, Pick)>,
    pub(super) condition: Option<Condition>,
}

/// Decides, and counts the refused clusters. Checks each candidate only if the decision reports refusals.
pub(super) fn decide_and_count(case: &DecisionCase<'_>, open: &Open) -> (Chosen, Vec<Refused>) {
    let DecisionCase { policy, .. } = *case;
    let passing = &open.passing.rows;
    let is_known = case.is_current.is_empty()
        && policy.division.is_none()
        && matches!(policy.selection, Selection::All | Selection::First(_));
    if is_known && !covers_all(policy, passing.len()) {
        let chosen = decide(&DecisionCase { passing: Some(passing), ..*case }, &mut RefusalCounts::default());
        if !covers_all(policy, chosen.picks.len()) {
            return (chosen, Vec::new());
        }
    }
    let mut counts = RefusalCounts::default();
    let chosen = decide(case, &mut counts);
    (chosen, counts.finish())
}

pub(super) fn decide(case: &DecisionCase<'_>, recorder: &mut impl Recorder) -> Chosen {
    if let Some(blocked) = &case.policy.blocked {
        return stand_blocked(case, blocked);
    }
    let divided = divide::divide(case);
    recorder.divided(&divided);
    if let Divided::Keep(division) = &divided {
        return stand_divided(case, &division.then, recorder);
    }
    let filters = divide::filters(case.policy, &divided);
    if let Selection::InTurn(choices) = &case.policy.selection {
        return in_turn::decide(case, choices, recorder);
    }
    let kept = kept(case, &filters);
    let passed = filter(case, &filters, &kept, recorder);
    let mut parts: Vec<Vec<i64>> = {
        let around =
            ScoreContext { is_current: case.is_current, current_rows: case.current_rows, load: case.load };
        case.policy.scorers.iter().map(|scorer| score(case.table, scorer, &passed.rows, &around)).collect()
    };
    let scored = Scored::new(case, &passed.rows, &mut parts);
    let chosen = select::choose(case, &kept, scored, recorder);
    let mut picks: Vec<(Row, Pick)> =
        chosen.kept.iter().map(|row| (*row, current_pick(case, *row))).collect();
    let unscored = Arc::new(PickDetails { reason: reason(case, &filters), ..PickDetails::default() });
    picks.extend(chosen.new.iter().map(|index| {
        let row = passed.rows[*index as usize];
        let scores = select::scores(case.policy, &parts, *index);
        let mut pick = case.table.pick(row, unscored.clone());
        if !scores.is_empty() {
            pick.scores = scores;
        }
        (row, pick)
    }));
    picks.sort_unstable_by_key(|(row, _)| *row);
    if let Divided::Among(_, portions) = &divided {
        picks.iter_mut().for_each(|(row, pick)| pick.replicas = portions.replicas(*row));
    }
    let outcome = Outcome {
        candidates: case.candidates.len(),
        passed: passed.rows.len() + chosen.kept.len(),
        picked: picks.len(),
        wanted: case.policy.selection.wanted(),
        unmet: passed.unmet,
    };
    let condition = (case.policy.condition.function)(&outcome);
    Chosen { picks, condition }
}

/// Rows that passed the filters, ascending, without current picks that stay; and the wanted names that did
/// not pass.
struct Passed {
    rows: Vec<Row>,
    unmet: Vec<String>,
}

fn filter(
    case: &DecisionCase<'_>,
    filters: &[&Filter],
    kept: &[Row],
    recorder: &mut impl Recorder,
) -> Passed {
    if let Some(passing) = case.passing {
        let mut kept = kept.iter().peekable();
        let rows = passing.iter().copied().filter(|row| !reaches(&mut kept, *row)).collect();
        return Passed { rows, unmet: Vec::new() };
    }
    // Under an unchanged policy, current picks stay without filters; under a new policy no pick counts as
    // current.
    let is_current = match case.policy.retention {
        Retention::None => case.is_current,
        Retention::SamePolicy(_) => &[],
    };
    let checks: Vec<_> = filters.iter().map(|filter| Checked::new(case.table, filter, is_current)).collect();
    let passed = match &case.policy.selection {
        Selection::Exactly(names) => filter_named(case, names, &checks, kept, recorder),
        Selection::All | Selection::First(_) | Selection::InTurn(_) => {
            let mut kept = kept.iter().peekable();
            let mut rows = Vec::new();
            for row in case.candidates.iter().copied() {
                if reaches(&mut kept, row) {
                    recorder.kept(row);
                    continue;
                }
                match first_refusal(&checks, row) {
                    Some((index, code)) => recorder.refused(row, index, code),
                    None => rows.push(row),
                }
            }
            Passed { rows, unmet: Vec::new() }
        }
    };
    recorder.checks(&checks);
    passed
}

fn first_refusal(checks: &[Checked<'_>], row: Row) -> Option<(usize, Code)> {
    checks.iter().enumerate().find_map(|(index, check)| Some((index, check.refuse(row)?)))
}

/// Filters the clusters of a list of names. A name without a passing cluster is unmet.
fn filter_named(
    case: &DecisionCase<'_>,
    names: &BTreeSet<String>,
    checks: &[Checked<'_>],
    kept: &[Row],
    recorder: &mut impl Recorder,
) -> Passed {
    let mut kept = kept.iter().peekable();
    let (mut rows, mut met) = (Vec::new(), Vec::new());
    let mut rest = case.candidates;
    for row in names.iter().filter_map(|name| case.table.row(name)) {
        let place = rest.binary_search(&row);
        let (others, from_here) = rest.split_at(place.unwrap_or_else(|place| place));
        recorder.none_chosen(others, NOT_NAMED);
        rest = from_here;
        if place.is_err() {
            continue;
        }
        rest = &rest[1..];
        let stays = reaches(&mut kept, row);
        // A kept name that no longer passes leaves the placement unfulfilled.
        let refusal = first_refusal(checks, row);
        if refusal.is_none() {
            met.push(case.table.name(row));
        }
        match refusal.filter(|_| !stays) {
            Some((index, code)) => recorder.refused(row, index, code),
            None if stays => recorder.kept(row),
            None => rows.push(row),
        }
    }
    recorder.none_chosen(rest, NOT_NAMED);
    let unmet = names.iter().filter(|name| met.binary_search(&name.as_str()).is_err());
    Passed { rows, unmet: unmet.cloned().collect() }
}

/// Returns the current picks that stay without passing the filters again.
fn kept(case: &DecisionCase<'_>, filters: &[&Filter]) -> Vec<Row> {
    let (Retention::SamePolicy(form), Some(previous)) = (case.policy.retention, case.previous) else {
        return Vec::new();
    };
    let is_another = |text: &Packed| {
        *text != case.policy.text && (form.function)(&text.to_json()) != case.policy.text.to_json()
    };
    if previous.policy.as_ref().is_some_and(is_another) {
        return Vec::new();
    }
    let named = |row: &Row| match &case.policy.selection {
        Selection::Exactly(names) => names.contains(case.table.name(*row)),
        Selection::All | Selection::First(_) | Selection::InTurn(_) => true,
    };
    let stays = |row: &Row| !case.table.cluster(*row).leaving && named(row);
    let mut kept: Vec<Row> = case.current_rows.iter().copied().filter(stays).collect();
    let replaced = replaced(case, &kept, filters);
    kept.retain(|row| replaced.binary_search(row).is_err());
    kept
}

/// Returns the current picks to replace: their members are silent for too long, and another cluster passes
/// for each.
fn replaced(case: &DecisionCase<'_>, kept: &[Row], filters: &[&Filter]) -> Vec<Row> {
    let (Some(seconds), Selection::First(_)) = (case.policy.replace_after, &case.policy.selection) else {
        return Vec::new();
    };
    let is_lost = |row: &Row| {
        let end = case.table.cluster(*row).silence.and_then(|silence| silence.lasts(seconds));
        end.is_some_and(|end| end <= case.table.now)
    };
    let mut lost: Vec<Row> = kept.iter().copied().filter(is_lost).collect();
    if !lost.is_empty() {
        let checks: Vec<_> = filters.iter().map(|filter| Checked::new(case.table, filter, &[])).collect();
        let passes = |row: &&Row| checks.iter().all(|check| check.refuse(**row).is_none());
        let others = case.candidates.iter().filter(|row| kept.binary_search(row).is_err());
        lost.truncate(others.filter(passes).take(lost.len()).count());
    }
    lost
}

/// Keeps the current picks whose clusters still exist, or none.
fn stand_blocked(case: &DecisionCase<'_>, blocked: &Blocked) -> Chosen {
    let current_rows: &[Row] = if blocked.keep_earlier { case.current_rows } else { &[] };
    let picks = current_rows.iter().map(|row| (*row, current_pick(case, *row))).collect();
    Chosen { picks, condition: Some(blocked.condition.clone()) }
}

fn current_pick(case: &DecisionCase<'_>, row: Row) -> Pick {
    let earlier = case.previous.and_then(|previous| find(&previous.picks, case.table.name(row)));
    let mut pick = case.table.pick(row, earlier.map(|pick| pick.details.clone()).unwrap_or_default());
    if pick.reason.is_empty() {
        pick.reason = "picked earlier under the same policy".to_owned();
    }
    pick
}

fn find<'p>(picks: &'p [Pick], name: &str) -> Option<&'p Pick> {
    let sorted = picks.binary_search_by(|pick| (*pick.cluster).cmp(name)).ok();
    sorted.map(|index| &picks[index]).or_else(|| picks.iter().find(|pick| *pick.cluster == *name))
}

/// Keeps the current picks with their replicas if they pass these filters.
fn stand_divided(case: &DecisionCase<'_>, then: &[Filter], recorder: &mut impl Recorder) -> Chosen {
    let checks: Vec<_> =
        then.iter().map(|filter| Checked::new(case.table, filter, case.is_current)).collect();
    let mut picks = Vec::new();
    for row in case.candidates.iter().copied() {
        let refusal = checks.iter().enumerate().find_map(|(index, check)| Some((index, check.refuse(row)?)));
        if case.current_rows.binary_search(&row).is_err() {
            recorder.not_chosen(row, "no replicas are divided now, and the cluster was not picked before");
        } else if let Some((index, code)) = refusal {
            recorder.refused(row, index, code);
        } else {
            recorder.kept(row);
            picks.push((row, current_pick(case, row)));
        }
    }
    recorder.checks(&checks);
    let passed = picks.len();
    let outcome = Outcome { candidates: case.candidates.len(), passed, picked: passed, ..Outcome::default() };
    Chosen { picks, condition: (case.policy.condition.function)(&outcome) }
}

/// Returns the reason that all new picks share.
fn reason(case: &DecisionCase<'_>, filters: &[&Filter]) -> String {
    match &case.policy.selection {
        Selection::Exactly(_) => "named by the placement".to_owned(),
        Selection::First(count) => format!("among the first {count} {}", by_what(case.policy)),
        Selection::InTurn(_) => String::new(),
        Selection::All if filters.is_empty() => "every cluster is wanted".to_owned(),
        Selection::All => {
            let words = |filter: &&Filter| Checked::new(case.table, filter, case.is_current).words();
            let mut asked: Vec<String> = Vec::new();
            for words in filters.iter().map(words) {
                // A selector without requirements has no words. A workload and its namespace may ask for the same.
                if !words.is_empty() && !asked.contains(&words) {
                    asked.push(words);
                }
            }
            if asked.is_empty() { "every cluster is wanted".to_owned() } else { asked.join("; ") }
        }
    }
}

/// The inputs that every step of a decision reads.
#[derive(Clone, Copy)]
pub(super) struct DecisionCase<'a> {
    pub(super) table: &'a Table<'a>,
    pub(super) policy: &'a Policy,
    pub(super) candidates: &'a [Row],
    /// The candidates that pass the filters, if they are known and no trace needs the reasons of the others.
    pub(super) passing: Option<&'a [Row]>,
    pub(super) previous: Option<&'a Decision>,
    /// The rows of the current picks.
    pub(super) current_rows: &'a [Row],
    /// Marks current picks, by row; empty if there are none.
    pub(super) is_current: &'a [bool],
    pub(super) load: &'a Load,
    /// The decision is uncertain: it may not lose a cluster.
    pub(super) is_uncertain: bool,
}
