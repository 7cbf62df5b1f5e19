//! Statuses by POST: members that cannot push send them signed, and the daemon pushes many in one commit.
//!
//! - `desk`: receives and checks statuses, within limits even for strangers. `gatherer`: stores waiting statuses in
//!   one commit on one ref, and answers after the push. `signers_file`: which key may report for which cluster.

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

/// A status waiting to be stored.
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
    /// The clusters of the fleet. Statuses of other clusters are dropped.
    Fleet(Clusters),
}

/// The state of the desk while statuses are accepted.
#[derive(Debug)]
struct Open {
    right: PublishRight,
    /// Unknown before the first pass.
    clusters: Option<Clusters>,
    offers: Sender<Message>,
}

type Shared = Arc<Mutex<Option<Open>>>;

type Clusters = Map<String, model::Shared<Cluster>>;

/// The receiver of statuses by POST.
#[derive(Debug)]
pub struct StatusPosts {
    shared: Shared,
    gatherer: Option<Gatherer>,
    refuses: Arc<AtomicBool>,
}

impl StatusPosts {
    /// Listens while the process runs. Also returns the address. No status is accepted before the daemon has begun.
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

    /// Begins to accept statuses while this daemon may publish. Sends to `wake` if a status differs from the last
    /// one.
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

    /// Sets the clusters of the fleet.
    pub(super) fn know(&self, clusters: &Clusters) {
        let has_same = |known: &Clusters| known.is_same(clusters) || known.keys().eq(clusters.keys());
        if let Some(open) = lock(&self.shared).as_mut()
            && !open.clusters.as_ref().is_some_and(has_same)
        {
            open.clusters = Some(clusters.clone());
            let _ = open.offers.send(Message::Fleet(clusters.clone()));
        }
    }

    /// Returns the flag that is true while statuses cannot be stored, so that no member counts as silent.
    pub(super) fn refusal(&self) -> Arc<AtomicBool> {
        self.refuses.clone()
    }
}

impl Drop for StatusPosts {
    /// Ends the gatherer, which releases its working copy.
    fn drop(&mut self) {
        *lock(&self.shared) = None;
    }
}

fn lock(shared: &Shared) -> std::sync::MutexGuard<'_, Option<Open>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
