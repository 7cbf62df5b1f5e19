//! The teardown of a member: removes everything that berth owns in a backend, or releases it unchanged.
//!
//! Removal is the reverse of applying: namespaces, definitions and roles are removed after the objects that need
//! them. Objects that must not be removed are held, and the backend's record stays while any object is left.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::ApplyError;
use super::apply_order::{self, Rank};
use super::backends::{BEING_REMOVED, Backend, BackendError, NotAdmitted, Record};
use super::desired::DesiredSet;
use super::plan::{self, Form, Live, Prune, SyncPlan};
use berth_base::model::ObjectId;
use berth_base::model::annotation::{WAVE, WORKLOAD};
use berth_base::model::status::Problem;

/// The reason why a teardown was not done, or not completely.
#[derive(Debug, thiserror::Error)]
pub enum TeardownError {
    /// Another syncer has the lease, or the lease failed.
    #[error(transparent)]
    NotAdmitted(#[from] NotAdmitted),
    #[error(transparent)]
    Apply(#[from] ApplyError),
    #[error(transparent)]
    Backend(#[from] BackendError),
}

/// The interval at which a stage is checked until it is gone.
const LOOK: Duration = Duration::from_millis(500);

/// The treatment of the owned objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TeardownMode {
    Remove,
    /// Releases the objects: they stay, without an owner.
    Release,
}

/// The parameters of a member's teardown.
#[derive(Clone, Debug)]
pub struct Teardown {
    pub fleet: String,
    pub cluster: String,
    pub end: TeardownMode,
    /// Also removes namespaces, CRDs and volume claims.
    pub allow_risky_prune: bool,
    /// The time limit until a stage is gone.
    pub patience: Duration,
}

/// The owned objects, and the stages of their removal.
#[derive(Clone, Debug, Default)]
pub struct OwnedObjects {
    pub plan: SyncPlan,
    /// The foreign objects that are deleted along, or would be if the object around them were not held.
    pub along: Vec<Problem>,
    record: Record,
    stages: Vec<Vec<Prune>>,
}

/// The result of a teardown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TeardownResult {
    pub removed: usize,
    pub let_go: usize,
    pub problems: Vec<Problem>,
    /// True if nothing is left, including the backend's record.
    pub is_whole: bool,
}

impl Teardown {
    /// Finds the owned objects and plans their removal. Changes nothing.
    pub fn look(&self, backend: &mut dyn Backend) -> Result<OwnedObjects, ApplyError> {
        let fresh =
            || Record { fleet: self.fleet.clone(), cluster: self.cluster.clone(), ..Record::default() };
        let record = backend.record()?.unwrap_or_else(fresh);
        if (&record.fleet, &record.cluster) != (&self.fleet, &self.cluster) {
            let (fleet, cluster) = (record.fleet, record.cluster);
            return Err(ApplyError::Foreign { fleet, cluster });
        }
        let live = backend.survey(&BTreeMap::new())?;
        let mut plan = plan::plan(&DesiredSet::default(), &live, |_| self.allow_risky_prune);
        if self.end == TeardownMode::Release {
            plan.held.clear();
            plan.prunes = live.iter().filter_map(|(id, live)| released(id, live)).collect();
        }
        let stages = stages(&plan.prunes, &live);
        plan.prunes = stages.concat();
        let going = plan.removed().map(|prune| &prune.id).chain(plan.held.iter().map(|held| &held.id));
        let going: Vec<ObjectId> = going.cloned().collect();
        let along = match self.end {
            TeardownMode::Remove => backend.collateral(&going),
            TeardownMode::Release => Vec::new(),
        };
        Ok(OwnedObjects { plan, along, record, stages })
    }

    /// Removes or releases the owned objects.
    pub fn carry_out(
        &self,
        found: &OwnedObjects,
        backend: &mut dyn Backend,
    ) -> Result<TeardownResult, TeardownError> {
        backend.admit()?;
        let mut ended = TeardownResult { problems: found.plan.problems.clone(), ..TeardownResult::default() };
        if !found.stages.is_empty() {
            let all: Vec<&Prune> = found.stages.iter().flatten().collect();
            backend.begin(&found.record, &[], &all)?;
            for stage in &found.stages {
                self.remove(stage, backend, &mut ended)?;
            }
            backend.finish()?;
        }
        let left = backend.survey(&BTreeMap::new())?;
        ended.is_whole = ended.problems.is_empty() && !left.values().any(|live| live.owned);
        if ended.is_whole {
            backend.remove_record()?;
        }
        ended.problems.sort();
        Ok(ended)
    }

