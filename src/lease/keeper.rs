//! The thread that takes a lease, renews it and releases it at the end.
//!
//! Writers ask the [`Fence`] first. `turn` decides whose turn it is.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use tracing::{Span, info, warn};

use crate::fence::Fence;
use crate::holder;
use crate::turn::{LeaseSpec, Rival, Turn};
use berth_base::model::Timestamp;

/// A place that stores one lease. Each call ends within [`Lease::patience`].
pub trait LeaseStore: std::fmt::Debug + Send {
    /// Returns the place as messages show it.
    fn shown(&self) -> String;

    /// Reads the lease. `None` if it does not exist.
    fn read(&mut self) -> Result<Option<LeaseSpec>, String>;

    /// Replaces exactly the version of the lease that was read, or creates it if none was read. Returns `None` if
    /// somebody else was first.
    fn write(&mut self, read: Option<&LeaseSpec>, spec: &Json) -> Result<Option<LeaseSpec>, String>;
}

/// The settings of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The time after which an unrenewed lease ends.
    pub duration: Duration,
    /// The pause between two renewals.
    pub renewal: Duration,
    /// The interval at which another holder's lease is read.
    pub look: Duration,
    /// For a single piece of work: waits for another's lease only until it is known whether its holder lives.
    pub once: bool,
    /// The noun for the processes that share the lease.
    pub peer: &'static str,
}

impl Lease {
    /// Returns a lease of this duration, renewed and read six times within it.
    pub fn of(duration: Duration, peer: &'static str) -> Lease {
        let sixth = (duration / 6).max(Duration::from_millis(500));
        Lease { duration, renewal: sixth, look: sixth, once: false, peer }
    }

    /// Returns the time limit of one exchange, so that it ends within the lease.
    pub fn patience(&self) -> Duration {
        self.duration / 2
    }
}

/// The reasons why this process may not write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotHeld {
    /// Another process holds the lease.
    Others(String),
    Trouble(String),
}

/// The known owner of the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
enum LeaseOwner {
    Unknown,
    /// This process holds the lease; `failing` is the reason if renewals fail.
    Ours {
        failing: Option<String>,
    },
    Others {
        holder: String,
        alive: bool,
    },
    Trouble(String),
}

/// Keeps the lease until it is dropped.
#[derive(Debug)]
pub struct LeaseKeeper {
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
    /// Starts the thread, which calls `on_change` when this process gains or loses the lease.
    pub fn start(
        store: Box<dyn LeaseStore>,
        lease: Lease,
        on_change: impl Fn() + Send + 'static,
    ) -> std::io::Result<LeaseKeeper> {
        let shared = Arc::new(Shared { owner: Mutex::new(LeaseOwner::Unknown), changed: Condvar::new() });
        let fence = Fence::default();
        let mut work = LeaseThread {
            store,
            on_change,
            me: holder::of_this_process(),
            lease,
            rival: Rival::default(),
            other: None,
            held: None,
            is_failing: false,
            fence: fence.clone(),
            shared: shared.clone(),
            failures: 0,
        };
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new().name("lease".to_owned());
        let span = Span::current();
        let thread = thread.spawn(move || span.in_scope(|| work.run(&stopped)))?;
        Ok(LeaseKeeper { fence, lease, shared, stop: Some(stop), thread: Some(thread) })
    }

    /// Checks that this process may write; otherwise returns the reason. Waits for the first answer.
    pub fn admit(&self) -> Result<(), NotHeld> {
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
                Err(NotHeld::Trouble(format!("it could not be renewed in time{why}")))
            }
            LeaseOwner::Others { holder, .. } => Err(NotHeld::Others(holder.clone())),
            LeaseOwner::Trouble(why) => Err(NotHeld::Trouble(why.clone())),
            LeaseOwner::Unknown => Err(NotHeld::Trouble("there is no answer".to_owned())),
        }
    }

    /// Reports whether the thread ended unexpectedly, which is a bug.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
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
struct LeaseThread<F> {
    store: Box<dyn LeaseStore>,
    on_change: F,
    me: String,
    lease: Lease,
    rival: Rival,
    /// The holder when the lease was last read, if it was another process.
    other: Option<String>,
    /// True while attempts fail. The failure was logged when it began.
    is_failing: bool,
    /// The lease as last written, while this process holds it.
    held: Option<LeaseSpec>,
    fence: Fence,
    shared: Arc<Shared>,
    /// The number of attempts in a row without a usable answer.
    failures: u32,
}

/// The number of failures in a row after which they are published.
const FAILURES_TO_PUBLISH: u32 = 4;

