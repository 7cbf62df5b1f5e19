//! The decision for a placement, with its reasons.

use std::cmp::Ordering::{self, Equal};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::key::Key;
use super::object::ObjectId;
use super::pick_cursor::PickCursor;
use super::shared::Shared;
use crate::packed::Packed;
use crate::text::hex;

/// The clusters picked for one placement.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    pub key: Key,
    /// The source file of the placement.
    pub source: String,
    /// By cluster name, ascending.
    pub picks: Shared<Vec<Pick>>,
    /// The number of refused clusters by reason. Present only if the decision picks no cluster, or too few;
    /// in older records always.
    pub refused: Vec<Refused>,
    pub condition: Option<Condition>,
    /// The digest of everything that the decision read. `None`: decide again.
    pub digest: Option<Digest>,
    /// The policy's text at the time of the decision. `None` in older records: counts as unchanged.
    pub policy: Option<Packed>,
    /// The objects that go to the picked clusters; empty for a placement without a workload.
    pub objects: Vec<ObjectId>,
    /// Failed copies: these clusters keep the last good form, or have none.
    pub failures: Vec<Failure>,
}

/// A picked cluster. It dereferences to its details.
#[derive(Clone, Debug)]
pub struct Pick {
    /// Shared with the cluster's other picks.
    pub cluster: Arc<str>,
    /// Shared by equal picks, see [`Pick::share_details`].
    pub details: Arc<PickDetails>,
}

/// Everything in a decision about a picked cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PickDetails {
    pub reason: String,
    pub replicas: Option<i64>,
    /// Named scores at the moment of the pick.
    pub scores: BTreeMap<String, i64>,
    pub group: Option<Group>,
    /// Picked, but not rolled out yet: dropped first if there are too many.
    pub pending: bool,
    /// No longer picked, but keeps its copy until the removal is published.
    pub leaving: bool,
    /// Leaves, and the gate held its removal when the workload was published without it.
    pub held: bool,
}

impl Pick {
    pub fn new(cluster: impl Into<Arc<str>>, details: impl Into<Arc<PickDetails>>) -> Pick {
        Pick { cluster: cluster.into(), details: details.into() }
    }

    /// Returns a pick without a reason.
    pub fn of(cluster: impl Into<Arc<str>>) -> Pick {
        Pick::new(cluster, PickDetails::default())
    }

    /// Changes the details of this pick alone.
    pub fn with(mut self, change: impl FnOnce(&mut PickDetails)) -> Pick {
        change(Arc::make_mut(&mut self.details));
        self
    }

    /// Lets picks with equal details share them. A fleet has a pick for each copy, but few different details.
    pub fn share_details(picks: &mut [Pick]) {
        let mut known: BTreeSet<Arc<PickDetails>> = BTreeSet::new();
        let mut last: Option<Arc<PickDetails>> = None;
        for pick in picks {
            if last.as_ref().is_some_and(|last| Arc::ptr_eq(last, &pick.details)) {
                continue;
            }
            match known.get(&pick.details) {
                Some(shared) => pick.details = shared.clone(),
                None => drop(known.insert(pick.details.clone())),
            }
            last = Some(pick.details.clone());
        }
    }
}

impl Ord for Pick {
    /// Compares by cluster, then by details. Most compared picks share both, so that neither is read.
    fn cmp(&self, other: &Pick) -> Ordering {
        let Pick { cluster, details } = self;
        let by_cluster =
            || if Arc::ptr_eq(cluster, &other.cluster) { Equal } else { cluster.cmp(&other.cluster) };
        let by_details =
            || if Arc::ptr_eq(details, &other.details) { Equal } else { details.cmp(&other.details) };
        by_cluster().then_with(by_details)
    }
}

impl PartialOrd for Pick {
    fn partial_cmp(&self, other: &Pick) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Pick {
    fn eq(&self, other: &Pick) -> bool {
        self.cmp(other) == Equal
    }
}

impl Eq for Pick {}

impl Deref for Pick {
    type Target = PickDetails;

