//! Candidate rules → the clusters that a placement may pick, and those that also pass its filters; computed
//! once for equal rules.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::cluster_table::{Row, Table};
use super::filter::{Checked, looks_at_own_picks};
use super::policy_encoding::{self, Encoder};
use super::remembered::Remembered;
use berth_base::model::placement::{Filter, Policy, Rule, Selection};

/// The rows of candidates, ascending. The number identifies them in cache keys; `None` if no other placement
/// has the same candidates.
#[derive(Clone)]
pub(super) struct Candidates {
    pub(super) id: Option<u32>,
    pub(super) rows: Arc<Vec<Row>>,
}

/// The clusters that a placement may pick, whatever its current picks.
pub(super) struct Open {
    /// The candidates.
    pub(super) all: Candidates,
    /// The candidates that pass the filters.
    pub(super) passing: Candidates,
}

/// The candidate sets of this pass.
#[derive(Default)]
pub(super) struct CandidateSets {
    by_rules: Remembered<Vec<u8>, Candidates>,
    made: AtomicU32,
}

/// Further sets are not cached: with so many, hardly two placements have the same rules.
const MOST_SETS: usize = 4096;

impl CandidateSets {
    pub(super) fn of(&self, table: &Table<'_>, filters: &[Filter], is_current: &[bool]) -> Candidates {
        if !is_current.is_empty() && filters.iter().any(looks_at_own_picks) {
            return Candidates { id: None, rows: candidates(table, filters, is_current).into() };
        }
        let mut encoder = Encoder::default();
        policy_encoding::filters(&mut encoder, filters);
        self.remembered(encoder, || candidates(table, filters, &[]))
    }

    /// Returns the clusters that a policy could pick without any current picks.
    pub(super) fn open(&self, table: &Table<'_>, policy: &Policy) -> Open {
        let all = self.of(table, &policy.candidates, &[]);
        let filters = [&policy.filters[..]];
        let divided = policy.division.as_ref().map(|division| [&division.among[..], &division.then[..]]);
        let choices: Vec<&[Filter]> = filters.into_iter().chain(divided.into_iter().flatten()).collect();
        let passing = |rows: &[Row]| {
            let checks: Vec<Vec<Checked<'_>>> = choices
                .iter()
                .map(|filters| filters.iter().map(|filter| Checked::new(table, filter, &[])).collect())
                .collect();
            let passes =
                |checks: &Vec<Checked<'_>>, row| checks.iter().all(|check| check.refuse(row).is_none());
            rows.iter().copied().filter(|row| checks.iter().any(|checks| passes(checks, *row))).collect()
        };
        let passing = match named(policy) {
            Some(names) => {
                let rows = names.iter().filter_map(|name| table.row(name));
                let rows: Vec<Row> = rows.filter(|row| all.rows.binary_search(row).is_ok()).collect();
                Candidates { id: None, rows: Arc::new(passing(&rows)) }
            }
            None if choices.iter().any(|filters| filters.is_empty()) => all.clone(),
            None => {
                let mut encoder = Encoder::default();
                [&policy.candidates[..]].iter().chain(&choices).for_each(|filters| {
                    policy_encoding::filters(&mut encoder, filters);
                });
                // Distinguishes this key from the one of the candidates themselves.
                encoder.tag(1);
                self.remembered(encoder, || passing(&all.rows))
            }
        };
        Open { all, passing }
    }

    fn remembered(&self, rules: Encoder, make: impl FnOnce() -> Vec<Row>) -> Candidates {
        if let Some(found) = self.by_rules.get(&rules.bytes) {
            return found;
        }
        let rows = Arc::new(make());
        if self.by_rules.len() >= MOST_SETS {
            return Candidates { id: None, rows };
        }
        let id = Some(self.made.fetch_add(1, Ordering::Relaxed));
        self.by_rules.keep(rules.bytes, Candidates { id, rows })
    }
}

/// Returns the names to which a policy is limited, ascending.
fn named(policy: &Policy) -> Option<&BTreeSet<String>> {
    if policy.division.is_some() {
        return None;
    }
    let listed = policy.filters.iter().find_map(|filter| match &filter.rule {
        Rule::Named(names) => Some(names),
        _ => None,
    });
    match &policy.selection {
        Selection::Exactly(names) => Some(names),
        Selection::All | Selection::First(_) | Selection::InTurn(_) => listed,
    }
}

fn candidates(table: &Table<'_>, filters: &[Filter], is_current: &[bool]) -> Vec<Row> {
    let checks: Vec<_> = filters.iter().map(|filter| Checked::new(table, filter, is_current)).collect();
    let passes = |row: &Row| checks.iter().all(|check| check.refuse(*row).is_none());
    table.rows().filter(passes).collect()
}
