//! The causes of a step: which edits, reports, or the passing of time make each change of a state.
//!
//! Nothing is guessed from names. The step is computed again with some of its inputs taken back, and what comes out
//! differently depends on them.

mod difference;
mod edits;
mod effects;
mod file_pieces;
mod inquiry;
mod patch_words;
pub mod reports;
mod taking_back;
mod tracing;
mod words;

use std::collections::BTreeMap;

use serde::Serialize;

pub use edits::Edits;
pub use effects::Effects;
pub use tracing::{Seen, Traced, Trials, trace};

use crate::plan::ClusterChange;
use berth_base::diag::Pos;
use berth_base::model::{Fleet, Key};

/// A change of one input: an edit of the source, a member's report, or time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputChange {
    /// The place in the new source, or in the old one where the edit removes something.
    pub at: Option<Pos>,
    /// The change in a few words, such as `label env: prod → prd`. Harmless on one line.
    pub words: String,
    /// The words without the document's name, which equal changes of other documents share.
    pub alike: String,
    pub kind: InputKind,
}

/// The sort of an input.
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

/// The way in which inputs make an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// The only input that makes it.
    Alone,
    /// None of them is enough without the others.
    Together,
    /// Each makes a part of it.
    Parts,
    /// Each is enough.
    Each,
    /// An earlier edit, which was held until now or has not reached all clusters yet.
    Earlier,
    /// The state before was imported: it has the placements of a hub and comes from no source.
    Imported,
    /// More inputs than are traced: these are the candidates.
    Untraced,
}

/// The inputs that changed, and the effects of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Causes {
    pub inputs: Vec<InputChange>,
    pub by_effect: BTreeMap<Effect, Blame>,
    /// The clusters whose documents come and go.
    pub clusters: ClusterChange,
    /// The number of times the step was computed again.
    pub asked: usize,
}

impl Causes {
    /// Reports whether edits before these inputs make an effect: they were held until now, or are still on their way.
    pub fn is_earlier(&self, key: &Key, cluster: &str) -> bool {
        let effect = Effect { key: key.clone(), cluster: cluster.to_owned() };
        self.by_effect.get(&effect).is_some_and(|blame| blame.how == How::Earlier)
    }

    /// Returns the clusters that leave and join the fleet. Another document may still describe one.
    pub fn of_fleet(&self, fleet: &Fleet) -> ClusterChange {
        let mut change = self.clusters.clone();
        change.lost.retain(|cluster| !fleet.clusters.contains_key(&**cluster));
        change.gained.retain(|cluster| fleet.clusters.contains_key(&**cluster));
        change
    }
}
