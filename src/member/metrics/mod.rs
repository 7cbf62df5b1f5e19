//! Numbers about a process that keeps running → a page that Prometheus reads, and whether the process is well.
//!
//! Names and labels are berth's own, never an object's or a message's words: nothing secret can be in them, and
//! there are only so many. `server` answers at an address.

mod server;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use server::{Server, address};

/// The meaning of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows.
    Counter,
    Gauge,
    /// How long something took.
    Seconds,
}

/// One number that there may be.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    pub name: &'static str,
    pub kind: Kind,
    pub help: &'static str,
}

/// The upper bounds of what durations are counted by, in seconds.
const BOUNDS: [f64; 10] = [0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0];

/// Shared by who counts and who answers.
#[derive(Clone, Debug)]
pub struct Metrics(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    known: &'static [Metric],
    values: BTreeMap<&'static str, BTreeMap<&'static str, f64>>,
    durations: BTreeMap<&'static str, Durations>,
    /// Why not, where it is not ready.
    unready: Option<&'static str>,
    alive: Instant,
    longest_silence: Duration,
}

#[derive(Clone, Debug, Default)]
struct Durations {
    counts: [u64; BOUNDS.len()],
    count: u64,
    sum: f64,
}

impl Metrics {
    /// Not ready at first, and alive as long as it is heard of often enough.
    pub fn new(known: &'static [Metric], longest_silence: Duration) -> Metrics {
        Metrics(Arc::new(Mutex::new(Inner {
            known,
            values: BTreeMap::new(),
            durations: BTreeMap::new(),
            unready: Some("no round has ended yet"),
            alive: Instant::now(),
            longest_silence,
        })))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds to a counter. The label is empty, or `name="value"`.
    pub fn add(&self, name: &'static str, label: &'static str, more: usize) {
        self.with(|inner| {
            *inner.values.entry(name).or_default().entry(label).or_default() += number(more);
        });
    }

    pub fn set(&self, name: &'static str, label: &'static str, value: f64) {
        self.with(|inner| {
            inner.values.entry(name).or_default().insert(label, value);
        });
    }

    pub fn took(&self, name: &'static str, duration: Duration) {
        let seconds = duration.as_secs_f64();
        self.with(|inner| {
            let durations = inner.durations.entry(name).or_default();
            for (count, _) in durations.counts.iter_mut().zip(BOUNDS).filter(|(_, bound)| seconds <= *bound) {
                *count += 1;
            }
            durations.count += 1;
            durations.sum += seconds;
        });
    }

    /// Says that work goes on, and whether it goes well.
    pub fn is_alive(&self, unready: Option<&'static str>) {
        self.with(|inner| {
            inner.alive = Instant::now();
            inner.unready = unready;
        });
    }

    /// Says that work goes on, as well as before.
    pub fn beat(&self) {
        self.with(|inner| inner.alive = Instant::now());
    }

    /// Why it is not ready for work, or does not do well.
    pub fn unready(&self) -> Option<&'static str> {
        self.with(|inner| inner.unready)
    }

    /// Reports whether the process was heard of lately.
    pub fn is_well(&self) -> bool {
        self.with(|inner| inner.alive.elapsed() <= inner.longest_silence)
    }

    /// The page, in the text format of Prometheus.
    pub fn page(&self) -> String {
        self.with(|inner| {
            let mut page = String::new();
            for metric in inner.known {
                inner.write(metric, &mut page);
            }
            page
        })
    }
}

impl Inner {
    fn write(&self, metric: &Metric, page: &mut String) {
        let name = metric.name;
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Seconds => "histogram",
        };
        let _ = writeln!(page, "# HELP {name} {}\n# TYPE {name} {kind}", metric.help);
        if metric.kind == Kind::Seconds {
            let durations = self.durations.get(name).cloned().unwrap_or_default();
            for (bound, count) in BOUNDS.iter().zip(durations.counts) {
                let _ = writeln!(page, "{name}_bucket{{le=\"{bound}\"}} {count}");
            }
            let (count, sum) = (durations.count, durations.sum);
            let _ = writeln!(
                page,
                "{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {sum}\n{name}_count {count}"
            );
            return;
        }
        for (label, value) in self.values.get(name).into_iter().flatten() {
            let label = if label.is_empty() { String::new() } else { format!("{{{label}}}") };
            let _ = writeln!(page, "{name}{label} {value}");
        }
    }
}

/// Exact up to 2^53, which nothing that is counted here reaches.
#[allow(clippy::cast_precision_loss, reason = "counts are small")]
pub fn number(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Metric] = &[
        Metric { name: "a_total", kind: Kind::Counter, help: "Counts." },
        Metric { name: "b", kind: Kind::Gauge, help: "Stands." },
        Metric { name: "c_seconds", kind: Kind::Seconds, help: "Takes." },
    ];

    #[test]
    fn the_page_is_what_prometheus_reads() {
        let metrics = Metrics::new(KNOWN, Duration::from_secs(60));
        metrics.add("a_total", "result=\"ok\"", 2);
        metrics.add("a_total", "result=\"ok\"", 1);
        metrics.add("a_total", "result=\"failed\"", 1);
        metrics.set("b", "", 1.5);
        metrics.took("c_seconds", Duration::from_millis(200));
        metrics.took("c_seconds", Duration::from_secs(7200));
        let page = metrics.page();
        let begin = "# HELP a_total Counts.\n# TYPE a_total counter\na_total{result=\"failed\"} 1\na_total{result=\"ok\"} 3\n\
                     # HELP b Stands.\n# TYPE b gauge\nb 1.5\n# HELP c_seconds Takes.\n# TYPE c_seconds histogram\n";
        assert!(page.starts_with(begin), "{page}");
        for line in [
            "c_seconds_bucket{le=\"0.1\"} 0",
            "c_seconds_bucket{le=\"0.5\"} 1",
            "c_seconds_bucket{le=\"1800\"} 1",
            "c_seconds_bucket{le=\"+Inf\"} 2",
            "c_seconds_sum 7200.2",
            "c_seconds_count 2",
        ] {
            assert!(page.lines().any(|one| one == line), "{line}\n{page}");
        }
    }

    #[test]
    fn who_is_silent_for_too_long_is_not_well() {
        assert!(Metrics::new(KNOWN, Duration::from_secs(60)).is_well());
        let metrics = Metrics::new(KNOWN, Duration::ZERO);
        while metrics.is_well() {
            std::thread::yield_now();
        }
        assert_eq!(metrics.unready(), Some("no round has ended yet"));
        metrics.beat();
        assert!(metrics.unready().is_some());
        metrics.is_alive(None);
        assert_eq!(metrics.unready(), None);
    }
}
