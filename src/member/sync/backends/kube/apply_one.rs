//! Applies one object, or tries to in a dry run, and handles what can prevent it.
//!
//! Fields that the member keeps are handed over before berth omits them. Fields of earlier appliers become berth's.
//! Conflicts with others fail unless the object's annotation settles them. An object with an immutable change is
//! recreated only if its annotation allows that.

use std::sync::Arc;

use kube::api::{DeleteParams, PatchParams, Preconditions};
use serde_json::{Value as Json, json};

use super::super::BEING_REMOVED;
use super::api_client::{Action, ApiClient, Response};
use super::compare::{applied_hash, is_sealed, leaving, uid_of};
use super::failure::{Conflict, Failure, conflict_words, owners_words};
use super::field_paths::{self, Keep, Kept};
use super::handover::{self, HandOver};
use super::identity::{Identity, legacy_hubs_of, legacy_of};
use super::managed_fields::managers;
use super::unmanaged_fields::UnmanagedFields;
use crate::sync::desired::Desired;
use crate::sync::strategy::{Strategy, WriteLimit};
use berth_base::model::ObjectId;
use berth_base::model::annotation::{INITIAL, ON_CONFLICT, RECREATE, RETAIN, TAKE_OVER, TOLERATE};

/// Everything needed to apply one object.
#[derive(Clone, Debug)]
pub(crate) struct ApplyJob {
    pub id: ObjectId,
    /// True if no message may show the object's content.
    pub secret: bool,
    /// The path of its collection.
    pub path: String,
    /// The wanted form. Parsed for each request.
    desired: Desired,
    identity: Arc<Identity>,
    /// The hash of the wanted form.
    pub hash: Arc<str>,
    /// The live object, if it exists.
    pub live: Option<Arc<Json>>,
    /// True if berth already owns the object.
    pub owned: bool,
    pub take_over: bool,
    pub strategy: Strategy,
    retained: Vec<Kept>,
    /// Fields that others may change until the manifest changes.
    pub tolerated: Vec<Vec<String>>,
    take_over_equal: bool,
    /// The UID of an owned object whose form is outdated, whatever its content.
    older: Option<String>,
    left: UnmanagedFields,
    on_conflict: OnConflict,
    recreate: Recreate,
    /// True if the answer to the write shows the object's health.
    pub lively: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OnConflict {
    Fail,
    Force,
    Yield,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recreate {
    No,
    Allowed,
    DataLossAccepted,
}

/// The result of applying one object.
#[derive(Debug, Default)]
pub(crate) struct ApplyResult {
    /// True if the object did not exist before.
    pub created: bool,
    pub answer: Option<Response>,
    /// Notes for the report.
    pub notes: Vec<String>,
    /// The reason why an object removed for recreation still exists.
    pub leaving: Option<String>,
}

impl ApplyJob {
    pub fn new(
        desired: &Desired,
        path: String,
        identity: &Arc<Identity>,
        hash: Arc<str>,
        live: Option<Arc<Json>>,
    ) -> ApplyJob {
        let owned = live.as_ref().is_some_and(|live| identity.owns(live));
        ApplyJob {
            id: desired.id.clone(),
            secret: desired.is_secret() || live.as_ref().is_some_and(|live| is_sealed(live)),
            path,
            desired: desired.clone(),
            identity: identity.clone(),
            hash,
            live,
            older: None,
            owned,
            take_over: desired.annotation(TAKE_OVER) == Some("true"),
            strategy: Strategy::of(desired),
            retained: field_paths::all_kept(desired.annotation(RETAIN), desired.annotation(INITIAL)),
            tolerated: desired.annotation(TOLERATE).map(field_paths::pointers).unwrap_or_default(),
            take_over_equal: desired.annotation(TAKE_OVER) == Some("if-no-diff"),
            left: UnmanagedFields::of(desired),
            on_conflict: match desired.annotation(ON_CONFLICT) {
                Some("force") => OnConflict::Force,
                Some("yield") => OnConflict::Yield,
                _ => OnConflict::Fail,
            },
            recreate: match desired.annotation(RECREATE) {
                Some("allowed") => Recreate::Allowed,
                Some("data-loss-accepted") => Recreate::DataLossAccepted,
                _ => Recreate::No,
            },
            lively: super::super::super::health::is_lively(&desired.id.group, &desired.id.kind),
        }
    }

    /// Returns the wanted object as berth sends it.
    pub(crate) fn payload(&self) -> Json {
        self.identity.payload(&self.desired, &self.hash)
    }

    /// Returns the job with the live object.
    pub fn with(self, live: Json, identity: &Identity) -> ApplyJob {
        let secret = self.secret || is_sealed(&live);
        ApplyJob { secret, owned: identity.owns(&live), live: Some(Arc::new(live)), older: None, ..self }
    }

    /// Returns the job for an owned object with this UID, whose form is outdated.
    pub fn older(self, uid: Option<String>) -> ApplyJob {
        ApplyJob { owned: self.owned || uid.is_some(), older: uid, ..self }
    }

    pub fn is_older(&self) -> bool {
        self.older.is_some()
    }

    /// Reports whether berth may take over an existing foreign object.
    pub(crate) fn may_take_over(&self, same: bool) -> bool {
        self.take_over || (self.take_over_equal && same)
    }

    /// Reports whether the object has the hash of this payload.
    pub(crate) fn was_applied_to(&self, live: &Json) -> bool {
        applied_hash(live) == Some(&*self.hash)
    }

    /// Reports whether a foreign object is likely to exist, so that a dry run must come before the write.
    pub(crate) fn expects_another(&self) -> bool {
        self.take_over || self.take_over_equal || self.strategy.compares() || self.strategy.only_looks()
    }

    pub fn uid(&self) -> Option<&str> {
        if let Some(uid) = &self.older {
            return Some(uid);
        }
        self.live.as_ref()?.pointer("/metadata/uid")?.as_str()
    }

    /// Applies the object once as a dry run, for a preview or a comparison.
    pub(crate) async fn dry_run_once(&self, api: &ApiClient) -> Result<ApplyResult, Failure> {
        let mut object = self.payload();
        if let Some(live) = &self.live {
            self.retained.iter().for_each(|path| field_paths::keep(&mut object, live, path, Keep::Copy));
            self.left.copy(&mut object, live);
        }
        let applied = self.apply(api, object.clone(), true).await?;
        let (Some(live), Some(answer)) = (&self.live, &applied.answer) else { return Ok(applied) };
        let Some(handover) = self.take_over_from(live, &api.identity) else { return Ok(applied) };
        let mut after: Json = answer.read()?;
        if handover.remove_gone(&mut after, &object).is_empty() {
            return Ok(applied);
        }
        // The dry run of these operations adds defaults and other fields of the server.
        let operations = handover::content_operations(live, &after);
        let answer = self.edit(api, operations, true).await.map_err(|failure| self.explain(failure))?;
        Ok(ApplyResult { answer: Some(answer), ..applied })
    }

    /// Returns the hand-over for taking over an object.
    fn take_over_from(&self, live: &Json, identity: &Identity) -> Option<HandOver> {
        let may = self.take_over || self.take_over_equal;
        if self.owned || !may || self.strategy.way != WriteLimit::Write {
            return None;
        }
        self.hand_over(live, identity).filter(|handover| !handover.from.is_empty())
    }

    /// Returns the hand-over before a write.
    fn hand_over(&self, live: &Json, identity: &Identity) -> Option<HandOver> {
        let legacy = match (self.owned, self.take_over_equal) {
            (true, _) => Vec::new(),
            // Fields that people applied to an equal object stay theirs, so the take-over removes none.
            (false, true) => legacy_hubs_of(live),
            (false, false) => legacy_of(live),
        };
        let kept = field_paths::kept(live, &self.retained);
        let mut leaving: Vec<Vec<String>> = kept.into_iter().map(|kept| kept.path).collect();
        leaving.extend(self.left.leaving(live));
        HandOver::of(live, identity, self.owned, &legacy, &leaving)
    }

    /// Applies the object.
    pub async fn write(&self, api: &ApiClient) -> Result<ApplyResult, Failure> {
        if let Some(uid) = &self.older {
            let mut object = self.payload();
            object["metadata"]["uid"] = json!(uid);
            return self.apply_or_recreate(api, object).await;
        }
        let Some(live) = &self.live else { return self.make(api).await };
        let mut notes = Vec::new();
        if let Some(handover) = self.hand_over(live, &api.identity) {
            self.edit(api, handover.operations(live), false).await?;
            if !handover.from.is_empty() {
                notes.push(handover.words(live, &self.payload()));
            }
        }
        let kept = field_paths::kept(live, &self.retained);
        let mut object = self.payload();
        kept.iter().for_each(|path| field_paths::keep(&mut object, live, path, Keep::LeaveOut));
        self.left.take_out(&mut object, live);
        object["metadata"]["uid"] = json!(self.uid().unwrap_or_default());
        let mut applied = self.apply_or_recreate(api, object).await?;
        applied.notes.splice(0..0, notes);
        Ok(applied)
    }

    async fn apply_or_recreate(&self, api: &ApiClient, object: Json) -> Result<ApplyResult, Failure> {
        match self.apply(api, object, false).await {
            Err(failure) if failure.is_immutable() && self.may_recreate() => {
                if let Some(why) = self.remove(api).await? {
                    let note = "removed to be created again, because it cannot be changed".to_owned();
                    return Ok(ApplyResult {
                        notes: vec![note],
                        leaving: Some(why),
                        ..ApplyResult::default()
                    });
                }
                let mut applied = self.make(api).await?;
                applied.notes.insert(0, "removed and created again, because it cannot be changed".to_owned());
                Ok(applied)
            }
            result => result,
        }
    }

    async fn edit(&self, api: &ApiClient, operations: Json, dry_run: bool) -> Result<Response, Failure> {
        let field_manager = Some(api.identity.keeper.clone());
        let params = PatchParams { dry_run, field_manager, ..PatchParams::default() };
        api.send(&self.path, &self.id.name, Action::Edit(&params, &operations)).await
    }

    async fn apply(&self, api: &ApiClient, object: Json, dry_run: bool) -> Result<ApplyResult, Failure> {
        let mut object = object;
        let mut force = false;
        let mut notes = Vec::new();
        // Each attempt clears one obstacle: earlier appliers, other owners, or fields to yield.
        for _ in 0..4 {
            let field_manager = Some(api.identity.manager.clone());
            let params = PatchParams { dry_run, force, field_manager, field_validation: None };
            let sent = api.send(&self.path, &self.id.name, Action::Apply(&params, &object)).await;
            let failure = match sent {
                Ok(answer) => {
                    let created = answer.created;
                    return Ok(ApplyResult { created, answer: Some(answer), notes, leaving: None });
                }
                Err(failure) => failure,
            };
            let conflicts = failure.conflicts();
            if conflicts.is_empty() {
                return Err(self.explain(failure));
            }
            let legacy = self.live.as_ref().map(|live| legacy_of(live)).unwrap_or_default();
            // In its own objects, berth reverts changes that people made with `kubectl`.
            let by_hand = |manager: &str| self.owned && manager.starts_with("kubectl");
            let foreign: Vec<&Conflict> = conflicts
                .iter()
                .filter(|it| !legacy.contains(&it.manager.as_str()) && it.manager != api.identity.keeper)
                .filter(|it| !by_hand(&it.manager))
                .collect();
            let words = |conflicts: &[&Conflict]| {
                let shown: Vec<Conflict> = conflicts.iter().map(|conflict| self.shown(conflict)).collect();
                owners_words(&shown)
            };
            let on_conflict = match dry_run && self.strategy.compares() {
                true => OnConflict::Force,
                false => self.on_conflict,
            };
            match on_conflict {
                _ if foreign.is_empty() => force = true,
                OnConflict::Force => force = true,
                OnConflict::Yield => {
                    for conflict in &foreign {
                        if !field_paths::remove(&mut object, &conflict.field) {
                            return Err(Failure::rule(conflict_words(&words(&foreign))));
                        }
                    }
                    notes.push(format!("left to their owners: {}", words(&foreign)));
                    continue;
                }
                OnConflict::Fail => return Err(Failure::rule(conflict_words(&words(&foreign)))),
            }
            let all: Vec<&Conflict> = conflicts.iter().collect();
            notes.push(format!("took over {}", words(&all)));
        }
        Err(Failure::rule("its fields keep changing owners"))
    }

    /// Returns a conflict without secret parts. A webhook can put any text into the field or the manager. So for a
    /// Secret, only fields of its manifest and managers of the live object are named.
    fn shown(&self, conflict: &Conflict) -> Conflict {
        if !self.secret {
            return conflict.clone();
        }
        let is_manager = |live: &Arc<Json>| managers(live).any(|(name, _)| name == conflict.manager);
        let manager = match self.live.as_ref().is_some_and(is_manager) {
            true => conflict.manager.clone(),
            false => "another manager".to_owned(),
        };
        let field = match field_paths::remove(&mut self.payload(), &conflict.field) {
            true => conflict.field.clone(),
            false => "a field".to_owned(),
        };
        Conflict { manager, field }
    }

    /// Adds a hint to a failure.
    pub(crate) fn explain(&self, failure: Failure) -> Failure {
        if !failure.is_immutable() || self.uid().is_none() || self.may_recreate() {
            return failure;
        }
        let value = if self.is_stateful() { "data-loss-accepted" } else { "allowed" };
        let words = failure.words(self.secret);
        Failure::rule(format!(
            "{words}; a field of it never changes: annotate it `{RECREATE}: {value}` to have it removed \
             and created again"
        ))
    }

    fn is_stateful(&self) -> bool {
        let named =
            matches!((&*self.id.group, &*self.id.kind), ("", "PersistentVolume") | ("apps", "StatefulSet"));
        named || self.id.takes_more_along()
    }

    /// Reports whether berth may remove and recreate the object.
    pub(crate) fn may_recreate(&self) -> bool {
        match self.recreate {
            Recreate::No => false,
            Recreate::Allowed => !self.is_stateful(),
            Recreate::DataLossAccepted => true,
        }
    }

    /// Removes the object. Returns the reason if it still exists, as with a finalizer; a later sync then continues.
    async fn remove(&self, api: &ApiClient) -> Result<Option<String>, Failure> {
        let uid = self.uid().map(str::to_owned);
        let params = DeleteParams {
            preconditions: Some(Preconditions { uid, resource_version: None }),
            ..DeleteParams::background()
        };
        match api.send(&self.path, &self.id.name, Action::Delete(&params)).await {
            Err(failure) if !failure.is_not_found() => return Err(failure),
            _ => {}
        }
        let left = api.get(&self.path, &self.id.name).await?.filter(|left| Some(uid_of(left)) == self.uid());
        Ok(left.map(|left| leaving(&left).unwrap_or_else(|| BEING_REMOVED.to_owned())))
    }
}
