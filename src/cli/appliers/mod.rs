//! The objects by which another program applies a cluster's folder.
//!
//! Pure: equal inputs give equal bytes. The objects belong in the cluster where the program runs.

pub mod argocd;
pub mod flux;

use serde_json::Value as Json;

use berth_base::yaml::emit;

/// Returns objects as one file.
pub fn file(about: &[String], objects: &[Json]) -> String {
    let about: String = about.iter().map(|line| format!("# {line}\n")).collect();
    let objects: Vec<String> = objects.iter().map(emit).collect();
    format!("{about}{}", objects.join("---\n"))
}
