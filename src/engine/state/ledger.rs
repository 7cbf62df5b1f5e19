//! The ledger: every place that somebody loses, from the moment at which its loss is inevitable until the loss counts
//! against nothing any more; the places that are handed over; and the approvals that were given and used.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::decision::name_form;
use berth_base::model::{Digest, Key, ObjectId, Timestamp};

/// An object in a cluster. A cluster that a decision names for its consumers is a place too: the object is the
/// placement itself.
pub type Place = (String, ObjectId);

/// Objects in clusters.
pub type Places = BTreeSet<Place>;

/// The most approvals that wait for their use. Anybody who may merge a commit can give some.
const MOST_APPROVALS: usize = 1_000;

/// The most used approvals that are remembered.
const MOST_USED: usize = 5_000;

/// The ledger of a state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    pub losses: BTreeMap<Place, Loss>,
    /// The owners of copies, where the decisions do not tell them.
    pub owners: BTreeMap<Place, CopyOwner>,
    /// The approvals that commits gave and nothing has used yet.
    pub approvals: BTreeMap<Digest, GivenApproval>,
    /// The approvals that were used, each with the number of the publication that used it.
    pub used: BTreeMap<Digest, u64>,
    /// The highest number of a release of each workload that has no releases any more.
    pub last_releases: BTreeMap<Key, u64>,
}

/// A place that somebody has, or had within the window, and nobody will have in the end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Loss {
    /// The workload that had the place.
    #[serde(with = "name_form")]
    pub owner: Key,
    #[serde(flatten)]
    pub cause: Cause,
    /// The moment at which the loss was found or, once it is permitted, that of the permit. Limits count it from then on.
    pub since: Timestamp,
    /// The deadline at which the place is lost. `None` for a loss that waits for nothing but its turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    #[serde(flatten)]
    pub stage: Stage,
    /// An approval or a rollback permitted the loss, so that it does not count against later ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exempt: bool,
}

/// The cause of a loss: the input without which the place would stay.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "cause", rename_all = "lowercase")]
pub enum Cause {
    /// An edit, in this source commit.
    Edit {
        commit: String,
    },
    /// A report of a member, or its silence.
    Report,
    Time,
}

/// How far a loss is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "lowercase")]
pub enum Stage {
    /// It waits for an approval.
    Held,
    /// It may be carried out, and is not yet.
    Permitted,
    /// It was carried out. The rendered commit is the one right before.
    Gone { before: String },
}

/// The workload whose copy is at a place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CopyOwner {
    #[serde(rename = "owner", with = "name_form")]
    pub workload: Key,
    /// The copy is no part of the workload's release any more: it only waits for the turn of the workload that takes the
    /// object over. Otherwise the decisions of several workloads name the object, and only this one has its copy there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_handed_over: bool,
}

/// An approval in the message of a source commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenApproval {
    pub commit: String,
    pub until: Timestamp,
}

impl Cause {
    /// Reports whether somebody edited the fleet repository.
    pub fn is_edit(&self) -> bool {
        matches!(self, Cause::Edit { .. })
    }
}

impl Loss {
    /// Reports whether the loss is still to come.
    pub fn is_pending(&self) -> bool {
        !matches!(self.stage, Stage::Gone { .. })
    }
}

impl CopyOwner {
    /// The owner of a copy that is part of the workload's release.
    pub fn by_release(workload: Key) -> CopyOwner {
        CopyOwner { workload, is_handed_over: false }
    }

    /// The owner of a copy that waits for the workload that takes the object over.
    pub fn until_handed_over(workload: Key) -> CopyOwner {
        CopyOwner { workload, is_handed_over: true }
    }
}

impl Ledger {
    /// Returns the losses that are still to come.
    pub fn pending(&self) -> impl Iterator<Item = (&Place, &Loss)> {
        self.losses.iter().filter(|(_, loss)| loss.is_pending())
    }

    /// Forgets the losses that were permitted up to a moment and carried out, the approvals that have expired, and of too
    /// many the oldest.
    pub fn forget(&mut self, window: Timestamp, now: Timestamp) {
        self.losses.retain(|_, loss| loss.is_pending() || loss.since > window);
        self.approvals.retain(|_, approval| approval.until > now);
        keep_last(&mut self.approvals, MOST_APPROVALS, |approval| approval.until);
        keep_last(&mut self.used, MOST_USED, |seq| *seq);
    }

    pub fn is_empty(&self) -> bool {
        *self == Ledger::default()
    }
}

/// Keeps so many entries: those that come last.
fn keep_last<V, O: Ord>(entries: &mut BTreeMap<Digest, V>, most: usize, order: impl Fn(&V) -> O) {
    let too_many = entries.len().saturating_sub(most);
    if too_many > 0 {
        let mut in_order: Vec<Digest> = entries.keys().copied().collect();
        in_order.sort_by_key(|digest| order(&entries[digest]));
        in_order.iter().take(too_many).for_each(|digest| drop(entries.remove(digest)));
    }
}
