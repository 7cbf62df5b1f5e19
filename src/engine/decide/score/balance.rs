//! Prefers clusters that few decisions pick: from 100 for none to -100 for the cluster with the most.

use crate::decide::cluster_table::{Row, number};

/// The number of decisions that pick each cluster, by row. The decisions of this pass count where they exist,
/// otherwise the current ones.
#[derive(Default)]
pub(in crate::decide) struct Load {
    counts: Vec<u32>,
    /// By count: the number of clusters with that count, without zeros at the end.
    clusters: Vec<u32>,
}

impl Load {
    pub(in crate::decide) fn new(clusters: usize) -> Load {
        Load { counts: vec![0; clusters], clusters: vec![number(clusters)] }
    }

    pub(in crate::decide) fn add(&mut self, rows: &[Row]) {
        rows.iter().for_each(|row| self.change(*row, |count| count + 1));
    }

    pub(in crate::decide) fn remove(&mut self, rows: &[Row]) {
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

/// Scores the clusters. The placement's own picks do not count. Both lists ascend.
pub(super) fn score(rows: &[Row], load: &Load, own: &[Row]) -> Vec<i64> {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Load, of_count, score};

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
            prop_assert_eq!(score(&[0, 1, 2, 3, 4, 5], &load, &mine), wanted);
        }
    }
}
