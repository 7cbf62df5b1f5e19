//! The causes of removals: a removal comes from every input without which it would not happen.
//!
//! A second decision, with the new source and the old statuses and time, tells edits from statuses and time.

use super::held_record::HeldRecord;
use super::question::Question;
use super::removal::{Cause, Pairs};
use crate::state::PlaceOwners;
use berth_base::model::{Decision, Digest, Key, Map, ObjectId, path};

/// The decisions of the edit alone: with the new source, and the old statuses and time. Several where the old
/// ones are not known exactly.
pub type EditAlone = Vec<Map<Key, Decision>>;

/// Determines the causes of removals.
#[derive(Debug)]
pub(super) struct Causes<'a> {
    question: &'a Question<'a>,
    edit_alone: Vec<PlaceOwners<'a>>,
}

/// The cause of one workload's removals, and the removals that statuses or time contribute to.
#[derive(Debug)]
pub(super) struct Caused {
    pub(super) cause: Cause,
    pub(super) by_itself: Pairs,
}

impl<'a> Causes<'a> {
    pub(super) fn of(question: &'a Question<'a>) -> Causes<'a> {
        let edit_alone = question.edit_alone.iter().map(PlaceOwners::of).collect();
        Causes { question, edit_alone }
    }

    pub(super) fn of_workload(&self, key: &Key, pairs: &Pairs, digest: Digest) -> Caused {
        let held = self.question.retried.iter().find(|held| held.key == *key);
        let usual = if self.question.source_changed { Cause::Source } else { Cause::Itself };
        if self.question.limits.recall.is_none() {
            let retried = held.is_some_and(|held| held.cause == Cause::Source);
            return Caused::whole(if retried { Cause::Source } else { usual }, pairs);
        }
        if let Some(held) = held {
            return Caused::whole(again(held, usual, digest), pairs);
        }
        let stays = |(cluster, object): &&(String, ObjectId)| {
            let path = path::of_object(object);
            self.edit_alone.iter().any(|claims| !claims.holders(cluster, &path).is_empty())
        };
        let by_itself: Pairs = pairs.iter().filter(stays).cloned().collect();
        match by_itself.len() {
            0 => Caused::whole(usual, pairs),
            some if some == pairs.len() => Caused { cause: Cause::Itself, by_itself },
            _ => Caused { cause: Cause::Both, by_itself },
        }
    }
}

/// The cause of a removal that was held before.
fn again(held: &HeldRecord, usual: Cause, digest: Digest) -> Cause {
    // A different removal includes something new.
    if held.digest == digest { held.cause } else { held.cause.and(usual) }
}

impl Caused {
    fn whole(cause: Cause, pairs: &Pairs) -> Caused {
        let by_itself = if cause == Cause::Source { Pairs::new() } else { pairs.clone() };
        Caused { cause, by_itself }
    }
}
