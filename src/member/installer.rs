//! Applies objects to one cluster by server-side apply, to install berth there.

use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions};
use serde_json::Value as Json;

use crate::live::error::one_line;
use crate::live::session::ApiSession;
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
pub enum InstallError {
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
#[derive(Debug)]
pub struct ClusterInstaller {
    session: ApiSession,
    /// True if fields of other managers are taken over.
    force: bool,
}

impl ClusterInstaller {
    /// Reads the kubeconfig. The first request shows whether the server answers.
    pub fn connect(access: &Access, force: bool) -> Result<ClusterInstaller, LiveError> {
        Ok(ClusterInstaller { session: ApiSession::open(access)?, force })
    }

    pub fn server(&self) -> &str {
        &self.session.server.address
    }

    /// Returns the cluster's object with this kind and name.
    pub fn get(&self, object: &Json) -> Result<Option<Json>, InstallError> {
        let (id, api) = self.place(object)?;
        let found = self.within(&id, api.get_opt(&id.name))?;
        Ok(found.and_then(|found| serde_json::to_value(found).ok()))
    }

    /// Creates an object, if none has its name. An existing object stays unchanged.
    pub fn create(&self, object: &Json) -> Result<Applied, InstallError> {
        let (id, api) = self.place(object)?;
        let Ok(wanted) = serde_json::from_value::<DynamicObject>(object.clone()) else {
            return Err(InstallError::Nameless);
        };
        let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        match self.within(&id, api.create(&params, &wanted)) {
            Ok(_) => Ok(Applied::Created),
            Err(InstallError::Conflict { .. }) => Ok(Applied::Unchanged),
            Err(error) => Err(error),
        }
    }

    /// Applies an object. A binding to another role is replaced, since that field cannot change.
    pub fn apply(&self, object: &Json) -> Result<Applied, InstallError> {
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
    pub fn remove(&self, object: &Json) -> Result<bool, InstallError> {
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

    fn place(&self, object: &Json) -> Result<(ObjectId, Api<DynamicObject>), InstallError> {
        let id = ObjectId::of(object).ok_or(InstallError::Nameless)?;
        let api = self.session.server.collection(&id, object);
        Ok((id, api))
    }

    fn within<T>(
        &self,
        id: &ObjectId,
        answer: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, InstallError> {
        let what = id.to_string();
        self.session.wait(&what, answer)?.map_err(|error| match &error {
            kube::Error::Api(status) if status.code == 409 => {
                InstallError::Conflict { id: id.clone(), message: one_line(&status.message) }
            }
            kube::Error::Api(status) if status.code != 401 => InstallError::Refused {
                id: id.clone(),
                message: one_line(&status.message),
                code: status.code,
            },
            error => self.session.server.explain(error, &what, "apply").into(),
        })
    }
}
