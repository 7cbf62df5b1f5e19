//! The present knowledge of objects, from the last survey and later writes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value as Json;

use super::identity::group_kind_of;
use super::pod_reasons;
use super::watching::cached_object::{CachedObject, WantedObject};
use crate::sync::health::Health;
use crate::sync::health::custom::HealthRules;
use crate::sync::strategy::Finding;
use berth_base::model::ObjectId;
use berth_base::model::status::Problem;

/// The knowledge and notes of the present sync.
#[derive(Debug, Default)]
pub(crate) struct CurrentSync {
    /// The start of the survey.
    pub surveyed: Option<Instant>,
    /// Cache: the objects after the survey and later writes. Objects at rest are only in the cache of the watches.
    pub tracked: BTreeMap<ObjectId, TrackedObject>,
    /// Duplicates of wanted objects, served under another group.
    pub other_names: BTreeSet<ObjectId>,
    /// Kinds that may contain berth's objects, and that could not be listed.
    pub unseen: BTreeSet<String>,
    pub notes: Vec<Problem>,
}

impl CurrentSync {
    /// Forgets the objects of the last sync.
    pub fn begin(&mut self) {
        self.tracked.clear();
        self.other_names.clear();
        self.surveyed = Some(Instant::now());
    }

    /// Reports whether an object's kind could not be listed.
    pub(crate) fn is_unseen(&self, id: &ObjectId) -> bool {
        !self.unseen.is_empty() && self.unseen.contains(&group_kind_of(id))
    }

    /// Records an object whose drift berth leaves, with a remark for the report.
    pub(crate) fn leave_drifted(&mut self, id: &ObjectId, remark: Option<String>) {
        let seen = self.tracked.entry(id.clone()).or_insert_with(|| TrackedObject {
            owned: true,
            health: Health::Healthy,
            ..TrackedObject::default()
        });
        seen.remark = remark;
    }
}

/// The present knowledge of one object.
#[derive(Debug, Default)]
pub struct TrackedObject {
    pub owned: bool,
    /// The live object, if a change needs it.
    pub live: Option<Arc<Json>>,
    /// True if somebody changed the object while the wanted form stayed the same.
    pub drifted: bool,
    /// A remark for the report, without any action.
    pub remark: Option<String>,
    /// The UID of an owned object whose form is outdated, whatever its content.
    pub older: Option<String>,
    pub hash: Arc<str>,
    pub health: Health,
    /// The label selector of its pods, if it has some.
    pub pods: Option<String>,
    /// The verdict of its strategy.
    pub finding: Option<Finding>,
}

impl TrackedObject {
    /// Builds the knowledge of an object from its cache entry.
    pub(crate) fn from_entry(entry: &CachedObject, wanted: Option<&WantedObject>) -> TrackedObject {
        let is_older = wanted.is_some_and(|wanted| entry.is_plainly_older(wanted));
        TrackedObject {
            owned: entry.owned,
            drifted: wanted.is_some_and(|wanted| entry.has_drifted(wanted)),
            live: entry.live.clone(),
            older: (is_older && entry.live.is_none()).then(|| entry.uid.to_string()),
            health: entry.health.clone(),
            pods: entry.pods.as_deref().map(str::to_owned),
            finding: entry.finding.clone(),
            ..TrackedObject::default()
        }
    }

    /// Reads the health of a live object, and the selector of its pods.
    pub fn of(object: &Json, rules: &HealthRules) -> TrackedObject {
        TrackedObject {
            health: rules.judge(object),
            pods: pod_reasons::selector_of(object),
            ..TrackedObject::default()
        }
    }
}
