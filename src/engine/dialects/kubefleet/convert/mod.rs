//! A placement of the old API → the policy of the next API that takes its place, with the same clusters and objects.
//!
//! - [`selectors`]: the objects. [`clusters`]: the policy. [`strategy`]: how members apply, and how changes roll out.
//!
//! Nothing is left out silently: it is noted, or a difference that somebody must accept, or the placement is refused.

mod clusters;
mod selectors;
mod strategy;

use serde_json::{Map, Value as Json, json};

use super::identity::REPLACES;
use super::kinds::{self, NEXT_GROUP, PLACEMENT_GROUP};
use berth_base::model::{Key, ObjectId};

pub use selectors::Contents;

/// The metadata that people write. Everything else is a server's.
const METADATA: [&str; 4] = ["name", "namespace", "labels", "annotations"];

/// A policy that takes the place of a placement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Converted {
    pub object: Json,
    /// The RolloutPolicy that holds what the next API has no field for.
    pub rollout_policy: Option<Json>,
    /// Notes on what is left out or written out, without a difference for any cluster.
    pub notes: Vec<String>,
    /// Differences: the parts that the next API has no form for.
    pub differences: Vec<String>,
}

/// The conversion of one placement, and what cannot be converted at all.
#[derive(Debug, Default)]
struct Work {
    converted: Converted,
    refused: Vec<String>,
}

impl Work {
    fn note(&mut self, text: impl Into<String>) {
        self.converted.notes.push(text.into());
    }

    fn differs(&mut self, text: impl Into<String>) {
        self.converted.differences.push(text.into());
    }

    fn refuse(&mut self, text: impl Into<String>) {
        self.refused.push(text.into());
    }
}

/// Reports whether an object is a placement of the old API.
pub fn is_convertible(key: &Key) -> bool {
    &*key.group == PLACEMENT_GROUP && kinds::role(&key.group, &key.kind) == Some(kinds::Role::Placement)
}

/// Converts a placement. `contents` are the objects that it carries and that its namespaces hold. The reasons are
/// returned for a placement that the next API cannot hold.
pub fn convert(key: &Key, placement: &Json, contents: &Contents) -> Result<Converted, Vec<String>> {
    let mut work = Work::default();
    let cluster_scoped = &*key.kind == "ClusterResourcePlacement";
    let spec = &placement["spec"];
    let mut new = Map::new();
    if let Some(list) = selectors::convert(spec, cluster_scoped, contents, &mut work) {
        new.insert("resourceSelectors".to_owned(), list);
    }
    new.extend(clusters::convert(spec, &mut work));
    strategy::convert(key, spec, cluster_scoped, &mut new, &mut work);
    leave_out(placement, spec, &mut work);
    if !work.refused.is_empty() {
        return Err(work.refused);
    }
    let mut metadata = Map::new();
    for field in METADATA {
        if let Some(value) = placement["metadata"].get(field).filter(|value| !value.is_null()) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let mut object = json!({
        "apiVersion": format!("{NEXT_GROUP}/v1alpha1"),
        "kind": if cluster_scoped { "ClusterPlacementPolicy" } else { "PlacementPolicy" },
        "metadata": metadata,
        "spec": new,
    });
    object["metadata"]["annotations"][REPLACES] = json!(format!("{}/{}", key.kind, key.name));
    work.converted.object = object;
    Ok(work.converted)
}

/// Names the parts without a counterpart.
fn leave_out(placement: &Json, spec: &Json, work: &mut Work) {
    if placement.get("status").is_some() {
        work.note("the status is left out: a server wrote it");
    }
    if let Some(limit) = spec["revisionHistoryLimit"].as_i64().filter(|limit| *limit > 20) {
        work.note(format!(
            "revisionHistoryLimit {limit} becomes 20, the most there is; Git is the history here"
        ));
    }
    if spec.get("statusReportingScope").is_some() {
        work.note("statusReportingScope is left out: a policy's status is where the policy is");
    }
    if placement.pointer("/metadata/annotations/berth.dev~1replace-after").is_some() {
        work.differs("berth.dev/replace-after has no effect on a policy: a silent cluster keeps its place");
    }
}

/// The group and kind of an object, in one text.
fn words(id: &ObjectId) -> String {
    if id.group.is_empty() { id.kind.to_string() } else { format!("{}.{}", id.kind, id.group) }
}
