//! Prefers clusters that few decisions picked: from 100 for none to -100 for the most burdened one.

use crate::decide::table::Row;

/// By row: how many decisions picked the cluster. In force or made earlier in this run, the newer counting.
#[derive(Default)]
pub(in crate::decide) struct Load {
    counts: Vec<u32>,
}

impl Load {
    pub(in crate::decide) fn new(clusters: usize) -> Load {
        Load { counts: vec![0; clusters] }
    }

    pub(in crate::decide) fn add(&mut self, rows: &[Row]) {
        rows.iter().for_each(|row| self.counts[*row as usize] += 1);
    }

    pub(in crate::decide) fn remove(&mut self, rows: &[Row]) {
        rows.iter().for_each(|row| {
            let count = &mut self.counts[*row as usize];
            *count = count.saturating_sub(1);
        });
    }
}

/// The placement's own picks do not count.
pub(super) fn score(rows: &[Row], load: &Load, own: &[Row]) -> Vec<i64> {
    let mut others = Load { counts: load.counts.clone() };
    others.remove(own);
    let most = others.counts.iter().copied().max().unwrap_or(0);
    rows.iter().map(|row| of_count(others.counts[*row as usize], most)).collect()
}

/// Cut toward zero before doubling, so the score is always even.
fn of_count(count: u32, most: u32) -> i64 {
    if count == 0 {
        return 100;
    }
    2 * (100.0 * (0.5 - f64::from(count) / f64::from(most))) as i64
}

#[cfg(test)]
mod tests {
    use super::of_count;

    #[test]
    fn scores_fall_from_a_hundred_in_even_steps() {
        let scores: Vec<_> =
            [(0, 7), (1, 3), (2, 3), (5, 7), (7, 7), (1, 7)].map(|(a, b)| of_count(a, b)).into();
        assert_eq!(scores, [100, 32, -32, -42, -100, 70]);
    }
}
