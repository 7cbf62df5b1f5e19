//! Removals: the copies that the current state has and the next has not, by workload.
//!
//! Places count, not owners: an object that another workload puts into the same place has moved, and a copy
//! that two workloads share is removed only with the last of them.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest as _, Sha256};

use crate::state::{Comparison, State};
use berth_base::model::{Decision, Digest, Key, ObjectId, Pick};

/// Objects in clusters.
pub type Pairs = BTreeSet<(String, ObjectId)>;

/// The cause of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Somebody edited the fleet repository.
    Source,
    /// A status, or time.
    Itself,
    /// An edit together with a status or time.
    Both,
}

impl Cause {
    const ALL: [Cause; 3] = [Cause::Source, Cause::Itself, Cause::Both];

    /// The cause of two removals taken together.
    pub(super) fn and(self, other: Cause) -> Cause {
        if self == other { self } else { Cause::Both }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Cause::Source => "source",
            Cause::Itself => "status",
            Cause::Both => "both",
        }
    }

    pub(super) fn of_word(word: &str) -> Option<Cause> {
        Cause::ALL.into_iter().find(|cause| cause.word() == word)
    }
}

/// The removed files as objects of workloads. A shared copy is in the set of each workload that shared it.
pub(super) fn by_workload<'a>(states: &Comparison<'a>) -> BTreeMap<&'a Key, Pairs> {
    let mut removals: BTreeMap<&Key, Pairs> = BTreeMap::new();
    for file in states.removed() {
        for owner in states.owners.holders(file.cluster, file.path) {
            removals.entry(owner.key()).or_default().insert((file.cluster.to_owned(), owner.object.clone()));
        }
    }
    removals
}

/// Returns the digest of exactly these removals, in any order.
pub fn digest<'a>(pairs: impl IntoIterator<Item = &'a (String, ObjectId)>) -> Digest {
    digest_again(&pairs.into_iter().collect(), 0)
}

/// The digest that approves several removals at once, by the digest of each.
pub fn digest_of_all(digests: &BTreeSet<Digest>) -> Option<Digest> {
    let mut one = digests.iter();
    if let (Some(only), None) = (one.next(), one.next()) {
        return Some(*only);
    }
    let mut hash = Sha256::new();
    digests.iter().for_each(|digest| hash.update(digest.0));
    (!digests.is_empty()).then(|| cut(hash))
}

/// Returns the digest to approve, and those used before. A used digest is replaced by the next one. With a
/// placement, the digest names that too.
pub(super) fn unused_digest(
    pairs: &Pairs,
    placement: Option<&Placement>,
    used: &BTreeSet<Digest>,
) -> (Digest, Vec<Digest>) {
    let pairs = pairs.iter().collect();
    let mut earlier = Vec::new();
    loop {
        let mut digest = digest_again(&pairs, earlier.len());
        if let Some(placement) = placement {
            let mut hash = Sha256::new();
            hash.update(digest.0);
            placement.iter().for_each(|part| put(&mut hash, part));
            digest = cut(hash);
        }
        if !used.contains(&digest) {
            return (digest, earlier);
        }
        earlier.push(digest);
    }
}

/// A placement that makes policy tests fail, as the parts that an approval of it names.
pub(super) type Placement = Vec<String>;

/// Returns the placement of a workload in the next state, and the policy tests that it makes fail.
pub(super) fn placement(key: &Key, failed: &BTreeMap<String, String>, next: &State) -> Placement {
    let mut parts = vec![key.kind_and_group(), key.full_name(), failed.len().to_string()];
    parts.extend(failed.keys().cloned());
    let picked = next.decisions.get(key).into_iter().flat_map(Decision::picked);
    let replicas = |pick: &Pick| pick.replicas.map_or_else(String::new, |replicas| replicas.to_string());
    parts.extend(picked.flat_map(|pick| [pick.cluster.to_string(), replicas(pick)]));
    parts
}

/// Adds a text to a digest. The length tells where the text ends, whatever it holds.
fn put(hash: &mut Sha256, text: &str) {
    hash.update(text.len().to_be_bytes());
    hash.update(text.as_bytes());
}

fn digest_again(pairs: &BTreeSet<&(String, ObjectId)>, times: usize) -> Digest {
    let mut hash = Sha256::new();
    for (cluster, object) in pairs {
        for part in [cluster.as_str(), &object.group, &object.kind, &object.namespace, &object.name] {
            put(&mut hash, part);
        }
    }
    if times > 0 {
        hash.update(times.to_be_bytes());
    }
    cut(hash)
}

fn cut(hash: Sha256) -> Digest {
    let mut digest = Digest([0; 16]);
    for (to, from) in digest.0.iter_mut().zip(hash.finalize()) {
        *to = from;
    }
    digest
}
