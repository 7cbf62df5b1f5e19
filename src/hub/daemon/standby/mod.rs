//! Several daemons of one fleet, of which one publishes: it holds a lease. The others fetch, so that they are ready.
//!
//! Nothing is lost without the lease, or where two daemons take themselves for its holder: each push moves refs only
//! from where they were seen. The lease spares the work of losing races.

mod lease_ref;

use std::time::Duration;

use tokio::sync::mpsc::Sender;

use berth_lease::{Fence, Lease, LeaseKeeper, LeaseStore};

pub use lease_ref::LeaseRef;

/// The longest pause between two looks at another daemon's lease, so that one that is let go is soon taken.
const LONGEST_LOOK: Duration = Duration::from_secs(5);

/// A lease that the daemon takes before it publishes.
#[derive(Debug)]
pub struct Standby {
    store: Box<dyn LeaseStore>,
    lease: Lease,
}

/// Returns the lease whose next holder has it within this time of the last renewal. A look may be an eighth late to see
/// the renewal, and an eighth late to see that no other came.
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

    /// Begins to ask for the lease. `wake` hears when it comes or goes.
    pub(super) fn start(self, wake: Sender<()>) -> std::io::Result<Turn> {
        // A full channel already holds a wake.
        let on_change = move || {
            let _ = wake.try_send(());
        };
        let right =
            |keeper: &LeaseKeeper| PublishRight(Some((keeper.fence.clone(), self.lease.duration / 4)));
        let keeper = LeaseKeeper::start(self.store, self.lease, on_change)?;
        Ok(Turn { right: right(&keeper), keeper })
    }
}

/// The lease while the daemon runs. It is let go when this is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    keeper: LeaseKeeper,
    pub right: PublishRight,
}

impl Turn {
    /// Reports a fault of berth, after which the lease would never come.
    pub fn is_broken(&self) -> bool {
        self.keeper.has_ended()
    }
}

/// The right to publish. Without a lease it always holds.
#[derive(Clone, Debug, Default)]
pub(super) struct PublishRight(Option<(Fence, Duration)>);

impl PublishRight {
    /// Reports whether the lease goes on for long enough that a push begins.
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
