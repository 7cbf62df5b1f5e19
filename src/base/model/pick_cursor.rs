//! Finds clusters among picks, and picks among clusters: both ascend, and mostly share their names.

use std::collections::{BTreeMap, BTreeSet};

use super::decision::{Decision, Pick};
use super::shared::ByAllocation;

/// Looks up clusters among picks; lookups are fast if names ascend.
#[derive(Clone, Copy, Debug)]
pub struct PickCursor<'d> {
    picks: &'d [Pick],
    at: usize,
}

impl<'d> PickCursor<'d> {
    pub fn of(picks: &'d [Pick]) -> PickCursor<'d> {
        PickCursor { picks, at: 0 }
    }

    /// Reports whether a cluster was picked.
    pub fn has(&mut self, cluster: &str) -> bool {
        self.pick(cluster).is_some()
    }

    pub fn pick(&mut self, cluster: &str) -> Option<&Pick> {
        let near = |at: usize| self.picks.get(at).map(|pick| &*pick.cluster);
        if let Some(at) = here_or_next(self.at, cluster, near) {
            self.at = at;
            return self.picks.get(at);
        }
        let before = |pick: &Pick| &*pick.cluster < cluster;
        if self.at > 0 && self.picks.get(self.at - 1).is_none_or(|pick| !before(pick)) {
            self.at = self.picks.partition_point(before);
        }
        // The steps grow, because few of many clusters may be looked up.
        let mut step = 1;
        while self.picks.get(self.at + step).is_some_and(before) {
            self.at += step;
            step *= 2;
        }
        let near = self.picks.get(self.at..self.picks.len().min(self.at + step + 1)).unwrap_or_default();
        self.at += near.partition_point(before);
        self.picks.get(self.at).filter(|pick| *pick.cluster == *cluster)
    }
}

/// Reports whether picks name one of some clusters. Each shared list is searched once.
#[derive(Debug)]
pub struct AnyPicked<'n, 'd> {
    clusters: &'n BTreeSet<&'n str>,
    known: BTreeMap<ByAllocation<'d, Vec<Pick>>, bool>,
}

impl<'n, 'd> AnyPicked<'n, 'd> {
    pub fn of(clusters: &'n BTreeSet<&'n str>) -> AnyPicked<'n, 'd> {
        AnyPicked { clusters, known: BTreeMap::new() }
    }

    /// Reports whether a decision picked one of the clusters.
    pub fn by(&mut self, decision: &'d Decision) -> bool {
        let AnyPicked { clusters, known } = self;
        let picks = &decision.picks;
        !clusters.is_empty()
            && *known.entry(ByAllocation(picks)).or_insert_with(|| match clusters.len() < picks.len() {
                true => clusters.iter().any(|cluster| decision.has(cluster)),
                false => picks.iter().any(|pick| clusters.contains(&*pick.cluster)),
            })
    }
}

/// Returns the place of a name, if it is this one or the next. Most names are the same text in memory, so
/// their letters need not be read.
fn here_or_next<'n>(at: usize, wanted: &str, name: impl Fn(usize) -> Option<&'n str>) -> Option<usize> {
    let places = [at, at + 1];
    let find = |is_same: fn(&str, &str) -> bool| {
        places.into_iter().find(|at| name(*at).is_some_and(|name| is_same(name, wanted)))
    };
    find(|one, other| std::ptr::eq(one, other)).or_else(|| find(|one, other| one == other))
}

/// Returns each pick's place among `len` names in ascending order; `None` for a missing name.
pub fn rows_among<'n>(
    picks: &[Pick],
    len: usize,
    name: impl Fn(usize) -> &'n str,
) -> impl Iterator<Item = Option<usize>> {
    let mut from = 0;
    picks.iter().map(move |pick| {
        // Both sides ascend, so each search starts at the end of the last one, in growing steps.
        let wanted = &*pick.cluster;
        if let Some(at) = here_or_next(from, wanted, |at| (at < len).then(|| name(at))) {
            from = at;
            return Some(at);
        }
        if from > 0 && name(from - 1) >= wanted {
            from = 0;
        }
        let before = |at: usize| at < len && name(at) < wanted;
        let mut step = 1;
        while before(from + step) {
            from += step;
            step *= 2;
        }
        let mut end = from.saturating_add(step + 1).min(len);
        while from < end {
            let middle = from + (end - from) / 2;
            if name(middle) < wanted { from = middle + 1 } else { end = middle }
        }
        (from < len && name(from) == wanted).then_some(from)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::Key;

    #[test]
    fn rows_are_found_in_any_order() {
        let names: Vec<Arc<str>> = (0..40).map(|n| format!("c{n:02}").into()).collect();
        let picks = ["a", "c00", "c07", "c08", "c39", "d", "c03", "c03", "c38", "c001"];
        // Picks with their own names, and picks that share the rows' names.
        let shared = |pick: Pick| match names.iter().find(|name| **name == pick.cluster) {
            Some(name) => Pick::of(name.clone()),
            None => pick,
        };
        for picks in [picks.map(Pick::of), picks.map(Pick::of).map(shared)] {
            let rows: Vec<Option<usize>> = rows_among(&picks, names.len(), |row| &names[row]).collect();
            let wanted = picks.map(|pick| names.iter().position(|name| *name == pick.cluster));
            assert_eq!(rows, wanted);
        }
    }

    #[test]
    fn a_list_that_is_looked_through_once_gives_the_same_answer() {
        let lists = [vec![], vec!["a"], vec!["b", "d"], vec!["a", "b", "c", "d"]];
        let decisions = lists.map(|list| Decision {
            picks: list.into_iter().map(Pick::of).collect(),
            ..Decision::new(Key::default(), String::new())
        });
        for wanted in [vec![], vec!["a"], vec!["d", "e"], vec!["e", "f", "g"]] {
            let clusters: BTreeSet<&str> = wanted.into_iter().collect();
            let mut any = AnyPicked::of(&clusters);
            for decision in decisions.iter().chain(&decisions.clone()) {
                assert_eq!(any.by(decision), clusters.iter().any(|cluster| decision.has(cluster)));
            }
        }
    }

    #[test]
    fn a_cursor_finds_what_was_picked_in_any_order() {
        let picks = ["b", "d", "f"].map(Pick::of);
        let mut cursor = PickCursor::of(&picks);
        for name in ["a", "b", "b", "c", "f", "g", "d", "a", "b", "e", "d"] {
            assert_eq!(cursor.has(name), ["b", "d", "f"].contains(&name), "{name}");
        }
        for index in [0, 1, 2, 2, 0, 2, 1, 1, 0] {
            let found = cursor.pick(&picks[index].cluster).expect("it was picked");
            assert!(Arc::ptr_eq(&found.cluster, &picks[index].cluster));
        }
    }
}