    fn deref(&self) -> &PickDetails {
        &self.details
    }
}

impl DerefMut for Pick {
    fn deref_mut(&mut self) -> &mut PickDetails {
        Arc::make_mut(&mut self.details)
    }
}

/// A decision group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    pub index: usize,
    pub name: String,
}

/// The number of clusters excluded for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub reason: String,
    pub clusters: usize,
}

/// A condition in the dialect's own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub kind: String,
    pub status: bool,
    pub reason: String,
    pub message: String,
}

/// A cluster's copy of an object that could not be made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Failure {
    pub cluster: String,
    pub object: ObjectId,
    /// The fault is in an override, not in the template.
    pub of_override: bool,
    /// A text for people.
    pub reason: String,
}

/// The counts from which a dialect makes the condition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The number of candidate clusters.
    pub candidates: usize,
    /// Candidates that passed the filters.
    pub passed: usize,
    pub picked: usize,
    /// The wanted number, if the policy has one.
    pub wanted: Option<usize>,
    /// Wanted names that did not pass.
    pub unmet: Vec<String>,
}

/// A SHA-256 hash, cut to 16 bytes: long enough to distinguish inputs, short enough to read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest(pub [u8; 16]);

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|()| D::Error::custom(format_args!("`{text}` is no digest")))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for Digest {
    type Err = ();

    fn from_str(text: &str) -> Result<Digest, ()> {
        let mut bytes = [0; 16];
        if text.len() != 32 || !text.is_ascii() {
            return Err(());
        }
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[index * 2..index * 2 + 2], 16).map_err(|_| ())?;
        }
        Ok(Digest(bytes))
    }
}

impl Decision {
    /// Returns a decision that picks no cluster. `source` is the file of the placement.
    pub fn new(key: Key, source: impl Into<String>) -> Decision {
        Decision {
            key,
            source: source.into(),
            picks: Shared::new(),
            refused: Vec::new(),
            condition: None,
            digest: None,
            policy: None,
            objects: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// Lets picks share their details, and reuses equal picks of an earlier decision, so that comparing the
    /// two is free.
    pub fn share_picks(&mut self, earlier: Option<&Decision>) {
        Pick::share_details(&mut self.picks);
        self.picks.shrink_to_fit();
        if let Some(earlier) = earlier.filter(|earlier| earlier.picks == self.picks) {
            self.picks = earlier.picks.clone();
        }
    }

    /// Clears the marks of clusters that wait for their turn or only keep a copy: a release step sets them
    /// later.
    pub fn forget_turns(&mut self) {
        if self.picks.iter().any(|pick| pick.pending || pick.leaving) {
            let picked = self.picked().cloned();
            self.picks = picked.map(|pick| pick.with(|details| details.pending = false)).collect();
            Pick::share_details(&mut self.picks);
        }
    }

    /// Returns the picks without clusters that only keep a copy.
    pub fn picked(&self) -> impl Iterator<Item = &Pick> {
        self.picks.iter().filter(|pick| !pick.leaving)
    }

    /// Returns a cursor for looking up many clusters.
    pub fn cursor(&self) -> PickCursor<'_> {
        PickCursor::of(&self.picks)
    }

    /// Reports whether a cluster was picked.
    pub fn has(&self, cluster: &str) -> bool {
        self.pick(cluster).is_some()
    }

    /// Reports whether a cluster was picked and may have the workload already.
    pub fn serves(&self, cluster: &str) -> bool {
        self.pick(cluster).is_some_and(|pick| !pick.pending)
    }

    pub fn pick(&self, cluster: &str) -> Option<&Pick> {
        self.picks.binary_search_by(|pick| (*pick.cluster).cmp(cluster)).ok().map(|index| &self.picks[index])
    }
}
