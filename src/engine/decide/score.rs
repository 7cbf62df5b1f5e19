//! A scorer's rule → one number per cluster.
//!
//! Scores are computed for all clusters that passed the filters at once, because some rules compare clusters.

use std::sync::Arc;

use super::cluster_table::{Row, Table, number};
use super::filter::TermNeeds;
use berth_base::model::cluster::AddOnScore;
use berth_base::model::placement::{Preference, ScoreRule, Scorer, Sorter};
use berth_base::model::{Cluster, Timestamp};

/// The inputs of scorers beside the clusters.
pub(super) struct ScoreContext<'a> {
    /// Marks the placement's current clusters, by row; empty without any.
    pub(super) is_current: &'a [bool],
    /// The placement's current rows.
    pub(super) current_rows: &'a [Row],
    pub(super) load: &'a Load,
}

/// Returns one score per row, in the order of the rows.
pub(super) fn score(table: &Table<'_>, scorer: &Scorer, rows: &[Row], around: &ScoreContext<'_>) -> Vec<i64> {
    match &scorer.rule {
        ScoreRule::Steady => steady_score(rows, around.is_current),
        ScoreRule::Balance => balance_score(rows, around.load, around.current_rows),
        ScoreRule::Allocatable(resource) => allocatable_score(rows, &table.resources(resource)),
        ScoreRule::AddOn { resource, score } => addon_score(table, rows, resource, score),
        ScoreRule::Preferred(preferred) => preferred_score(table, rows, preferred),
        ScoreRule::Among(sorter) => among_score(table, rows, sorter),
        // These scores are known only while picks are made.
        ScoreRule::Spread(_) | ScoreRule::Even(_) => vec![0; rows.len()],
    }
}

/// An add-on's score, unchanged; 0 if it is missing or expired.
fn addon_score(table: &Table<'_>, rows: &[Row], resource: &str, name: &str) -> Vec<i64> {
    let named = (resource.to_owned(), name.to_owned());
    let of = |row: &Row| valid(table.cluster(*row), &named, table.now).map_or(0, |score| score.value);
    rows.iter().map(of).collect()
}

/// Returns the score while it is valid, including the last moment of its validity.
pub(super) fn valid(cluster: &Cluster, named: &(String, String), now: Timestamp) -> Option<AddOnScore> {
    let score = cluster.scores.get(named)?;
    score.valid_until.is_none_or(|until| now <= until).then_some(*score)
}

/// Prefers clusters with much of a resource: among the clusters that passed, -100 for the least to 100 for
/// the most.
///
/// Scores the clusters. A cluster without a known amount scores 0, the middle.
fn allocatable_score(rows: &[Row], amounts: &[Option<f64>]) -> Vec<i64> {
    let known = || rows.iter().filter_map(|row| amounts[*row as usize]);
    let (least, most) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
    rows.iter().map(|row| amounts[*row as usize].map_or(0, |amount| of_amount(amount, least, most))).collect()
}

fn of_amount(amount: f64, least: f64, most: f64) -> i64 {
    if most == least {
        return 100;
    }
    // The order of these operations determines the result of the cut toward zero.
    (((amount - least) / (most - least) - 0.5) * 2.0 * 100.0) as i64
}

/// A share of 100, by the place of a measurement between the smallest and largest ones of the compared
/// clusters.
///
/// Scores the clusters. One without the measurement scores 0, and so do all if the measurements are equal.
fn among_score(table: &Table<'_>, rows: &[Row], sorter: &Sorter) -> Vec<i64> {
    let amounts = table.approximations(&sorter.measure);
    let amount = |row: &Row| amounts[*row as usize];
    let known = || rows.iter().filter_map(amount);
    let smallest = known().fold(f64::INFINITY, f64::min);
    let largest = known().fold(f64::NEG_INFINITY, f64::max);
    let share = |row: &Row| match amount(row) {
        Some(amount) if largest > smallest => {
            let part = (amount - smallest) / (largest - smallest);
            let part = if sorter.ascending { 1.0 - part } else { part };
            (100.0 * part).round() as i64
        }
        _ => 0,
    };
    rows.iter().map(share).collect()
}

/// The number of decisions that pick each cluster, by row. The decisions of this pass count where they exist,
/// otherwise the current ones.
#[derive(Default)]
pub(super) struct Load {
    counts: Vec<u32>,
    /// By count: the number of clusters with that count, without zeros at the end.
    clusters: Vec<u32>,
}

impl Load {
    pub(super) fn new(clusters: usize) -> Load {
        Load { counts: vec![0; clusters], clusters: vec![number(clusters)] }
    }

    pub(super) fn add(&mut self, rows: &[Row]) {
        rows.iter().for_each(|row| self.change(*row, |count| count + 1));
    }

    pub(super) fn remove(&mut self, rows: &[Row]) {
        rows.iter().for_each(|row| self.change(*row, |count| count.saturating_sub(1)));
        while self.clusters.last() == Some(&0) {
            self.clusters.pop();
        }
    }

    fn change(&mut self, row: Row, change: impl Fn(u32) -> u32) {
        let before = self.counts[row as usize];
        let after = change(before);
        self.counts[row as usize] = after;
        self.clusters[before as usize] -= 1;
        if self.clusters.len() <= after as usize {
            self.clusters.resize(after as usize + 1, 0);
        }
        self.clusters[after as usize] += 1;
    }

