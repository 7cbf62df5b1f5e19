//! Picks that keep the numbers of clusters even over the values of labels or claims.
//!
//! Only clusters that passed the filters make domains: one that cannot be picked from holds nobody back.
//! A pick that would make its domain lead the smallest one by more than the limit is refused, or goes
//! last, earlier constraints before later ones; among the others scores decide as ever.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use super::table::{Row, Table, Texts};
use crate::model::placement::{EvenConstraint, Policy, ScoreRule};

/// The constraints of a policy over the clusters that passed.
pub(super) struct Evenly<'a> {
    /// Which of the policy's scorers they are.
    pub(super) part: usize,
    constraints: Vec<Counted<'a>>,
}

struct Counted<'a> {
    constraint: &'a EvenConstraint,
    values: Rc<Texts>,
    /// Picks so far, by the number of the value.
    counts: BTreeMap<u32, i64>,
}

/// Clusters that are alike: whether they may wait, and their values.
type Alike = (bool, Vec<u32>);

/// Rank and index, the best first.
type Queue = VecDeque<(usize, u32)>;

/// In the order they were picked, and those that a constraint keeps out, with its key.
pub(super) struct Evened<'a> {
    pub(super) chosen: Vec<u32>,
    pub(super) refused: BTreeMap<u32, &'a str>,
}

impl<'a> Evenly<'a> {
    /// None where the policy has no such constraints.
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
            let counts = present.into_iter().filter(|value| *value != 0).map(|value| (value, 0)).collect();
            Counted { constraint, values, counts }
        };
        Some(Evenly { part, constraints: constraints.iter().map(counted).collect() })
    }

    /// Picks so many of those in `order`, best first. Those `at_any_rate` go before others and break nothing.
    pub(super) fn pick(
        mut self,
        passed: &[Row],
        order: &[u32],
        at_any_rate: impl Fn(u32) -> bool,
        open: usize,
    ) -> Evened<'a> {
        // Clusters with the same values are alike but for their rank.
        let mut alike: BTreeMap<Alike, Queue> = BTreeMap::new();
        for (rank, index) in order.iter().enumerate() {
            let row = passed[*index as usize] as usize;
            let values = self.constraints.iter().map(|one| one.values.ids[row]).collect();
            alike.entry((!at_any_rate(*index), values)).or_default().push_back((rank, *index));
        }
        let mut chosen = Vec::new();
        while chosen.len() < open {
            let head = |((may_wait, values), queue): (&Alike, &Queue)| {
                let (rank, _) = queue.front()?;
                let broken = if *may_wait { self.broken(values).ok()? } else { Vec::new() };
                Some(((*may_wait, broken, *rank), (*may_wait, values.clone())))
            };
            let Some((_, best)) = alike.iter().filter_map(head).min() else { break };
            if let Some((_, index)) = alike.get_mut(&best).and_then(VecDeque::pop_front) {
                self.add(&best.1);
                chosen.push(index);
            }
        }
        let mut refused = BTreeMap::new();
        if chosen.len() < open {
            for ((_, values), queue) in &alike {
                if let Err(key) = self.broken(values) {
                    refused.extend(queue.iter().map(|(_, index)| (*index, key)));
                }
            }
        }
        Evened { chosen, refused }
    }

    /// Which of the constraints one more pick would break, or the key of one that may not be broken.
    fn broken(&self, values: &[u32]) -> Result<Vec<bool>, &'a str> {
        let each = self.constraints.iter().zip(values).map(|(one, value)| {
            let breaks = match one.counts.get(value) {
                // Without a value there is no domain that it could keep even.
                None => true,
                Some(count) => {
                    let smallest = one.counts.values().min().copied().unwrap_or(0);
                    count + 1 - smallest > one.constraint.max_skew
                }
            };
            if breaks && one.constraint.required { Err(one.constraint.key.as_str()) } else { Ok(breaks) }
        });
        each.collect()
    }

    fn add(&mut self, values: &[u32]) {
        for (one, value) in self.constraints.iter_mut().zip(values) {
            if let Some(count) = one.counts.get_mut(value) {
                *count += 1;
            }
        }
    }
}
