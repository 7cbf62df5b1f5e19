//! Webhooks: a forge reports a push, and the daemon looks at its remote right away.
//!
//! A delivery can only cause a look at the remote. Its content is ignored, so the worst delivery causes a needless
//! look, and looks are spaced. A push of the daemon itself also causes a delivery: that look finds nothing new and
//! pushes nothing, so there is no loop.
//!
//! The recent deliveries are remembered, for recognising repetitions. Their number is limited.

mod credentials;
mod secrets;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{Receiver, Sender, channel};
use tracing::{debug, info};

use super::allowance::{Allowance, Rate};
use berth_base::backoff::pace::paced;
use berth_base::model::Timestamp;
use berth_http::listener::{self, Answer, BodyError, HeaderMap, Limits, Method, Request, StatusCode};
use berth_telemetry::meter::{ByLabel, Counter};
use credentials::{Check, Credentials, DeliveryVerdict};

pub use secrets::{SecretError, SecretFile};

const LIMITS: Limits = Limits { places: 64, patience: Duration::from_secs(10) };

/// The limit of a body: GitHub and GitLab send at most 25 MB. A body is hashed as it arrives, and not stored.
const LONGEST_BODY: u64 = 25 << 20;

/// The rate of requests that are checked, from all senders.
const RATE: Rate = Rate { burst: 100, each: Duration::from_millis(20) };

/// The pause between two looks caused by webhooks.
const PAUSE: Duration = Duration::from_secs(1);

/// The headers in which forges name the kind of event.
const KINDS: [&str; 6] =
    ["x-github-event", "x-forgejo-event", "x-gitea-event", "x-gogs-event", "x-gitlab-event", "x-event-key"];

/// The kinds of events that may mean a moved ref.
const PUSHES: [&str; 9] = [
    "push",
    "create",
    "delete",
    "Push Hook",
    "Tag Push Hook",
    "System Hook",
    "repo:push",
    "repo:refs_changed",
    "mirror:repo_synchronized",
];

/// The outcome of a delivery.
#[derive(Clone, Copy, Debug)]
enum DeliveryOutcome {
    Accepted,
    Ignored,
    Repeated,
    Stale,
    Unsigned,
    Unusable,
    TooLarge,
    TooMany,
}

impl DeliveryOutcome {
    /// Returns the value of the counter's label.
    fn word(self) -> &'static str {
        match self {
            DeliveryOutcome::Accepted => "accepted",
            DeliveryOutcome::Ignored => "ignored",
            DeliveryOutcome::Repeated | DeliveryOutcome::Stale => "repeated",
            DeliveryOutcome::Unsigned | DeliveryOutcome::Unusable => "unsigned",
            DeliveryOutcome::TooLarge => "too_large",
            DeliveryOutcome::TooMany => "too_many",
        }
    }

    fn answer(self) -> Answer {
        let (status, text) = match self {
            DeliveryOutcome::Accepted => (StatusCode::ACCEPTED, "accepted\n"),
            DeliveryOutcome::Ignored => (StatusCode::ACCEPTED, "ignored: this is no push\n"),
            DeliveryOutcome::Repeated => (StatusCode::OK, "this was heard before\n"),
            DeliveryOutcome::Stale => {
                (StatusCode::UNAUTHORIZED, "`webhook-timestamp` is more than five minutes off\n")
            }
            DeliveryOutcome::Unsigned => (StatusCode::UNAUTHORIZED, "unknown signature or token\n"),
            DeliveryOutcome::Unusable => (StatusCode::SERVICE_UNAVAILABLE, "the secrets cannot be read\n"),
            DeliveryOutcome::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "the body is too long\n"),
            DeliveryOutcome::TooMany => (StatusCode::TOO_MANY_REQUESTS, "too many requests\n"),
        };
        Answer::plain(status, text)
    }
}

/// The values of the counter's label.
pub const RESULTS: [&str; 6] = ["accepted", "ignored", "repeated", "unsigned", "too_large", "too_many"];

/// The wakes caused by webhooks. Simultaneous ones are merged.
#[derive(Debug)]
pub struct Webhooks(Receiver<()>);

