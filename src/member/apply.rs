//! Objects → the same objects in one cluster, by server-side apply, for those who install berth there.

use std::time::Duration;

use kube::Client;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
    Preconditions,
};
use serde_json::Value as Json;
use tokio::runtime::Runtime;

use crate::live::access::connect_member;
use crate::live::error::{of_kube, one_line};
use crate::live::{Access, LiveError};
use berth_base::model::ObjectId;

/// The manager of the fields that an installation sets.
const MANAGER: &str = "berth-install";

/// The effect of an apply on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    Created,
    Configured,
    Unchanged,
}

impl Applied {
    pub fn word(self) -> &'static str {
        match self {
            Applied::Created => "created",
            Applied::Configured => "configured",
            Applied::Unchanged => "unchanged",
        }
    }
}

/// An object that could not be applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    #[error(transparent)]
    Live(#[from] LiveError),
    #[error("{id}: other managers own fields of it: {message}")]
    Conflict { id: ObjectId, message: String },
    #[error("{id}: the API server refuses it: {message} ({code})")]
    Refused { id: ObjectId, message: String, code: u16 },
    #[error("an object without a kind or a name cannot be applied")]
    Nameless,
}

/// A connection to the cluster that gets the objects.
pub struct Applier {
    runtime: Runtime,
    client: Client,
    server: String,
    patience: Duration,
    /// True if fields of other managers are taken over.
    force: bool,
}

impl std::fmt::Debug for Applier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Applier").field("server", &self.server).finish_non_exhaustive()
    }
}

impl Applier {
    /// Reads the kubeconfig. Whether the server answers shows with the first object.
    pub fn connect(access: &Access, force: bool) -> Result<Applier, LiveError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| LiveError::Start(error.to_string()))?;
        let (client, server) = runtime.block_on(connect_member(access))?;
        Ok(Applier { runtime, client, server, patience: access.patience, force })
    }

    pub fn server(&self) -> &str {
        &self.server
    }

    /// Returns an object of the cluster, by kind and name of this one.
    pub fn get(&self, object: &Json) -> Result<Option<Json>, ApplyError> {
        let (id, api) = self.place(object)?;
        let found = self.within(&id, api.get_opt(&id.name))?;
        Ok(found.and_then(|found| serde_json::to_value(found).ok()))
    }

    /// Makes an object, if there is none of its name. One that exists stays as it is.
    pub fn create(&self, object: &Json) -> Result<Applied, ApplyError> {
        let (id, api) = self.place(object)?;
        let Ok(wanted) = serde_json::from_value::<DynamicObject>(object.clone()) else {
            return Err(ApplyError::Nameless);
        };
        let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        match self.within(&id, api.create(&params, &wanted)) {
            Ok(_) => Ok(Applied::Created),
            Err(ApplyError::Conflict { .. }) => Ok(Applied::Unchanged),
            Err(error) => Err(error),
        }
    }

    /// Applies an object. A binding to another role is replaced, since that field cannot change.
    pub fn apply(&self, object: &Json) -> Result<Applied, ApplyError> {
        if let Some(role) = object.get("roleRef")
            && self.get(object)?.is_some_and(|live| live["roleRef"] != *role)
        {
            self.remove(object)?;
        }
        let (id, api) = self.place(object)?;
        let before = self.within(&id, api.get_metadata_opt(&id.name))?;
        let params = PatchParams {
            field_manager: Some(MANAGER.to_owned()),
            force: self.force,
            ..PatchParams::default()
        };
        let after = self.within(&id, api.patch(&id.name, &params, &Patch::Apply(object)))?;
        Ok(match before {
            None => Applied::Created,
            Some(before) if before.metadata.resource_version == after.metadata.resource_version => {
                Applied::Unchanged
            }
            Some(_) => Applied::Configured,
        })
    }

    /// Removes an object that has the labels of this one. Reports whether there was one.
    pub fn remove(&self, object: &Json) -> Result<bool, ApplyError> {
        let (id, api) = self.place(object)?;
        let Some(live) = self.within(&id, api.get_metadata_opt(&id.name))? else { return Ok(false) };
        let labels = live.metadata.labels.unwrap_or_default();
        let wanted = object["metadata"]["labels"].as_object();
        let is_ours = wanted.is_some_and(|wanted| {
            !wanted.is_empty()
                && wanted.iter().all(|(key, value)| labels.get(key).map(String::as_str) == value.as_str())
        });
        if !is_ours {
            return Ok(false);
        }
        let preconditions =
            Preconditions { uid: live.metadata.uid, resource_version: live.metadata.resource_version };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        self.within(&id, api.delete(&id.name, &params))?;
        Ok(true)
    }

    /// Returns the collection that an object belongs to.
    fn place(&self, object: &Json) -> Result<(ObjectId, Api<DynamicObject>), ApplyError> {
        let id = ObjectId::of(object).ok_or(ApplyError::Nameless)?;
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let version = version.rsplit('/').next().unwrap_or_default();
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(&id.group, version, &id.kind));
        let client = self.client.clone();
        let api = if id.namespace.is_empty() {
            Api::all_with(client, &resource)
        } else {
            Api::namespaced_with(client, &id.namespace, &resource)
        };
        Ok((id, api))
    }

    fn within<T>(
        &self,
        id: &ObjectId,
        answer: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, ApplyError> {
        let limited = async { tokio::time::timeout(self.patience, answer).await };
        let answer = self.runtime.block_on(limited).map_err(|_| LiveError::Late {
            server: self.server.clone(),
            what: id.to_string(),
            seconds: self.patience.as_secs(),
        })?;
        answer.map_err(|error| match &error {
            kube::Error::Api(status) if status.code == 409 => {
                ApplyError::Conflict { id: id.clone(), message: one_line(&status.message) }
            }
            kube::Error::Api(status) if status.code != 401 => {
                ApplyError::Refused { id: id.clone(), message: one_line(&status.message), code: status.code }
            }
            error => of_kube(error, &self.server, &id.to_string(), "apply").into(),
        })
    }
}
