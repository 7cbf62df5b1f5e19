//! A case's fleet, decided and rendered in this process.

use berth_base::diag::Diagnostics;
use berth_base::model::{Map, Timestamp};
use berth_base::source::{SourceFile, SourceTree, wanted};
use berth_engine::decide::Decided;
use berth_engine::load::{self, History, Loaded};
use berth_engine::pipeline::{self, Inputs};
use berth_engine::render::MemoryContents;
use berth_engine::state::{self, DecisionList, State};
use serde_json::Value as Json;

use crate::archive::Archive;

/// The moment of a case that names none.
const NOW: &str = "2026-01-01T00:00:00Z";

/// The decisions, in the form of `berth decide -o json`, upon those in force.
pub fn decide(case: &Archive, previous: Option<&str>) -> (Json, Diagnostics) {
    let (_, decided, diagnostics) = decide_fleet(case, previous);
    (
        serde_json::to_value(DecisionList::of(decided.decisions.values())).expect("texts and numbers"),
        diagnostics,
    )
}

/// The fleet and its decisions, upon those in force.
pub fn decide_fleet(case: &Archive, previous: Option<&str>) -> (Loaded, Decided, Diagnostics) {
    let tree = tree(case);
    let loaded = load::load(&tree, History::None);
    let mut state = State::default();
    if let Some(text) = previous {
        let printed = serde_json::from_str(text).expect("previous.json is JSON");
        let decisions = state::decisions_from_json(&printed).expect("previous.json has decisions");
        state.decisions = state::adopt(decisions, loaded.fleet.placements.keys());
    }
    with_inputs(case, &tree, &state, |inputs| pipeline::decide_loaded(loaded, inputs))
}

/// The objects of each cluster's folder.
pub fn render(case: &Archive) -> (Vec<(String, Json)>, Diagnostics) {
    let mut contents = MemoryContents::default();
    let built =
        with_inputs(case, &tree(case), &State::default(), |inputs| pipeline::build(inputs, &mut contents));
    let built = built.expect("memory takes everything");
    let objects = built.state.folders.iter().flat_map(|(cluster, folder)| {
        folder.values().map(|id| {
            let bytes = contents.bytes(id).expect("all is rendered anew");
            (cluster.clone(), serde_yaml::from_slice(bytes).expect("an object"))
        })
    });
    (objects.collect(), built.diagnostics)
}

fn with_inputs<T>(
    case: &Archive,
    tree: &SourceTree,
    current: &State,
    run: impl FnOnce(Inputs<'_>) -> T,
) -> T {
    run(Inputs { tree, history: History::None, current, statuses: &Map::new(), now: now(case) })
}

/// The moment of a case.
pub fn now(case: &Archive) -> Timestamp {
    case.says("now").unwrap_or(NOW).parse().expect("a moment")
}

fn tree(case: &Archive) -> SourceTree {
    let files = case.below("fleet").filter(|(path, _)| wanted(path));
    let files = files.map(|(path, text)| SourceFile::new(path, text.as_bytes())).collect();
    SourceTree { files, ..SourceTree::default() }
}
