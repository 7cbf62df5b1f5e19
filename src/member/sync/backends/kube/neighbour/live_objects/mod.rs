//! The live objects of a folder that another program applies, and the objects that it leaves for berth to remove.
//!
//! A failed read affects only its own objects, unless the server is unreachable.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value as Json;

use super::Session;
use super::found::{Found, GUARDED};
use super::standing::{Observed, Standing};
use crate::live::concurrency::each;
use crate::sync::backends::kube::connection::Connection;
use crate::sync::backends::kube::failure::Failure;
use crate::sync::backends::kube::protected::has_owner;
use crate::sync::backends::{BEING_REMOVED, BackendError};
use crate::sync::desired::{Annotations, Desired, own_annotations};
use crate::sync::field_differences;
use crate::sync::health::Health;
use crate::sync::plan::{ALL_OF_KIND, Form, Live, Version};
use crate::sync::strategy::{Strategy, WriteLimit};
use berth_base::model::ObjectId;
use berth_base::model::annotation::{ORPHAN, SUSPEND, WORKLOAD};

impl Session {
    /// Reads the wanted objects, and the objects left for berth to remove.
    pub(super) async fn read_objects(
        &mut self,
        desired: &BTreeMap<ObjectId, Desired>,
        standing: &Standing,
        found: &mut Found,
    ) -> Result<(), BackendError> {
        let mut kinds: BTreeSet<(&str, &str)> = desired.keys().map(|id| (&*id.group, &*id.kind)).collect();
        kinds.extend(GUARDED);
        if kinds.iter().any(|(group, kind)| self.connection.kinds.preferred(group, kind).is_none()) {
            // The folder may define new kinds.
            let asked = self.connection.ask_kinds().await;
            asked.map_err(|failure| self.connection.api.whole(&failure))?;
        }
        let lists = each(self.connection.at_once, kinds.iter().map(|kind| self.list(kind))).await;
        for ((group, kind), list) in kinds.into_iter().zip(lists) {
            let objects = match list {
                Ok(objects) => objects,
                Err(failure) => {
                    let of_kind = |id: &&ObjectId| (&*id.group, &*id.kind) == (group, kind);
                    let wanted: Vec<&ObjectId> = desired.keys().filter(of_kind).collect();
                    let health = self.unseen("its kind cannot be listed", &failure, kind == "Secret")?;
                    if wanted.is_empty() && *standing == Standing::Applied {
                        found.left.insert(ObjectId::new(group, kind, "", ALL_OF_KIND), unknown(&health));
                    }
                    found.unseen.extend(wanted.into_iter().map(|id| (id.clone(), health.clone())));
                    continue;
                }
            };
            for object in objects {
                let Some(id) = ObjectId::of(&object) else { continue };
                if let Some(wanted) = desired.get(&id) {
                    found.wanted.insert(id, self.observe(wanted, &object));
                } else if *standing == Standing::Applied
                    && let Some(live) = self.left(&id, &object)
                {
                    found.left.insert(id, live);
                }
            }
        }
        self.read_unlabelled(desired, found).await
    }

    /// Lists the objects of one kind that the program applied.
    async fn list(&self, (group, kind): &(&str, &str)) -> Result<Vec<Json>, Failure> {
        let Connection { api, kinds, .. } = &self.connection;
        let mut objects = Vec::new();
        let Some(served) = kinds.preferred(group, kind) else { return Ok(objects) };
        let api_version = match *group {
            "" => served.version.clone(),
            group => format!("{group}/{}", served.version),
        };
        let each = |mut object: Json| {
            // A list omits these fields.
            object["apiVersion"] = api_version.clone().into();
            object["kind"] = (*kind).into();
            objects.push(object);
        };
        api.list(&served.path(group, ""), &self.neighbour.selector(), each).await?;
        Ok(objects)
    }

    /// Reads wanted objects one by one: the program labels only objects that it writes.
    async fn read_unlabelled(
        &mut self,
        desired: &BTreeMap<ObjectId, Desired>,
        found: &mut Found,
    ) -> Result<(), BackendError> {
        let is_unlabelled = |wanted: &&Desired| {
            Strategy::of(wanted).way != WriteLimit::Write || wanted.annotation(SUSPEND).is_some()
        };
        let is_unknown = |id: &ObjectId| !found.wanted.contains_key(id) && !found.unseen.contains_key(id);
        let others: Vec<&Desired> =
            desired.values().filter(|wanted| is_unknown(&wanted.id)).filter(is_unlabelled).collect();
        let get = async |wanted: &&Desired| {
            let path = self.connection.path_of(wanted)?;
            self.connection.api.get(&path, &wanted.id.name).await
        };
        let read = each(self.connection.at_once, others.iter().map(get)).await;
        for (wanted, read) in others.into_iter().zip(read) {
            match read {
                Ok(Some(object)) => {
                    found.wanted.insert(wanted.id.clone(), self.observe(wanted, &object));
                }
                Ok(None) => {}
                Err(failure) => {
                    let health = self.unseen("it cannot be read", &failure, wanted.is_secret())?;
                    found.unseen.insert(wanted.id.clone(), health);
                }
            }
        }
        Ok(())
    }

    /// Returns the health of an unreadable object. Fails if the server answers no request at all.
    fn unseen(&self, what: &str, failure: &Failure, is_secret: bool) -> Result<Health, BackendError> {
        if matches!(failure, Failure::Unreachable(_)) || failure.code() == 401 {
            return Err(self.connection.api.whole(failure));
        }
        let why = format!("{what}: {}", failure.words(is_secret));
        Ok(if failure.may_pass() { Health::Progressing(why) } else { Health::Failed(why) })
    }

    fn observe(&self, wanted: &Desired, object: &Json) -> Observed {
        let is_as_wanted = field_differences::asked(object, &wanted.object()).is_empty();
        Observed { health: self.rules.judge(object), is_as_wanted }
    }

    /// Returns an object that is no longer wanted and that the program leaves for berth; `None` for any other object.
    fn left(&self, id: &ObjectId, object: &Json) -> Option<Live> {
        let annotations = own_annotations(object);
        let is_berths = annotations.contains_key(WORKLOAD) && self.neighbour.leaves(object);
        if !is_berths || annotations.get(ORPHAN).is_some_and(|value| value == "true") {
            return None;
        }
        let uid = object.pointer("/metadata/uid")?.as_str()?.to_owned();
        let stays = self.protected.reason_to_stay(id, has_owner(object));
        let form = match object.pointer("/metadata/deletionTimestamp") {
            Some(since) if !since.is_null() => Form::Faulty(BEING_REMOVED.to_owned()),
            _ => Form::There { version: Version(uid), same: true },
        };
        Some(Live { owned: true, form, annotations: Arc::new(annotations), stays })
    }
}

/// Returns a placeholder for a kind that cannot be listed: some of its objects may be left for berth to remove.
fn unknown(health: &Health) -> Live {
    let why = match health {
        Health::Progressing(why) | Health::Failed(why) => why.as_str(),
        Health::Healthy => "",
    };
    let form = Form::Faulty(format!("the objects that are left for berth to remove are unknown: {why}"));
    Live { owned: true, form, annotations: Annotations::default(), stays: None }
}

#[cfg(test)]
mod tests;
