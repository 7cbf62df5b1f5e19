//! Stages of writes and removals. Items are independent, several run at once, and each has its own result. A
//! preview shows the effect of writes before they happen.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::super::{Apply, BackendError, Preview};
use super::api_client::{Action, ApiClient, Response};
use super::apply_one::ApplyJob;
use super::compare::{leaving, uid_of};
use super::deadlines::Setback;
use super::failure::Failure;
use super::removal::{delete_params, release};
use super::session::{ClusterSession, TrackedObject};
use super::survey::not_ours;
use super::watching::cached_object::CachedObject;
use crate::live::concurrency::{each, each_beside};
use crate::sync::desired::{Desired, defined_by};
use crate::sync::health::Health;
use crate::sync::health::custom::HealthRules;
use crate::sync::plan::{Form, Prune, is_definition};
use berth_base::model::ObjectId;
use berth_base::model::status::Problem;

/// The longest wait until the server serves new definitions.
const LONGEST_DEFINITION: Duration = Duration::from_secs(15);

impl ClusterSession {
    /// Writes a stage, each object with one request if nothing prevents it.
    pub async fn apply(&mut self, batch: &[Apply<'_>]) -> Vec<Result<(), BackendError>> {
        let mut results: Vec<Option<Result<(), Failure>>> = batch.iter().map(|_| None).collect();
        if batch.iter().any(|item| self.connection.path_of(item.desired).is_err()) {
            // A failure is reported with the objects that need the kind.
            let _ = self.connection.ask_kinds().await;
        }
        let mut jobs = Vec::new();
        for (index, item) in batch.iter().enumerate() {
            match self.connection.path_of(item.desired) {
                Ok(path) => jobs.push((index, self.job(item.desired, path))),
                Err(failure) => results[index] = Some(Err(failure)),
            }
        }
        for (_, job) in &mut jobs {
            job.lively |= self.rules.are_for(&job.id.group, &job.id.kind);
        }
        self.connection.api.progress.add(batch.len() - jobs.len());
        let ids = jobs.iter().map(|(_, job)| job.id.clone()).collect();
        self.watching.shared.cache().writing(ids);
        let places: Vec<usize> = jobs.iter().map(|(index, _)| *index).collect();
        let with = Arc::new((self.connection.acting(), self.rules.clone()));
        let writes = jobs.into_iter().map(move |(_, job)| write_one(job, with.clone()));
        let brought = each_beside(self.connection.at_once, writes).await;
        for (index, result) in places.into_iter().zip(brought) {
            let desired = batch[index].desired;
            results[index] = Some(result.map(|(notes, made)| {
                self.note_written(desired, made);
                let note = |message| Problem::failed(desired.id.clone(), message);
                self.sync.notes.extend(notes.into_iter().map(note));
            }));
        }
        self.watching.shared.cache().writing(BTreeSet::new());
        self.await_definitions(batch, &results).await;
        let lost = || Err(Failure::rule("it was left out"));
        let results: Vec<Result<(), Failure>> =
            results.into_iter().map(|result| result.unwrap_or_else(lost)).collect();
        batch
            .iter()
            .zip(results)
            .map(|(item, result)| result.map_err(|failure| self.failed(item, &failure)))
            .collect()
    }

    /// Records a write, so that its event from a watch asks for no sync.
    fn note_written(&mut self, desired: &Desired, made: WriteResult) {
        let (id, hash) = (&desired.id, self.hash_of(desired));
        if let Some(why) = made.leaving {
            let health = Health::Progressing(why);
            let seen = TrackedObject { owned: true, hash, health, ..TrackedObject::default() };
            self.sync.tracked.insert(id.clone(), seen);
            self.recreated.insert(id.clone(), made.uid.into());
            self.retries.remove(id);
            return;
        }
        self.recreated.remove(id);
        self.altered.remove(id);
        self.drift.written(id, &hash, self.sync.tracked.get(id));
        let entry = CachedObject {
            uid: made.uid.into(),
            version: made.version.parse().ok(),
            owned: true,
            applied: Some(hash.clone()),
            intact: true,
            altered: false,
            leaving: None,
            has_owner: false,
            health: made.seen.health.clone(),
            pods: made.seen.pods.as_deref().map(Into::into),
            annotations: desired.annotations().clone(),
            finding: None,
            live: None,
        };
        let mut cache = self.watching.shared.cache();
        cache.unmute(id);
        cache.wrote(id.clone(), entry);
        drop(cache);
        match made.seen.health {
            Health::Healthy => drop(self.sync.tracked.remove(id)),
            _ => drop(self.sync.tracked.insert(id.clone(), TrackedObject { owned: true, hash, ..made.seen })),
        }
        self.retries.remove(id);
    }

    fn failed(&mut self, item: &Apply<'_>, failure: &Failure) -> BackendError {
        let id = &item.desired.id;
        let was_sealed = self.watching.shared.cache().get(id).is_some_and(CachedObject::is_sealed);
        let message = failure.words(item.desired.is_secret() || was_sealed);
        if *failure == Failure::Exists {
            self.existing.insert(id.clone());
            self.met_existing = true;
            return BackendError::Failed(message);
        }
        let hash = self.hash_of(item.desired);
        let is_missing = item.seen.is_none() && !failure.may_pass();
        let found = is_missing.then(|| not_ours(Form::Faulty(message.clone())));
        self.put_off(id, Setback::failed(hash, &message, failure.pause(), found));
        BackendError::Failed(message)
    }

    /// Waits until the server serves the definitions just written, because the next objects need them.
    async fn await_definitions(&mut self, batch: &[Apply<'_>], results: &[Option<Result<(), Failure>>]) {
        let written = batch.iter().zip(results).filter(|(_, result)| matches!(result, Some(Ok(()))));
        let mut waiting: Vec<(ObjectId, String)> = written
            .filter(|(item, _)| is_definition(&item.desired.id))
            .filter_map(|(item, _)| {
                Some((item.desired.id.clone(), self.connection.path_of(item.desired).ok()?))
            })
            .collect();
        if waiting.is_empty() {
            return;
        }
        let deadline = tokio::time::Instant::now() + LONGEST_DEFINITION;
        while !waiting.is_empty() && tokio::time::Instant::now() < deadline {
            let mut left = Vec::new();
            for (id, path) in waiting {
                let object = self.connection.api.get(&path, &id.name).await.ok().flatten();
                let now =
                    object.as_ref().map(|object| TrackedObject::of(object, &self.rules)).unwrap_or_default();
                let is_done = object.is_some() && now.health == Health::Healthy;
                if let Some(seen) = self.sync.tracked.get_mut(&id).filter(|_| object.is_some()) {
                    seen.health = now.health;
                }
                if !is_done {
                    left.push((id, path));
                }
            }
            waiting = left;
            if !waiting.is_empty() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        let defined: Vec<(String, Option<String>)> = batch
            .iter()
            .filter(|item| is_definition(&item.desired.id))
            .map(|item| defined_by(&item.desired.id, Some(item.desired)))
            .collect();
        // An established definition may take a moment to appear in discovery.
        loop {
            let asked = self.connection.ask_kinds().await.is_ok();
            let served = defined.iter().all(|(group, kind)| {
                kind.as_ref().is_none_or(|kind| self.connection.kinds.preferred(group, kind).is_some())
            });
            if (asked && served) || tokio::time::Instant::now() >= deadline {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    pub async fn delete(&mut self, batch: &[&Prune]) -> Vec<Result<(), BackendError>> {
        let mut results: Vec<Result<(), BackendError>> = batch.iter().map(|_| Ok(())).collect();
        let mut jobs = Vec::new();
        for (index, prune) in batch.iter().enumerate() {
            let Some(version) = &prune.seen else { continue };
            match self.connection.kinds.preferred(&prune.id.group, &prune.id.kind) {
                Some(served) => {
                    let path = served.path(&prune.id.group, &prune.id.namespace);
                    jobs.push((index, *prune, path, version.0.as_str()));
                }
                None => {
                    let message = format!("the cluster does not serve {} any more", prune.id.kind);
                    results[index] = Err(BackendError::Failed(message));
                }
            }
        }
        let api = self.connection.acting();
        let removals = jobs.iter().map(|(_, prune, path, uid)| delete_one(&api, path, prune, uid));
        let removed = each(self.connection.at_once, removals).await;
        let is_secret = |id: &ObjectId| {
            let cache = self.watching.shared.cache();
            id.is_secret() || cache.get(id).is_some_and(CachedObject::is_sealed)
        };
        for ((index, prune, _, uid), result) in jobs.into_iter().zip(removed) {
            match result {
                Ok(()) => {
                    self.sync.tracked.remove(&prune.id);
                    self.watching.shared.cache().gone(&prune.id, uid);
                }
                Err(failure) => {
                    results[index] = Err(failure.into_error(is_secret(&prune.id)));
                }
            }
        }
        self.connection.api.progress.add(batch.len());
        results
    }
}

/// Writes one object. Returns notes for the report, and the parts of the answer that later steps need.
async fn write_one(
    job: ApplyJob,
    with: Arc<(ApiClient, Arc<HealthRules>)>,
) -> Result<(Vec<String>, WriteResult), Failure> {
    let (api, rules) = &*with;
    let brought = job.write(api).await;
    api.progress.add(1);
    let brought = brought?;
    if let Some(why) = brought.leaving {
        let uid = job.uid().unwrap_or_default().to_owned();
        return Ok((brought.notes, WriteResult { uid, leaving: Some(why), ..WriteResult::default() }));
    }
    let read = |answer: &Response| WriteResult::read(answer, job.lively.then_some(&**rules));
    let made = brought.answer.as_ref().map(read).transpose()?;
    Ok((brought.notes, made.unwrap_or_default()))
}

/// Removes or releases the object with exactly this UID.
async fn delete_one(api: &ApiClient, path: &str, prune: &Prune, uid: &str) -> Result<(), Failure> {
    if prune.orphan {
        return release(api, path, &prune.id, Some(&json!(uid))).await;
    }
    let params = delete_params(prune.options.as_deref(), uid.to_owned())?;
    let name = &*prune.id.name;
    let sent = api.send(path, name, Action::Delete(&params)).await;
    let conflict = match sent {
        Err(failure) if failure.is_not_found() => return Ok(()),
        Err(failure) if failure.code() == 409 => Some(failure),
        result => result.map(|_| None)?,
    };
    match api.get(path, name).await? {
        Some(left) if conflict.is_some() && uid_of(&left) != uid => {
            Err(Failure::rule("another object has replaced it"))
        }
        Some(left) => match leaving(&left) {
            None if conflict.is_some() => conflict.map_or(Ok(()), Err),
            // Some objects disappear only a moment after their removal.
            Some(why) if left.pointer("/metadata/finalizers").is_some() => Err(Failure::Leaving(why)),
            _ => Ok(()),
        },
        None => Ok(()),
    }
}

/// The parts of a write's answer that later steps need.
#[derive(Default)]
struct WriteResult {
    uid: String,
    version: String,
    seen: TrackedObject,
    /// The reason why an object removed for recreation still exists.
    leaving: Option<String>,
}

#[derive(Deserialize)]
struct Named {
    metadata: NamedMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NamedMetadata {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    resource_version: String,
}

impl WriteResult {
    fn read(answer: &Response, rules: Option<&HealthRules>) -> Result<WriteResult, Failure> {
        if let Some(rules) = rules {
            let object: Json = answer.read()?;
            let text = |at: &str| object.pointer(at).and_then(Json::as_str).unwrap_or_default().to_owned();
            let (uid, version) = (text("/metadata/uid"), text("/metadata/resourceVersion"));
            let seen = TrackedObject::of(&object, rules);
            return Ok(WriteResult { uid, version, seen, leaving: None });
        }
        let Named { metadata } = answer.read()?;
        Ok(WriteResult { uid: metadata.uid, version: metadata.resource_version, ..WriteResult::default() })
    }
}

impl ClusterSession {
    /// Shows the effect of writes, with the data of Secrets hashed.
    pub async fn preview(&mut self, batch: &[Apply<'_>]) -> Vec<Option<Preview>> {
        let mut jobs = Vec::new();
        for (index, item) in batch.iter().enumerate() {
            if let Ok(path) = self.connection.path_of(item.desired) {
                jobs.push((index, self.job(item.desired, path)));
            }
        }
        let api = self.connection.acting();
        // Values from a Secret's override cannot be distinguished from others, so such an object has no preview.
        jobs.retain(|(_, job)| !job.secret || job.id.is_secret());
        let trials = jobs.iter().map(|(_, job)| try_one(job, &api));
        let tried = each(self.connection.at_once, trials).await;
        let mut previews: Vec<Option<Preview>> = batch.iter().map(|_| None).collect();
        for ((index, job), result) in jobs.into_iter().zip(tried) {
            // If a dry run is impossible now, the wanted form is shown.
            let (before, after) = result.unwrap_or_default();
            let after = after.unwrap_or_else(|| job.payload());
            let before = before.or(job.live);
            let secret = job.id.is_secret();
            previews[index] = Some(Preview {
                before: before.as_ref().map(|live| self.mask.masked(live, secret)),
                after: self.mask.masked(&after, secret),
            });
        }
        previews
    }
}

/// Returns an object before a write, and after it if a dry run is possible.
async fn try_one(job: &ApplyJob, api: &ApiClient) -> Result<(Option<Arc<Json>>, Option<Json>), Failure> {
    let before = match &job.live {
        None if job.is_older() => api.get(&job.path, &job.id.name).await?.map(Arc::new),
        live => live.clone(),
    };
    let after = match job.dry_run_once(api).await {
        Ok(brought) => brought.answer.map(|answer| answer.read()).transpose()?,
        Err(_) => None,
    };
    Ok((before, after))
}
