//! The survey of a cluster: one list for each owned kind, and dry runs of objects that are not as wanted for
//! certain.
//!
//! An object is as wanted for certain if it carries the hash of the wanted form and berth still owns every wanted
//! field.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value as Json;

use super::super::BackendError;
use super::failure::Failure;
use super::identity::group_kind;
use super::list_rights::ListRights;
use super::watching::cached_object::{CachedObject, WantedObject};
use super::watching::kind_watch::KindScope;
use super::{ClusterSession, TrackedObject, pod_reasons};
use crate::sync::desired::Desired;
use crate::sync::health::custom::HealthRules;
use crate::sync::plan::{ALL_OF_KIND, Form, Live, Version};
use berth_base::model::ObjectId;
use berth_base::model::object::version_of;

pub type DesiredMap = BTreeMap<ObjectId, Desired>;
pub type LiveMap = BTreeMap<ObjectId, Live>;

/// The number of kinds listed at once, each page by page.
const LISTS: usize = 2;

impl ClusterSession {
    pub async fn survey(&mut self, desired: &DesiredMap) -> Result<LiveMap, BackendError> {
        self.tracked.clear();
        let is_followed = self.watching.is_on();
        self.reasons.retain(|_, (asked, _)| is_followed && asked.elapsed() < pod_reasons::GOOD_FOR);
        self.ignored.clear();
        self.surveyed = Some(Instant::now());
        self.know_kinds(desired).await.map_err(|failure| self.whole(&failure))?;
        let mut found = self.list_owned(desired).await?;
        self.drop_other_names(desired, &mut found);
        self.look_for_accounts(desired.keys().chain(found.keys())).await;
        self.retries.retain(|id, _| desired.contains_key(id));
        self.unhealthy.retain(|id, _| desired.contains_key(id));
        self.in_place.retain(|id, _| desired.contains_key(id));
        self.fights.retain(|id| desired.contains_key(id));
        self.dry_run_uncertain(desired, &mut found).await?;
        Ok(found)
    }

    /// Asks what is served, the first time and when a kind that is wanted or owned is not known.
    async fn know_kinds(&mut self, desired: &DesiredMap) -> Result<(), Failure> {
        let is_lost = |name: &String| {
            let (kind, group) = name.split_once('.').unwrap_or((name, ""));
            self.kinds.preferred(group, kind).is_none()
        };
        let lacks_owned = self.parent.as_ref().is_some_and(|parent| parent.kinds.iter().any(is_lost));
        if self.kinds.is_empty() || lacks_owned || desired.values().any(|object| !self.is_served(object)) {
            self.ask_kinds().await?;
        }
        Ok(())
    }

    pub async fn ask_kinds(&mut self) -> Result<(), Failure> {
        self.kinds = super::ServedKinds::ask(self.api.client()).await?;
        Ok(())
    }

    fn is_served(&self, object: &Desired) -> bool {
        self.path_of(object).is_ok() || {
            let version = api_version(object);
            self.kinds.version(&object.id.group, &object.id.kind, version_of(version)).is_some()
        }
    }

    /// Returns the path of a wanted object's collection.
    pub fn path_of(&self, object: &Desired) -> Result<String, Failure> {
        let version = api_version(object);
        match self.kinds.version(&object.id.group, &object.id.kind, version_of(version)) {
            Some(served) => served.place_of(&object.id),
            None => Err(Failure::rule(format!(
                "the cluster does not serve {} of {version}; it is applied once it does",
                object.id.kind
            ))),
        }
    }

    /// Takes over what is wanted now. What was wanted before keeps its hash.
    fn take_wanted(&mut self, desired: &DesiredMap) {
        let cache = self.watching.shared.cache();
        let before = cache.wanted();
        drop(cache);
        let is_kept = |one: &Desired, other: &Desired| one.bytes == other.bytes;
        let same = before.len() == desired.len()
            && before.iter().zip(desired).all(|((_, one), (_, other))| is_kept(&one.desired, other));
        if same {
            return;
        }
        let in_place = &mut self.in_place;
        in_place.retain(|id, _| match (before.get(id), desired.get(id)) {
            (Some(before), Some(desired)) => is_kept(&before.desired, desired),
            _ => true,
        });
        let form = |(id, desired): (&ObjectId, &Desired)| {
            let kept = before.get(id).filter(|known| is_kept(&known.desired, desired));
            let hash = kept.map_or_else(|| self.identity.hash(&desired.bytes).into(), |it| it.hash.clone());
            (id.clone(), WantedObject { desired: desired.clone(), hash, rules: self.rules.clone() })
        };
        self.watching.shared.cache().want(Arc::new(desired.iter().map(form).collect()));
    }

