//! What is in the cluster: one list for each owned kind, and a trial of whatever is not as wanted for
//! certain.
//!
//! An object is as wanted for certain if it carries the hash of what is wanted and every wanted field is
//! still berth's. The trial is a server-side dry run: it says what is there, what would change, and what
//! the server would refuse, before anything is changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value as Json;

use super::super::TargetError;
use super::compare::{finding, is_as_applied, is_equal, leaving, own_annotations, uid_of};
use super::failure::Failure;
use super::identity::{Identity, part_of};
use super::one::{Brought, Job};
use super::wire::each;
use super::{Core, Seen, pods};
use crate::model::ObjectId;
use crate::model::object::version_of;
use crate::sync::apply::defined_by;
use crate::sync::desired::Desired;
use crate::sync::differences::{self, Difference};
use crate::sync::health::custom::HealthRules;
use crate::sync::plan::{Form, Live, Version, is_definition, is_namespace};
use crate::sync::strategy;

type Wanted = BTreeMap<ObjectId, Desired>;
type Found = BTreeMap<ObjectId, Live>;

impl Core {
    pub async fn survey(&mut self, desired: &Wanted) -> Result<Found, TargetError> {
        self.seen.clear();
        self.reasons.clear();
        self.know_kinds(desired).await.map_err(|failure| self.whole(&failure))?;
        let mut found = self.list_owned(desired).await?;
        self.later.retain(|id, _| desired.contains_key(id));
        self.unhealthy.retain(|id, _| desired.contains_key(id));
        self.try_unsure(desired, &mut found).await?;
        Ok(found)
    }

    /// Asks what is served, the first time and when a wanted kind is not known.
    async fn know_kinds(&mut self, desired: &Wanted) -> Result<(), Failure> {
        if self.kinds.is_empty() || desired.values().any(|object| !self.is_served(object)) {
            self.ask_kinds().await?;
        }
        Ok(())
    }

    pub async fn ask_kinds(&mut self) -> Result<(), Failure> {
        self.kinds = super::Kinds::ask(self.wire.client()).await?;
        Ok(())
    }

    fn is_served(&self, object: &Desired) -> bool {
        self.path_of(object).is_ok() || {
            let version = api_version(object);
            self.kinds.version(&object.id.group, &object.id.kind, version_of(version)).is_some()
        }
    }

    /// The collection a wanted object stands in.
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

    async fn list_owned(&mut self, desired: &Wanted) -> Result<Found, TargetError> {
        let mut kinds: BTreeMap<(String, String), Option<String>> = BTreeMap::new();
        for object in desired.values() {
            let key = (object.id.group.to_string(), object.id.kind.to_string());
            kinds.insert(key, Some(version_of(api_version(object)).to_owned()));
        }
        match &self.parent {
            Some(parent) => kinds.extend_missing(parent.kinds.iter().map(|kind| {
                let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
                (group.to_owned(), kind.to_owned())
            })),
            // Without a parent, what was owned before is found wherever it may be.
            None => kinds.extend_missing(self.kinds.managed()),
        }
        let mut lists = Vec::new();
        for ((group, kind), version) in kinds {
            let named = version.and_then(|version| self.kinds.version(&group, &kind, &version));
            let Some(served) = named.or_else(|| self.kinds.preferred(&group, &kind)) else { continue };
            let prefix = if group.is_empty() { String::new() } else { format!("{group}/") };
            lists.push((served.path(&group, ""), format!("{prefix}{}", served.version), kind));
        }
        let mut found = Found::new();
        let at_once = if self.parent.is_some() { 1 } else { self.at_once };
        // Page by page, and kind by kind: contents are held no longer than they are looked at.
        for some in lists.chunks(at_once) {
            let (wire, selector) = (self.wire.clone(), self.identity.selector());
            let results = each(some.to_vec(), at_once, |(path, version, kind)| {
                let (wire, selector) = (wire.clone(), selector.clone());
                async move {
                    let mut objects = Vec::new();
                    let listed = wire.list(&path, &selector, |object| objects.push(object)).await;
                    listed.map(|()| (version, kind, objects))
                }
            })
            .await;
            for (result, (_, _, kind)) in results.into_iter().zip(some) {
                match result {
                    Ok((version, kind, objects)) => {
                        for mut object in objects {
                            object["apiVersion"] = version.clone().into();
                            object["kind"] = kind.clone().into();
                            self.look(object, desired, &mut found);
                        }
                    }
                    // Gone meanwhile, or nothing berth could have made there.
                    Err(failure) if matches!(failure.code(), 404 | 405) => {}
                    Err(failure) if failure.code() == 403 && self.parent.is_none() => {}
                    Err(failure) => {
                        let words = failure.words(kind == "Secret");
                        return Err(TargetError(format!("{kind}: {words}")));
                    }
                }
            }
        }
        Ok(found)
    }

