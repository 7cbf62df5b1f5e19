//! Picks that spread clusters evenly over the values of labels or claims.
//!
//! Only clusters that passed the filters form domains: a cluster that cannot be picked holds no pick back. A
//! pick is refused, or goes last, if its domain would exceed the smallest one by more than the limit. Earlier
//! constraints come before later ones; the scores decide between the remaining clusters.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::cluster_table::{Row, Table, Texts};
use berth_base::model::placement::{EvenConstraint, Policy, ScoreRule};

/// The constraints of a policy over the clusters that passed.
pub(super) struct Evenly<'a> {
    /// The index of the policy's scorer that holds the constraints.
    pub(super) part: usize,
    constraints: Vec<ValueCounts<'a>>,
}

struct ValueCounts<'a> {
    constraint: &'a EvenConstraint,
    values: Arc<Texts>,
    /// The number of picks so far, by the number of the value.
    counts: BTreeMap<u32, i64>,
    /// The number of values, by the number of their picks.
    values_with: BTreeMap<i64, usize>,
}

/// Equal clusters: whether they may wait, and their values.
type EqualClusters = (bool, Vec<u32>);

/// The order between the best clusters of two groups: first, whether the cluster may wait, then the
/// constraints that one more pick would break, then its rank.
type GroupOrder = (bool, Vec<bool>, usize);

struct EqualGroup {
    alike: EqualClusters,
    /// The clusters by rank and index, the best first.
    queue: VecDeque<(usize, u32)>,
    /// The group's place in the line; `None` if no cluster of the group may be picked.
    turn: Option<GroupOrder>,
}

/// The picks in order, and the refused clusters, each with the key of the constraint.
pub(super) struct Evened<'a> {
    pub(super) chosen: Vec<u32>,
    pub(super) refused: BTreeMap<u32, &'a str>,
}

