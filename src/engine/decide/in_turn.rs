//! Several choices of clusters → picks: each choice picks from the clusters that earlier ones left.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::cluster_table::{Row, number};
use super::filter::Checked;
use super::findings::Recorder;
use super::own_policy::{Chosen, DecisionCase};
use super::score::{ScoreContext, score};
use super::select;
use berth_base::model::decision::Outcome;
use berth_base::model::placement::{Choice, Filter, Rule};
use berth_base::model::{Pick, PickDetails};

/// Decides choice by choice. In a choice that they match, current clusters go before others, so that changing
/// scores move nothing.
pub(super) fn decide(case: &DecisionCase<'_>, choices: &[Choice], recorder: &mut impl Recorder) -> Chosen {
    let mut free = passed(case, recorder);
    let passed = free.len();
    let mut left_out: BTreeMap<Row, String> = BTreeMap::new();
    let (mut picks, mut unmet) = (Vec::new(), Vec::new());
    for choice in choices {
        let filter = Filter { rule: Rule::AnyOf(choice.terms.clone()), by: None };
        let check = Checked::new(case.table, &filter, &[]);
        let mut matching = Vec::new();
        for row in &free {
            match check.refuse(*row).filter(|_| !choice.terms.is_empty()) {
                None => matching.push(*row),
                // A trace records a reason for each cluster; otherwise they are only counted.
                Some(code) if recorder.wants_ranks() => {
                    note(&mut left_out, *row, format!("{}: {}", choice.name, check.detail(code, *row)));
                }
                Some(_) => {}
            }
        }
        let taken = take(case, choice, &matching, &mut left_out, recorder);
        if taken.len() < choice.least {
            unmet.push(format!("{} has {} of {}", choice.name, taken.len(), choice.least));
        }
        free.retain(|row| !taken.iter().any(|(taken, _)| taken == row));
        picks.extend(taken);
    }
    for row in &free {
        let reason = left_out.get(row).map_or("no choice matches", String::as_str);
        recorder.dropped(*row, reason);
    }
    picks.sort_unstable_by_key(|(row, _)| *row);
    let outcome = Outcome {
        candidates: case.candidates.len(),
        passed,
        picked: picks.len(),
        wanted: case.policy.selection.wanted(),
        unmet,
    };
    let condition = (case.policy.condition.function)(&outcome);
    Chosen { picks, condition }
}

/// Returns the candidates that pass the filters, and the current clusters: a cluster that fails a filter for
/// a while keeps its copies.
fn passed(case: &DecisionCase<'_>, recorder: &mut impl Recorder) -> Vec<Row> {
    let filters = case.policy.filters.iter();
    let checks: Vec<_> = filters.map(|filter| Checked::new(case.table, filter, case.is_current)).collect();
    let passes = |row: &Row| {
        if case.current_rows.binary_search(row).is_ok() {
            return true;
        }
        let refusal = checks.iter().enumerate().find_map(|(index, check)| Some((index, check.refuse(*row)?)));
        if let Some((index, code)) = refusal {
            recorder.refused(*row, index, code);
        }
        refusal.is_none()
    };
    let rows = case.candidates.iter().copied().filter(passes).collect();
    recorder.checks(&checks);
    rows
}

/// Picks the best matching clusters.
fn take(
    case: &DecisionCase<'_>,
    choice: &Choice,
    matching: &[Row],
    left_out: &mut BTreeMap<Row, String>,
    recorder: &mut impl Recorder,
) -> Vec<(Row, Pick)> {
    let around =
        ScoreContext { is_current: case.is_current, current_rows: case.current_rows, load: case.load };
    let scorers = &case.policy.scorers;
    let parts: Vec<Vec<i64>> =
        scorers.iter().map(|scorer| score(case.table, scorer, matching, &around)).collect();
    let is_current = |index: u32| case.current_rows.binary_search(&matching[index as usize]).is_ok();
    let mut order: Vec<u32> = (0..number(matching.len())).collect();
    order.sort_by_cached_key(|index| {
        (!is_current(*index), Reverse(select::sum(scorers, &parts, *index)), *index)
    });
    recorder.ranked(matching, &parts, &order);
    // An uncertain decision loses no pick.
    let current =
        if case.is_uncertain { order.iter().filter(|index| is_current(**index)).count() } else { 0 };
    let open = choice.count.map_or(matching.len(), |count| count.max(current)).min(matching.len());
    for index in &order[open..] {
        let row = matching[*index as usize];
        note(left_out, row, format!("{}: not among the first {open} by score", choice.name));
    }
    let reason = match choice.count {
        Some(count) => format!("{}: among the first {count} by score", choice.name),
        None => format!("{}: all that match", choice.name),
    };
    let pick = |index: &u32| {
        let row = matching[*index as usize];
        let scores = select::scores(case.policy, &parts, *index);
        (row, case.table.pick(row, PickDetails { reason: reason.clone(), scores, ..PickDetails::default() }))
    };
    order[..open].iter().map(pick).collect()
}

/// Adds one more reason for leaving a cluster out.
fn note(left_out: &mut BTreeMap<Row, String>, row: Row, reason: String) {
    left_out.entry(row).and_modify(|all| *all = format!("{all}; {reason}")).or_insert(reason);
}