    /// Removes one stage, and waits until its objects are gone.
    fn remove(
        &self,
        stage: &[Prune],
        backend: &mut dyn Backend,
        ended: &mut TeardownResult,
    ) -> Result<(), ApplyError> {
        let batch: Vec<&Prune> = stage.iter().collect();
        let mut going: BTreeMap<&ObjectId, String> = BTreeMap::new();
        for (prune, result) in batch.iter().zip(backend.delete(&batch)) {
            match result {
                Ok(()) if prune.orphan => ended.let_go += 1,
                Ok(()) if prune.seen.is_none() => {}
                Ok(()) => drop(going.insert(&prune.id, format!("{BEING_REMOVED}, and still there"))),
                Err(BackendError::Leaving(why)) => drop(going.insert(&prune.id, why)),
                Err(BackendError::Failed(why)) => ended.problems.push(Problem::failed(prune.id.clone(), why)),
            }
        }
        let deadline = Instant::now() + self.patience;
        loop {
            let left = if going.is_empty() { BTreeMap::new() } else { backend.survey(&BTreeMap::new())? };
            let before = going.len();
            going.retain(|id, _| left.get(*id).is_some_and(|live| live.owned));
            ended.removed += before - going.len();
            if going.is_empty() || Instant::now() >= deadline {
                break;
            }
            std::thread::sleep(LOOK);
        }
        let left = going.into_iter().map(|(id, message)| Problem::failed(id.clone(), message));
        ended.problems.extend(left);
        Ok(())
    }
}

fn released(id: &ObjectId, live: &Live) -> Option<Prune> {
    let seen = match &live.form {
        Form::There { version, .. } => Some(version.clone()),
        Form::Absent => None,
        Form::Faulty(_) | Form::Refused(_) => return None,
    };
    let workload = live.annotations.get(WORKLOAD).cloned().unwrap_or_default();
    let prune = Prune { id: id.clone(), seen, first: false, workload, orphan: true, options: None };
    live.owned.then_some(prune)
}

/// Groups removals into stages: later kinds first, within a kind higher waves first, and roles last.
fn stages(prunes: &[Prune], live: &BTreeMap<ObjectId, Live>) -> Vec<Vec<Prune>> {
    let wave = |id: &ObjectId| {
        let text = live.get(id).and_then(|live| live.annotations.get(WAVE));
        text.and_then(|text| text.trim().parse::<i64>().ok()).unwrap_or_default()
    };
    let mut stages: BTreeMap<(bool, Reverse<Rank>, Reverse<i64>), Vec<Prune>> = BTreeMap::new();
    for prune in prunes {
        let id = &prune.id;
        let key = (gives_rights(id), Reverse(apply_order::rank(id)), Reverse(wave(id)));
        stages.entry(key).or_default().push(prune.clone());
    }
    stages.into_values().collect()
}

fn gives_rights(id: &ObjectId) -> bool {
    let account = id.group.is_empty() && &*id.kind == "ServiceAccount";
    account || &*id.group == "rbac.authorization.k8s.io"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::desired::Annotations;

    #[test]
    fn what_others_need_goes_after_them() {
        let ids = [
            ("rbac.authorization.k8s.io", "Role", "a"),
            ("", "Namespace", ""),
            ("", "ConfigMap", "a"),
            ("apiextensions.k8s.io", "CustomResourceDefinition", ""),
            ("apps", "Deployment", "a"),
            ("example.com", "Boat", "a"),
            ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", ""),
        ];
        let live = Live {
            owned: true,
            form: Form::There { version: plan::Version("1".to_owned()), same: false },
            annotations: Annotations::default(),
            stays: None,
        };
        let mut all = BTreeMap::new();
        for (group, kind, namespace) in ids {
            all.insert(ObjectId::new(group, kind, namespace, "x"), live.clone());
        }
        let late = ObjectId::new("apps", "Deployment", "a", "late");
        let waved = Live { annotations: BTreeMap::from([(WAVE.to_owned(), "3".to_owned())]).into(), ..live };
        all.insert(late, waved);
        let prunes: Vec<Prune> = all.iter().filter_map(|(id, live)| released(id, live)).collect();
        let order: Vec<Vec<String>> = stages(&prunes, &all)
            .into_iter()
            .map(|stage| stage.iter().map(|prune| format!("{}/{}", prune.id.kind, prune.id.name)).collect())
            .collect();
        assert_eq!(
            order,
            [
                vec!["ValidatingWebhookConfiguration/x"],
                vec!["Deployment/late"],
                vec!["Deployment/x", "Boat/x"],
                vec!["ConfigMap/x"],
                vec!["Namespace/x"],
                vec!["CustomResourceDefinition/x"],
                vec!["Role/x"],
            ]
        );
    }
}
