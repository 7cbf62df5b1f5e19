//! Decides whose turn it is, from a lease and the time for which it is unchanged.
//!
//! A holder counts as gone if its lease is unchanged for the lease's duration, measured here. The times in a lease
//! come from another machine's clock and are ignored.

use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

/// The longest accepted duration: a process that writes a lease once must not hold it for a year.
pub const LONGEST: Duration = Duration::from_secs(3600);

/// A lease as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseSpec {
    pub version: String,
    /// The holder; empty after a release.
    pub holder: String,
    pub duration: Duration,
    acquired: String,
    transitions: u64,
}

/// The next step with a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Renew: this process holds the lease.
    Renew,
    /// Take it: the lease is free, or its holder is gone.
    Take,
    /// Another process holds the lease; `alive` is true if a renewal was seen.
    Wait { alive: bool },
}

/// Another process's lease, and the moment since which it is unchanged.
#[derive(Clone, Debug, Default)]
pub struct Rival {
    version: String,
    holder: String,
    since: Option<Instant>,
    alive: bool,
}

impl LeaseSpec {
    /// Reads the `spec` of a Lease. Invalid values count as those of a free lease.
    pub fn read(version: &str, spec: &Json) -> LeaseSpec {
        let text = |name: &str| spec[name].as_str().unwrap_or_default().to_owned();
        let number = |name: &str| spec[name].as_u64().unwrap_or_default();
        LeaseSpec {
            version: version.to_owned(),
            holder: text("holderIdentity"),
            duration: Duration::from_secs(number("leaseDurationSeconds")).min(LONGEST),
            acquired: text("acquireTime"),
            transitions: number("leaseTransitions"),
        }
    }

    /// Returns the lease's `spec` with this holder. The times in it are only for people.
    pub fn spec_for(&self, holder: &str, duration: Duration, now: &str) -> Json {
        let same = self.holder == holder && !self.acquired.is_empty();
        let acquired = if same { self.acquired.as_str() } else { now };
        json!({
            "holderIdentity": holder,
            "leaseDurationSeconds": duration.as_secs().max(1),
            "acquireTime": acquired,
            "renewTime": now,
            "leaseTransitions": self.transitions.saturating_add(u64::from(!same && !holder.is_empty())),
        })
    }
}

impl Rival {
    /// Decides whose turn it is. `is_dead` reports whether a holder is an ended process of this machine.
    pub fn judge(
        &mut self,
        me: &str,
        read: &LeaseSpec,
        now: Instant,
        is_dead: impl Fn(&str) -> bool,
    ) -> Turn {
        if read.holder == me {
            return Turn::Renew;
        }
        if read.holder.is_empty() || is_dead(&read.holder) {
            return Turn::Take;
        }
        if self.version != read.version {
            let alive = self.holder == read.holder;
            let (version, holder) = (read.version.clone(), read.holder.clone());
            *self = Rival { version, holder, since: Some(now), alive };
        }
        let quiet = self.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        if quiet >= read.duration { Turn::Take } else { Turn::Wait { alive: self.alive } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(holder: &str, version: &str, renewed: &str) -> LeaseSpec {
        let spec = json!({"holderIdentity": holder, "leaseDurationSeconds": 60, "renewTime": renewed});
        LeaseSpec::read(version, &spec)
    }

    #[test]
    fn a_holder_is_gone_after_its_time_by_the_watch_of_who_waits() {
        let begin = Instant::now();
        let after = |seconds| begin + Duration::from_secs(seconds);
        let nobody = |_: &str| false;
        // The holder's clock is irrelevant: 1970, the present, 2099.
        for renewed in ["1970-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2099-01-01T00:00:00Z"] {
            let mut rival = Rival::default();
            let one = lease("other", "1", renewed);
            assert_eq!(rival.judge("me", &one, begin, nobody), Turn::Wait { alive: false });
            assert_eq!(rival.judge("me", &one, after(59), nobody), Turn::Wait { alive: false });
            let two = lease("other", "2", renewed);
            assert_eq!(rival.judge("me", &two, after(60), nobody), Turn::Wait { alive: true });
            assert_eq!(rival.judge("me", &two, after(119), nobody), Turn::Wait { alive: true });
            assert_eq!(rival.judge("me", &two, after(120), nobody), Turn::Take);
        }
    }

    #[test]
    fn a_free_lease_is_taken_and_an_own_one_renewed() {
        let mut rival = Rival::default();
        let now = Instant::now();
        assert_eq!(rival.judge("me", &lease("", "1", ""), now, |_| false), Turn::Take);
        assert_eq!(rival.judge("me", &lease("me", "1", ""), now, |_| false), Turn::Renew);
        assert_eq!(rival.judge("me", &lease("dead", "1", ""), now, |holder| holder == "dead"), Turn::Take);
    }

    #[test]
    fn a_lease_that_cannot_be_read_is_free_and_none_lasts_for_years() {
        for odd in [json!(null), json!([1]), json!({"holderIdentity": 7, "leaseTransitions": -1})] {
            let read = LeaseSpec::read("1", &odd);
            assert_eq!(Rival::default().judge("me", &read, Instant::now(), |_| false), Turn::Take, "{odd}");
        }
        let years = json!({"holderIdentity": "other", "leaseDurationSeconds": u64::MAX});
        assert_eq!(LeaseSpec::read("1", &years).duration, LONGEST);
        let last = LeaseSpec::read("1", &json!({"leaseTransitions": u64::MAX}));
        assert_eq!(last.spec_for("me", LONGEST, "now")["leaseTransitions"], u64::MAX);
    }

    #[test]
    fn a_change_of_hands_is_counted_and_a_renewal_keeps_its_beginning() {
        let minute = Duration::from_secs(60);
        let first = LeaseSpec::default().spec_for("a", minute, "t1");
        assert_eq!((&first["acquireTime"], &first["leaseTransitions"]), (&json!("t1"), &json!(1)));
        let read = LeaseSpec::read("1", &first);
        let again = read.spec_for("a", minute, "t2");
        assert_eq!((&again["acquireTime"], &again["renewTime"]), (&json!("t1"), &json!("t2")));
        assert_eq!(read.spec_for("b", minute, "t3")["leaseTransitions"], 2);
        assert_eq!(read.spec_for("", minute, "t3")["leaseTransitions"], 1);
    }
}
