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
    /// The source file the placement stands in.
    pub source: String,
    /// By cluster name, ascending.
    pub picks: Shared<Vec<Pick>>,
    /// The clusters not picked, summed up by reason. Only where it picks none, or fewer than wanted; in older records
    /// always.
    pub refused: Vec<Refused>,
    pub condition: Option<Condition>,
    /// Of what the decision read. `None` means it must be decided again.
    pub digest: Option<Digest>,
    /// The policy's text it was made under. `None` in older records: taken as unchanged.
    pub policy: Option<Packed>,
    /// The objects that go to the picked clusters; empty for a placement without a workload.
    pub objects: Vec<ObjectId>,
    /// Copies that could not be rendered: these clusters keep the last good form, or have none.
    pub failures: Vec<Failure>,
}

/// A picked cluster. Its details read like fields of its own.
#[derive(Clone, Debug)]
pub struct Pick {
    /// Shared with the cluster's other picks.
    pub cluster: Arc<str>,
    /// Shared by picks that are alike, see [`Pick::share_details`].
    pub details: Arc<PickDetails>,
}

/// All that a decision says of a picked cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PickDetails {
    pub reason: String,
    pub replicas: Option<i64>,
    /// Named scores at the moment of the pick.
    pub scores: BTreeMap<String, i64>,
    pub group: Option<Group>,
    /// Decided, but not rolled out yet: the first to go where there are too many.
    pub pending: bool,
    /// Not picked any more, and it keeps its copy until somebody lets the removal out.
    pub leaving: bool,
    /// It leaves, and its removal was held for approval when the others went on without it.
    pub held: bool,
}

impl Pick {
    pub fn new(cluster: impl Into<Arc<str>>, details: impl Into<Arc<PickDetails>>) -> Pick {
        Pick { cluster: cluster.into(), details: details.into() }
    }

    /// A pick without a reason.
    pub fn of(cluster: impl Into<Arc<str>>) -> Pick {
        Pick::new(cluster, PickDetails::default())
    }

    /// Changes the details of this pick alone.
    pub fn with(mut self, change: impl FnOnce(&mut PickDetails)) -> Pick {
        change(Arc::make_mut(&mut self.details));
        self
    }

    /// Makes picks with equal details share them. A fleet has a pick for each copy, and few different details.
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
    /// By cluster, then by details. Most picks that are compared share both, which costs no look at either.
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
    /// An override is at fault, and not the template.
    pub of_override: bool,
    /// Words for people.
    pub reason: String,
}

/// The counts from which a dialect words the condition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Clusters that were candidates at all.
    pub candidates: usize,
    /// Candidates that passed the filters.
    pub passed: usize,
    pub picked: usize,
    /// The number asked for, where the policy has one.
    pub wanted: Option<usize>,
    /// Names asked for that did not pass.
    pub unmet: Vec<String>,
}

/// A SHA-256, cut to 16 bytes: enough to tell inputs apart, short enough to read.
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
    /// A decision that picks no cluster. `source` is the file of the placement.
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

    /// Makes picks share their details, and takes equal picks of an earlier decision over: comparing these costs nothing.
    pub fn share_picks(&mut self, earlier: Option<&Decision>) {
        Pick::share_details(&mut self.picks);
        self.picks.shrink_to_fit();
        if let Some(earlier) = earlier.filter(|earlier| earlier.picks == self.picks) {
            self.picks = earlier.picks.clone();
        }
    }

    /// Forgets which clusters wait for their turn or only keep a copy: a step decides that later.
    pub fn forget_turns(&mut self) {
        if self.picks.iter().any(|pick| pick.pending || pick.leaving) {
            let picked = self.picked().cloned();
            self.picks = picked.map(|pick| pick.with(|details| details.pending = false)).collect();
            Pick::share_details(&mut self.picks);
        }
    }

    /// The picks without the clusters that only keep a copy.
    pub fn picked(&self) -> impl Iterator<Item = &Pick> {
        self.picks.iter().filter(|pick| !pick.leaving)
    }

    /// For asking about many clusters.
    pub fn cursor(&self) -> PickCursor<'_> {
        PickCursor::of(&self.picks)
    }

    /// Reports whether a cluster was picked.
    pub fn has(&self, cluster: &str) -> bool {
        self.pick(cluster).is_some()
    }

    /// Reports whether a cluster was picked and may have the workload by now.
    pub fn serves(&self, cluster: &str) -> bool {
        self.pick(cluster).is_some_and(|pick| !pick.pending)
    }

    pub fn pick(&self, cluster: &str) -> Option<&Pick> {
        self.picks.binary_search_by(|pick| (*pick.cluster).cmp(cluster)).ok().map(|index| &self.picks[index])
    }
}
