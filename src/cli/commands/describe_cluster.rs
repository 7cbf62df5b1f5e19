//! `berth describe cluster/NAME`: one cluster with its marks, its member and the workloads it has.

use serde_json::{Value as Json, json};

use super::status::{FleetStatus, Selection, gather};
use crate::flags::record;
use crate::flags::record::Located;
use crate::output::ui::Ui;
use crate::process::exit::CommandError;
use berth_engine::dialects::cluster_kinds;
use berth_hub::publish::CurrentState;

/// Returns the name in `cluster/NAME`, or in the same with a kind of some system, as `MemberCluster/NAME`.
pub(super) fn named(wanted: &str) -> Option<&str> {
    let (kind, name) = wanted.split_once('/')?;
    let is_kind = |known: &str| kind.eq_ignore_ascii_case(known);
    (is_kind("cluster") || cluster_kinds().any(|known| is_kind(known.kind))).then_some(name)
}

/// Describes a cluster, as an object with a status.
pub(super) fn describe(
    located: &Located,
    current: &CurrentState,
    name: &str,
    ui: &Ui,
) -> Result<Json, CommandError> {
    let repo = located.repo();
    let gathered = gather(repo, &located.state, ui)?;
    let names = [name.to_owned()];
    let selection = Selection::of(&names, None, repo, &located.state, &gathered)?;
    let status = FleetStatus::of(repo, &located.state, gathered, &selection)?;
    let mut object = json!({"kind": "Cluster", "metadata": {"name": name}});
    object["status"] = json!(status.fleet.clusters.first());
    // Without the source, only the published state is known.
    let fleet = record::publication_inputs(repo, current, current).map(|inputs| inputs.fleet());
    let Some(cluster) = fleet.as_ref().and_then(|fleet| fleet.clusters.get(name)) else { return Ok(object) };
    let files = cluster.origins.iter().map(|at| format!("{}:{}", at.file, at.line));
    object["source"] = json!(files.collect::<Vec<_>>().join(", "));
    object["metadata"]["labels"] = json!(cluster.labels);
    let taints = cluster.taints.iter().map(|taint| match taint.value.as_str() {
        "" => format!("{}:{}", taint.key, taint.effect_word),
        value => format!("{}={value}:{}", taint.key, taint.effect_word),
    });
    object["status"]["taints"] = json!(taints.collect::<Vec<_>>());
    Ok(object)
}
