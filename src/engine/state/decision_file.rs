//! Decision files as bytes, both ways.

use super::decision;
use berth_base::model::{Decision, Pick};
use berth_base::yaml;
use serde_json::Value as Json;

/// Returns a decision file's text.
pub fn write_decision(decision: &Decision) -> String {
    write_with_picks(decision, &write_picks(&decision.picks))
}

/// Returns the lines of a decision file that name the picked clusters; decisions that share their picks share
/// these lines.
pub fn write_picks(picks: &[Pick]) -> String {
    yaml::emit(&Json::Object([decision::picks_to_json(picks)].into_iter().collect()))
}

/// Returns the same text as [`write_decision`], reusing the lines of the picks.
pub fn write_with_picks(decision: &Decision, picks: &str) -> String {
    let mut after = decision::fields(decision);
    // The other keys follow these in alphabetical order.
    let before =
        ["apiVersion", "kind", "metadata"].iter().filter_map(|key| after.remove_entry(*key)).collect();
    let [before, after] = [before, after].map(|fields| yaml::emit(&Json::Object(fields)));
    [&before, picks, &after].concat()
}

/// Reads a decision file; the error is one line.
pub fn read_decision(bytes: &[u8]) -> Result<Decision, String> {
    decision::from_json(&yaml::read_stored(bytes)?.to_json())
}
