//! Performs chains of writes on the objects of one cluster. A write fails if others changed its object meanwhile.

use std::collections::BTreeMap;

use kube::api::{DeleteParams, DynamicObject, PostParams, Preconditions};
use serde_json::{Value as Json, json};

use crate::live::concurrency::{Panicked, each};
use crate::live::error::one_line;
use crate::live::session::ApiServer;
use crate::live::{Cluster, LiveError};
use berth_base::model::{ObjectId, ObjectWrite, WriteChain};

/// The number of concurrent chains.
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

/// Performs the chains, some at once. Returns the number of writes of each chain. `manager` owns the written fields.
pub fn perform(
    cluster: &Cluster,
    manager: &'static str,
    chains: &[WriteChain],
) -> Vec<Result<usize, WriteError>> {
    let writer = Writer { server: &cluster.session.server, manager };
    cluster.session.runtime.block_on(each(AT_ONCE, chains.iter().map(|chain| writer.follow(chain))))
}

struct Writer<'s> {
    server: &'s ApiServer,
    manager: &'static str,
}

impl Writer<'_> {
    async fn follow(&self, chain: &WriteChain) -> Result<usize, WriteError> {
        // Each write of an object names the version that the previous write produced.
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
        let api = self.server.collection(id, object);
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

    async fn within<T>(
        &self,
        write: &ObjectWrite,
        id: &ObjectId,
        answer: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, WriteError> {
        let what = id.to_string();
        self.server.within(&what, answer).await?.map_err(|error| match &error {
            kube::Error::Api(status) if status.code != 401 => WriteError::Refused {
                verb: write.verb(),
                id: id.clone(),
                message: one_line(&status.message),
                code: status.code,
            },
            error => self.server.explain(error, &what, write.verb()).into(),
        })
    }
}
