//! The daemon: watches the refs of a repository and runs a pass whenever they move.
//!
//! One loop receives events and performs the action that [`schedule::step`] returns; a pass is blocking work on its
//! own thread. SIGTERM and SIGINT end the loop after the pass in progress. With a remote, a pass begins with a fetch
//! and ends with a push. The daemon polls the remote's refs, and webhooks make it look earlier. A stop cancels only
//! exchanges with the remote.

mod allowance;
mod branches;
mod cache;
mod counters;
mod error;
mod event_loop;
mod idle_pass;
mod pass;
mod pass_end;
pub mod pass_metrics;
mod previews;
mod remote;
mod remote_pass;
mod schedule;
mod settings;
mod standby;
mod standing;
pub mod status_posts;
mod upkeep;
mod wakeups;
pub mod webhooks;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tracing::{Instrument as _, Span};

use berth_git::transport::Cancel;
use status_posts::StatusPosts;
use webhooks::Webhooks;

pub use cache::Cache;
pub use counters::RegistryNumbers;
pub use error::PassError;
pub use pass::{PassOutcome, PassResult, pass, pass_with_cache};
pub use pass_end::{PassEnd, PassHooks};
pub use previews::{PreviewChange, PreviewRule, Previews};
pub use remote::Mirror;
pub use remote_pass::{Once, pass_once};
pub use settings::Settings;
pub use standby::{LeaseRef, Standby, lease_within};
pub use standing::{FleetStanding, MemberStanding};
pub use wakeups::{Stop, on_stop};

/// The daemon could not start.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    #[error("starting failed: {0}")]
    Start(#[from] std::io::Error),
    #[error(transparent)]
    Pass(#[from] PassError),
    #[error("the thread that keeps the lease has ended, a bug in berth; start the daemon again")]
    Lease,
}

/// A remote, the means to cancel exchanges with it, and the lease of its publishers.
#[derive(Debug)]
pub struct Remote {
    pub mirror: Mirror,
    pub cancel: Cancel,
    /// `None`: this daemon publishes even if others do.
    pub standby: Option<Standby>,
    /// The statuses that members send by POST, if that is enabled.
    pub statuses: Option<StatusPosts>,
    /// Retries the first fetch even after a permanent failure, for daemons that share their process.
    pub is_patient: bool,
}

/// Shared with the thread of a pass. A crashed pass leaves it usable.
type SharedMirror = Arc<Mutex<Mirror>>;

/// Reads the settings again. Returns them if they changed, or an error if they are invalid.
pub type Reload<'a> = &'a mut dyn FnMut() -> Result<Option<Settings>, String>;

/// A daemon before it runs.
#[derive(Debug)]
pub struct Daemon {
    pub settings: Settings,
    /// The interval of polling the refs.
    pub poll: Duration,
    pub remote: Option<Remote>,
    pub webhooks: Option<Webhooks>,
}

impl Daemon {
    /// Runs until asked to stop.
    pub fn run(self, reload: Reload<'_>, hooks: &mut dyn PassHooks, stop: Stop) -> Result<(), DaemonError> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let work = event_loop::run(self, reload, hooks, stop);
        runtime.block_on(work.instrument(Span::current()))
    }
}
