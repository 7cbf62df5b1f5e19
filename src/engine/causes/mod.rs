//! The causes of a step: the edits, reports, or passing of time behind each change of a state.
//!
//! Names prove nothing. The step is computed again with some inputs taken back; the effects that change
//! depend on those inputs.

mod difference;
mod edits;
mod effects;
mod search;
mod taking_back;
mod trials;
pub mod words;

use std::collections::BTreeMap;

use serde::Serialize;

pub use edits::Edits;
pub use effects::Effects;
pub use search::{Seen, Traced, Trials, trace};

use crate::plan::ClusterChange;
use berth_base::diag::Pos;
use berth_base::model::{Fleet, Key};

/// A change of one input: an edit of the source, a member's report, or time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputChange {
    /// The place in the new source, or in the old one if the edit removes something.
    pub at: Option<Pos>,
    /// The change in a few words, such as `label env: prod → prd`. Safe to print on one line.
    pub words: String,
    /// The words without the document's name, equal for equal changes of other documents.
    pub alike: String,
    pub kind: InputKind,
}

/// The kind of an input.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InputKind {
    Edit,
    Report { cluster: String },
    Time,
}

/// A workload or placement in one cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Effect {
    pub key: Key,
    pub cluster: String,
}

/// The inputs behind one effect.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Blame {
    /// Indexes of the inputs, ascending.
    pub changes: Vec<usize>,
    pub how: How,
}

/// The relation of inputs to an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// This input alone makes the effect.
    Alone,
    /// Only all of these inputs together make the effect.
    Together,
    /// Each input makes a part of the effect.
    Parts,
    /// Each input alone makes the effect.
    Each,
    /// An earlier edit makes the effect: it was held until now, or has not reached all clusters yet.
    Earlier,
    /// The earlier state was imported: it has the placements of a hub, and no source.
    Imported,
    /// Nothing was published before.
    First,
    /// Too many inputs to trace: these are the candidates.
    Untraced,
}

/// The changed inputs, and the effects of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Causes {
    pub inputs: Vec<InputChange>,
    pub by_effect: BTreeMap<Effect, Blame>,
    /// The clusters whose documents were removed or added.
    pub clusters: ClusterChange,
    /// Nothing was published before, so that all inputs are new.
    pub is_first: bool,
    /// The number of times that the step was computed again.
    pub asked: usize,
}

impl Causes {
    /// Reports whether earlier edits make an effect: they were held until now, or have not reached all
    /// clusters yet.
    pub fn is_earlier(&self, key: &Key, cluster: &str) -> bool {
        let effect = Effect { key: key.clone(), cluster: cluster.to_owned() };
        self.by_effect.get(&effect).is_some_and(|blame| blame.how == How::Earlier)
    }

    /// Returns the clusters that leave and join the fleet. A removed document does not count while another
    /// one describes its cluster.
    pub fn of_fleet(&self, fleet: &Fleet) -> ClusterChange {
        let mut change = self.clusters.clone();
        change.lost.retain(|cluster| !fleet.clusters.contains_key(&**cluster));
        change.gained.retain(|cluster| fleet.clusters.contains_key(&**cluster));
        change
    }
}