    /// Returns the kinds of which berth may own objects, and whether they are watched from now on.
    async fn scopes(&self, desired: &DesiredMap) -> BTreeMap<KindScope, bool> {
        let mut kinds: BTreeMap<(String, String), Option<String>> = BTreeMap::new();
        for object in desired.values() {
            let key = (object.id.group.to_string(), object.id.kind.to_string());
            kinds.insert(key, Some(version_of(api_version(object)).to_owned()));
        }
        let wanted: BTreeSet<(String, String)> = kinds.keys().cloned().collect();
        match &self.parent {
            Some(parent) => kinds.extend_missing(parent.kinds.iter().map(|kind| {
                let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
                (group.to_owned(), kind.to_owned())
            })),
            // Without a parent, owned objects may be of any kind.
            None => kinds.extend_missing(self.kinds.managed()),
        }
        // Without a parent, berth owns no objects of most kinds, and may have no right to list them.
        let rights = match &self.parent {
            Some(_) => ListRights::default(),
            None => ListRights::ask(&self.api, &self.identity.namespace).await,
        };
        let mut scopes = BTreeMap::new();
        for ((group, kind), version) in kinds {
            let named = version.and_then(|version| self.kinds.version(&group, &kind, &version));
            let Some(served) = named.or_else(|| self.kinds.preferred(&group, &kind)) else { continue };
            if !wanted.contains(&(group.clone(), kind.clone())) && !rights.may_list(&group, &served.plural) {
                continue;
            }
            let scope = KindScope {
                group: group.as_str().into(),
                kind: kind.as_str().into(),
                version: served.version.clone(),
                path: served.path(&group, ""),
            };
            scopes.insert(scope, self.parent.is_some() || wanted.contains(&(group, kind)));
        }
        scopes
    }

    async fn list_owned(&mut self, desired: &DesiredMap) -> Result<LiveMap, BackendError> {
        self.take_wanted(desired);
        let at_once = if self.parent.is_some() { LISTS } else { self.at_once };
        let scopes = self.scopes(desired).await;
        let failed = self.watching.look(scopes, at_once, &self.api, &self.identity).await;
        self.unseen.clear();
        let mut found = LiveMap::new();
        for (scope, failure) in failed {
            match failure.code() {
                // The kind disappeared, or berth could not have made objects of it.
                404 | 405 => {}
                403 if self.parent.is_none() && !desired.keys().any(|id| scope.holds(id)) => {}
                0 | 401 => return Err(self.whole(&failure)),
                _ => {
                    let words = failure.words(&*scope.kind == "Secret");
                    let message = format!("its kind cannot be listed, so it stays unchanged: {words}");
                    for id in desired.keys().filter(|id| scope.holds(id)) {
                        refuse(&mut found, id, message.clone());
                    }
                    if !desired.keys().any(|id| scope.holds(id)) {
                        // Objects left of this kind may have to be removed, and nothing else would report that.
                        let words = failure.words(false);
                        let form = Form::Faulty(format!("the live objects of its kind are unknown: {words}"));
                        let live = Live { owned: true, form, annotations: BTreeMap::new(), stays: None };
                        found.insert(ObjectId::new(&scope.group, &scope.kind, "", ALL_OF_KIND), live);
                    }
                    self.unseen.insert(group_kind(&scope.group, &scope.kind));
                }
            }
        }
        let cache = self.watching.shared.cache();
        let wanted = cache.wanted();
        for (id, entry) in cache.entries() {
            let form = wanted.get(id);
            if found.contains_key(id) || (!entry.owned && form.is_none()) {
                continue;
            }
            let same = form.is_some_and(|form| entry.is_same(form));
            if let Some(form) = form.filter(|_| same) {
                self.retries.remove(id);
                self.in_place.insert(id.clone(), form.hash.clone());
            }
            let live = match (&entry.leaving, form) {
                (Some(why), Some(_)) => Form::Faulty(why.to_string()),
                _ => Form::There { version: Version(entry.uid.to_string()), same },
            };
            let hash = form.map(|form| form.hash.clone()).unwrap_or_default();
            self.tracked.insert(
                id.clone(),
                TrackedObject { hash, checked: same, ..TrackedObject::from_entry(entry, form) },
            );
            let annotations = entry.annotations.clone();
            let stays = self.protected.reason_to_stay(id, entry.has_owner);
            found.insert(id.clone(), Live { owned: entry.owned, form: live, annotations, stays });
        }
        Ok(found)
    }
}

trait ExtendMissing {
    fn extend_missing(&mut self, kinds: impl Iterator<Item = (String, String)>);
}

impl ExtendMissing for BTreeMap<(String, String), Option<String>> {
    fn extend_missing(&mut self, kinds: impl Iterator<Item = (String, String)>) {
        for kind in kinds {
            self.entry(kind).or_insert(None);
        }
    }
}

impl TrackedObject {
    /// Builds the knowledge of an object from its cache entry.
    fn from_entry(entry: &CachedObject, wanted: Option<&WantedObject>) -> TrackedObject {
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

/// Notes why an object is not to be changed, whether it exists or not.
pub fn refuse(found: &mut LiveMap, id: &ObjectId, message: String) {
    match found.get_mut(id) {
        Some(live) => live.form = Form::Refused(message),
        None => drop(found.insert(id.clone(), not_ours(Form::Refused(message)))),
    }
}

/// Returns the live side of an object that is not berth's.
pub fn not_ours(form: Form) -> Live {
    Live { owned: false, form, annotations: BTreeMap::new(), stays: None }
}

fn api_version(object: &Desired) -> &str {
    object.object.get("apiVersion").and_then(Json::as_str).unwrap_or_default()
}
