//! A workload's inputs → its releases: the wanted one, and earlier ones that may be needed again.

use std::collections::BTreeMap;

use berth_base::model::release::{Release, Releases};
use berth_base::model::{ContentId, Key, Map, Shared, Timestamp};

use super::ReleaseInputs;

/// The number of earlier releases to keep beside the good one, for pins and for comparison.
const KEPT: usize = 3;

/// Returns the releases with these inputs as the current one. Inputs equal to those of the last good release
/// are that release again, so a revert is no new release. Without a record `before`, the numbers continue
/// from `last`, the highest number that the workload ever had.
pub(super) fn with_inputs(
    key: &Key,
    before: Option<&Releases>,
    last: u64,
    inputs: ContentId,
    now: Timestamp,
) -> Releases {
    let Some(before) = before else {
        return Releases {
            key: key.clone(),
            current: Release { number: last + 1, begun: now, inputs },
            good: None,
            earlier: Vec::new(),
            assigned: BTreeMap::new(),
            stays: BTreeMap::new(),
            taken_back: false,
            restarts: 0,
            halted: None,
            run: None,
            removing: BTreeMap::new(),
            awaited: BTreeMap::new(),
        };
    };
    if before.current.inputs == inputs {
        return before.clone();
    }
    let again = before.good().filter(|good| good.inputs == inputs);
    let current = match again {
        Some(good) => Release { begun: now, ..good.clone() },
        None => Release { number: newest(before) + 1, begun: now, inputs },
    };
    let mut earlier: Vec<Release> =
        before.all().filter(|release| release.number != current.number).cloned().collect();
    earlier.sort_by_key(|release| release.number);
    Releases { current, earlier, taken_back: false, restarts: 0, halted: None, ..before.clone() }
}

/// Returns the highest number among a workload's releases; the newest ones are always kept.
fn newest(releases: &Releases) -> u64 {
    releases.all().map(|release| release.number).max().unwrap_or_default()
}

/// Returns the highest number that a workload without a record ever had; 0 for a workload that had none.
pub(super) fn last_number(key: &Key, given: ReleaseInputs<'_>) -> u64 {
    given.current.ledger.last_releases.get(key).copied().unwrap_or_default()
}

/// Returns the highest number of each workload without a record in the next state.
pub(super) fn last_numbers(
    given: ReleaseInputs<'_>,
    next: &Map<Key, Shared<Releases>>,
) -> BTreeMap<Key, u64> {
    let mut last = given.current.ledger.last_releases.clone();
    last.retain(|key, _| !next.contains_key(key));
    let gone = given.current.releases.iter().filter(|(key, _)| !next.contains_key(*key));
    last.extend(gone.map(|(key, releases)| (key.clone(), newest(releases))));
    last
}

/// Drops the earlier releases that nothing needs: those that are neither the good one, nor pinned, nor
/// assigned to a cluster, nor among the newest few.
pub(super) fn forget_old(releases: &mut Releases, is_needed: impl Fn(u64) -> bool) {
    let newest: Vec<u64> = releases.earlier.iter().rev().take(KEPT).map(|release| release.number).collect();
    let good = releases.good;
    releases.earlier.retain(|release| {
        let number = release.number;
        Some(number) == good || newest.contains(&number) || is_needed(number)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(before: Option<&Releases>, inputs: u8) -> Releases {
        let key = Key::new("", "Workload", "shop", "web");
        with_inputs(&key, before, 0, ContentId([inputs; 20]), Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn new_inputs_are_a_new_release_and_those_of_the_good_one_are_that_release_again() {
        let mut first = step(None, 1);
        assert_eq!((first.current.number, first.good), (1, None));
        first.good = Some(1);
        assert_eq!(step(Some(&first), 1), first);
        let second = step(Some(&first), 2);
        assert_eq!((second.current.number, second.good), (2, Some(1)));
        assert_eq!(second.good().map(|good| good.inputs), Some(ContentId([1; 20])));
        let third = step(Some(&second), 3);
        assert_eq!((third.current.number, third.earlier.len()), (3, 2));
        let reverted = step(Some(&third), 1);
        assert_eq!((reverted.current.number, reverted.is_proven()), (1, true));
        // A number is never used twice for other inputs.
        assert_eq!(step(Some(&reverted), 4).current.number, 4);
    }

    #[test]
    fn few_earlier_releases_are_kept() {
        let mut releases = step(None, 0);
        releases.good = Some(1);
        for inputs in 1..20 {
            releases = step(Some(&releases), inputs);
            forget_old(&mut releases, |number| number == 2);
        }
        let numbers: Vec<u64> = releases.earlier.iter().map(|release| release.number).collect();
        assert_eq!(numbers, [1, 2, 17, 18, 19]);
    }
}