impl<F: Fn()> LeaseThread<F> {
    fn run(&mut self, stopped: &Receiver<()>) {
        loop {
            let begun = Instant::now();
            let owner = match self.step() {
                Ok(owner) => {
                    if std::mem::take(&mut self.is_failing) {
                        info!("the lease can be read and renewed again");
                    }
                    owner
                }
                Err(why) => {
                    let why = format!("{}: {why}", self.store.shown());
                    if !std::mem::replace(&mut self.is_failing, true) {
                        warn!(error = why, "the lease cannot be read or renewed");
                    }
                    match (&self.held, &self.other) {
                        // The lease stays valid for its duration after a renewal.
                        (Some(_), _) => LeaseOwner::Ours { failing: Some(why) },
                        // The last known holder may still have the lease, and should be the one to report.
                        (None, Some(holder)) => LeaseOwner::Others { holder: holder.clone(), alive: true },
                        (None, None) => LeaseOwner::Trouble(why),
                    }
                }
            };
            self.failures =
                if matches!(owner, LeaseOwner::Trouble(_)) { self.failures.saturating_add(1) } else { 0 };
            let soon = (1..FAILURES_TO_PUBLISH).contains(&self.failures);
            if !soon {
                self.publish(owner);
            }
            let pause = match &*self.shared.owner.lock().unwrap_or_else(PoisonError::into_inner) {
                LeaseOwner::Ours { failing: None } => self.lease.renewal,
                _ if self.lease.once || soon => Duration::from_millis(250),
                _ => self.lease.look,
            };
            let pause = pause.saturating_sub(begun.elapsed()).max(Duration::from_millis(100));
            match stopped.recv_timeout(pause) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.fence.close();
        if let Err(why) = self.release() {
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
        if matches!(before, LeaseOwner::Ours { .. }) != matches!(owner, LeaseOwner::Ours { .. }) {
            (self.on_change)();
        }
        let still_in_trouble = matches!((&before, &owner), (LeaseOwner::Trouble(_), LeaseOwner::Trouble(_)));
        if still_in_trouble || before == owner || whose(&before).is_some() && whose(&before) == whose(&owner)
        {
            return;
        }
        match owner {
            LeaseOwner::Ours { .. } => info!(holder = self.me, "holding the lease"),
            LeaseOwner::Others { holder, .. } => {
                info!(holder, "another {} holds the lease; waiting for it", self.lease.peer);
            }
            // The reason was logged when the failure began.
            LeaseOwner::Trouble(_) | LeaseOwner::Unknown => {}
        }
    }

    /// Renews the lease, or reads it and takes it if it is this process's turn.
    fn step(&mut self) -> Result<LeaseOwner, String> {
        if let Some(held) = self.held.clone()
            && self.write(Some(&held))?
        {
            return Ok(LeaseOwner::Ours { failing: None });
        }
        let read = self.store.read()?;
        let turn = match &read {
            Some(read) => self.rival.judge(&self.me, read, Instant::now(), holder::has_ended),
            None => Turn::Take,
        };
        match (turn, read) {
            (Turn::Wait { alive }, Some(LeaseSpec { holder, .. })) => {
                self.let_go();
                self.other = Some(holder.clone());
                Ok(LeaseOwner::Others { holder, alive })
            }
            (turn, read) => {
                if turn == Turn::Take {
                    self.let_go();
                }
                let is_ours = self.write(read.as_ref())? || self.held.is_some();
                // Somebody else wrote the lease first: the next step reads it again.
                Ok(if is_ours { LeaseOwner::Ours { failing: None } } else { LeaseOwner::Unknown })
            }
        }
    }

    fn let_go(&mut self) {
        self.held = None;
        self.fence.close();
    }

    /// Writes this process into the lease. Returns false if somebody else was first.
    fn write(&mut self, read: Option<&LeaseSpec>) -> Result<bool, String> {
        // The lease's duration counts from before the request.
        let asked = Instant::now();
        let free = LeaseSpec::default();
        let spec = read.unwrap_or(&free).spec_for(&self.me, self.lease.duration, &now());
        let Some(made) = self.store.write(read, &spec)? else { return Ok(false) };
        self.fence.open_until(asked + self.lease.duration);
        self.held = Some(made);
        self.other = None;
        Ok(true)
    }

    fn release(&mut self) -> Result<(), String> {
        let Some(mut held) = self.held.take() else { return Ok(()) };
        let free = |held: &LeaseSpec, lease: Lease| held.spec_for("", lease.duration, &now());
        if self.store.write(Some(&held), &free(&held, self.lease))?.is_some() {
            return Ok(());
        }
        match self.store.read()? {
            Some(read) if read.holder == self.me => held = read,
            _ => return Ok(()),
        }
        self.store.write(Some(&held), &free(&held, self.lease)).map(drop)
    }
}

/// Returns the present time in the format of leases.
fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}
