//! How much may go without anybody's word. From the daemon's flags, never from the fleet repository.
//!
//! Shares alone would make small fleets unusable, so a few go free. What the gate used is written to a
//! rendered commit's trailers as one line, from which the commit can be proven.

use std::fmt;
use std::str::FromStr;

/// A share from 0 to 100 percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u8);

/// A share, and how many go free whatever the share.
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
    /// Of the fleet's clusters that may lose something at once though nobody edited anything.
    pub evictions: Limit,
    /// Whether namespaces, CRDs and volume claims go like anything else.
    pub allow_risky: bool,
    /// How many earlier states a rollback may go back to.
    pub rollback: usize,
}

impl Percent {
    /// At most 100.
    pub const fn new(percent: u8) -> Percent {
        Percent(if percent > 100 { 100 } else { percent })
    }
}

impl Limit {
    /// Whether so many are too many of the whole. Those that go free do not where the share is none at all.
    pub fn is_exceeded(self, part: usize, whole: usize) -> bool {
        self.share_is_exceeded(part, whole) && (part > self.free || self.share.0 == 0)
    }

    pub fn share_is_exceeded(self, part: usize, whole: usize) -> bool {
        part.saturating_mul(100) > whole.saturating_mul(usize::from(self.share.0))
    }

    /// Reports whether the limit lets more go than another one does.
    pub fn is_looser_than(self, other: Limit) -> bool {
        // With a share of 0% nothing goes free, and with 100% everything does.
        let free = |limit: Limit| if limit.share.0 == 0 { 0 } else { limit.free };
        self.share > other.share || !other.is_off() && free(self) > free(other)
    }

    /// Whether the limit can be passed at all.
    pub fn is_off(self) -> bool {
        self.share.0 == 100
    }
}

impl Limits {
    /// Reports whether any setting lets more go than the same one of another.
    pub fn is_looser_than(&self, other: &Limits) -> bool {
        self.clusters.is_looser_than(other.clusters)
            || self.objects.is_looser_than(other.objects)
            || self.evictions.is_looser_than(other.evictions)
            || self.allow_risky && !other.allow_risky
            || self.rollback > other.rollback
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
        }
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
        write!(
            f,
            "clusters={} objects={} evictions={} risky={risky} rollback={}",
            self.clusters, self.objects, self.evictions, self.rollback
        )
    }
}

impl FromStr for Limits {
    type Err = ();

    /// Reads all settings; a line with fewer or others was written by another berth.
    fn from_str(text: &str) -> Result<Limits, ()> {
        let mut words = text.split(' ');
        let mut value =
            |name: &str| words.next().and_then(|word| word.strip_prefix(name)?.strip_prefix('=')).ok_or(());
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
        };
        if words.next().is_none() { Ok(limits) } else { Err(()) }
    }
}
