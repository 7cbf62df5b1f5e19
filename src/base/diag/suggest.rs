//! "Did you mean": the known name nearest to a misspelt one.

use std::cmp::Reverse;

/// Returns the candidate nearest to `word`, if it is near enough to be a typing error.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_within(word, candidates, (word.chars().count() / 3).clamp(1, 3))
}

/// Returns the candidate nearest to `word`, if at most `most` edits separate them.
pub fn nearest_within<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    limit: usize,
) -> Option<&'a str> {
    let word = word.to_lowercase();
    let rank = |candidate: &'a str| {
        let lower = candidate.to_lowercase();
        // Of equally near candidates, the one with the longest common beginning: people cut words short.
        let alike = word.chars().zip(lower.chars()).take_while(|(a, b)| a == b).count();
        (distance(&word, &lower), Reverse(alike), candidate)
    };
    let ranked = candidates.into_iter().map(rank).filter(|(distance, ..)| *distance <= limit);
    ranked.min().map(|(.., candidate)| candidate)
}

/// Returns [`nearest`] as a sentence for a hint.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, candidates).map(|name| format!("did you mean `{name}`?"))
}

/// Returns the number of edits (insert, remove, change, swap of neighbours) from one word to the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().take(64).collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_letter_is_recognised() {
        assert_eq!(nearest("numberOfCluster", ["numberOfClusters", "clusterSets"]), Some("numberOfClusters"));
    }

    #[test]
    fn case_and_swapped_letters_count_little() {
        assert_eq!(nearest("clusterselector", ["clusters", "clusterSelector"]), Some("clusterSelector"));
        assert_eq!(nearest("lables", ["labels", "tables-of-contents"]), Some("labels"));
    }

    #[test]
    fn a_word_that_was_cut_short_is_the_longer_one() {
        let known = ["Balance", "ResourceAllocatableCPU", "ResourceAllocatableMemory"];
        assert_eq!(nearest("ResourceAllocatableMem", known), Some("ResourceAllocatableMemory"));
    }

    #[test]
    fn a_different_word_gets_no_suggestion() {
        assert_eq!(nearest("replicas", ["template", "placement"]), None);
    }
}
