//! The thread that sends spans and metrics, and the conversion of passes and rounds to spans: the work, and its steps
//! below it. The thread stores a limited number of spans while the collector is unreachable.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime};

use tracing::{info, warn};

use berth_base::backoff::chance;
use berth_base::progress::Beginning;
use berth_hub::daemon::{PassEnd, PassOutcome};
use berth_member::sync::SyncError;
use berth_member::sync::backends::NotAdmitted;
use berth_member::sync::sync_loop::Sync;
use berth_telemetry::Page;
use berth_telemetry::otlp::{Collector, CollectorError, Span, Value, numbers, spans};

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

/// The end of a piece of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WorkEnd {
    name: &'static str,
    said: Vec<(&'static str, Value)>,
    failure: Option<String>,
}

fn text(text: impl ToString) -> Value {
    Value::Text(text.to_string())
}

fn number(number: impl TryInto<i64>) -> Value {
    Value::Number(number.try_into().unwrap_or(i64::MAX))
}

/// Describes a pass, except a look that found nothing to do.
pub(super) fn of_pass(end: PassEnd<'_>) -> Option<WorkEnd> {
    let (said, failure) = match end {
        PassEnd::StoodBy | PassEnd::Spared => return None,
        PassEnd::Failed(error) => (vec![("berth.result", text("failed"))], Some(error.to_string())),
        PassEnd::Crashed => (vec![("berth.result", text("crashed"))], Some("a bug in berth".to_owned())),
        PassEnd::Done(passed) => {
            let mut said = vec![
                ("berth.source", text(passed.source)),
                ("berth.errors", number(passed.errors())),
                ("berth.held_workloads", number(passed.held.len())),
            ];
            match passed.outcome {
                PassOutcome::Unchanged => said.push(("berth.result", text("unchanged"))),
                PassOutcome::Published { commit, seq } => said.extend([
                    ("berth.result", text("published")),
                    ("berth.commit", text(commit)),
                    ("berth.sequence", number(seq)),
                ]),
            }
            (said, None)
        }
    };
    Some(WorkEnd { name: "pass", said, failure })
}

/// Describes a round that failed, changed something or reported.
pub(super) fn of_round(round: &Sync) -> Option<WorkEnd> {
    let outcome = match &round.result {
        Err(SyncError::NotAdmitted(NotAdmitted::Standby(_))) => return None,
        Err(error) => {
            let said = vec![("berth.result", text("failed"))];
            return Some(WorkEnd { name: "round", said, failure: Some(error.to_string()) });
        }
        Ok(outcome) => outcome,
    };
    let changed = outcome.written + outcome.pruned;
    if changed == 0 && !matches!(round.reported, Ok(true)) {
        return None;
    }
    let problems = outcome.applied.problems.len();
    let said = vec![
        ("berth.result", text(if problems == 0 { "done" } else { "problems" })),
        ("berth.sequence", number(outcome.applied.sequence)),
        ("berth.written", number(outcome.written)),
        ("berth.removed", number(outcome.pruned)),
        ("berth.problems", number(problems)),
    ];
    Some(WorkEnd { name: "round", said, failure: None })
}

/// Converts the work to one trace. Each step lasts until the next one begins.
pub(super) fn trace(end: WorkEnd, steps: &[Beginning], took: Duration, ended: SystemTime) -> Vec<Span> {
    let (trace, id) = (u128::from(chance()) << 64 | u128::from(chance()), chance());
    let begun = ended.checked_sub(took).unwrap_or(ended);
    let WorkEnd { name, said, failure } = end;
    let mut spans = vec![Span { trace, id, parent: None, name, begun, ended, said, failure }];
    let ends = steps.iter().skip(1).map(|step| step.at).chain([ended]);
    spans.extend(steps.iter().zip(ends).map(|(step, until)| Span {
        trace,
        id: chance(),
        parent: Some(id),
        name: step.name,
        begun: step.at.clamp(begun, ended),
        ended: until.clamp(begun, ended),
        said: Vec::new(),
        failure: None,
    }));
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_lie_within_their_work_one_after_the_other() {
        let at = |seconds: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let step = |name, seconds| Beginning { name, at: at(seconds) };
        let end = WorkEnd { name: "pass", said: Vec::new(), failure: None };
        let steps = [step("early", 1), step("fetching", 11), step("pushing", 14)];
        let spans = trace(end, &steps, Duration::from_secs(10), at(20));
        let lengths: Vec<_> = spans.iter().map(|span| (span.name, span.begun, span.ended)).collect();
        let wanted = [("pass", 10, 20), ("early", 10, 11), ("fetching", 11, 14), ("pushing", 14, 20)];
        assert_eq!(lengths, wanted.map(|(name, begun, ended)| (name, at(begun), at(ended))));
        assert!(
            spans[1..].iter().all(|step| step.parent == Some(spans[0].id) && step.trace == spans[0].trace)
        );
    }
}
