//! Several daemons of one fleet: the holder of a lease publishes, and the others fetch to be ready.
//!
//! Nothing is lost without the lease, or if two daemons believe to hold it: each push moves refs only from their
//! known values. The lease only saves the work of lost races.

mod lease_ref;

use std::time::Duration;

use tokio::sync::mpsc::Sender;

use berth_lease::{Fence, Lease, LeaseKeeper, LeaseStore};

pub use lease_ref::LeaseRef;

/// The longest interval at which another daemon's lease is read, so that a released lease is taken soon.
const LONGEST_LOOK: Duration = Duration::from_secs(5);

/// A lease that the daemon must hold to publish.
#[derive(Debug)]
pub struct Standby {
    store: Box<dyn LeaseStore>,
    lease: Lease,
}

/// Returns a lease that its next holder takes within `time` after the last renewal. Of that time, a quarter is for
/// reads of the lease, which may be late by an eighth each: one to see the renewal, one to see its expiry.
pub fn lease_within(time: Duration) -> Lease {
    // Leases count whole seconds.
    let duration = Duration::from_secs((time * 3 / 4).as_secs().max(1));
    let look = (time / 8).min(LONGEST_LOOK);
    Lease { renewal: duration / 3, look, ..Lease::of(duration, "daemon") }
}

impl Standby {
    pub fn new(store: impl LeaseStore + 'static, lease: Lease) -> Standby {
        Standby { store: Box::new(store), lease }
    }

    /// Starts to acquire the lease. Sends to `wake` when it is acquired or lost.
    pub(super) fn start(self, wake: Sender<()>) -> std::io::Result<Turn> {
        // A full channel already contains a wake.
        let on_change = move || {
            let _ = wake.try_send(());
        };
        let right =
            |keeper: &LeaseKeeper| PublishRight(Some((keeper.fence.clone(), self.lease.duration / 4)));
        let keeper = LeaseKeeper::start(self.store, self.lease, on_change)?;
        Ok(Turn { right: right(&keeper), keeper })
    }
}

/// The lease of a running daemon. Dropping it releases the lease.
#[derive(Debug)]
pub(super) struct Turn {
    keeper: LeaseKeeper,
    pub right: PublishRight,
}

impl Turn {
    /// Reports whether the keeper ended by a bug, so that the lease will never be acquired.
    pub fn is_broken(&self) -> bool {
        self.keeper.has_ended()
    }
}

/// The right to publish. Without a lease, it always holds.
#[derive(Clone, Debug, Default)]
pub(super) struct PublishRight(Option<(Fence, Duration)>);

impl PublishRight {
    /// Reports whether enough of the lease is left to begin a push.
    pub fn holds(&self) -> bool {
        self.0.as_ref().is_none_or(|(fence, margin)| fence.leaves(*margin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_holder_has_the_lease_in_time_and_the_last_one_may_miss_a_renewal() {
        for seconds in [4, 5, 8, 60, 3600] {
            let time = Duration::from_secs(seconds);
            let lease = lease_within(time);
            assert!(lease.look + lease.duration + lease.look <= time, "{lease:?}");
            assert!(lease.renewal * 2 <= lease.duration * 3 / 4, "{lease:?}");
        }
    }
}