impl Webhooks {
    /// Listens for deliveries while the process runs. Also returns the address.
    pub fn listen(
        address: SocketAddr,
        secrets: SecretFile,
        counts: ByLabel<Counter>,
    ) -> std::io::Result<(Webhooks, SocketAddr)> {
        let (wake, woken) = channel(1);
        let count = move |fate: DeliveryOutcome| {
            counts.get_or_create(&[("result", fate.word())]).inc();
        };
        let full = {
            let count = count.clone();
            move || count(DeliveryOutcome::TooMany)
        };
        let desk = DeliveryReceiver {
            secrets,
            wake,
            heard: RefCell::default(),
            allowance: RefCell::new(Allowance::new(RATE, Instant::now())),
        };
        let answer = async move |request: Request| {
            let refusal = match (request.path(), request.method()) {
                ("/" | "/webhook", &Method::POST) => None,
                ("/" | "/webhook", _) => Some((StatusCode::METHOD_NOT_ALLOWED, "only POST\n")),
                _ => Some((StatusCode::NOT_FOUND, "/webhook\n")),
            };
            if let Some((status, text)) = refusal {
                return Answer::plain(status, text);
            }
            let Some(fate) = desk.decide(request).await else {
                return Answer::plain(StatusCode::BAD_REQUEST, "the body breaks off\n");
            };
            debug!(result = fate.word(), "webhook");
            count(fate);
            fate.answer()
        };
        let limits = Limits { patience: paced(LIMITS.patience), ..LIMITS };
        let address = listener::serve(address, "webhooks", limits, answer, full)?;
        Ok((Webhooks(woken), address))
    }

    /// Forwards wakes, at most at the allowed rate. A full channel already contains a wake.
    pub(super) async fn pass_on(mut self, wake: Sender<()>) {
        while self.0.recv().await.is_some() {
            info!("a webhook reported a push");
            let _ = wake.try_send(());
            tokio::time::sleep(paced(PAUSE)).await;
        }
    }
}

/// Decides about deliveries, on one thread.
struct DeliveryReceiver {
    secrets: SecretFile,
    wake: Sender<()>,
    heard: RefCell<RecentDeliveries>,
    allowance: RefCell<Allowance>,
}

impl DeliveryReceiver {
    /// Returns the outcome, or `None` if the body ended early.
    async fn decide(&self, request: Request) -> Option<DeliveryOutcome> {
        if !self.allowance.borrow_mut().take(Instant::now()) {
            return Some(DeliveryOutcome::TooMany);
        }
        let Some(credentials) = Credentials::read(request.headers()) else {
            return Some(DeliveryOutcome::Unsigned);
        };
        let Some(secrets) = self.secrets.read() else { return Some(DeliveryOutcome::Unusable) };
        let is_push = is_push(request.headers());
        let mut check = Check::new(credentials, &secrets);
        match request.read(LONGEST_BODY, |piece| check.update(piece)).await {
            Err(BodyError::TooLong) => return Some(DeliveryOutcome::TooLarge),
            Err(BodyError::Broken) => return None,
            Ok(()) => {}
        }
        let mark = match check.end(Timestamp::now()) {
            DeliveryVerdict::Unsigned => return Some(DeliveryOutcome::Unsigned),
            DeliveryVerdict::Stale => return Some(DeliveryOutcome::Stale),
            DeliveryVerdict::Signed { mark } => mark,
        };
        if !is_push {
            return Some(DeliveryOutcome::Ignored);
        }
        if mark.is_some_and(|mark| !self.heard.borrow_mut().is_new(mark, Instant::now())) {
            return Some(DeliveryOutcome::Repeated);
        }
        let _ = self.wake.try_send(());
        Some(DeliveryOutcome::Accepted)
    }
}

/// Reports whether a delivery may be about a push. A sender that names no kind is assumed to report one.
fn is_push(headers: &HeaderMap) -> bool {
    let kinds = KINDS.iter().filter_map(|name| headers.get(*name));
    kinds.into_iter().all(|kind| PUSHES.iter().any(|push| kind == push))
}

/// The time for which a delivery is remembered.
const WINDOW: Duration = Duration::from_secs(3600);

/// The number of deliveries remembered. Only senders that know a secret can fill it.
const MOST: usize = 10_000;

/// The marks of the last deliveries, oldest first.
#[derive(Debug, Default)]
struct RecentDeliveries(VecDeque<(Instant, [u8; 32])>);

impl RecentDeliveries {
    /// Records a delivery. Returns true if it is the first with its mark.
    pub fn is_new(&mut self, mark: [u8; 32], now: Instant) -> bool {
        while self.0.front().is_some_and(|(at, _)| now.duration_since(*at) > WINDOW) {
            self.0.pop_front();
        }
        if self.0.iter().any(|(_, one)| *one == mark) {
            return false;
        }
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back((now, mark));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_counts_once_within_the_window_and_the_memory_is_bounded() {
        let (mut heard, now) = (RecentDeliveries::default(), Instant::now());
        assert!(heard.is_new([1; 32], now));
        assert!(!heard.is_new([1; 32], now + WINDOW));
        assert!(heard.is_new([1; 32], now + WINDOW + Duration::from_secs(1)));
        heard.0 = std::iter::repeat_n((now, [1; 32]), MOST).collect();
        assert!(heard.is_new([2; 32], now));
        assert_eq!(heard.0.len(), MOST);
    }
}
