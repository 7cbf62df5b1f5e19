//! Runs server-side dry runs of objects that may differ from their wanted form, before anything changes.
//!
//! A dry run shows the live object, the changes of a write, and the server's refusals. It is made if a write could
//! touch another owner's object or fields. It is skipped for a new object, since the server creates it only if it is
//! missing, and for a new form of an owned object, which the server checks at the write. After a failure, or if
//! something is in the object's way, the next dry run waits for a pause.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value as Json;

use super::super::BackendError;
use super::api_client::ApiClient;
use super::apply_one::{ApplyJob, ApplyResult};
use super::compare::{altered_finding, as_applied, finding, is_equal, leaving, uid_of};
use super::deadlines::Setback;
use super::drift::DriftVerdict;
use super::failure::Failure;
use super::identity::{Identity, part_of};
use super::session::{ClusterSession, TrackedObject};
use super::stored_shape::{as_kept, is_encrypted, undecodable};
use super::survey::{DesiredMap, LiveMap, not_ours, refuse};
use super::watching::cached_object::version_of;
use crate::live::concurrency::each;
use crate::sync::desired::{Annotations, Desired, defined_by, own_annotations};
use crate::sync::field_differences::{self, Difference};
use crate::sync::health::Health;
use crate::sync::plan::{Form, Live, Version, goes_first, is_definition, is_namespace};
use crate::sync::strategy::WriteLimit;
use berth_base::model::ObjectId;

impl ClusterSession {
    /// Tries the uncertain objects: namespaces first, because a dry run needs its namespace.
    pub(crate) async fn dry_run_uncertain(
        &mut self,
        desired: &DesiredMap,
        found: &mut LiveMap,
    ) -> Result<(), BackendError> {
        let unsure = |id: &ObjectId, found: &LiveMap| match found.get(id).map(|live| &live.form) {
            None | Some(Form::There { same: false, .. }) => true,
            Some(_) => false,
        };
        let (namespaces, rest): (Vec<&Desired>, Vec<&Desired>) =
            desired.values().filter(|object| unsure(&object.id, found)).partition(|it| is_namespace(&it.id));
        self.dry_run_all(namespaces, desired, found).await?;
        // No object can be tried in a namespace that is refused or being removed.
        let is_missing =
            |id: &ObjectId| matches!(found.get(id).map(|live| &live.form), None | Some(Form::Faulty(_)));
        let to_come: BTreeSet<&str> =
            desired.keys().filter(|id| is_namespace(id) && is_missing(id)).map(|id| &*id.name).collect();
        let now = rest.into_iter().filter(|object| !to_come.contains(&*object.id.namespace));
        self.dry_run_all(now.collect(), desired, found).await
    }

    /// Tries the objects that need it, and adds the results to the survey.
    async fn dry_run_all(
        &mut self,
        objects: Vec<&Desired>,
        desired: &DesiredMap,
        found: &mut LiveMap,
    ) -> Result<(), BackendError> {
        let mut trials = Vec::new();
        for object in objects {
            match self.prospect(object, desired, found) {
                Prospect::Trial(trial) => trials.push(*trial),
                Prospect::Untried => {}
                Prospect::Refused(message) => refuse(found, &object.id, message),
                Prospect::Known(live) => drop(found.insert(object.id.clone(), live)),
                Prospect::Drifted(remark) => {
                    self.sync.leave_drifted(&object.id, remark);
                    leave_as_is(found, &object.id);
                }
            }
        }
        let api = self.connection.acting();
        let tried = trials.iter().map(|trial| dry_run_one(trial.job.clone(), trial.is_there, &api));
        let results = each(self.connection.at_once, tried).await;
        let mut lost = None;
        for (Trial { job, .. }, result) in trials.into_iter().zip(results) {
            match result {
                Ok(DryRun::Unmakeable(failure)) => self.take_unmakeable(job, &failure, found),
                Ok(tried) => self.take_result(desired.get(&job.id), &job, tried, found),
                Err(failure) => {
                    if matches!(failure, Failure::Unreachable(_)) {
                        lost = Some(failure.clone());
                    }
                    self.take_failure(job, &failure, found);
                }
            }
        }
        match lost {
            Some(failure) => Err(self.connection.api.whole(&failure)),
            None => Ok(()),
        }
    }

