//! Decision files as bytes, both ways.

use super::decision;
use berth_base::model::{Decision, Pick};
use berth_base::yaml;
use serde_json::Value as Json;

/// A decision file's text.
pub fn write_decision(decision: &Decision) -> String {
    write_with_picks(decision, &write_picks(&decision.picks))
}

/// The lines of a decision file that name the clusters picked: the same for all decisions that share their picks.
pub fn write_picks(picks: &[Pick]) -> String {
    yaml::emit(&Json::Object([decision::picks_to_json(picks)].into_iter().collect()))
}

/// [`write_decision`] with lines that were made before.
pub fn write_with_picks(decision: &Decision, picks: &str) -> String {
    let mut after = decision::fields(decision);
    // The keys of a document come in the order of their letters, behind these.
    let before =
        ["apiVersion", "kind", "metadata"].iter().filter_map(|key| after.remove_entry(*key)).collect();
    let [before, after] = [before, after].map(|fields| yaml::emit(&Json::Object(fields)));
    [&before, picks, &after].concat()
}

/// Reads a decision file; says in one line why not.
pub fn read_decision(bytes: &[u8]) -> Result<Decision, String> {
    decision::from_json(&yaml::read_stored(bytes)?.to_json())
}
