//! Statuses by POST: members that cannot push send them signed, and the daemon pushes many in one commit.
//!
//! - `receiver`: receives and checks statuses, within limits even for strangers. `gatherer`: stores waiting statuses in
//!   one commit on one ref, and answers after the push. [`StatusOutcome`]: the outcome, as an answer and as a label of a
//!   counter.

mod gatherer;
mod receiver;

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;

use super::standby::PublishRight;
use berth_base::model::{self, Cluster, ClusterStatus, Map, Timestamp};
use berth_http::listener::{Answer, StatusCode};
use berth_telemetry::meter::{ByLabel, Counter};
use receiver::StatusReceiver;

pub use gatherer::Gatherer;
pub use receiver::SignersFile;

/// A status waiting to be stored.
#[derive(Debug)]
struct Offer {
    status: ClusterStatus,
    reported: Timestamp,
    bytes: Vec<u8>,
    answer: tokio::sync::oneshot::Sender<StatusOutcome>,
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
        let address = StatusReceiver::serve(address, signers, shared.clone(), counts)?;
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

/// The outcome of a status.
#[derive(Clone, Debug, PartialEq, Eq)]
enum StatusOutcome {
    /// The status was stored in the repository.
    Kept,
    /// The status was already stored.
    Known,
    /// A newer status is known, or its time is too far ahead.
    Untimely(String),
    Unsigned(String),
    /// The key may not report for the cluster.
    Refused(String),
    Unreadable(String),
    NoLength,
    TooLarge,
    TooMany,
    /// The status may be accepted later, or by another daemon.
    Unavailable(&'static str),
}

/// The values of the label.
pub const RESULTS: [&str; 8] =
    ["kept", "known", "untimely", "unsigned", "refused", "unreadable", "too_many", "unavailable"];

impl StatusOutcome {
    /// Returns the value of the label.
    pub fn word(&self) -> &'static str {
        match self {
            StatusOutcome::Kept => "kept",
            StatusOutcome::Known => "known",
            StatusOutcome::Untimely(_) => "untimely",
            StatusOutcome::Unsigned(_) => "unsigned",
            StatusOutcome::Refused(_) => "refused",
            StatusOutcome::Unreadable(_) | StatusOutcome::NoLength | StatusOutcome::TooLarge => "unreadable",
            StatusOutcome::TooMany => "too_many",
            StatusOutcome::Unavailable(_) => "unavailable",
        }
    }

    pub fn answer(self) -> Answer {
        let (status, text) = match self {
            StatusOutcome::Kept | StatusOutcome::Known => return Answer::plain(StatusCode::NO_CONTENT, ""),
            StatusOutcome::Untimely(why) => (StatusCode::CONFLICT, why),
            StatusOutcome::Unsigned(why) => (StatusCode::UNAUTHORIZED, why),
            StatusOutcome::Refused(why) => (StatusCode::FORBIDDEN, why),
            StatusOutcome::Unreadable(why) => (StatusCode::BAD_REQUEST, why),
            StatusOutcome::NoLength => {
                (StatusCode::LENGTH_REQUIRED, "the request has no valid `content-length`".to_owned())
            }
            StatusOutcome::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "the status is too long".to_owned()),
            StatusOutcome::TooMany => (StatusCode::TOO_MANY_REQUESTS, "too many requests".to_owned()),
            StatusOutcome::Unavailable(why) => (StatusCode::SERVICE_UNAVAILABLE, why.to_owned()),
        };
        Answer::plain(status, format!("{text}\n"))
    }
}