    /// Judges an object before any request about it.
    fn prospect(&mut self, object: &Desired, desired: &DesiredMap, found: &LiveMap) -> Prospect {
        let hash = self.hash_of(object);
        if self.connection.api.identity.is_parent(&object.id) {
            return Prospect::Refused("berth keeps its own record in this object".to_owned());
        }
        if let Some(fault) = fault_of_values(object) {
            return Prospect::Refused(fault);
        }
        if let Some(setback) = self.retries.pending(&object.id, &hash) {
            return match &setback.found {
                Some(live) => Prospect::Known(live.clone()),
                None => Prospect::Refused(setback.message.clone()),
            };
        }
        let seen = self.sync.tracked.get(&object.id);
        match self.drift.judge(object, &hash, seen) {
            DriftVerdict::Correct => {}
            DriftVerdict::Refuse(message) => return Prospect::Refused(message),
            DriftVerdict::Leave(remark) => return Prospect::Drifted(remark),
        }
        match self.connection.path_of(object) {
            Ok(path) => {
                let job = self.job(object, path);
                let is_there = found.contains_key(&object.id) || self.existing.contains(&object.id);
                match self.needs_trial(&job, is_there) {
                    true => Prospect::Trial(Box::new(Trial { job, is_there })),
                    false => Prospect::Untried,
                }
            }
            // The folder itself contains the definition.
            Err(_) if is_to_be_defined(&object.id, desired) => Prospect::Untried,
            Err(failure) => Prospect::Refused(failure.words(false)),
        }
    }

    /// Adds a missing object that cannot be created to the survey.
    fn take_unmakeable(&mut self, job: ApplyJob, failure: &Failure, found: &mut LiveMap) {
        let message = failure.words(job.secret);
        let live = not_ours(Form::Faulty(message.clone()));
        let setback = Setback::failed(job.hash, &message, failure.pause(), Some(live.clone()));
        self.put_off(&job.id, setback);
        found.insert(job.id, live);
    }

    /// Adds the failure of a dry run to the survey.
    fn take_failure(&mut self, job: ApplyJob, failure: &Failure, found: &mut LiveMap) {
        let message = failure.words(job.secret);
        self.put_off(&job.id, Setback::failed(job.hash, &message, failure.pause(), None));
        refuse(found, &job.id, message);
    }

    /// Reports whether an object needs a dry run before it is written.
    fn needs_trial(&self, job: &ApplyJob, is_there: bool) -> bool {
        // Other objects need namespaces and definitions, so these are always tried first.
        let is_early = goes_first(&job.id);
        self.only_tries || !job.is_older() && (is_there || is_early || job.expects_another())
    }

    fn take_missing(&mut self, job: &ApplyJob, found: &mut LiveMap) {
        if job.strategy.way == WriteLimit::ReadOnly {
            // Berth does not create the object, so its time limit runs from now.
            let health = Health::Progressing("it does not exist".to_owned());
            let missing = TrackedObject { hash: job.hash.clone(), health, ..TrackedObject::default() };
            self.sync.tracked.insert(job.id.clone(), missing);
        }
        self.existing.remove(&job.id);
        found.remove(&job.id);
    }

