//! Chains of writes → the objects of one cluster. A write over what somebody else changed meanwhile fails.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, PostParams, Preconditions};
use serde_json::{Value as Json, json};
use tokio::runtime::Runtime;

use crate::live::access::connect_member;
use crate::live::concurrency::{Panicked, each};
use crate::live::error::{of_kube, one_line};
use crate::live::{Access, LiveError};
use berth_base::model::{ObjectId, ObjectWrite, WriteChain};

/// The number of chains that are written at once.
const AT_ONCE: usize = 8;

/// A write that failed.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error(transparent)]
    Live(#[from] LiveError),
    #[error("the API server refuses to {verb} {id}: {message} ({code})")]
    Refused { verb: &'static str, id: ObjectId, message: String, code: u16 },
    #[error("an object without a kind or a name cannot be written")]
    Nameless,
}

impl From<Panicked> for WriteError {
    fn from(panicked: Panicked) -> WriteError {
        LiveError::from(panicked).into()
    }
}

/// A connection to the cluster that gets the objects.
pub struct ObjectWriter {
    runtime: Runtime,
    client: Client,
    server: String,
    patience: Duration,
    manager: &'static str,
}

impl std::fmt::Debug for ObjectWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObjectWriter").field("server", &self.server).finish_non_exhaustive()
    }
}

impl ObjectWriter {
    /// Reads the kubeconfig, or a pod's credentials. `manager` owns the fields that are written.
    pub fn connect(access: &Access, manager: &'static str) -> Result<ObjectWriter, LiveError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| LiveError::Start(error.to_string()))?;
        let (client, server) = runtime.block_on(connect_member(access))?;
        Ok(ObjectWriter { runtime, client, server, patience: access.patience, manager })
    }

    /// Performs the chains, some at once. Returns the number of writes of each.
    pub fn perform(&self, chains: &[WriteChain]) -> Vec<Result<usize, WriteError>> {
        self.runtime.block_on(each(AT_ONCE, chains.iter().map(|chain| self.follow(chain))))
    }

    async fn follow(&self, chain: &WriteChain) -> Result<usize, WriteError> {
        // Each write of an object goes on from what the last one made.
        let mut versions: BTreeMap<ObjectId, String> = BTreeMap::new();
        for write in chain {
            let mut object = write.object().clone();
            let id = ObjectId::of(&object).ok_or(WriteError::Nameless)?;
            if let Some(version) = versions.get(&id) {
                object["metadata"]["resourceVersion"] = json!(version);
            }
            let written = self.within(write, &id, self.write(write, &id, &object)).await?;
            if let Some(version) = written.and_then(|object| object.metadata.resource_version) {
                versions.insert(id, version);
            }
        }
        Ok(chain.len())
    }

    async fn write(
        &self,
        write: &ObjectWrite,
        id: &ObjectId,
        object: &Json,
    ) -> Result<Option<DynamicObject>, kube::Error> {
        let api = self.place(id, object);
        let params = PostParams { field_manager: Some(self.manager.to_owned()), ..PostParams::default() };
        let read =
            || serde_json::from_value::<DynamicObject>(object.clone()).map_err(kube::Error::SerdeError);
        match write {
            ObjectWrite::Create(_) => api.create(&params, &read()?).await.map(Some),
            ObjectWrite::Replace(_) => api.replace(&id.name, &params, &read()?).await.map(Some),
            ObjectWrite::ReplaceStatus(_) => api.replace_status(&id.name, &params, &read()?).await.map(Some),
            ObjectWrite::Delete(_) => {
                let metadata = read()?.metadata;
                let preconditions =
                    Preconditions { uid: metadata.uid, resource_version: metadata.resource_version };
                let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
                match api.delete(&id.name, &params).await {
                    Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
                    deleted => deleted.map(|_| None),
                }
            }
        }
    }

    fn place(&self, id: &ObjectId, object: &Json) -> Api<DynamicObject> {
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let version = version.rsplit('/').next().unwrap_or_default();
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(&id.group, version, &id.kind));
        let client = self.client.clone();
        if id.namespace.is_empty() {
            Api::all_with(client, &resource)
        } else {
            Api::namespaced_with(client, &id.namespace, &resource)
        }
    }

    async fn within<T>(
        &self,
        write: &ObjectWrite,
        id: &ObjectId,
        answer: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, WriteError> {
        let limited = tokio::time::timeout(self.patience, answer).await;
        let answer = limited.map_err(|_| LiveError::Late {
            server: self.server.clone(),
            what: id.to_string(),
            seconds: self.patience.as_secs(),
        })?;
        answer.map_err(|error| match &error {
            kube::Error::Api(status) if status.code != 401 => WriteError::Refused {
                verb: write.verb(),
                id: id.clone(),
                message: one_line(&status.message),
                code: status.code,
            },
            error => of_kube(error, &self.server, &id.to_string(), write.verb()).into(),
        })
    }
}
