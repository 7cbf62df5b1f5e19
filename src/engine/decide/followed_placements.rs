//! Other placements' decisions → the union of their picks, narrowed by filters.

use std::collections::BTreeMap;

use super::cluster_table::{Row, Table};
use super::filter::Checked;
use super::findings::Recorder;
use berth_base::diag::{Diagnostic, Diagnostics};
use berth_base::model::PlacementRef;
use berth_base::model::decision::Outcome;
use berth_base::model::placement::Follow;
use berth_base::model::{Condition, Decision, Fleet, Key, Map, Pick, PickDetails, Source};

/// The picks of a placement that follows others.
pub(super) struct Followed {
    pub(super) picks: Vec<Pick>,
    pub(super) condition: Option<Condition>,
    /// Every reference was found; otherwise the placement keeps its current picks.
    pub(super) complete: bool,
}

/// The clusters of the followed decisions, each with the placements that picked it; unknown clusters are left
/// out.
pub(super) struct Union<'d> {
    pub(super) rows: Vec<(Row, Vec<&'d Key>)>,
    complete: bool,
}

pub(super) fn union<'d>(
    fleet: &Fleet,
    table: &Table<'_>,
    decisions: &'d Map<Key, Decision>,
    follow: &Follow,
    diagnostics: &mut Diagnostics,
) -> Union<'d> {
    let found = follow.placements.iter().map(|wanted| find(fleet, decisions, wanted, diagnostics));
    let found: Vec<Option<&Decision>> = found.collect();
    let complete = found.iter().all(Option::is_some);
    let mut rows: BTreeMap<Row, Vec<&Key>> = BTreeMap::new();
    for decision in found.into_iter().flatten() {
        for row in table.rows_of(&decision.picks) {
            rows.entry(row).or_default().push(&decision.key);
        }
    }
    Union { rows: rows.into_iter().collect(), complete }
}

/// A placement that follows others, and the inputs of its picks.
pub(super) struct Following<'a> {
    pub(super) table: &'a Table<'a>,
    pub(super) follow: &'a Follow,
    pub(super) union: &'a Union<'a>,
    /// Marks the placement's current picks, by row, if a filter reads them.
    pub(super) is_current: &'a [bool],
}

impl Following<'_> {
    /// Applies the filters to the union's clusters.
    pub(super) fn picks(&self, recorder: &mut impl Recorder) -> Followed {
        let Following { table, follow, union, is_current } = *self;
        let checks: Vec<_> =
            follow.filters.iter().map(|filter| Checked::new(table, filter, is_current)).collect();
        let mut picks = Vec::with_capacity(union.rows.len());
        for (row, by) in &union.rows {
            let refusal =
                checks.iter().enumerate().find_map(|(index, check)| Some((index, check.refuse(*row)?)));
            match refusal {
                Some((index, code)) => recorder.refused(*row, index, code),
                None => {
                    let reason = format!("picked by {}", names(by));
                    picks.push(table.pick(*row, PickDetails { reason, ..PickDetails::default() }));
                }
            }
        }
        recorder.checks(&checks);
        let outcome = Outcome {
            candidates: union.rows.len(),
            passed: picks.len(),
            picked: picks.len(),
            ..Outcome::default()
        };
        let condition = (follow.condition.function)(&outcome);
        Followed { picks, condition, complete: union.complete }
    }
}

/// Finds the decision that a reference names: a decision of this pass, or an uncertain one that is kept.
fn find<'d>(
    fleet: &Fleet,
    decisions: &'d Map<Key, Decision>,
    wanted: &PlacementRef,
    diagnostics: &mut Diagnostics,
) -> Option<&'d Decision> {
    let first = Key::new("", &wanted.kind, &wanted.namespace, &wanted.name);
    let same = |key: &Key| {
        *key.kind == *wanted.kind && *key.namespace == *wanted.namespace && *key.name == *wanted.name
    };
    let placement = fleet.find(wanted);
    if let Some(Source::Follows(_)) = placement.map(|placement| &placement.source) {
        let message = format!("{first} follows other placements itself and cannot be followed");
        diagnostics.push(
            Diagnostic::error(wanted.at.clone(), message)
                .hint("name the placement that picks the clusters in its place"),
        );
        return None;
    }
    if let Some((key, decision)) = decisions.range_from(&first).next()
        && same(key)
    {
        return Some(decision);
    }
    // The loader has reported the missing placement.
    None
}

fn names(keys: &[&Key]) -> String {
    keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}
