//! The objects that name a cluster, as text and as JSON.

use serde_json::{Value as Json, json};

use berth_base::model::Fleet;
use berth_engine::plan::mentions;

pub(super) fn text(fleet: &Fleet, cluster: &str) -> String {
    let lines = mentions(fleet, cluster);
    lines.iter().map(|one| format!("  {}: {} ({})\n", one.at, one.by, one.how)).collect()
}

pub(super) fn json(fleet: &Fleet, cluster: &str) -> Json {
    let one = |mention: berth_engine::plan::Mention| {
        json!({
            "kind": &*mention.by.kind, "namespace": &*mention.by.namespace, "name": &*mention.by.name,
            "in": mention.how, "file": &*mention.at.file, "line": mention.at.line,
        })
    };
    mentions(fleet, cluster).into_iter().map(one).collect()
}