    /// Adds the result of a dry run to the survey.
    fn take_result(&mut self, wanted: Option<&Desired>, job: &ApplyJob, tried: DryRun, found: &mut LiveMap) {
        let (id, hash, identity) = (&job.id, job.hash.clone(), &self.connection.api.identity);
        let (live, same, changes) = match tried {
            DryRun::New => return self.take_missing(job, found),
            DryRun::Older | DryRun::Unmakeable(_) => return,
            DryRun::There { live, same, changes } => (live, same, changes),
        };
        let owned = identity.owns(&live);
        let other = part_of(&live).filter(|_| is_of_another(&live, identity));
        let form = match (other, leaving(&live)) {
            (Some(set), _) => Form::Refused(format!("it belongs to the ApplySet `{set}`")),
            (None, Some(why)) => Form::Faulty(why),
            (None, None) => Form::There { version: Version(uid_of(&live).to_owned()), same },
        };
        if owned {
            self.existing.remove(id);
        }
        let altered = wanted.filter(|_| owned).and_then(|wanted| as_applied(identity, &live, wanted, &hash));
        let altered = altered.filter(|altered| !altered.is_empty());
        let altered = altered.map(|altered| altered_finding(&altered, job.secret));
        if let (Some(altered), Some(wanted)) = (&altered, wanted)
            && !same
            && self.drift.is_only_reported(wanted)
        {
            self.sync.leave_drifted(id, Some(format!("{}; berth only reports its drift", altered.message)));
            leave_as_is(found, id);
            return;
        }
        let mut finding = wanted.and_then(|wanted| finding(wanted, &hash, &live, owned, &changes));
        if owned && same {
            match altered {
                Some(_) => drop(self.altered.insert(id.clone(), Instant::now())),
                None => drop(self.altered.remove(id)),
            }
            finding = finding.or(altered);
            self.watching.shared.cache().trust(id, version_of(&live), finding.clone());
            self.retries.remove(id);
            self.drift.in_place(id, &hash);
        }
        let found_now = Live { owned, form, annotations: Arc::new(own_annotations(&live)), stays: None };
        // A strategy's difference is reported in each sync, so the object is compared in each.
        let is_faulty = matches!(found_now.form, Form::Faulty(_) | Form::Refused(_));
        let looks = job.strategy.compares() || job.strategy.only_looks();
        let is_in_the_way = is_faulty || !(owned || looks || job.may_take_over(same));
        if is_in_the_way {
            self.put_off(id, Setback::obstacle(hash.clone(), found_now.clone()));
        }
        // A take-over is written even if the content is equal.
        let kept = (!same || !owned).then(|| live.clone());
        let seen =
            TrackedObject { owned, hash, live: kept, finding, ..TrackedObject::of(&live, &self.rules) };
        self.sync.tracked.insert(id.clone(), seen);
        found.insert(id.clone(), found_now);
    }
}

/// The judgement of an object before its dry run.
enum Prospect {
    Trial(Box<Trial>),
    /// The object is used as known, or created, without a dry run.
    Untried,
    Refused(String),
    /// An earlier dry run failed on this live object, and its pause is not over.
    Known(Live),
    /// Berth leaves its drift on purpose, with a remark for the report.
    Drifted(Option<String>),
}

/// An object to try.
struct Trial {
    job: ApplyJob,
    /// The object exists, with any owner.
    is_there: bool,
}

/// Returns the fault in an object's values that no server can read as intended.
fn fault_of_values(object: &Desired) -> Option<String> {
    let content = object.object();
    if is_encrypted(&content) {
        let hint = "decrypt it before berth renders it, or keep it out of the folder";
        return Some(format!("it is encrypted by SOPS, for which berth has no key: {hint}"));
    }
    let field = undecodable(&as_kept(content))?;
    let hint = match object.id.is_secret() {
        true => "encode the value, or write it as it is under `stringData`",
        false => "encode the value",
    };
    Some(format!("its field `{field}` is not base64; {hint}"))
}

/// The result of a dry run.
enum DryRun {
    /// The object is missing.
    New,
    /// The object is missing and cannot be created.
    Unmakeable(Failure),
    There {
        live: Arc<Json>,
        same: bool,
        /// The changes that a write would make, if the strategy needs them.
        changes: Vec<Difference>,
    },
    /// Berth owns the object, whose form is outdated.
    Older,
}
/// Compares the live object with the one that the server answered to the dry run.
fn compare(job: &ApplyJob, live: Arc<Json>, after: &Json) -> DryRun {
    let compares = job.strategy.compares();
    let changes = if compares { field_differences::between(&live, after) } else { Vec::new() };
    let fine = match job.owned {
        true => job.strategy.tolerates && job.was_applied_to(&live),
        false => compares,
    };
    let fine = fine && changes.iter().all(|one| field_differences::is_below(one, &job.tolerated));
    let same = is_equal(&live, after, job.owned) || fine;
    DryRun::There { same, live, changes }
}

