//! The sum of the weights of matching preferred terms; with a sorter, a share of each weight.

use std::sync::Arc;

use crate::decide::cluster_table::{Row, Table};
use crate::decide::filter::TermNeeds;
use berth_base::model::placement::{Preference, Sorter};

pub(super) fn score(table: &Table<'_>, rows: &[Row], preferred: &[Preference]) -> Vec<i64> {
    let terms: Vec<_> = preferred.iter().map(|preference| Weighed::new(table, preference)).collect();
    let of = |row: &Row| terms.iter().fold(0_i64, |sum, term| sum.saturating_add(term.score(*row)));
    rows.iter().map(of).collect()
}

struct Weighed<'a> {
    weight: i64,
    needs: TermNeeds<'a>,
    share: Option<Share>,
}

impl<'a> Weighed<'a> {
    fn new(table: &'a Table<'a>, preference: &'a Preference) -> Weighed<'a> {
        let share = preference.sorter.as_ref().map(|sorter| Share::new(table, sorter));
        Weighed { weight: preference.weight, needs: TermNeeds::new(table, &preference.term), share }
    }

    fn score(&self, row: Row) -> i64 {
        if !self.needs.matches(row) {
            return 0;
        }
        match &self.share {
            None => self.weight,
            // A half is rounded away from zero.
            Some(share) => (share.of(row) * self.weight as f64).round() as i64,
        }
    }
}

/// The place of amounts between the extremes of the whole fleet, including clusters that are no candidates.
struct Share {
    amounts: Arc<Vec<Option<f64>>>,
    smallest: f64,
    largest: f64,
    ascending: bool,
}

impl Share {
    fn new(table: &Table<'_>, sorter: &Sorter) -> Share {
        let amounts = table.approximations(&sorter.measure);
        let known = || amounts.iter().flatten().copied();
        let smallest = known().fold(f64::INFINITY, f64::min);
        let largest = known().fold(f64::NEG_INFINITY, f64::max);
        Share { smallest, largest, ascending: sorter.ascending, amounts }
    }

    /// Returns the place from 0 to 1. A cluster without the measurement gets 0, and so do all if the amounts
    /// are equal.
    fn of(&self, row: Row) -> f64 {
        let Some(amount) = self.amounts[row as usize] else { return 0.0 };
        if self.largest <= self.smallest {
            return 0.0;
        }
        let part = (amount - self.smallest) / (self.largest - self.smallest);
        if self.ascending { 1.0 - part } else { part }
    }
}
