//! The next moment at which an answer changes by time alone.

use berth_base::model::Timestamp;
use jiff::SignedDuration;

/// Returns the moment this many seconds after another; `None` beyond the end of the calendar.
pub(super) fn seconds_after(since: Timestamp, seconds: i64) -> Option<Timestamp> {
    since.checked_add(SignedDuration::from_secs(seconds)).ok()
}

/// Returns the first of the moments at which `is_changed` holds. If it holds at one moment, it must hold at
/// all later ones.
pub(super) fn first_change(
    mut moments: Vec<Timestamp>,
    is_changed: impl Fn(Timestamp) -> bool,
) -> Option<Timestamp> {
    moments.sort_unstable();
    moments.dedup();
    let at = moments.partition_point(|moment| !is_changed(*moment));
    moments.get(at).copied()
}
