//! The kinds of metrics in berth's commands, and the registry that they start with.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::info::Info;
use prometheus_client::metrics::{MetricType, TypedMetric};

pub use prometheus_client::encoding::text::encode;
pub use prometheus_client::metrics::counter::Counter;
pub use prometheus_client::metrics::family::Family;
pub use prometheus_client::metrics::gauge::Gauge;
pub use prometheus_client::metrics::histogram::Histogram;
pub use prometheus_client::registry::Registry;

/// The upper bounds of the buckets of durations, in seconds.
pub const SECONDS: [f64; 10] = [0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0];

pub type Number = Gauge<u64, AtomicU64>;

/// A moment as a metric, in seconds since 1970.
pub type Moment = Gauge<f64, AtomicU64>;

/// A number for each value of one label.
pub type ByLabel<M> = Family<[(&'static str, &'static str); 1], M>;

/// Returns a registry with the version of this berth.
///
/// The registry ends each description with a full stop, and the name of each counter with `_total`.
pub fn registry() -> Registry {
    let mut registry = Registry::default();
    let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
    registry.register("berth_build", "The version of this berth", build);
    registry
}

/// A metric that does not appear until its value is known.
#[derive(Clone, Debug, Default)]
pub struct Later<M>(Arc<OnceLock<M>>);

impl<M: Default> Later<M> {
    pub fn known(&self) -> &M {
        self.0.get_or_init(M::default)
    }
}

impl<M: EncodeMetric + TypedMetric> EncodeMetric for Later<M> {
    fn encode(&self, encoder: MetricEncoder<'_>) -> std::fmt::Result {
        self.0.get().map_or(Ok(()), |metric| metric.encode(encoder))
    }

    fn metric_type(&self) -> MetricType {
        M::TYPE
    }

    fn is_empty(&self) -> bool {
        self.0.get().is_none()
    }
}
