//! Builds the cache entry of a live object: its owner, its difference from the wanted form, its health. The content
//! is kept only if it must be compared again.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value as Json;

use super::super::compare::{applied_hash, as_applied, finding, leaving, uid_of};
use super::super::identity::Identity;
use super::super::pod_reasons;
use super::super::removal::has_owner;
use crate::sync::desired::{Annotations, Desired, own_annotations};
use crate::sync::health::custom::HealthRules;
use crate::sync::health::{self, Health};
use crate::sync::strategy::{Finding, Strategy, WriteLimit};
use berth_base::model::ObjectId;
use berth_base::model::annotation::{IGNORE, IGNORE_MANAGERS, INITIAL, RETAIN, SEALED};

/// The wanted objects, each with the hash of its form.
pub(crate) type WantedObjects = BTreeMap<ObjectId, WantedObject>;

#[derive(Clone, Debug)]
pub struct WantedObject {
    pub desired: Desired,
    pub hash: Arc<str>,
    pub rules: Arc<HealthRules>,
}

/// An object's version as a growing number; `None` if the server's versions are no numbers.
pub type VersionNumber = Option<u64>;

/// A cache entry for one live object.
#[derive(Clone, Default, PartialEq)]
pub struct CachedObject {
    pub uid: Box<str>,
    pub version: VersionNumber,
    pub owned: bool,
    /// The hash in the object's annotation.
    pub applied: Option<Arc<str>>,
    /// True if berth still owns everything applied with this hash, and no value differs.
    pub intact: bool,
    /// True if berth owns everything applied with this hash, and some values differ: the cluster's admission changed
    /// them.
    pub altered: bool,
    pub leaving: Option<Box<str>>,
    /// True if the object has an owner, whose removal also removes the object.
    pub has_owner: bool,
    pub health: Health,
    /// The verdict of its strategy, as far as the object alone determines it.
    pub finding: Option<Finding>,
    /// The label selector of its pods, if it has some.
    pub pods: Option<Box<str>>,
    pub annotations: Annotations,
    /// The object itself, if it may differ from the wanted form and must be compared again.
    pub live: Option<Arc<Json>>,
}

// The content may be a Secret's.
impl fmt::Debug for CachedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedObject")
            .field("owned", &self.owned)
            .field("intact", &self.intact)
            .finish_non_exhaustive()
    }
}

impl CachedObject {
    /// Builds the entry of an object with berth's label. `None` if the object is neither owned nor wanted.
    pub fn of(object: Json, identity: &Identity, wanted: Option<&WantedObject>) -> Option<CachedObject> {
        let owned = identity.owns(&object);
        if !owned && wanted.is_none() {
            return None;
        }
        let text = applied_hash(&object);
        let carries = |wanted: &&WantedObject| text == Some(&*wanted.hash);
        let same = wanted.filter(carries);
        let applied = match same {
            // Most objects have the wanted hash, so the allocation is shared.
            Some(wanted) => Some(wanted.hash.clone()),
            None => text.map(Arc::from),
        };
        let own = same.filter(|_| owned);
        let altered = own.and_then(|wanted| as_applied(identity, &object, &wanted.desired, &wanted.hash));
        let intact = altered.as_ref().is_some_and(Vec::is_empty);
        let mut entry = CachedObject {
            uid: uid_of(&object).into(),
            version: version_of(&object),
            owned,
            applied,
            intact,
            altered: altered.is_some() && !intact,
            leaving: leaving(&object).map(String::into_boxed_str),
            has_owner: has_owner(&object),
            health: wanted.map_or_else(|| health::of(&object), |wanted| wanted.rules.judge(&object)),
            finding: wanted.and_then(|it| finding(&it.desired, &it.hash, &object, owned, &[])),
            pods: pod_reasons::selector_of(&object).map(String::into_boxed_str),
            annotations: annotations_of(&object, wanted),
            live: None,
        };
        if wanted.is_some_and(|wanted| !entry.is_same(wanted) && !entry.is_plainly_older(wanted)) {
            entry.live = Some(Arc::new(object));
        }
        Some(entry)
    }

    /// Reports whether the object certainly equals its wanted form.
    pub fn is_same(&self, wanted: &WantedObject) -> bool {
        self.owned && self.intact && self.applied.as_deref() == Some(&*wanted.hash)
    }

    /// Reports whether the object itself needs no report: healthy, without a finding, and not being removed.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.health == Health::Healthy && self.finding.is_none() && self.leaving.is_none()
    }

    /// Reports whether messages must not show values of the object.
    pub(crate) fn is_sealed(&self) -> bool {
        self.annotations.contains_key(SEALED)
    }

    /// Reports whether berth owns the object, and its form is outdated whatever its content.
    pub(crate) fn is_plainly_older(&self, wanted: &WantedObject) -> bool {
        self.owned
            && !self.is_sealed()
            && self.applied.as_deref() != Some(&*wanted.hash)
            && [RETAIN, INITIAL, IGNORE, IGNORE_MANAGERS]
                .iter()
                .all(|name| wanted.desired.annotation(name).is_none())
            && Strategy::of(&wanted.desired).way == WriteLimit::Write
    }

    /// Reports whether somebody changed the object while the wanted form stayed the same.
    pub(crate) fn has_drifted(&self, wanted: &WantedObject) -> bool {
        self.owned && !self.intact && self.live.is_some() && self.applied.as_deref() == Some(&*wanted.hash)
    }
}

/// Returns an object's annotations for the syncer. Shares those of the wanted form if they are equal.
fn annotations_of(object: &Json, wanted: Option<&WantedObject>) -> Annotations {
    let own = own_annotations(object);
    match wanted.map(|wanted| wanted.desired.annotations()).filter(|wanted| ***wanted == own) {
        Some(wanted) => wanted.clone(),
        None => Arc::new(own),
    }
}

pub fn version_of(object: &Json) -> VersionNumber {
    object.get("metadata")?.get("resourceVersion")?.as_str()?.parse().ok()
}
