//! A Lease of `coordination.k8s.io`, so that of all syncers of one fleet in a cluster one writes.
//!
//! A thread of its own, with a connection of its own, takes the lease, renews it and lets it go at the end.
//! Whoever writes asks the [`Fence`] before each request; `turn` says whose turn it is.

mod fence;
mod holder;
mod turn;

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kube::Client;
use kube::api::PostParams;
use kube::core::Request;
use serde_json::{Value as Json, json};
use tracing::{info, warn};

use crate::live::error::innermost;
use crate::live::{Access, LiveError};
use crate::sync::backends::NotAdmitted;
use berth_base::model::Timestamp;
pub use fence::Fence;
use turn::{LeaseSpec, Rival, Turn};

/// The settings of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The time after which an unrenewed lease ends.
    pub duration: Duration,
    /// For one sync: wait for another's lease only until it is known whether its holder lives.
    pub once: bool,
}

impl Lease {
    /// Returns the time limit of one request, so that it ends within the lease.
    pub fn patience(&self) -> Duration {
        self.duration / 2
    }

    fn every(&self) -> Duration {
        (self.duration / 6).max(Duration::from_millis(500))
    }
}

/// The known owner of the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
enum LeaseOwner {
    Unknown,
    /// The lease is ours; `failing` is the reason if it is not being renewed.
    Ours {
        failing: Option<String>,
    },
    Others {
        holder: String,
        alive: bool,
    },
    Trouble(String),
}

/// Keeps the lease for as long as it is not dropped.
#[derive(Debug)]
pub(crate) struct LeaseKeeper {
    pub fence: Fence,
    lease: Lease,
    shared: Arc<Shared>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    owner: Mutex<LeaseOwner>,
    changed: Condvar,
}

impl Shared {
    fn set(&self, owner: LeaseOwner) -> LeaseOwner {
        let mut now = self.owner.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *now, owner);
        self.changed.notify_all();
        before
    }
}

impl LeaseKeeper {
    /// Starts the thread that takes the lease of this name.
    pub fn start(
        access: &Access,
        namespace: &str,
        name: &str,
        lease: Lease,
    ) -> Result<LeaseKeeper, LiveError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| LiveError::Start(error.to_string()))?;
        let access = Access { patience: access.patience.min(lease.patience()), ..access.clone() };
        let (client, server) = runtime.block_on(crate::live::access::connect_member(&access))?;
        let shared = Arc::new(Shared { owner: Mutex::new(LeaseOwner::Unknown), changed: Condvar::new() });
        let fence = Fence::default();
        let mut work = LeaseThread {
            client,
            access,
            server,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            me: holder::of_this_process(),
            lease,
            rival: Rival::default(),
            other: None,
            held: None,
            is_failing: false,
            fence: fence.clone(),
            shared: shared.clone(),
            refused: false,
            failures: 0,
        };
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new().name("lease".to_owned());
        let thread = thread.spawn(move || work.run(&runtime, &stopped));
        let thread = thread.map_err(|error| LiveError::Start(error.to_string()))?;
        Ok(LeaseKeeper { fence, lease, shared, stop: Some(stop), thread: Some(thread) })
    }

    /// Reports whether this process may write, and why not. Waits for the first answer.
    pub fn admit(&self) -> Result<(), NotAdmitted> {
        let undecided = |owner: &mut LeaseOwner| match owner {
            LeaseOwner::Unknown => true,
            LeaseOwner::Others { alive, .. } => self.lease.once && !*alive,
            LeaseOwner::Ours { .. } | LeaseOwner::Trouble(_) => false,
        };
        let longest = self.lease.duration.saturating_mul(2);
        let owner = self.shared.owner.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.shared.changed.wait_timeout_while(owner, longest, undecided);
        let (owner, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match &*owner {
            LeaseOwner::Ours { .. } if self.fence.leaves(self.lease.patience()) => Ok(()),
            LeaseOwner::Ours { failing } => {
                let why = failing.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
                Err(NotAdmitted::Trouble(format!("it could not be renewed in time{why}")))
            }
            LeaseOwner::Others { holder, .. } => {
                Err(NotAdmitted::Standby(format!("`{holder}` holds the lease")))
            }
            LeaseOwner::Trouble(why) => Err(NotAdmitted::Trouble(why.clone())),
            LeaseOwner::Unknown => Err(NotAdmitted::Trouble("there is no answer".to_owned())),
        }
    }
}

