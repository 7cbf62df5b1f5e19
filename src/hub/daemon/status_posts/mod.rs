//! Statuses by POST: members that may push nothing send them signed, and the daemon pushes many in one commit.
//!
//! - `desk`: a request → a status of the cluster that its key speaks for, or a refusal. Bounded, whoever sends.
//! - `gatherer`: statuses that wait → one commit on one ref, pushed before anybody is told that a status is kept.
//! - `signers_file`: who speaks for which cluster.

mod desk;
mod fate;
mod gatherer;
mod signers_file;

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;

use super::standby::PublishRight;
use berth_base::model::{self, Cluster, ClusterStatus, Map, Timestamp};
use berth_telemetry::meter::{ByLabel, Counter};
use desk::Desk;
use fate::Fate;

pub use fate::RESULTS;
pub use gatherer::Gatherer;
pub use signers_file::SignersFile;

/// A status that waits to be kept.
#[derive(Debug)]
struct Offer {
    status: ClusterStatus,
    reported: Timestamp,
    bytes: Vec<u8>,
    answer: tokio::sync::oneshot::Sender<Fate>,
}

/// The input of the gatherer.
#[derive(Debug)]
enum Message {
    Offer(Box<Offer>),
    /// The clusters of the fleet. Those of others are dropped.
    Fleet(Clusters),
}

/// An open counter, at which statuses are taken.
#[derive(Debug)]
struct Open {
    right: PublishRight,
    /// Unknown before the first pass.
    clusters: Option<Clusters>,
    offers: Sender<Message>,
}

type Shared = Arc<Mutex<Option<Open>>>;

type Clusters = Map<String, model::Shared<Cluster>>;

/// The statuses that members send to a daemon.
#[derive(Debug)]
pub struct StatusPosts {
    shared: Shared,
    gatherer: Option<Gatherer>,
    refuses: Arc<AtomicBool>,
}

impl StatusPosts {
    /// Listens as long as the process lives. Returns the address, too. Nothing is taken before the daemon has begun.
    pub fn listen(
        address: SocketAddr,
        signers: SignersFile,
        gatherer: Gatherer,
        counts: ByLabel<Counter>,
    ) -> std::io::Result<(StatusPosts, SocketAddr)> {
        let shared = Shared::default();
        let address = Desk::serve(address, signers, shared.clone(), counts)?;
        Ok((StatusPosts { shared, gatherer: Some(gatherer), refuses: Arc::default() }, address))
    }

    /// Begins to take statuses, while the right holds. `wake` hears of those that say something new.
    pub(super) fn begin(&mut self, right: PublishRight, wake: mpsc::Sender<()>) -> std::io::Result<()> {
        let Some(gatherer) = self.gatherer.take() else { return Ok(()) };
        let (offers, inbox) = channel();
        let refuses = self.refuses.clone();
        let span = tracing::Span::current();
        let thread = std::thread::Builder::new().name("statuses".to_owned());
        thread.spawn(move || span.in_scope(|| gatherer.run(&inbox, &refuses, &wake)))?;
        *lock(&self.shared) = Some(Open { right, clusters: None, offers });
        Ok(())
    }

    /// Hears which clusters the fleet has.
    pub(super) fn know(&self, clusters: &Clusters) {
        let has_same = |known: &Clusters| known.is_same(clusters) || known.keys().eq(clusters.keys());
        if let Some(open) = lock(&self.shared).as_mut()
            && !open.clusters.as_ref().is_some_and(has_same)
        {
            open.clusters = Some(clusters.clone());
            let _ = open.offers.send(Message::Fleet(clusters.clone()));
        }
    }

    /// The sign that members' statuses cannot be kept, so that nobody may be found silent.
    pub(super) fn refusal(&self) -> Arc<AtomicBool> {
        self.refuses.clone()
    }
}

impl Drop for StatusPosts {
    /// Lets the gatherer end, and its working copy go.
    fn drop(&mut self) {
        *lock(&self.shared) = None;
    }
}

fn lock(shared: &Shared) -> std::sync::MutexGuard<'_, Option<Open>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