    /// One object with berth's label.
    fn look(&mut self, object: Json, desired: &Wanted, found: &mut Found) {
        let Some(id) = ObjectId::of(&object) else { return };
        let owned = self.identity.owns(&object);
        let wanted = desired.get(&id);
        if !owned && wanted.is_none() {
            return;
        }
        let same = owned && wanted.is_some_and(|wanted| is_as_applied(&self.identity, &object, wanted));
        let form = match (leaving(&object), wanted) {
            (Some(why), Some(_)) => Form::Faulty(why),
            _ => Form::There { version: Version(uid_of(&object).to_owned()), same },
        };
        let annotations = own_annotations(&object);
        let mut seen = Seen { owned, checked: same, ..Seen::of(&object, &self.rules) };
        seen.hash = wanted.map(|wanted| self.identity.hash(&wanted.bytes)).unwrap_or_default();
        if let Some(wanted) = wanted.filter(|_| same) {
            seen.finding = finding(&self.identity, wanted, &object, owned, &[]);
        }
        if !same && wanted.is_some() {
            seen.live = Some(Arc::new(object));
        }
        self.seen.insert(id.clone(), seen);
        found.insert(id, Live { owned, form, annotations });
    }

    /// Tries what is not certain: namespaces first, since nothing can be tried in one that is to be made.
    async fn try_unsure(&mut self, desired: &Wanted, found: &mut Found) -> Result<(), TargetError> {
        let unsure = |id: &ObjectId, found: &Found| match found.get(id).map(|live| &live.form) {
            None | Some(Form::There { same: false, .. }) => true,
            Some(_) => false,
        };
        let (namespaces, rest): (Vec<&Desired>, Vec<&Desired>) =
            desired.values().filter(|object| unsure(&object.id, found)).partition(|it| is_namespace(&it.id));
        self.try_all(namespaces, desired, found).await?;
        let to_come: BTreeSet<&str> = desired
            .keys()
            .filter(|id| is_namespace(id) && !found.contains_key(*id))
            .map(|id| &*id.name)
            .collect();
        let now = rest.into_iter().filter(|object| !to_come.contains(&*object.id.namespace));
        self.try_all(now.collect(), desired, found).await
    }

    async fn try_all(
        &mut self,
        objects: Vec<&Desired>,
        desired: &Wanted,
        found: &mut Found,
    ) -> Result<(), TargetError> {
        let mut jobs = Vec::new();
        for object in objects {
            let hash = self.identity.hash(&object.bytes);
            if self.is_parent(&object.id) {
                fault(found, &object.id, "it is the object in which berth keeps its own record".to_owned());
                continue;
            }
            if let Some(message) = self.is_put_off(&object.id, &hash) {
                let message = message.to_owned();
                fault(found, &object.id, message);
                continue;
            }
            let live = self.seen.get(&object.id).and_then(|seen| seen.live.clone());
            match self.path_of(object) {
                Ok(path) => jobs.push((hash, Job::new(object, path, &self.identity, live))),
                // Its definition comes in this very round.
                Err(_) if is_to_be_defined(&object.id, desired) => {}
                Err(failure) => fault(found, &object.id, failure.words(false)),
            }
        }
        let (wire, identity) = (self.wire.clone(), self.identity.clone());
        let tasks: Vec<Job> = jobs.iter().map(|(_, job)| job.clone()).collect();
        let results = each(tasks, self.at_once, |job| {
            let (wire, identity) = (wire.clone(), identity.clone());
            async move { Ok(try_one(job, &wire, &identity).await) }
        })
        .await;
        let mut lost = None;
        for ((hash, job), result) in jobs.into_iter().zip(results) {
            match result {
                Ok(Ok(tried)) => self.heed(desired.get(&job.id), &job.id, hash, tried, found),
                Ok(Err(failure)) | Err(failure) => {
                    if matches!(failure, Failure::Unreachable(_)) {
                        lost = Some(failure.clone());
                    }
                    let message = failure.words(job.id.is_secret());
                    self.put_off(&job.id, hash, &message, failure.pause());
                    fault(found, &job.id, message);
                }
            }
        }
        match lost {
            Some(failure) => Err(self.whole(&failure)),
            None => Ok(()),
        }
    }

