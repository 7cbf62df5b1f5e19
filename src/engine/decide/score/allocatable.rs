//! Prefers clusters with much of a resource: among the clusters that passed, -100 for the least to 100 for
//! the most.

use crate::decide::cluster_table::Row;

/// Scores the clusters. A cluster without a known amount scores 0, the middle.
pub(super) fn score(rows: &[Row], amounts: &[Option<f64>]) -> Vec<i64> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_placed_between_the_least_and_the_most() {
        let amounts = [Some(50.0), Some(80.0), None, Some(100.0)];
        assert_eq!(score(&[0, 1, 2, 3], &amounts), [-100, 19, 0, 100]);
    }

    #[test]
    fn equal_amounts_are_all_the_best() {
        assert_eq!(score(&[0, 1], &[Some(4.0), Some(4.0)]), [100, 100]);
    }
}
