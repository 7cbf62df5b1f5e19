//! Spread constraints: how even the picks are over the values of a label, and what one more would do.
//!
//! All clusters of the fleet make the domains, also those that cannot be picked: a domain that stays
//! empty holds the others back. A cluster without the label is in no domain; it breaks nothing and
//! scores 0.

use std::rc::Rc;

use super::table::{Row, Table, Texts};
use crate::model::placement::{Policy, ScoreRule, SpreadConstraint};

/// What breaking a constraint costs that is not required.
const VIOLATION: i64 = 1000;

/// The constraints of a policy, with the picks counted so far.
pub(super) struct Spreading<'a> {
    /// Which of the policy's scorers they are.
    pub(super) part: usize,
    constraints: Vec<Counted<'a>>,
}

struct Counted<'a> {
    constraint: &'a SpreadConstraint,
    domains: Rc<Texts>,
    /// By number of the domain; the one at 0 is not a domain.
    counts: Vec<i64>,
}

/// How the picks lie before the next one: the smallest, second smallest and largest count of each constraint.
pub(super) struct Levels(Vec<(i64, i64, i64)>);

impl<'a> Spreading<'a> {
    /// None where the policy has no constraints.
    pub(super) fn of(table: &Table<'_>, policy: &'a Policy) -> Option<Spreading<'a>> {
        let (part, constraints) =
            policy.scorers.iter().enumerate().find_map(|(part, scorer)| match &scorer.rule {
                ScoreRule::Spread(constraints) if !constraints.is_empty() => Some((part, constraints)),
                _ => None,
            })?;
        // Required ones are looked at first: what they refuse, the others need not score.
        let mut constraints: Vec<_> = constraints.iter().collect();
        constraints.sort_by_key(|constraint| !constraint.required);
        let counted = |constraint: &'a SpreadConstraint| {
            let domains = table.labels(&constraint.key);
            let counts = vec![0; domains.count()];
            Counted { constraint, domains, counts }
        };
        Some(Spreading { part, constraints: constraints.into_iter().map(counted).collect() })
    }

    /// Counts a pick.
    pub(super) fn add(&mut self, row: Row) {
        for one in &mut self.constraints {
            let domain = one.domains.ids[row as usize] as usize;
            one.counts[domain] += 1;
        }
    }

    pub(super) fn levels(&self) -> Levels {
        Levels(self.constraints.iter().map(Counted::levels).collect())
    }

    /// The score a cluster would be picked with, or the key of the required constraint it would break.
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
    fn levels(&self) -> (i64, i64, i64) {
        let (mut smallest, mut second, mut largest) = (i64::MAX, i64::MAX, 0);
        for count in self.counts.iter().skip(1).copied() {
            largest = largest.max(count);
            if count < smallest {
                (smallest, second) = (count, smallest);
            } else {
                second = second.min(count);
            }
        }
        if smallest == i64::MAX { (0, 0, 0) } else { (smallest, second.min(largest), largest) }
    }

    /// By how much the skew would change with one more pick in a domain that has `count`, and
    /// whether the result breaks the constraint. A pick that evens things out is still refused while
    /// what remains is beyond the limit.
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