impl Drop for LeaseKeeper {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The state of the thread that keeps the lease.
struct LeaseThread {
    client: Client,
    access: Access,
    server: String,
    namespace: String,
    name: String,
    me: String,
    lease: Lease,
    rival: Rival,
    /// The holder when the lease was read last, if that was somebody else.
    other: Option<String>,
    /// The last attempt had no answer that counts, which was said when it began.
    is_failing: bool,
    /// The lease as it was written last, while it is ours.
    held: Option<LeaseSpec>,
    fence: Fence,
    shared: Arc<Shared>,
    /// True if the server rejected the credentials.
    refused: bool,
    /// The number of attempts in a row without a usable answer.
    failures: u32,
}

/// The number of failures from which on they are published.
const FAILURES_TO_PUBLISH: u32 = 4;

impl LeaseThread {
    fn run(&mut self, runtime: &tokio::runtime::Runtime, stopped: &Receiver<()>) {
        loop {
            let begun = Instant::now();
            let step = async { tokio::time::timeout(self.lease.patience(), self.step()).await };
            let stepped = runtime.block_on(step);
            self.refused = matches!(&stepped, Ok(Err(why)) if why.ends_with("(401)"));
            let owner = match stepped {
                Ok(Ok(owner)) => {
                    if std::mem::take(&mut self.is_failing) {
                        info!("the lease can be read and renewed again");
                    }
                    owner
                }
                failed => {
                    let why = failed.ok().and_then(Result::err);
                    let why = why.unwrap_or_else(|| "no answer in time".to_owned());
                    let why = format!("{}: {why}", self.server);
                    if !std::mem::replace(&mut self.is_failing, true) {
                        warn!(error = why, "the lease cannot be read or renewed");
                    }
                    match (&self.held, &self.other) {
                        // A renewed lease stays valid for its time.
                        (Some(_), _) => LeaseOwner::Ours { failing: Some(why) },
                        // The last known holder may still have it, and is the one to report.
                        (None, Some(holder)) => LeaseOwner::Others { holder: holder.clone(), alive: true },
                        (None, None) => LeaseOwner::Trouble(why),
                    }
                }
            };
            // Rejected credentials may have been replaced.
            if self.refused
                && let Ok((client, _)) = runtime.block_on(crate::live::access::connect_member(&self.access))
            {
                self.client = client;
            }
            self.refused = false;
            self.failures =
                if matches!(owner, LeaseOwner::Trouble(_)) { self.failures.saturating_add(1) } else { 0 };
            let soon = (1..FAILURES_TO_PUBLISH).contains(&self.failures);
            if !soon {
                self.publish(owner);
            }
            let pause = match &*self.shared.owner.lock().unwrap_or_else(PoisonError::into_inner) {
                LeaseOwner::Ours { .. } => self.lease.every(),
                _ if self.lease.once || soon => Duration::from_millis(250),
                _ => self.lease.every(),
            };
            let pause = pause.saturating_sub(begun.elapsed()).max(Duration::from_millis(100));
            match stopped.recv_timeout(pause) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.fence.close();
        let release = async { tokio::time::timeout(Duration::from_secs(5), self.release()).await };
        if let Ok(Err(why)) = runtime.block_on(release) {
            warn!(error = why, "the lease was not released; it expires by itself");
        }
    }

    fn publish(&self, owner: LeaseOwner) {
        let before = self.shared.set(owner.clone());
        let whose = |owner: &LeaseOwner| match owner {
            LeaseOwner::Others { holder, .. } => Some(holder.clone()),
            LeaseOwner::Ours { .. } => Some(String::new()),
            _ => None,
        };
        let still_in_trouble = matches!((&before, &owner), (LeaseOwner::Trouble(_), LeaseOwner::Trouble(_)));
        if still_in_trouble || before == owner || whose(&before).is_some() && whose(&before) == whose(&owner)
        {
            return;
        }
        match owner {
            LeaseOwner::Ours { .. } => info!(holder = self.me, "holding the lease"),
            LeaseOwner::Others { holder, .. } => {
                info!(holder, "another syncer holds the lease; waiting for it");
            }
            // The reason was logged when the trouble began.
            LeaseOwner::Trouble(_) | LeaseOwner::Unknown => {}
        }
    }

    /// Reads the lease once, and takes or renews it.
    async fn step(&mut self) -> Result<LeaseOwner, String> {
        let asked = Instant::now();
        let Some(object) = self.get().await? else {
            self.held = None;
            self.fence.close();
            return match self.create().await? {
                Some(made) => Ok(self.ours(&made, asked)),
                None => Ok(LeaseOwner::Unknown),
            };
        };
        let read = LeaseSpec::of(&object);
        match self.rival.judge(&self.me, &read, Instant::now(), holder::has_ended) {
            Turn::Wait { alive } => {
                self.held = None;
                self.fence.close();
                self.other = Some(read.holder.clone());
                Ok(LeaseOwner::Others { holder: read.holder, alive })
            }
            turn => {
                if turn == Turn::Take {
                    self.held = None;
                    self.fence.close();
                }
                match self.replace(object, &read, &self.me.clone()).await? {
                    Some(made) => Ok(self.ours(&made, asked)),
                    // Somebody was first, or touched the lease: the next step reads it again.
                    None => Ok(if self.held.is_some() {
                        LeaseOwner::Ours { failing: None }
                    } else {
                        LeaseOwner::Unknown
                    }),
                }
            }
        }
    }

    fn ours(&mut self, made: &Json, asked: Instant) -> LeaseOwner {
        self.fence.open_until(asked + self.lease.duration);
        self.held = Some(LeaseSpec::of(made));
        self.other = None;
        LeaseOwner::Ours { failing: None }
    }

    async fn release(&mut self) -> Result<(), String> {
        if self.held.take().is_none() {
            return Ok(());
        }
        let Some(object) = self.get().await? else { return Ok(()) };
        let read = LeaseSpec::of(&object);
        if read.holder != self.me {
            return Ok(());
        }
        self.replace(object, &read, "").await.map(drop)
    }

    fn path(&self) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.namespace)
    }

