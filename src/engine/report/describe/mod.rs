//! One placement as its own system would describe it: metadata and a status, in that system's words.

use serde_json::{Value as Json, json};

use crate::dialects::{Described, Detail};
use crate::report::inputs::ReportInputs;
use berth_base::model::Decision;
use berth_base::model::member::placed;

/// The object with its status.
pub fn describe(decision: &Decision, known: ReportInputs<'_>) -> Json {
    let members = known.members();
    let placed = placed(decision, &members).collect();
    let (fleet, rollout) = (known.fleet, known.rollout(&decision.key));
    let described = Described { decision, fleet, members: &members, placed, rollout, detail: Detail::Full };
    let status = known.dialects.iter().find_map(|dialect| (dialect.describe)(&described));
    let clusters = || decision.picks.iter().map(|pick| &pick.cluster).collect::<Vec<_>>();
    let status = status.unwrap_or_else(|| json!({"clusters": clusters()}));
    let key = &decision.key;
    let mut metadata = json!({"name": &*key.name});
    if !key.namespace.is_empty() {
        metadata["namespace"] = json!(&*key.namespace);
    }
    json!({
        "kind": &*key.kind,
        "group": &*key.group,
        "metadata": metadata,
        "source": decision.source,
        "status": status,
    })
}

#[cfg(test)]
mod tests;
