//! A session with one API server: its client, the time limit of an answer, and the runtime that both need.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use serde_json::Value as Json;
use tokio::runtime::{Builder, Runtime};

use super::error::{LiveError, of_kube};
use super::kubeconfig::{Access, connect, connect_member};
use berth_base::model::ObjectId;

/// An API server, and the client for it.
#[derive(Clone)]
pub(crate) struct ApiServer {
    pub client: Client,
    /// The address, without credentials.
    pub address: Arc<str>,
    access: Arc<Access>,
}

impl ApiServer {
    /// Connects a process that may run in the cluster: see [`connect_member`].
    pub async fn connect(access: &Access) -> Result<ApiServer, LiveError> {
        Ok(ApiServer::new(access, connect_member(access).await?))
    }

    fn new(access: &Access, (client, address): (Client, String)) -> ApiServer {
        ApiServer { client, address: address.into(), access: Arc::new(access.clone()) }
    }

    /// Reads the credentials again: those of a pod change while it runs.
    pub async fn reconnect(&mut self) -> Result<(), LiveError> {
        self.client = connect_member(&self.access).await?.0;
        Ok(())
    }

    /// Returns the time limit of an answer.
    pub fn patience(&self) -> Duration {
        self.access.patience
    }

    /// Waits for an answer within the time limit. `what` is the object of the request.
    pub async fn within<T>(&self, what: &str, answer: impl Future<Output = T>) -> Result<T, LiveError> {
        let patience = self.patience();
        tokio::time::timeout(patience, answer).await.map_err(|_| LiveError::Late {
            server: self.address.to_string(),
            what: what.to_owned(),
            seconds: patience.as_secs(),
        })
    }

    /// Explains a failed request: `verb` and `what` name the action and its object.
    pub fn explain(&self, error: &kube::Error, what: &str, verb: &str) -> LiveError {
        of_kube(error, &self.address, what, verb)
    }

    /// Returns the collection that an object belongs to.
    pub fn collection(&self, id: &ObjectId, object: &Json) -> Api<DynamicObject> {
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
}

/// A session with an API server. The caller's thread waits for each answer.
pub(crate) struct ApiSession {
    pub runtime: Runtime,
    pub server: ApiServer,
}

impl fmt::Debug for ApiSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiSession({})", self.server.address)
    }
}

impl ApiSession {
    /// Opens the session of a process that may run in the cluster.
    pub fn open(access: &Access) -> Result<ApiSession, LiveError> {
        ApiSession::start(Builder::new_current_thread(), ApiServer::connect(access))
    }

    /// Opens a session with the server of a kubeconfig.
    pub fn open_kubeconfig(access: &Access) -> Result<ApiSession, LiveError> {
        let server = async { Ok(ApiServer::new(access, connect(access).await?)) };
        ApiSession::start(Builder::new_current_thread(), server)
    }

    /// Opens a session as [`ApiSession::open`] does, with a worker thread for background tasks.
    pub fn open_with_worker(access: &Access) -> Result<ApiSession, LiveError> {
        ApiSession::start(with_worker(), ApiServer::connect(access))
    }

    fn start(
        mut runtime: Builder,
        server: impl Future<Output = Result<ApiServer, LiveError>>,
    ) -> Result<ApiSession, LiveError> {
        let runtime = runtime.enable_all().build().map_err(|error| LiveError::Start(error.to_string()))?;
        let server = runtime.block_on(server)?;
        Ok(ApiSession { runtime, server })
    }

    /// Waits for an answer within the server's time limit.
    pub fn wait<T>(&self, what: &str, answer: impl Future<Output = T>) -> Result<T, LiveError> {
        self.runtime.block_on(self.server.within(what, answer))
    }
}

fn with_worker() -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1);
    builder
}

#[cfg(test)]
impl ApiSession {
    /// Opens a session with a server that a test runs.
    pub fn with_test_server(address: &str) -> ApiSession {
        let patience = Duration::from_secs(5);
        let access = Access { kubeconfig: None, context: None, patience, pod: None };
        let server = async {
            let client = Client::try_from(kube::Config::new(address.parse().unwrap())).unwrap();
            Ok(ApiServer::new(&access, (client, address.to_owned())))
        };
        ApiSession::start(with_worker(), server).unwrap()
    }
}
