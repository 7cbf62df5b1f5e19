//! Strategies on given facts, and on fleets that apply what they get.

mod progressive;
mod properties;
mod rolling;

use super::turn::{Turn, Version};
use berth_base::model::Timestamp;
use berth_base::model::release::Health;
use jiff::SignedDuration;

/// The moment of a test.
const NOW: Timestamp = Timestamp::constant(1_780_000_000, 0);

fn after(seconds: i64) -> Timestamp {
    NOW + SignedDuration::from_secs(seconds)
}

/// Returns a picked cluster whose copy has had this health for this many seconds.
fn turn(cluster: &str, has: Version, health: Health, seconds: i64) -> Turn<'_> {
    let since = (health != Health::Applying).then(|| after(-seconds));
    Turn { cluster, picked: true, has, health, since, measured: true, ..Turn::default() }
}

fn missing(cluster: &str) -> Turn<'_> {
    Turn { cluster, picked: true, ..Turn::default() }
}

fn new(cluster: &str, health: Health) -> Turn<'_> {
    turn(cluster, Version::New, health, 60)
}

fn old(cluster: &str, health: Health) -> Turn<'_> {
    turn(cluster, Version::Old, health, 60)
}
