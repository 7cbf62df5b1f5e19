//! The daemon: watches the refs of a repository and runs a pass whenever they move.
//!
//! One loop receives events and performs what [`schedule::step`] says; a pass is blocking work on a
//! thread of its own. SIGTERM and SIGINT end the loop after the pass in progress. With a remote, a pass begins
//! with a fetch and ends with a push; its refs are polled, or webhooks tell of them, and only exchanges with it are
//! broken off to stop.

mod allowance;
mod cache;
mod error;
mod event_loop;
mod hooks;
mod hub_counts;
mod idle_pass;
mod pass;
mod pass_log;
pub mod pass_metrics;
mod previews;
mod ref_snapshot;
mod ref_watch;
mod registry_numbers;
mod remote;
mod remote_pass;
mod schedule;
mod settings;
mod signals;
mod source_branch;
mod standby;
mod standing;
pub mod status_posts;
mod tip_check;
mod upkeep;
pub mod webhooks;
mod work;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tracing::{Instrument as _, Span};

use berth_git::transport::Cancel;
use status_posts::StatusPosts;
use webhooks::Webhooks;

pub use cache::Cache;
pub use error::PassError;
pub use hooks::{PassEnd, PassHooks};
pub use pass::{PassOutcome, PassResult, pass, pass_with_cache};
pub use previews::{PreviewChange, PreviewRule, Previews};
pub use registry_numbers::RegistryNumbers;
pub use remote::Mirror;
pub use remote_pass::{Once, pass_once};
pub use settings::Settings;
pub use signals::{Stop, on_stop};
pub use standby::{LeaseRef, Standby, lease_within};
pub use standing::{FleetStanding, MemberStanding};

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

/// A remote, what breaks off the exchanges with it, and the lease of those who publish to it.
#[derive(Debug)]
pub struct Remote {
    pub mirror: Mirror,
    pub cancel: Cancel,
    /// Without one, this daemon publishes whoever else does.
    pub standby: Option<Standby>,
    /// The statuses that members send, if any may.
    pub statuses: Option<StatusPosts>,
    /// Goes on trying also where the first fetch fails for good, for daemons that share their process.
    pub is_patient: bool,
}

/// Shared with the thread of a pass; a pass that crashed leaves it usable.
type SharedMirror = Arc<Mutex<Mirror>>;

/// Reads the settings again: the new ones where something changed, an error where they cannot be used.
pub type Reload<'a> = &'a mut dyn FnMut() -> Result<Option<Settings>, String>;

/// A daemon before it runs.
#[derive(Debug)]
pub struct Daemon {
    pub settings: Settings,
    /// The pause between two looks at the refs.
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
