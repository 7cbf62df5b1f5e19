//! The page's data, as its scripts read it. A change that scripts cannot read raises [`FORMAT`].
//!
//! Positions of clusters and placements are indexes into [`Names`]. They stand only in blocks that change with those
//! anyway; publications and rollouts name them, so that an old block stays as it is.

mod change;
mod cluster;
mod head;
mod names;
mod placement;
mod publication;
mod rollout;

pub use change::{ChangeDetails, RemarkForm, StepForm, StepsForm};
pub use cluster::{ClusterDetails, ClusterEvent, Fact, ObjectWords, TaintWords};
pub use head::{
    Attention, Blocks, ChangeTitle, Head, LinkForm, NamespaceCounts, Numbers, PublicationLine, RollingLine,
    ShownForm, StageCount, Stamp,
};
pub use names::{LabelRuns, Names};
pub use placement::{
    ChangeLine, Exception, FunnelStep, OverrideForm, PlacementDetails, RolloutBrief, ScoredCluster,
    ScorerForm,
};
pub use publication::{
    CauseForm, ChangesForm, ConsequenceForm, FieldForm, HeldForm, ObjectForm, PlacesForm, PublicationDetails,
    ReasonCount, SectionForm,
};
pub use rollout::{RolloutClusterForm, RolloutDetails, StageForm};

use berth_base::diag::Pos;

/// The number of the data's form.
pub const FORMAT: u32 = 1;

/// The number of names in a list.
pub(crate) const MOST_NAMES: usize = 300;

/// A place in the source: file and line. Line 0 is the whole file.
pub type Place = (String, u32);

/// Values of equal neighbours: pairs of a length and a value, one after the other.
pub type Runs = Vec<u32>;

pub(crate) fn place(at: &Pos) -> Place {
    (at.file.to_string(), at.line)
}

/// Writes values as runs.
pub(crate) fn runs(values: impl IntoIterator<Item = u32>) -> Runs {
    let mut runs: Runs = Vec::new();
    values.into_iter().for_each(|value| extend_run(&mut runs, 1, value));
    runs
}

/// Adds a value so many times.
pub(crate) fn extend_run(runs: &mut Runs, times: u32, value: u32) {
    match runs.as_mut_slice() {
        [.., length, last] if *last == value => *length += times,
        _ => runs.extend([times, value]),
    }
}
