//! The survey of a cluster: one list per owned kind, and dry runs of objects that may differ from their wanted form.
//!
//! An object certainly equals its wanted form if it has the form's hash and berth still owns every wanted field.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::authorization::v1::{ResourceRule, SelfSubjectRulesReview};
use kube::api::{Api, PostParams};

use super::super::BackendError;
use super::api_client::{ApiClient, patiently};
use super::connection::Connection;
use super::identity::{group_kind, parse_group_kind};
use super::session::{ALTERED_INTERVAL, ClusterSession, TrackedObject};
use super::watching::cached_object::WantedObject;
use super::watching::kind_watch::KindScope;
use crate::sync::desired::{Annotations, Desired};
use crate::sync::health::Health;
use crate::sync::plan::{Form, Live, Version};
use berth_base::backoff::pace::paced;
use berth_base::model::ObjectId;
use berth_base::model::object::version_of;

pub(crate) type DesiredMap = BTreeMap<ObjectId, Desired>;
pub(crate) type LiveMap = BTreeMap<ObjectId, Live>;

/// The number of kinds listed at once. Each list is read in pages.
const LISTS: usize = 2;

impl ClusterSession {
    pub async fn survey(&mut self, desired: &DesiredMap) -> Result<LiveMap, BackendError> {
        if self.connection.take_renewed() {
            self.watching.begin_anew();
        }
        self.sync.begin();
        self.pod_reasons.begin(self.watching.is_on());
        self.drift.begin();
        let known = self.connection.know_kinds(desired.values(), self.parent.kinds()).await;
        known.map_err(|failure| self.connection.api.whole(&failure))?;
        let mut found = self.list_owned(desired).await?;
        self.drop_other_names(desired, &mut found);
        self.connection.look_for_accounts(desired.keys().chain(found.keys())).await;
        let is_wanted = |id: &ObjectId| desired.contains_key(id);
        self.retries.retain(is_wanted);
        self.deadlines.retain(is_wanted);
        self.drift.retain(is_wanted);
        self.existing.retain(is_wanted);
        self.recreated.retain(|id, _| is_wanted(id));
        self.altered.retain(|id, _| is_wanted(id));
        self.met_existing = false;
        self.dry_run_uncertain(desired, &mut found).await?;
        Ok(found)
    }

    /// Stores the wanted objects. Unchanged objects keep their hashes.
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
        self.drift.forget_forms(|id| match (before.get(id), desired.get(id)) {
            (Some(before), Some(desired)) => !is_kept(&before.desired, desired),
            _ => false,
        });
        let form = |(id, desired): (&ObjectId, &Desired)| {
            let kept = before.get(id).filter(|known| is_kept(&known.desired, desired));
            let hash = kept.map_or_else(
                || self.connection.api.identity.hash(&desired.bytes).into(),
                |it| it.hash.clone(),
            );
            (id.clone(), WantedObject { desired: desired.clone(), hash, rules: self.rules.clone() })
        };
        self.watching.shared.cache().want(Arc::new(desired.iter().map(form).collect()));
    }

    /// Returns the kinds that may contain berth's objects, and whether each will be watched.
    async fn scopes(&self, desired: &DesiredMap) -> BTreeMap<KindScope, bool> {
        let Connection { api, kinds: served_kinds, .. } = &self.connection;
        let mut kinds: BTreeMap<(String, String), Option<String>> = BTreeMap::new();
        for object in desired.values() {
            let key = (object.id.group.to_string(), object.id.kind.to_string());
            kinds.insert(key, Some(version_of(object.api_version()).to_owned()));
        }
        let wanted: BTreeSet<(String, String)> = kinds.keys().cloned().collect();
        let has_parent = self.parent.current.is_some();
        if has_parent {
            let owned = self.parent.kinds().map(|name| parse_group_kind(name));
            kinds.extend_missing(owned.map(|(group, kind)| (group.to_owned(), kind.to_owned())));
        } else {
            // Without a parent object, any kind may contain owned objects.
            kinds.extend_missing(served_kinds.managed());
        }
        // Without a parent object, most kinds contain none of berth's objects, and berth may have no right to list
        // them.
        let rights = match has_parent {
            true => ListRights::default(),
            false => ListRights::ask(api).await,
        };
        let mut scopes = BTreeMap::new();
        for ((group, kind), version) in kinds {
            let named = version.and_then(|version| served_kinds.version(&group, &kind, &version));
            let Some(served) = named.or_else(|| served_kinds.preferred(&group, &kind)) else { continue };
            if !wanted.contains(&(group.clone(), kind.clone())) && !rights.may_list(&group, &served.plural) {
                continue;
            }
            let scope = KindScope {
                group: group.as_str().into(),
                kind: kind.as_str().into(),
                version: served.version.clone(),
                path: served.path(&group, ""),
            };
            scopes.insert(scope, has_parent || wanted.contains(&(group, kind)));
        }
        scopes
    }

    async fn list_owned(&mut self, desired: &DesiredMap) -> Result<LiveMap, BackendError> {
        self.take_wanted(desired);
        let has_parent = self.parent.current.is_some();
        let at_once = if has_parent { LISTS } else { self.connection.at_once };
        let scopes = self.scopes(desired).await;
        let owned: BTreeSet<String> = self.parent.kinds().cloned().collect();
        let is_owned = |scope: &KindScope| owned.contains(&group_kind(&scope.group, &scope.kind));
        let failed = self.watching.look(scopes, is_owned, at_once, &self.connection.api).await;
        let mut found = self.note_unseen(desired, failed).await?;
        let cache = self.watching.shared.cache();
        let wanted = cache.wanted();
        for (id, entry) in cache.entries() {
            let form = wanted.get(id);
            if found.contains_key(id) || (!entry.owned && form.is_none()) || self.sync.is_unseen(id) {
                continue;
            }
            let is_due = self.altered.get(id).is_some_and(|at| at.elapsed() >= paced(ALTERED_INTERVAL));
            // An object removed for recreation has its own time limit, and blocks nothing.
            let is_recreated = entry.leaving.is_some() && self.recreated.get(id) == Some(&entry.uid);
            let same = is_recreated || form.is_some_and(|form| entry.is_same(form) && !is_due);
            if let Some(form) = form.filter(|_| same) {
                self.retries.remove(id);
                self.drift.in_place(id, &form.hash);
            }
            let live = match (&entry.leaving, form) {
                (Some(why), Some(_)) if !is_recreated => Form::Faulty(why.to_string()),
                _ => Form::There { version: Version(entry.uid.to_string()), same },
            };
            // For an object that equals its wanted form and is healthy, the cache entry is enough.
            if !same || !entry.is_at_rest() {
                let hash = form.map(|form| form.hash.clone()).unwrap_or_default();
                let mut seen = TrackedObject { hash, ..TrackedObject::from_entry(entry, form) };
                if let Some(why) = entry.leaving.as_deref().filter(|_| is_recreated) {
                    seen.health = Health::Progressing(why.to_owned());
                }
                self.sync.tracked.insert(id.clone(), seen);
            }
            let annotations = entry.annotations.clone();
            let stays = self.protected.reason_to_stay(id, entry.has_owner);
            found.insert(id.clone(), Live { owned: entry.owned, form: live, annotations, stays });
        }
        Ok(found)
    }

    /// Drops the duplicate of an object that is served under two groups: if it is wanted under one group, berth must
    /// not remove it under the other.
    fn drop_other_names(&mut self, desired: &DesiredMap, found: &mut LiveMap) {
        let uid = |live: &Live| match &live.form {
            Form::There { version, .. } => Some(version.0.clone()),
            Form::Absent | Form::Faulty(_) | Form::Refused(_) => None,
        };
        let wanted: BTreeSet<String> = found
            .iter()
            .filter(|(id, _)| desired.contains_key(*id))
            .filter_map(|(_, live)| uid(live))
            .collect();
        let again = found.iter().filter(|(id, live)| {
            !desired.contains_key(*id) && uid(live).is_some_and(|uid| wanted.contains(&uid))
        });
        for id in again.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            found.remove(&id);
            self.sync.tracked.remove(&id);
            self.sync.other_names.insert(id);
        }
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

