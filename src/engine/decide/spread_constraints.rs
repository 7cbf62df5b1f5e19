//! Spread constraints: how evenly the picks are spread over the values of a label, and the effect of one more
//! pick.
//!
//! All clusters of the fleet form domains, including clusters that cannot be picked: a domain that stays
//! empty holds the others back. A cluster without the label is in no domain; it breaks no constraint and
//! scores 0.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cluster_table::{Row, Table, Texts};
use berth_base::model::placement::{Policy, ScoreRule, SpreadConstraint};

/// The cost of breaking a constraint that is not required.
const VIOLATION: i64 = 1000;

/// The constraints of a policy, with the picks counted so far.
pub(super) struct Spreading<'a> {
    /// The index of the policy's scorer that holds the constraints.
    pub(super) part: usize,
    constraints: Vec<Counted<'a>>,
}

struct Counted<'a> {
    constraint: &'a SpreadConstraint,
    domains: Arc<Texts>,
    /// By number of the domain; number 0 is no domain.
    counts: Vec<i64>,
    /// The number of domains, by the number of their picks.
    domains_with: BTreeMap<i64, usize>,
}

/// The smallest, second smallest and largest count of each constraint, before the next pick.
pub(super) struct Levels(Vec<(i64, i64, i64)>);

impl<'a> Spreading<'a> {
    /// Returns `None` if the policy has no constraints.
    pub(super) fn of(table: &Table<'_>, policy: &'a Policy) -> Option<Spreading<'a>> {
        let (part, constraints) =
            policy.scorers.iter().enumerate().find_map(|(part, scorer)| match &scorer.rule {
                ScoreRule::Spread(constraints) if !constraints.is_empty() => Some((part, constraints)),
                _ => None,
            })?;
        // Required constraints come first: a cluster that they refuse needs no score.
        let mut constraints: Vec<_> = constraints.iter().collect();
        constraints.sort_by_key(|constraint| !constraint.required);
        let counted = |constraint: &'a SpreadConstraint| {
            let domains = table.labels(&constraint.key);
            let counts = vec![0; domains.count()];
            let real = counts.len().saturating_sub(1);
            let domains_with = std::iter::once((0, real)).filter(|(_, real)| *real > 0).collect();
            Counted { constraint, domains, counts, domains_with }
        };
        Some(Spreading { part, constraints: constraints.into_iter().map(counted).collect() })
    }

    /// Counts a pick.
    pub(super) fn add(&mut self, row: Row) {
        self.constraints.iter_mut().for_each(|one| one.add(row));
    }

    /// Returns the numbers of a cluster's domains: clusters in equal domains have equal scores.
    pub(super) fn domains(&self, row: Row) -> Vec<u32> {
        self.constraints.iter().map(|one| one.domains.ids[row as usize]).collect()
    }

    pub(super) fn levels(&self) -> Levels {
        Levels(self.constraints.iter().map(Counted::levels).collect())
    }

    /// Returns the score of a pick of this cluster; the error is the key of the required constraint that it
    /// would break.
    pub(super) fn score(&self, levels: &Levels, row: Row) -> Result<i64, &'a str> {
        let mut score: i64 = 0;
        for (one, levels) in self.constraints.iter().zip(&levels.0) {
            let domain = one.domains.ids[row as usize] as usize;
            if domain == 0 {
                continue;
            }
            let (change, broken) = one.outlook(*levels, one.counts[domain]);
            match (broken, one.constraint.required) {
                (true, true) => return Err(&one.constraint.key),
                (true, false) => score = score.saturating_sub(VIOLATION),
                (false, _) => score = score.saturating_sub(change),
            }
        }
        Ok(score)
    }
}

impl Counted<'_> {
    fn add(&mut self, row: Row) {
        let domain = self.domains.ids[row as usize] as usize;
        let count = self.counts[domain];
        self.counts[domain] += 1;
        if domain == 0 {
            return;
        }
        if let Some(domains) = self.domains_with.get_mut(&count) {
            *domains -= 1;
            if *domains == 0 {
                self.domains_with.remove(&count);
            }
        }
        *self.domains_with.entry(count + 1).or_default() += 1;
    }

    fn levels(&self) -> (i64, i64, i64) {
        let mut levels = self.domains_with.iter();
        let Some((smallest, domains)) = levels.next() else { return (0, 0, 0) };
        let largest = self.domains_with.last_key_value().map_or(*smallest, |(largest, _)| *largest);
        // Two domains may share the smallest count.
        let second =
            if *domains > 1 { *smallest } else { levels.next().map_or(*smallest, |(next, _)| *next) };
        (*smallest, second, largest)
    }

    /// Returns the change of the skew by one more pick in a domain with `count` picks, and whether the result
    /// breaks the constraint. A pick that reduces the skew is still refused if the remaining skew exceeds the
    /// limit.
    fn outlook(&self, (smallest, second, largest): (i64, i64, i64), count: i64) -> (i64, bool) {
        let skew = largest - smallest;
        let change = if largest == smallest {
            1
        } else if count == smallest && smallest != second {
            -1
        } else if count == largest {
            1
        } else {
            0
        };
        (change, skew + change > self.constraint.max_skew)
    }
}