/// Tries one object. Reads it first if it exists and may belong to others.
async fn dry_run_one(mut job: ApplyJob, is_there: bool, api: &ApiClient) -> Result<DryRun, Failure> {
    let there = |live, same| DryRun::There { live, same, changes: Vec::new() };
    let is_read_first = job.strategy.only_looks() || is_there && !job.is_older();
    if job.live.is_none() && is_read_first {
        job = match api.get(&job.path, &job.id.name).await? {
            Some(live) => job.with(live, &api.identity),
            None if job.strategy.way == WriteLimit::ReadOnly => return Ok(DryRun::New),
            None => job,
        };
    }
    if let Some(live) = job.live.clone().filter(|_| job.strategy.only_looks()) {
        return Ok(there(live, true));
    }
    let first = job.dry_run_once(api).await;
    match first {
        Ok(ApplyResult { created: true, .. }) => return Ok(DryRun::New),
        Ok(_) if job.is_older() => return Ok(DryRun::Older),
        _ => {}
    }
    let known = job.live.is_some();
    let (job, result) = if known {
        (job, first)
    } else {
        match (api.get(&job.path, &job.id.name).await?, first) {
            (Some(live), first) => {
                let job = job.with(live, &api.identity);
                // The first dry run did not know the owners of the conflicting fields.
                let again = if first.is_ok() { first } else { job.dry_run_once(api).await };
                (job, again)
            }
            // The namespace is missing, or this sync creates it.
            (None, Err(failure)) if failure.lacks_namespace() => {
                let message = format!("its namespace `{}` does not exist", job.id.namespace);
                return Ok(DryRun::Unmakeable(Failure::rule(message)));
            }
            (None, Err(failure @ Failure::Unreachable(_))) => return Err(failure),
            (None, Err(failure)) => return Ok(DryRun::Unmakeable(failure)),
            (None, Ok(_)) => return Ok(DryRun::New),
        }
    };
    let Some(live) = job.live.clone() else { return Ok(DryRun::New) };
    match result {
        Ok(ApplyResult { answer: Some(answer), .. }) => Ok(compare(&job, live, &answer.read()?)),
        Ok(ApplyResult { answer: None, .. }) => Ok(there(live, false)),
        // If the server refuses the wanted form, a comparing strategy compares without a dry run.
        Err(failure) if job.strategy.compares() && failure.code() == 422 => {
            Ok(DryRun::There { same: false, changes: field_differences::asked(&live, &job.payload()), live })
        }
        // An object that berth must not take over is reported as such, not by this failure.
        Err(_) if !job.owned && (!job.take_over || is_of_another(&live, &api.identity)) => {
            Ok(there(live, false))
        }
        Err(failure) if failure.is_immutable() && job.may_recreate() => Ok(there(live, false)),
        Err(failure) => Err(failure),
    }
}

/// Marks an object whose drift berth leaves as unchanged.
fn leave_as_is(found: &mut LiveMap, id: &ObjectId) {
    let form = Form::There { version: Version(String::new()), same: true };
    match found.get_mut(id) {
        Some(Live { form: Form::There { same, .. }, .. }) => *same = true,
        Some(_) => {}
        None => {
            let live = Live { owned: true, form, annotations: Annotations::default(), stays: None };
            found.insert(id.clone(), live);
        }
    }
}

/// Reports whether another applier claims the object.
fn is_of_another(live: &Json, identity: &Identity) -> bool {
    part_of(live).is_some_and(|set| *set != identity.set)
}

/// Reports whether the folder contains the definition of this object's kind.
fn is_to_be_defined(id: &ObjectId, desired: &DesiredMap) -> bool {
    desired.values().filter(|object| is_definition(&object.id)).any(|object| {
        let (group, kind) = defined_by(&object.id, Some(object));
        *group == *id.group && kind.is_none_or(|kind| *kind == *id.kind)
    })
}
