//! The parent object: the cluster's fleet, the folder applied last, and the owned kinds.
//!
//! It names a kind before the first object of that kind is made, and until after the last one is removed. It is
//! replaced only in the version that was read, so that two syncers never both believe to be the one.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::api::{DeleteParams, PatchParams, Preconditions};
use serde_json::{Value as Json, json};

use super::super::{Apply, BackendError, Record};
use super::ClusterSession;
use super::api_client::ApiRequest;
use super::failure::Failure;
use super::identity::{GROUP_KINDS, SET_ID, group_kind_of};
use berth_base::model::ObjectId;
use berth_base::model::annotation::{SUSPEND, SUSPEND_UNTIL};

/// The content of the parent object.
#[derive(Clone, Debug)]
pub struct ApplySetParent {
    pub record: Record,
    pub kinds: BTreeSet<String>,
    /// The reason of a suspension, and its end.
    pub suspend: (Option<String>, Option<String>),
    pub uid: String,
    version: String,
}

impl ClusterSession {
    pub fn parent_path(&self) -> String {
        format!("/api/v1/namespaces/{}/configmaps", self.identity.namespace)
    }

    pub async fn read_parent(&mut self) -> Result<Option<Record>, BackendError> {
        let mut found = self.api.get(&self.parent_path(), &self.identity.parent).await;
        let is_unknown = found.as_ref().is_err_and(|failure| failure.code() == 401);
        if is_unknown && self.reconnect().await.is_ok() {
            found = self.api.get(&self.parent_path(), &self.identity.parent).await;
        }
        let found = found.map_err(|failure| self.whole(&failure))?;
        self.parent = found.map(|object| self.parse_parent(&object)).transpose()?;
        Ok(self.parent.as_ref().map(|parent| parent.record.clone()))
    }

