//! Receives statuses by POST: checks that the key may report for its cluster, passes the status on, and
//! answers.
//!
//! Cheap checks come first: a request whose signature names no known key is not read further. Waiting bodies
//! share a limited amount of memory. The file that lists the keys, and the clusters that each may report for,
//! is read again when it changes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::{Semaphore, SemaphorePermit, oneshot};
use tracing::{debug, warn};

use super::super::allowance::{Allowance, Rate};
use super::{Message, Offer, Shared, StatusOutcome, lock};
use berth_base::model::{ClusterStatus, Timestamp};
use berth_git::signature::{AllowedSigners, sshsig};
use berth_http::listener::{self, Answer, BodyError, HeaderMap, Limits, Method, Request, StatusCode};
use berth_telemetry::meter::{ByLabel, Counter};

/// A member waits until its status is stored, and thousands may report at once. Each place needs a file descriptor.
const LIMITS: Limits = Limits { places: 512, patience: Duration::from_secs(45) };

/// The limit of a status. Syncers send far smaller ones.
const LONGEST: u64 = 1 << 20;

/// The memory for all bodies, in KiB.
const MEMORY: usize = 64 << 10;

/// The rate of requests from all senders whose signature is checked.
const OF_ALL: Rate = Rate { burst: 2_000, each: Duration::from_millis(2) };

/// The rate of statuses of one cluster.
const OF_ONE: Rate = Rate { burst: 10, each: Duration::from_secs(2) };

/// The seconds by which a member's clock may be ahead. A status from the future would block later ones.
const AHEAD: i64 = 300;

const SIGNATURE: &str = "berth-signature";

/// Decides about statuses, on one thread.
pub(super) struct StatusReceiver {
    signers: SignersFile,
    shared: Shared,
    memory: Semaphore,
    of_all: RefCell<Allowance>,
    of_one: RefCell<BTreeMap<String, Allowance>>,
}

impl StatusReceiver {
    /// Serves requests while the process runs. Returns the address, with the port that the system chose.
    pub fn serve(
        address: SocketAddr,
        signers: SignersFile,
        shared: Shared,
        counts: ByLabel<Counter>,
    ) -> std::io::Result<SocketAddr> {
        let count = move |fate: &StatusOutcome| {
            counts.get_or_create(&[("result", fate.word())]).inc();
        };
        let full = {
            let count = count.clone();
            move || count(&StatusOutcome::TooMany)
        };
        let desk = StatusReceiver {
            signers,
            shared,
            memory: Semaphore::new(MEMORY),
            of_all: RefCell::new(Allowance::new(OF_ALL, Instant::now())),
            of_one: RefCell::default(),
        };
        let answer = async move |request: Request| {
            match (request.path(), request.method()) {
                ("/" | "/status", &Method::POST) => {}
                ("/" | "/status", _) => return Answer::plain(StatusCode::METHOD_NOT_ALLOWED, "only POST\n"),
                _ => return Answer::plain(StatusCode::NOT_FOUND, "/status\n"),
            }
            let fate = desk.decide(request).await.unwrap_or_else(|refusal| refusal);
            debug!(result = fate.word(), "status");
            count(&fate);
            fate.answer()
        };
        listener::serve(address, "statuses", LIMITS, answer, full)
    }

    async fn decide(&self, request: Request) -> Result<StatusOutcome, StatusOutcome> {
        self.refuse_while_closed()?;
        let signature = signature(request.headers())?;
        let claimed = sshsig::claimed_by_status(&signature)
            .ok_or_else(|| StatusOutcome::Unsigned(format!("`{SIGNATURE}` cannot be read")))?;
        let is_known = self.signers.with(|signers| signers.has(&claimed)).ok_or(UNUSABLE)?;
        if !is_known {
            return Err(StatusOutcome::Unsigned(format!("the key {claimed} is not known here")));
        }
        if !self.of_all.borrow_mut().take(Instant::now()) {
            return Err(StatusOutcome::TooMany);
        }
        let (bytes, _held) = self.body(request).await?;
        let (status, reported) = self.check(&bytes, &signature)?;
        let (answer, kept) = oneshot::channel();
        self.hand_on(Offer { status, reported, bytes, answer })?;
        // Without an answer, the daemon is ending.
        Ok(kept.await.unwrap_or(CLOSED))
    }

    /// Refuses while another daemon publishes, or before this one has begun.
    fn refuse_while_closed(&self) -> Result<(), StatusOutcome> {
        let shared = lock(&self.shared);
        let open = shared.as_ref().ok_or(CLOSED)?;
        if !open.right.holds() {
            return Err(StatusOutcome::Unavailable("another daemon publishes"));
        }
        open.clusters.as_ref().map(drop).ok_or(CLOSED)
    }