    async fn get(&self) -> Result<Option<Json>, String> {
        self.send(&LeaseRequest::Get, 404).await
    }

    /// Creates the lease. `None` if somebody else was first.
    async fn create(&self) -> Result<Option<Json>, String> {
        let spec = LeaseSpec::default().spec_for(&self.me, self.lease.duration, &now());
        let metadata = json!({"name": self.name, "namespace": self.namespace});
        let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec});
        let lease = LeaseRequest::Create { path: self.path(), object: lease };
        match self.send(&lease, 404).await {
            Ok(None) => {}
            Err(why) if why == LOST_RACE => return Ok(None),
            result => return result,
        }
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
        self.send(&LeaseRequest::Create { path: "/api/v1/namespaces".to_owned(), object }, 409).await?;
        self.send(&lease, 409).await
    }

    /// Replaces the lease in the version that was read. `None` if it has changed since.
    async fn replace(
        &self,
        mut object: Json,
        read: &LeaseSpec,
        holder: &str,
    ) -> Result<Option<Json>, String> {
        object["spec"] = read.spec_for(holder, self.lease.duration, &now());
        self.send(&LeaseRequest::Replace { object }, 409).await
    }

    /// Sends a request. `None` if the server answers with the code `passed_over`.
    async fn send(&self, ask: &LeaseRequest, passed_over: u16) -> Result<Option<Json>, String> {
        let params = PostParams { field_manager: Some("berth".to_owned()), ..PostParams::default() };
        let bytes = |object: &Json| object.to_string().into_bytes();
        let request = match ask {
            LeaseRequest::Get => Request::new(self.path()).get(&self.name, &Default::default()),
            LeaseRequest::Create { path, object } => Request::new(path).create(&params, bytes(object)),
            LeaseRequest::Replace { object } => {
                Request::new(self.path()).replace(&self.name, &params, bytes(object))
            }
        };
        let request = request.map_err(|error| innermost(&error))?;
        match self.client.request::<Json>(request).await {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if status.code == passed_over => Ok(None),
            Err(kube::Error::Api(status)) if status.code == 409 => Err(LOST_RACE.to_owned()),
            Err(kube::Error::Api(status)) => Err(format!("{} ({})", status.message, status.code)),
            Err(error) => Err(format!("the API server cannot be reached: {}", innermost(&error))),
        }
    }
}

/// A request about the lease.
#[derive(Debug)]
enum LeaseRequest {
    Get,
    Create { path: String, object: Json },
    Replace { object: Json },
}

const LOST_RACE: &str = "another process was first";

/// Returns the present time as leases write it.
fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}
