//! The annotations that rendered objects carry for the syncer. Written by `render` and the dialects,
//! read by `sync`: their names are here and nowhere else.

/// The start of all their names.
pub const PREFIX: &str = "berth.dev/";
/// Which workload an object belongs to.
pub const WORKLOAD: &str = "berth.dev/workload";
/// Whether an object that berth did not create is taken over: `"true"`, or `if-no-diff`.
pub const TAKE_OVER: &str = "berth.dev/take-over";
/// `disabled`: never removed. `first`: removed before its workload's new objects are there.
pub const PRUNE: &str = "berth.dev/prune";
/// `"true"`: left in place when it is no longer wanted, and nobody's from then on.
pub const ORPHAN: &str = "berth.dev/orphan";
/// What of the object the member owns.
pub const RETAIN: &str = "berth.dev/retain";