    /// Reads the body, and reserves memory for it as long as the permit lives.
    async fn body(&self, request: Request) -> Result<(Vec<u8>, SemaphorePermit<'_>), StatusOutcome> {
        let length = one(request.headers(), "content-length").and_then(|text| text.parse::<u64>().ok());
        let length = length.ok_or(StatusOutcome::NoLength)?;
        if length > LONGEST {
            return Err(StatusOutcome::TooLarge);
        }
        let share = u32::try_from(length >> 10).unwrap_or(u32::MAX).saturating_add(1);
        let held = self.memory.try_acquire_many(share);
        let held = held.map_err(|_| StatusOutcome::Unavailable("too many statuses wait"))?;
        let mut bytes = Vec::new();
        match request.read(length, |piece| bytes.extend_from_slice(piece)).await {
            Ok(()) => Ok((bytes, held)),
            Err(BodyError::TooLong) => Err(StatusOutcome::TooLarge),
            Err(BodyError::Broken) => Err(StatusOutcome::Unreadable("the body breaks off".to_owned())),
        }
    }

    /// Returns a status and its time, if the fleet has the cluster and the key may report for it.
    fn check(&self, bytes: &[u8], signature: &str) -> Result<(ClusterStatus, Timestamp), StatusOutcome> {
        let key = sshsig::verify_status(bytes, signature).map_err(StatusOutcome::Unsigned)?;
        let status = berth_base::status::read_status(bytes).map_err(StatusOutcome::Unreadable)?;
        let (cluster, now) = (&status.cluster, Timestamp::now());
        let speaks = self.signers.with(|signers| signers.may_report(&key, cluster, now)).ok_or(UNUSABLE)?;
        speaks.map_err(StatusOutcome::Refused)?;
        let is_of_fleet = lock(&self.shared)
            .as_ref()
            .and_then(|open| Some(open.clusters.as_ref()?.contains_key(cluster)))
            .ok_or(CLOSED)?;
        if !is_of_fleet {
            return Err(StatusOutcome::Refused(format!("the fleet has no cluster `{cluster}`")));
        }
        if !self.may_report(cluster) {
            return Err(StatusOutcome::TooMany);
        }
        let Some(reported) = status.reported else {
            return Err(StatusOutcome::Unreadable("its field `reported` is missing".to_owned()));
        };
        let ahead = reported.as_second().saturating_sub(now.as_second());
        if ahead > AHEAD {
            return Err(StatusOutcome::Untimely(format!("its clock is {ahead} seconds ahead")));
        }
        Ok((status, reported))
    }

    fn may_report(&self, cluster: &str) -> bool {
        let (mut of_one, now) = (self.of_one.borrow_mut(), Instant::now());
        if let Some(allowance) = of_one.get_mut(cluster) {
            return allowance.take(now);
        }
        of_one.retain(|_, allowance| !allowance.is_whole(now));
        of_one.entry(cluster.to_owned()).or_insert_with(|| Allowance::new(OF_ONE, now)).take(now)
    }

    fn hand_on(&self, offer: Offer) -> Result<(), StatusOutcome> {
        let shared = lock(&self.shared);
        let open = shared.as_ref().ok_or(CLOSED)?;
        open.offers.send(Message::Offer(offer.into())).map_err(|_| CLOSED)
    }
}

const CLOSED: StatusOutcome = StatusOutcome::Unavailable("the daemon does not accept statuses now");
const UNUSABLE: StatusOutcome = StatusOutcome::Unavailable("the keys cannot be read");

fn signature(headers: &HeaderMap) -> Result<String, StatusOutcome> {
    let line = one(headers, SIGNATURE);
    line.map(str::to_owned).ok_or_else(|| {
        StatusOutcome::Unsigned(format!("the header `{SIGNATURE}` is missing, repeated or unreadable"))
    })
}

/// Returns the value of a header that occurs exactly once.
fn one<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// A file in the format of `ssh-keygen -Y verify`, whose principals are clusters.
#[derive(Debug)]
pub struct SignersFile {
    path: PathBuf,
    /// The file as last read; `None` inside if it was invalid.
    read: RefCell<Option<(Mark, Option<AllowedSigners>)>>,
}

/// The length and time of the file, by which changes are noticed.
type Mark = Option<(u64, SystemTime)>;

impl SignersFile {
    /// Opens the file, which must be valid now.
    pub fn new(path: &Path) -> Result<SignersFile, String> {
        read(path)?;
        Ok(SignersFile { path: path.to_owned(), read: RefCell::default() })
    }

    /// Passes the signers to `ask`. An invalid file is logged only once, because a stranger may send any number of
    /// requests.
    pub(super) fn with<T>(&self, ask: impl FnOnce(&AllowedSigners) -> T) -> Option<T> {
        let mark = fs::metadata(&self.path).and_then(|about| Ok((about.len(), about.modified()?))).ok();
        let mut kept = self.read.borrow_mut();
        let (_, signers) = match kept.take().filter(|(of, _)| *of == mark) {
            Some(same) => kept.insert(same),
            None => {
                let signers = read(&self.path).inspect_err(|error| {
                    let file = self.path.display();
                    warn!(%file, error, "statuses are refused: the file of their signers cannot be used");
                });
                kept.insert((mark, signers.ok()))
            }
        };
        signers.as_ref().map(ask)
    }
}

fn read(path: &Path) -> Result<AllowedSigners, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    AllowedSigners::read(&path.display().to_string(), &text)
}
