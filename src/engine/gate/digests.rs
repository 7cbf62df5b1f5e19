//! The digests by which people approve losses.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest as _, Sha256};

use crate::state::State;
use crate::state::ledger::{Place, Places};
use berth_base::model::{Decision, Digest, Key, Pick};

/// Returns the digest of exactly these losses, in any order.
pub fn digest<'a>(places: impl IntoIterator<Item = &'a Place>) -> Digest {
    digest_again(&places.into_iter().collect(), 0)
}

/// Returns the digest that approves several groups at once, by the digest of each.
pub fn digest_of_all(digests: &BTreeSet<Digest>) -> Option<Digest> {
    let mut one = digests.iter();
    if let (Some(only), None) = (one.next(), one.next()) {
        return Some(*only);
    }
    let mut hash = Sha256::new();
    digests.iter().for_each(|digest| hash.update(digest.0));
    (!digests.is_empty()).then(|| cut(hash))
}

/// Returns the digest to approve, and the digests that were used before: each used digest is replaced by the
/// next one. Where policy tests fail, the digest also covers the new placements.
pub(super) fn unused_digest(
    places: &Places,
    failing: &[FailingPlacement],
    used: &BTreeMap<Digest, u64>,
) -> (Digest, Vec<Digest>) {
    let places = places.iter().collect();
    let mut earlier = Vec::new();
    loop {
        let mut digest = digest_again(&places, earlier.len());
        for placement in failing {
            let mut hash = Sha256::new();
            hash.update(digest.0);
            placement.iter().for_each(|part| put(&mut hash, part));
            digest = cut(hash);
        }
        if !used.contains_key(&digest) {
            return (digest, earlier);
        }
        earlier.push(digest);
    }
}

/// A placement that makes policy tests fail, as the parts that an approval of it names.
pub(super) type FailingPlacement = Vec<String>;

/// Returns the desired placement of a workload, and the policy tests that it makes fail.
pub(super) fn failing_placement(
    key: &Key,
    failed: &BTreeMap<String, String>,
    desired: &State,
) -> FailingPlacement {
    let mut parts = vec![key.kind_and_group(), key.full_name(), failed.len().to_string()];
    parts.extend(failed.keys().cloned());
    let picked = desired.decisions.get(key).into_iter().flat_map(Decision::picked);
    let replicas = |pick: &Pick| pick.replicas.map_or_else(String::new, |replicas| replicas.to_string());
    parts.extend(picked.flat_map(|pick| [pick.cluster.to_string(), replicas(pick)]));
    parts
}

/// Adds a text to a digest. The length comes first, so that two lists of texts never give the same bytes.
fn put(hash: &mut Sha256, text: &str) {
    hash.update(text.len().to_be_bytes());
    hash.update(text.as_bytes());
}

fn digest_again(places: &BTreeSet<&Place>, times: usize) -> Digest {
    let mut hash = Sha256::new();
    for (cluster, object) in places {
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
