//! The limits of removals without an approval. They come from the daemon's flags, never from the fleet
//! repository.
//!
//! Shares alone would hold every removal in a small fleet, so each limit has a free number. The trailers of a
//! rendered commit record the limits in one line, so that `verify` can compute the commit again.

use std::fmt;
use std::str::FromStr;

use berth_base::model::{LabelKeys, Timestamp};

/// A share from 0 to 100 percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u8);

/// A share, and a number of losses that is free whatever the share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    pub share: Percent,
    pub free: usize,
}

/// The settings of the gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Of one workload's clusters.
    pub clusters: Limit,
    /// Of one cluster's objects.
    pub objects: Limit,
    /// Of the fleet's clusters that may lose something at once without an edit.
    pub evictions: Limit,
    /// Lets namespaces, CRDs and volume claims be removed like other objects.
    pub allow_risky: bool,
    /// The number of earlier states that a rollback may return to.
    pub rollback: usize,
    /// Removals within this time add up.
    pub window: Span,
    /// A rollback may return to any state that was replaced within this time, beside the last few.
    pub rollback_window: Span,
    /// Trailers of source commits approve removals, beside files under `approvals/`.
    pub trailers: bool,
    /// The labels that members may report.
    pub labels: LabelKeys,
    /// A workload is published without its held removals where only silent clusters lose copies.
    pub failover: bool,
}

/// A length of time in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(i64);

/// The units of a [`Span`], largest first.
const UNITS: [(char, i64); 4] = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];

impl Span {
    pub const fn hours(hours: i64) -> Span {
        Span(hours * 3_600)
    }

    /// Returns the moment this long before another.
    pub fn before(self, moment: Timestamp) -> Timestamp {
        let seconds = moment.as_second().saturating_sub(self.0);
        Timestamp::from_second(seconds).unwrap_or(Timestamp::MIN)
    }

    /// Returns the moment this long after another.
    pub fn after(self, moment: Timestamp) -> Timestamp {
        let seconds = moment.as_second().saturating_add(self.0);
        Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
    }
}

impl Percent {
    /// Returns a share of at most 100 percent.
    pub const fn new(percent: u8) -> Percent {
        Percent(if percent > 100 { 100 } else { percent })
    }
}

impl Limit {
    /// Reports whether the part exceeds the limit. The free number does not apply to a share of 0%.
    pub fn is_exceeded(self, part: usize, whole: usize) -> bool {
        self.share_is_exceeded(part, whole) && (part > self.free || self.share.0 == 0)
    }

    pub(crate) fn share_is_exceeded(self, part: usize, whole: usize) -> bool {
        part.saturating_mul(100) > whole.saturating_mul(usize::from(self.share.0))
    }

    /// Reports whether this limit is looser than another one.
    pub fn is_looser_than(self, other: Limit) -> bool {
        // With a share of 0% nothing is free, with 100% everything.
        let free = |limit: Limit| if limit.share.0 == 0 { 0 } else { limit.free };
        self.share > other.share || !other.is_off() && free(self) > free(other)
    }

    /// Reports whether the limit is off, so that nothing exceeds it.
    pub(crate) fn is_off(self) -> bool {
        self.share.0 == 100
    }
}

impl Limits {
    /// The share of late members above which silence moves nothing, unless a flag sets another share. It
    /// decides which facts a daemon records, so no commit names it.
    pub const SILENT: Limit = Limit { share: Percent(20), free: 2 };

    /// Reports whether any setting is looser than the same setting of `other`.
    pub fn is_looser_than(&self, other: &Limits) -> bool {
        self.clusters.is_looser_than(other.clusters)
            || self.objects.is_looser_than(other.objects)
            || self.evictions.is_looser_than(other.evictions)
            || self.allow_risky && !other.allow_risky
            || self.rollback > other.rollback
            || self.window < other.window
            || self.rollback_window > other.rollback_window
            || self.trailers && !other.trailers
            || !self.labels.is_within(&other.labels)
    }
}

impl Default for Limits {
    fn default() -> Limits {
        let limit = |share, free| Limit { share: Percent(share), free };
        Limits {
            clusters: limit(50, 2),
            objects: limit(50, 10),
            evictions: limit(30, 2),
            allow_risky: false,
            rollback: 10,
            window: Span::hours(24),
            rollback_window: Span::hours(24),
            trailers: true,
            labels: LabelKeys::default(),
            failover: true,
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = |(_, seconds): &&(char, i64)| self.0 % seconds == 0;
        // A day is written in hours, as people write it: "24h".
        let (unit, seconds) = UNITS[1..].iter().find(exact).unwrap_or(&UNITS[3]);
        write!(f, "{}{unit}", self.0 / seconds)
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Span, String> {
        let wrong = || "write a length of time such as `24h`, `30m` or `7d`".to_owned();
        let (unit, seconds) = UNITS.iter().find(|(unit, _)| text.ends_with(*unit)).ok_or_else(wrong)?;
        let digits = text.strip_suffix(*unit).unwrap_or_default();
        let count: u32 = digits.parse().map_err(|_| wrong())?;
        Ok(Span(i64::from(count) * seconds))
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Percent, String> {
        let digits = text.strip_suffix('%').unwrap_or(text);
        match digits.parse() {
            Ok(percent @ 0..=100) => Ok(Percent(percent)),
            _ => Err("write a share from `0%` to `100%`".to_owned()),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.share, self.free)
    }
}

impl FromStr for Limit {
    type Err = ();

    fn from_str(text: &str) -> Result<Limit, ()> {
        let (share, free) = text.split_once('/').ok_or(())?;
        Ok(Limit { share: share.parse().map_err(|_| ())?, free: free.parse().map_err(|_| ())? })
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let risky = if self.allow_risky { "allowed" } else { "held" };
        let [trailers, failover] =
            [self.trailers, self.failover].map(|is_on| if is_on { "on" } else { "off" });
        write!(
            f,
            "clusters={} objects={} evictions={} risky={risky} rollback={} window={} rollback-window={} \
             trailers={trailers} labels={} failover={failover}",
            self.clusters,
            self.objects,
            self.evictions,
            self.rollback,
            self.window,
            self.rollback_window,
            self.labels
        )
    }
}

impl FromStr for Limits {
    type Err = ();

    fn from_str(text: &str) -> Result<Limits, ()> {
        let mut words = text.split(' ');
        let mut value = |name: &str| setting(words.next(), name);
        let limits = Limits {
            clusters: value("clusters")?.parse()?,
            objects: value("objects")?.parse()?,
            evictions: value("evictions")?.parse()?,
            allow_risky: match value("risky")? {
                "allowed" => true,
                "held" => false,
                _ => return Err(()),
            },
            rollback: value("rollback")?.parse().map_err(|_| ())?,
            window: value("window")?.parse().map_err(|_| ())?,
            rollback_window: value("rollback-window")?.parse().map_err(|_| ())?,
            trailers: switch(value("trailers")?)?,
            labels: value("labels")?.parse().map_err(|_| ())?,
            failover: switch(value("failover")?)?,
        };
        if words.next().is_none() { Ok(limits) } else { Err(()) }
    }
}

/// Returns the value of a word `name=value`.
fn setting<'t>(word: Option<&'t str>, name: &str) -> Result<&'t str, ()> {
    word.and_then(|word| word.strip_prefix(name)?.strip_prefix('=')).ok_or(())
}

fn switch(word: &str) -> Result<bool, ()> {
    match word {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(()),
    }
}