impl<'a> Evenly<'a> {
    /// Returns `None` if the policy has no such constraints.
    pub(super) fn of(table: &Table<'_>, policy: &'a Policy, passed: &[Row]) -> Option<Evenly<'a>> {
        let (part, constraints) =
            policy.scorers.iter().enumerate().find_map(|(part, scorer)| match &scorer.rule {
                ScoreRule::Even(constraints) if !constraints.is_empty() => Some((part, constraints)),
                _ => None,
            })?;
        let counted = |constraint: &'a EvenConstraint| {
            let values = if constraint.of_claims {
                table.claims(&constraint.key)
            } else {
                table.labels(&constraint.key)
            };
            let present: BTreeSet<u32> = passed.iter().map(|row| values.ids[*row as usize]).collect();
            let counts: BTreeMap<u32, i64> =
                present.into_iter().filter(|value| *value != 0).map(|value| (value, 0)).collect();
            let values_with = [(0, counts.len())].into();
            ValueCounts { constraint, values, counts, values_with }
        };
        Some(Evenly { part, constraints: constraints.iter().map(counted).collect() })
    }

    /// Picks up to `open` clusters in `order`, best first. Clusters for which `at_any_rate` holds go first
    /// and break no constraint.
    pub(super) fn pick(
        mut self,
        passed: &[Row],
        order: &[u32],
        at_any_rate: impl Fn(u32) -> bool,
        open: usize,
    ) -> Evened<'a> {
        let mut groups = self.group(passed, order, at_any_rate);
        let of_value = self.groups_by_value(&groups);
        let mut line = BTreeSet::new();
        (0..groups.len()).for_each(|index| self.line_up(&mut groups, &mut line, index));
        let mut chosen = Vec::new();
        while chosen.len() < open {
            let Some((_, index)) = line.first().cloned() else { break };
            let group = &mut groups[index];
            chosen.extend(group.queue.pop_front().map(|(_, best)| best));
            let values = group.alike.1.clone();
            let mut moved: BTreeSet<usize> = [index].into();
            for ((one, of_value), value) in self.constraints.iter_mut().zip(&of_value).zip(values) {
                let changed = one.add(value).into_iter().filter_map(|value| of_value.get(&value));
                moved.extend(changed.flatten());
            }
            moved.into_iter().for_each(|index| self.line_up(&mut groups, &mut line, index));
        }
        let mut refused = BTreeMap::new();
        if chosen.len() < open {
            for group in &groups {
                if let Err(key) = self.broken(&group.alike.1) {
                    refused.extend(group.queue.iter().map(|(_, index)| (*index, key)));
                }
            }
        }
        Evened { chosen, refused }
    }

    /// Groups clusters with the same values: only their ranks differ.
    fn group(&self, passed: &[Row], order: &[u32], at_any_rate: impl Fn(u32) -> bool) -> Vec<EqualGroup> {
        let mut queues: BTreeMap<EqualClusters, VecDeque<(usize, u32)>> = BTreeMap::new();
        for (rank, index) in order.iter().enumerate() {
            let row = passed[*index as usize] as usize;
            let values = self.constraints.iter().map(|one| one.values.ids[row]).collect();
            queues.entry((!at_any_rate(*index), values)).or_default().push_back((rank, *index));
        }
        queues.into_iter().map(|(alike, queue)| EqualGroup { alike, queue, turn: None }).collect()
    }

    /// Returns for each constraint the groups that have each value.
    fn groups_by_value(&self, groups: &[EqualGroup]) -> Vec<BTreeMap<u32, Vec<usize>>> {
        let mut of_value = vec![BTreeMap::new(); self.constraints.len()];
        for (index, group) in groups.iter().enumerate() {
            for (groups, value) in of_value.iter_mut().zip(&group.alike.1) {
                groups.entry(*value).or_insert_with(Vec::new).push(index);
            }
        }
        of_value
    }

    /// Moves a group to its current place in the line.
    fn line_up(&self, groups: &mut [EqualGroup], line: &mut BTreeSet<(GroupOrder, usize)>, index: usize) {
        let group = &mut groups[index];
        if let Some(turn) = group.turn.take() {
            line.remove(&(turn, index));
        }
        let (may_wait, values) = &group.alike;
        let broken = if *may_wait { self.broken(values).ok() } else { Some(Vec::new()) };
        let turn = group.queue.front().zip(broken).map(|((rank, _), broken)| (*may_wait, broken, *rank));
        line.extend(turn.clone().map(|turn| (turn, index)));
        group.turn = turn;
    }

    /// Returns for each constraint whether one more pick would break it; the error is the key of a required
    /// constraint.
    fn broken(&self, values: &[u32]) -> Result<Vec<bool>, &'a str> {
        let each = self.constraints.iter().zip(values).map(|(one, value)| {
            let breaks = one.breaks(*value, one.smallest());
            if breaks && one.constraint.required { Err(one.constraint.key.as_str()) } else { Ok(breaks) }
        });
        each.collect()
    }
}

impl ValueCounts<'_> {
    fn smallest(&self) -> i64 {
        self.values_with.first_key_value().map_or(0, |(count, _)| *count)
    }

    /// Reports whether a pick breaks the constraint. A missing value has no domain, so any pick breaks it.
    fn breaks(&self, value: u32, smallest: i64) -> bool {
        self.counts.get(&value).is_none_or(|count| count + 1 - smallest > self.constraint.max_skew)
    }

    /// Counts a pick; returns the values for which `breaks` changed.
    fn add(&mut self, value: u32) -> Vec<u32> {
        let (before, broke) = (self.smallest(), self.breaks(value, self.smallest()));
        let Some(count) = self.counts.get_mut(&value) else { return Vec::new() };
        if let Some(values) = self.values_with.get_mut(count) {
            *values -= 1;
            if *values == 0 {
                self.values_with.remove(count);
            }
        }
        *count += 1;
        *self.values_with.entry(*count).or_default() += 1;
        let now = self.smallest();
        if now == before {
            return if self.breaks(value, now) == broke { Vec::new() } else { vec![value] };
        }
        let turns = |other: &u32| *other == value || self.breaks(*other, before) != self.breaks(*other, now);
        self.counts.keys().copied().filter(turns).collect()
    }
}