/// Records why an object must not be changed, whether it exists or not.
pub fn refuse(found: &mut LiveMap, id: &ObjectId, message: String) {
    match found.get_mut(id) {
        Some(live) => live.form = Form::Refused(message),
        None => drop(found.insert(id.clone(), not_ours(Form::Refused(message)))),
    }
}

/// Makes the live state of an object that berth does not own.
pub(crate) fn not_ours(form: Form) -> Live {
    Live { owned: false, form, annotations: Annotations::default(), stays: None }
}

/// The rights to list kinds in all namespaces.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ListRights {
    /// `None` if the server cannot list all rights.
    rules: Option<Vec<ResourceRule>>,
}

impl ListRights {
    /// Asks for the account's rights. The answer includes rights in berth's namespace alone.
    pub async fn ask(api: &ApiClient) -> ListRights {
        let mut question = SelfSubjectRulesReview::default();
        question.spec.namespace = Some(api.identity.namespace.clone());
        let (reviews, params) = (Api::all(api.server.client.clone()), PostParams::default());
        let answer = patiently(|| reviews.create(&params, &question)).await;
        let known = answer.ok().and_then(|answer| answer.status).filter(|known| !known.incomplete);
        ListRights { rules: known.map(|known| known.resource_rules) }
    }

    /// Reports whether the account may list all objects of a kind.
    fn may_list(&self, group: &str, plural: &str) -> bool {
        let has = |all: &[String], one: &str| all.iter().any(|it| it == "*" || it == one);
        let some = |all: &Option<Vec<String>>, one: &str| all.as_deref().is_some_and(|all| has(all, one));
        let allows = |rule: &ResourceRule| {
            rule.resource_names.as_ref().is_none_or(Vec::is_empty)
                && has(&rule.verbs, "list")
                && some(&rule.api_groups, group)
                && some(&rule.resources, plural)
        };
        self.rules.as_ref().is_none_or(|rules| rules.iter().any(allows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_is_one_to_list_all_of_a_kind() {
        let rule = |verb: &str, group: &str, plural: &str, name: &str| ResourceRule {
            verbs: vec![verb.to_owned()],
            api_groups: Some(vec![group.to_owned()]),
            resources: Some(vec![plural.to_owned()]),
            resource_names: (!name.is_empty()).then(|| vec![name.to_owned()]),
        };
        let rights = |rules| ListRights { rules: Some(rules) };
        let some = rights(vec![
            rule("list", "apps", "deployments", ""),
            rule("get", "", "secrets", ""),
            rule("list", "", "configmaps", "one"),
            rule("*", "batch", "*", ""),
        ]);
        assert!(some.may_list("apps", "deployments") && some.may_list("batch", "jobs"));
        for (group, plural) in [("", "secrets"), ("", "configmaps"), ("apps", "daemonsets")] {
            assert!(!some.may_list(group, plural), "{plural}");
        }
        assert!(ListRights::default().may_list("", "secrets"), "what is unknown is tried");
    }
}
