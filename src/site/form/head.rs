//! The head: everything that the first view shows, and the names of all other blocks. The page loads it at once.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{ChangesForm, Place};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Head {
    pub format: u32,
    /// The name of the fleet.
    pub fleet: String,
    /// The sentence that the page begins with, and the title of the first view.
    pub sentence: String,
    pub title: String,
    /// The moment of the newest information, in seconds. Reports from the future count as those of now.
    pub as_of: i64,
    /// Members' reports were read. Otherwise states are those of the record alone.
    pub has_reports: bool,
    /// The source was read. Otherwise labels and reasons are those of the record alone.
    pub has_source: bool,
    pub shown: ShownForm,
    /// The change that the page is about, if it is the page of a pull request or a branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<ChangeTitle>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<LinkForm>,
    pub numbers: Numbers,
    /// The number of copies in each state.
    pub totals: Vec<usize>,
    /// The number of clusters in each state, in the words of `berth status`.
    pub clusters: BTreeMap<String, usize>,
    pub blocks: Blocks,
    /// The labels by which columns can be grouped, the best first.
    pub keys: Vec<String>,
    pub attention: Vec<Attention>,
    pub rolling: Vec<RollingLine>,
    /// The newest publications, the newest first.
    pub publications: Vec<PublicationLine>,
    /// The number of the oldest publication of the page.
    pub from: u64,
    /// The namespaces, each with the number of its copies in each state.
    pub namespaces: Vec<NamespaceCounts>,
    pub stamp: Stamp,
    /// The content of each block, as in the name of its file.
    pub files: BTreeMap<String, String>,
}

/// The inputs of a page as a digest, and the moment until which it stays true.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// The digest of everything that the page was made from.
    pub inputs: String,
    /// The moment from which the same inputs may give another page, such as the beginning of a silence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<i64>,
}

impl Stamp {
    /// Reports whether a page with this stamp is still true at a moment, for inputs with this digest.
    pub fn holds(&self, inputs: &str, now: i64) -> bool {
        self.inputs == inputs && self.until.is_none_or(|until| now < until)
    }
}

/// The publication that the page shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShownForm {
    pub sequence: u64,
    pub commit: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    pub subject: String,
    pub published: i64,
}

/// A change that is not published yet. The block `change` has its details.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangeTitle {
    pub title: String,
    /// The base and the change.
    pub words: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkForm {
    pub file: String,
    pub commit: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Numbers {
    pub clusters: usize,
    pub placements: usize,
    /// Workloads' copies, as `berth status` counts them.
    pub copies: usize,
    pub silent: usize,
    /// Rollouts that are not done. The head lists the first ones.
    pub rolling: usize,
    /// The oldest of the last reports, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_report: Option<i64>,
}

/// The number of blocks of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocks {
    pub placements: u32,
    pub clusters: u32,
    /// The number of publications in a block.
    pub publications: u64,
    /// The number of placements in a block of the map.
    pub rows: usize,
}

/// One thing that differs from what the source says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Attention {
    pub state: u8,
    pub title: String,
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<i64>,
    /// The number of copies that it concerns.
    pub cells: usize,
    /// The view that shows more, as the page addresses it.
    pub to: String,
    /// The edit behind it: its place, and the commit that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Place>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The next step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub then: Option<String>,
    /// A line to paste, or a command to run.
    #[serde(rename = "do", skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// A rollout that is not done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RollingLine {
    pub id: String,
    pub placement: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<u64>,
    pub state: String,
    pub reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begun: Option<i64>,
    pub reached: usize,
    pub picked: usize,
    pub stages: Vec<StageCount>,
}

/// The clusters of a stage, and how many were assigned the release, succeeded and failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageCount {
    pub name: String,
    pub clusters: usize,
    pub assigned: usize,
    pub succeeded: usize,
    pub failed: usize,
}

/// A publication in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublicationLine {
    pub sequence: u64,
    pub published: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    pub title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<ChangesForm>,
    pub held: usize,
}

/// A namespace, and the number of its copies in each state.
pub type NamespaceCounts = (String, Vec<usize>);
