//! A Lease of `coordination.k8s.io` in one cluster.

use std::fmt;
use std::time::Duration;

use kube::api::PostParams;
use kube::core::{Request, Status};
use serde_json::{Value as Json, json};

use crate::live::error::innermost;
use crate::live::session::ApiSession;
use crate::live::{Access, LiveError};
use berth_lease::{LeaseSpec, LeaseStore};

/// A Lease object, with its own connection.
pub struct ClusterLease {
    session: ApiSession,
    namespace: String,
    name: String,
    /// The object as last read or written.
    object: Option<Json>,
    /// True if the server rejected the credentials, which may have been replaced.
    is_refused: bool,
}

impl fmt::Debug for ClusterLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClusterLease({}, {}/{})", self.session.server.address, self.namespace, self.name)
    }
}

impl ClusterLease {
    /// Reads the credentials. `patience` is the time limit of one request.
    pub fn connect(
        access: &Access,
        namespace: &str,
        name: &str,
        patience: Duration,
    ) -> Result<ClusterLease, LiveError> {
        let access = Access { patience: access.patience.min(patience), ..access.clone() };
        let session = ApiSession::open(&access)?;
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        Ok(ClusterLease { session, namespace, name, object: None, is_refused: false })
    }

    /// Runs a request within its time limit, and stores the resulting object.
    fn exchange(
        &mut self,
        work: impl AsyncFnOnce(&ClusterLease) -> Result<Option<Json>, LeaseError>,
    ) -> Result<Option<LeaseSpec>, String> {
        if std::mem::take(&mut self.is_refused) {
            // If reconnecting fails, the request with the old credentials fails and reports the reason.
            let _ = self.session.runtime.block_on(self.session.server.reconnect());
        }
        let ended = self.session.wait("the lease", work(self)).unwrap_or(Err(LeaseError::Late));
        self.is_refused = matches!(&ended, Err(LeaseError::Refused(status)) if status.code == 401);
        let object = match ended {
            Err(LeaseError::LostRace) => None,
            ended => ended.map_err(|error| error.to_string())?,
        };
        self.object = object;
        let version =
            |object: &Json| object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        Ok(self.object.as_ref().map(|object| LeaseSpec::read(&version(object), &object["spec"])))
    }

    fn path(&self) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.namespace)
    }

    async fn create(&self, spec: Json) -> Result<Option<Json>, LeaseError> {
        let metadata = json!({"name": self.name, "namespace": self.namespace});
        let object = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec});
        let lease = LeaseRequest::Create { path: self.path(), object };
        match self.send(&lease, 404).await {
            Ok(None) => {}
            result => return result,
        }
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
        self.send(&LeaseRequest::Create { path: "/api/v1/namespaces".to_owned(), object }, 409).await?;
        self.send(&lease, 409).await
    }

    /// Sends a request. Returns `None` if the server answers with the code `passed_over`.
    async fn send(&self, ask: &LeaseRequest, passed_over: u16) -> Result<Option<Json>, LeaseError> {
        let params = PostParams { field_manager: Some("berth".to_owned()), ..PostParams::default() };
        let bytes = |object: &Json| object.to_string().into_bytes();
        let request = match ask {
            LeaseRequest::Get => Request::new(self.path()).get(&self.name, &Default::default()),
            LeaseRequest::Create { path, object } => Request::new(path).create(&params, bytes(object)),
            LeaseRequest::Replace { object } => {
                Request::new(self.path()).replace(&self.name, &params, bytes(object))
            }
        };
        let request = request.map_err(|error| LeaseError::Unsendable(innermost(&error)))?;
        match self.session.server.client.request::<Json>(request).await {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if status.code == passed_over => Ok(None),
            Err(kube::Error::Api(status)) if status.code == 409 => Err(LeaseError::LostRace),
            Err(kube::Error::Api(status)) => Err(LeaseError::Refused(status)),
            Err(error) => Err(LeaseError::Unreachable(innermost(&error))),
        }
    }
}

impl LeaseStore for ClusterLease {
    fn shown(&self) -> String {
        self.session.server.address.to_string()
    }

    fn read(&mut self) -> Result<Option<LeaseSpec>, String> {
        self.exchange(async |lease| lease.send(&LeaseRequest::Get, 404).await)
    }

    fn write(&mut self, read: Option<&LeaseSpec>, spec: &Json) -> Result<Option<LeaseSpec>, String> {
        let Some(read) = read else { return self.exchange(async |lease| lease.create(spec.clone()).await) };
        // Keeps the rest of the object, which others may have written.
        let Some(mut object) = self.object.clone() else { return Ok(None) };
        object["metadata"]["resourceVersion"] = json!(read.version);
        object["spec"] = spec.clone();
        // A 404 means that the lease was removed. The keeper reads it again before it creates it.
        self.exchange(async |lease| lease.send(&LeaseRequest::Replace { object }, 404).await)
    }
}

/// A request about the lease.
#[derive(Debug)]
enum LeaseRequest {
    Get,
    Create { path: String, object: Json },
    Replace { object: Json },
}

/// The reasons why an exchange with the API server failed.
#[derive(Debug, thiserror::Error)]
enum LeaseError {
    #[error("no answer in time")]
    Late,
    #[error("another process was first")]
    LostRace,
    #[error("{} ({})", .0.message, .0.code)]
    Refused(Box<Status>),
    #[error("the API server cannot be reached: {0}")]
    Unreachable(String),
    #[error("{0}")]
    Unsendable(String),
}
