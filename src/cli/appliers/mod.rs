//! A cluster whose folder another program applies → the objects by which that program does so.
//!
//! Pure, and the same bytes each time. They belong into that cluster, or wherever its program runs.

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