    /// Returns the largest count if each of these rows counts one less.
    fn most_without(&self, own: &[Row]) -> u32 {
        let most = number(self.clusters.len().saturating_sub(1));
        let have = |row: &&Row| self.counts[**row as usize] == most;
        let all_own = self
            .clusters
            .last()
            .is_some_and(|have_most| own.iter().filter(have).count() == *have_most as usize);
        if all_own { most.saturating_sub(1) } else { most }
    }
}

/// Prefers clusters that few decisions pick: from 100 for none to -100 for the cluster with the most.
///
/// Scores the clusters. The placement's own picks do not count. Both lists ascend.
fn balance_score(rows: &[Row], load: &Load, own: &[Row]) -> Vec<i64> {
    let most = load.most_without(own);
    let scores: Vec<i64> = (0..=most).map(|count| of_count(count, most)).collect();
    let mut own = own.iter().peekable();
    let of = |row: &Row| {
        while own.next_if(|own| *own < row).is_some() {}
        let mine = u32::from(own.peek() == Some(&row));
        scores[load.counts[*row as usize].saturating_sub(mine) as usize]
    };
    rows.iter().map(of).collect()
}

/// Returns the score for a count. The cut toward zero comes before the doubling, so the score is always even.
fn of_count(count: u32, most: u32) -> i64 {
    if count == 0 {
        return 100;
    }
    2 * (100.0 * (0.5 - f64::from(count) / f64::from(most))) as i64
}

/// The sum of the weights of matching preferred terms; with a sorter, a share of each weight.
fn preferred_score(table: &Table<'_>, rows: &[Row], preferred: &[Preference]) -> Vec<i64> {
    let terms: Vec<_> = preferred.iter().map(|preference| Weighed::new(table, preference)).collect();
    let of = |row: &Row| terms.iter().fold(0_i64, |sum, term| sum.saturating_add(term.score(*row)));
    rows.iter().map(of).collect()
}

struct Weighed<'a> {
    weight: i64,
    needs: TermNeeds<'a>,
    share: Option<RelativeAmounts>,
}

impl<'a> Weighed<'a> {
    fn new(table: &'a Table<'a>, preference: &'a Preference) -> Weighed<'a> {
        let share = preference.sorter.as_ref().map(|sorter| RelativeAmounts::new(table, sorter));
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
struct RelativeAmounts {
    amounts: Arc<Vec<Option<f64>>>,
    smallest: f64,
    largest: f64,
    ascending: bool,
}

impl RelativeAmounts {
    fn new(table: &Table<'_>, sorter: &Sorter) -> RelativeAmounts {
        let amounts = table.approximations(&sorter.measure);
        let known = || amounts.iter().flatten().copied();
        let smallest = known().fold(f64::INFINITY, f64::min);
        let largest = known().fold(f64::NEG_INFINITY, f64::max);
        RelativeAmounts { smallest, largest, ascending: sorter.ascending, amounts }
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

/// 100 for a currently picked cluster, else 0.
fn steady_score(rows: &[Row], is_current: &[bool]) -> Vec<i64> {
    let has = |row: &Row| is_current.get(*row as usize).copied().unwrap_or(false);
    rows.iter().map(|row| if has(row) { 100 } else { 0 }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn amounts_are_placed_between_the_least_and_the_most() {
        let amounts = [Some(50.0), Some(80.0), None, Some(100.0)];
        assert_eq!(allocatable_score(&[0, 1, 2, 3], &amounts), [-100, 19, 0, 100]);
    }

    #[test]
    fn equal_amounts_are_all_the_best() {
        assert_eq!(allocatable_score(&[0, 1], &[Some(4.0), Some(4.0)]), [100, 100]);
    }

    #[test]
    fn scores_fall_from_a_hundred_in_even_steps() {
        let scores: Vec<_> =
            [(0, 7), (1, 3), (2, 3), (5, 7), (7, 7), (1, 7)].map(|(a, b)| of_count(a, b)).into();
        assert_eq!(scores, [100, 32, -32, -42, -100, 70]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn counts_that_are_kept_give_what_counting_again_gives(
            decisions in prop::collection::vec(prop::collection::btree_set(0..6_u32, 0..5), 0..8),
            gone in 0..8_usize,
            own in 0..8_usize,
        ) {
            let rows: Vec<Vec<u32>> = decisions.iter().map(|one| one.iter().copied().collect()).collect();
            let mut load = Load::new(6);
            rows.iter().for_each(|rows| load.add(rows));
            if let Some(rows) = rows.get(gone) {
                load.remove(rows);
            }
            let left = || rows.iter().enumerate().filter(|(index, _)| *index != gone);
            let others = || left().filter(|(index, _)| *index != own).flat_map(|(_, rows)| rows);
            let counts: Vec<u32> = (0..6).map(|row| others().filter(|one| **one == row).count() as u32).collect();
            let most = counts.iter().copied().max().unwrap_or(0);
            let wanted: Vec<i64> = counts.iter().map(|count| of_count(*count, most)).collect();
            let mine = left().find(|(index, _)| *index == own).map(|(_, rows)| rows.clone()).unwrap_or_default();
            prop_assert_eq!(balance_score(&[0, 1, 2, 3, 4, 5], &load, &mine), wanted);
        }
    }
}