    fn parse_parent(&self, object: &Json) -> Result<ApplySetParent, BackendError> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Json::as_str);
        let label = object.get("metadata").and_then(|it| it.get("labels")?.get(SET_ID)?.as_str());
        let name = format!("ConfigMap {}/{}", self.identity.namespace, self.identity.parent);
        if label != Some(&self.identity.set) {
            return Err(BackendError(format!(
                "{name} exists and is not berth's: rename it, or choose another namespace"
            )));
        }
        let damaged = || {
            BackendError(format!(
                "{name} does not record the last applied folder; remove it, and berth finds its objects \
                 by their labels"
            ))
        };
        let sequence = text("/data/sequence").and_then(|it| it.parse().ok()).ok_or_else(damaged)?;
        let [fleet, cluster, tree] =
            ["/data/fleet", "/data/cluster", "/data/tree"].map(|at| text(at).map(str::to_owned));
        let (Some(fleet), Some(cluster), Some(tree)) = (fleet, cluster, tree) else { return Err(damaged()) };
        let annotations = object.get("metadata").and_then(|it| it.get("annotations"));
        let annotation = |name: &str| annotations?.get(name)?.as_str().map(str::to_owned);
        let kinds = annotation(GROUP_KINDS);
        let kinds =
            kinds.as_deref().unwrap_or_default().split(',').map(str::trim).filter(|kind| !kind.is_empty());
        Ok(ApplySetParent {
            record: Record { fleet, cluster, sequence, tree },
            kinds: kinds.map(str::to_owned).collect(),
            suspend: (annotation(SUSPEND), annotation(SUSPEND_UNTIL)),
            uid: text("/metadata/uid").unwrap_or_default().to_owned(),
            version: text("/metadata/resourceVersion").unwrap_or_default().to_owned(),
        })
    }

    /// Writes the parent before any other write.
    pub async fn write_parent(&mut self, record: &Record, writes: &[Apply<'_>]) -> Result<(), BackendError> {
        let owned = self.tracked.iter().filter(|(_, seen)| seen.owned).map(|(id, _)| id);
        let mut kinds: BTreeSet<String> = owned.map(group_kind_of).collect();
        kinds.extend(writes.iter().map(|item| group_kind_of(&item.desired.id)));
        if let Some(parent) = &self.parent {
            kinds.extend(parent.kinds.iter().cloned());
            if parent.kinds == kinds && parent.record == *record {
                return Ok(());
            }
        }
        if self.parent.is_none() {
            self.make_namespace().await?;
        }
        self.put_parent(record, kinds).await
    }

    /// Removes kinds without objects from the parent, after all other writes.
    pub async fn narrow_parent(&mut self) -> Result<(), BackendError> {
        let Some(parent) = self.parent.clone() else { return Ok(()) };
        let owned = self.tracked.iter().filter(|(_, seen)| seen.owned).map(|(id, _)| id);
        let kinds: BTreeSet<String> = owned.map(group_kind_of).collect();
        // A failed write may have been carried out all the same; and a kind that is not served now, as when
        // an aggregated API is down, may be served again.
        let unsure = self.retries.keys().map(group_kind_of);
        let served = |name: &str| {
            let (kind, group) = name.split_once('.').unwrap_or((name, ""));
            self.kinds.preferred(group, kind).is_some()
        };
        let unserved = parent.kinds.iter().filter(|kind| !served(kind)).cloned();
        let unsure = unsure.filter(|kind| parent.kinds.contains(kind));
        let unseen = self.unseen.iter().filter(|kind| parent.kinds.contains(*kind)).cloned();
        let kinds: BTreeSet<String> = kinds.into_iter().chain(unsure).chain(unserved).chain(unseen).collect();
        if kinds == parent.kinds {
            return Ok(());
        }
        self.put_parent(&parent.record, kinds).await
    }

    async fn put_parent(&mut self, record: &Record, kinds: BTreeSet<String>) -> Result<(), BackendError> {
        let list = kinds.iter().cloned().collect::<Vec<_>>().join(",");
        for _ in 0..3 {
            let version = self.parent.as_ref().map(|parent| parent.version.clone());
            let object = self.identity.parent_object(record, &list, version.as_deref());
            let ask = self.ask_for(&self.parent_path(), &self.identity.parent, object);
            let (answer, attempts) = self.api.send_counted(&ask).await;
            match answer {
                Ok(answer) => {
                    let object: Json = answer.read().map_err(|failure| self.whole(&failure))?;
                    self.parent = Some(self.parse_parent(&object)?);
                    return Ok(());
                }
                Err(failure) if failure.code() == 409 => {}
                Err(failure) => return Err(self.whole(&failure)),
            }
            self.read_parent().await?;
            let now = self.parent.as_ref();
            // The first attempt may have been carried out, and only its answer lost.
            if attempts > 1 && now.is_some_and(|now| now.record == *record && now.kinds == kinds) {
                return Ok(());
            }
            // The request is repeated only if nobody else has written.
            if now.map(|now| &now.version) != version.as_ref() {
                break;
            }
        }
        Err(BackendError("another syncer uses this cluster".to_owned()))
    }

    /// Removes the parent object in the version that was read.
    pub async fn remove_parent(&mut self) -> Result<(), BackendError> {
        let Some(parent) = self.parent.take() else { return Ok(()) };
        self.remove_status().await;
        let preconditions = Preconditions { resource_version: Some(parent.version), uid: None };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
        let (path, name) = (self.parent_path(), self.identity.parent.clone());
        match self.api.send(&ApiRequest::Delete { path, name, params }).await {
            Err(failure) if failure.is_not_found() => Ok(()),
            Err(failure) if failure.code() == 409 => {
                Err(BackendError("another syncer uses this cluster".to_owned()))
            }
            result => result.map(drop).map_err(|failure| self.whole(&failure)),
        }
    }

    async fn make_namespace(&mut self) -> Result<(), BackendError> {
        let name = self.identity.namespace.clone();
        let found = self.api.get("/api/v1/namespaces", &name).await;
        if found.map_err(|failure| self.whole(&failure))?.is_some() {
            return Ok(());
        }
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let ask = self.ask_for("/api/v1/namespaces", &name, object);
        self.api.send(&ask).await.map(drop).map_err(|failure| self.whole(&failure))
    }

    fn ask_for(&self, path: &str, name: &str, object: Json) -> ApiRequest {
        let params = PatchParams {
            field_manager: Some(self.identity.manager.clone()),
            force: true,
            ..PatchParams::default()
        };
        ApiRequest::Apply { path: path.to_owned(), name: name.to_owned(), params, object: Arc::new(object) }
    }

    /// Turns a failure of the whole cluster, not of one object, into an error.
    pub fn whole(&self, failure: &Failure) -> BackendError {
        let words = failure.words(false);
        let server = &self.api.server;
        match failure.code() {
            401 => BackendError(format!("the API server {server} does not accept the credentials: {words}")),
            _ => BackendError(format!("{server}: {words}")),
        }
    }

    /// Reports whether an object is the parent itself, which no folder may hold.
    pub fn is_parent(&self, id: &ObjectId) -> bool {
        let own = (&*self.identity.namespace, self.identity.parent.as_str());
        id.group.is_empty() && &*id.kind == "ConfigMap" && (&*id.namespace, &*id.name) == own
    }
}
