//! The effects of a change before it is published: computed as the daemon would, and compared with the current state,
//! with another revision and with other branches.

pub(crate) mod combination;
pub(crate) mod difference;
pub(crate) mod faults;
pub(crate) mod planned;
pub(crate) mod published_change;
pub(crate) mod rehearsal;
pub(crate) mod since;