    /// Takes in what a trial has shown.
    fn heed(
        &mut self,
        wanted: Option<&Desired>,
        id: &ObjectId,
        hash: String,
        tried: Tried,
        found: &mut Found,
    ) {
        let (live, same, changes) = match tried {
            Tried::New { checked } => {
                if checked {
                    let seen = Seen { checked: true, hash, ..Seen::default() };
                    self.later.remove(id);
                    self.seen.insert(id.clone(), seen);
                }
                found.remove(id);
                return;
            }
            Tried::There { live, same, changes } => (live, same, changes),
        };
        self.later.remove(id);
        let owned = self.identity.owns(&live);
        let other = part_of(&live).filter(|set| **set != self.identity.set);
        let form = match (other, leaving(&live)) {
            (Some(set), _) => Form::Faulty(format!("it belongs to another applier, the ApplySet `{set}`")),
            (None, Some(why)) => Form::Faulty(why),
            (None, None) => Form::There { version: Version(uid_of(&live).to_owned()), same },
        };
        let annotations = own_annotations(&live);
        let finding = wanted.and_then(|wanted| finding(&self.identity, wanted, &live, owned, &changes));
        // What is to be taken over is written though nothing in it changes.
        let kept = (!same || !owned).then(|| live.clone());
        let seen = Seen { owned, checked: true, hash, live: kept, finding, ..Seen::of(&live, &self.rules) };
        self.seen.insert(id.clone(), seen);
        found.insert(id.clone(), Live { owned, form, annotations });
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

impl Seen {
    /// What an object says of how it does.
    pub fn of(object: &Json, rules: &HealthRules) -> Seen {
        Seen { health: rules.judge(object), pods: pods::selector_of(object), ..Seen::default() }
    }
}

/// What a trial has shown.
enum Tried {
    /// It is not there. Unchecked where it could not be tried yet.
    New { checked: bool },
    There {
        live: Arc<Json>,
        same: bool,
        /// What a write would change, where that matters.
        changes: Vec<Difference>,
    },
}

async fn try_one(job: Job, wire: &super::Wire, identity: &Identity) -> Result<Tried, Failure> {
    let there = |live, same| Tried::There { live, same, changes: Vec::new() };
    if job.strategy.only_looks() {
        let live = match job.live.clone() {
            Some(live) => Some(live),
            None => wire.get(&job.path, &job.id.name).await?.map(Arc::new),
        };
        if let Some(live) = live {
            return Ok(there(live, true));
        }
        if job.strategy.way == strategy::Way::ReadOnly {
            return Ok(Tried::New { checked: false });
        }
    }
    let first = job.try_out(wire, identity).await;
    if let Ok(Brought { created: true, .. }) = first {
        return Ok(Tried::New { checked: true });
    }
    let known = job.live.is_some();
    let (job, result) = if known {
        (job, first)
    } else {
        match (wire.get(&job.path, &job.id.name).await?, first) {
            (Some(live), first) => {
                let job = job.with(live, identity);
                // The trial before did not know whose fields are in the way.
                let again = if first.is_ok() { first } else { job.try_out(wire, identity).await };
                (job, again)
            }
            // In a namespace that is not there, or that this very round makes.
            (None, Err(failure)) if failure.lacks_namespace() => {
                return Err(Failure::rule(format!("its namespace `{}` is not there", job.id.namespace)));
            }
            (None, Err(failure)) => return Err(failure),
            (None, Ok(_)) => return Ok(Tried::New { checked: false }),
        }
    };
    let Some(live) = job.live.clone() else { return Ok(Tried::New { checked: false }) };
    match result {
        Ok(Brought { answer: Some(answer), .. }) => {
            let after: Json = answer.read()?;
            let compares = job.strategy.compares();
            let changes = if compares { differences::between(&live, &after) } else { Vec::new() };
            let fine = match job.owned {
                true => job.strategy.tolerates && job.was_applied_to(&live),
                false => compares,
            };
            let fine = fine && changes.iter().all(|one| differences::is_below(one, &job.tolerated));
            let same = is_equal(&live, &after, job.owned) || fine;
            Ok(Tried::There { same, live, changes })
        }
        Ok(Brought { answer: None, .. }) => Ok(there(live, false)),
        // What the server would refuse is compared without its help.
        Err(failure) if job.strategy.compares() && failure.code() == 422 => {
            Ok(Tried::There { same: false, changes: differences::asked(&live, &job.payload), live })
        }
        // Whether it may be taken over comes before how.
        Err(_) if !job.owned && !job.take_over => Ok(there(live, false)),
        Err(failure) if failure.is_immutable() && job.may_recreate() => Ok(there(live, false)),
        Err(failure) => Err(failure),
    }
}

fn fault(found: &mut Found, id: &ObjectId, message: String) {
    match found.get_mut(id) {
        Some(live) => live.form = Form::Faulty(message),
        None => {
            let live = Live { owned: false, form: Form::Faulty(message), annotations: BTreeMap::new() };
            found.insert(id.clone(), live);
        }
    }
}

/// Whether the folder brings the definition of this object's kind.
fn is_to_be_defined(id: &ObjectId, desired: &Wanted) -> bool {
    desired.values().filter(|object| is_definition(&object.id)).any(|object| {
        let (group, kind) = defined_by(&object.id, Some(object));
        *group == *id.group && kind.is_none_or(|kind| *kind == *id.kind)
    })
}

fn api_version(object: &Desired) -> &str {
    object.object.get("apiVersion").and_then(Json::as_str).unwrap_or_default()
}
