//! The thread that sends spans and metrics. It stores a limited number of spans while the collector is unreachable.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime};

use tracing::{info, warn};

use berth_telemetry::Page;
use berth_telemetry::otlp::{Collector, CollectorError, Span, numbers, spans};

/// The number of spans stored for an unreachable collector.
const MOST_SPANS: usize = 2048;
/// The number of spans in one request.
const AT_ONCE: usize = 512;

/// The number of dropped spans.
#[derive(Clone, Debug, Default)]
pub(super) struct Lost(Arc<AtomicU64>);

impl Lost {
    pub fn add(&self, spans: usize) {
        self.0.fetch_add(spans as u64, Ordering::Relaxed);
    }

    fn take(&self) -> u64 {
        self.0.swap(0, Ordering::Relaxed)
    }
}

pub(super) struct Sender {
    collector: Collector,
    resource: Vec<(String, String)>,
    page: Page,
    begun: SystemTime,
    waiting: VecDeque<Span>,
    lost: Lost,
    /// True if the last message failed.
    is_away: bool,
}

impl Sender {
    pub fn new(collector: Collector, resource: Vec<(String, String)>, page: Page) -> Sender {
        Sender {
            collector,
            resource,
            page,
            begun: SystemTime::now(),
            waiting: VecDeque::new(),
            lost: Lost::default(),
            is_away: false,
        }
    }

    pub fn lost(&self) -> Lost {
        self.lost.clone()
    }

    /// Sends until all senders are gone, and then the remaining data.
    pub fn run(mut self, traces: &Receiver<Vec<Span>>, interval: Duration) {
        let mut next = Instant::now() + interval;
        loop {
            let heard = traces.recv_timeout(next.saturating_duration_since(Instant::now()));
            match heard {
                Ok(trace) => {
                    self.keep(trace);
                    traces.try_iter().for_each(|trace| self.keep(trace));
                    // An unreachable collector is tried once per interval.
                    if !self.is_away {
                        self.send_spans();
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.send_all();
                    next = Instant::now() + interval;
                }
                Err(RecvTimeoutError::Disconnected) => return self.send_all(),
            }
        }
    }

    fn keep(&mut self, trace: Vec<Span>) {
        self.waiting.extend(trace);
        let surplus = self.waiting.len().saturating_sub(MOST_SPANS);
        self.waiting.drain(..surplus);
        self.lost.add(surplus);
    }

    fn send_all(&mut self) {
        if self.send_spans() {
            let message = numbers(&self.page.numbers(), &self.resource, self.begun, SystemTime::now());
            let sent = self.collector.send("v1/metrics", &message);
            self.hear(sent);
        }
    }

    /// Sends all waiting spans. Returns true if the collector accepted them.
    fn send_spans(&mut self) -> bool {
        while !self.waiting.is_empty() {
            let count = self.waiting.len().min(AT_ONCE);
            let message = spans(self.waiting.iter().take(count), &self.resource);
            let sent = self.collector.send("v1/traces", &message);
            let is_refused = matches!(sent, Err(CollectorError::Refused(_)));
            if is_refused {
                self.lost.add(count);
            }
            let is_done = sent.is_ok() || is_refused;
            if is_done {
                self.waiting.drain(..count);
            }
            if !self.hear(sent) {
                return false;
            }
        }
        true
    }

    /// Logs once that the collector is unreachable, and once that it is back.
    fn hear(&mut self, sent: Result<(), CollectorError>) -> bool {
        match sent {
            Ok(()) => {
                if std::mem::take(&mut self.is_away) {
                    info!(lost_spans = self.lost.take(), "the collector takes telemetry again");
                }
                true
            }
            Err(error) => {
                if !std::mem::replace(&mut self.is_away, true) {
                    warn!(%error, "telemetry is not delivered, retrying; berth itself is not affected");
                }
                false
            }
        }
    }
}
