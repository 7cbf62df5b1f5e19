//! Writes the report ref: the fleet's live status as files, in one commit that is replaced.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::json;

use super::error::PublishError;
use berth_base::model::{Key, Map, Shared, path};
use berth_engine::report::{ClusterLine, FleetSummary, WorkloadLine};
use berth_git::shared_refs::Refs;
use berth_git::shared_refs::file_ref::{self, RefCommit};
use berth_git::{CommitId, EntryKind, Identity, Repo, TreeId, Writer};

/// The report as this process last wrote it.
#[derive(Debug)]
pub struct WrittenReport {
    pub commit: CommitId,
    tree: TreeId,
    clusters: Map<String, ClusterLine>,
    workloads: Map<Key, Shared<WorkloadLine>>,
}

/// Replaces the report. Does not write files again that this process wrote and that are unchanged.
pub fn write_report(
    repo: &Repo,
    refs: &Refs,
    summary: &FleetSummary,
    earlier: Option<WrittenReport>,
    (identity, seconds): (&Identity, i64),
) -> Result<WrittenReport, PublishError> {
    let old = repo.read_ref(&refs.report)?;
    // Ignores the earlier report if another process replaced it.
    let earlier = earlier.filter(|earlier| Some(earlier.commit) == old);
    let (clusters, workloads) = (summary.clusters().clone(), summary.workloads().clone());
    let (from, known_clusters, known_workloads) = match earlier {
        Some(earlier) => (earlier.tree, earlier.clusters, earlier.workloads),
        None => (TreeId::EMPTY, Map::new(), Map::new()),
    };
    let mut writer = Writer::new(repo)?;
    let mut edits: BTreeMap<String, Option<EntryKind>> = BTreeMap::new();
    for one in known_clusters.changes(&clusters) {
        edits.insert(cluster_file(one.key), file(&mut writer, one.before, one.after)?);
    }
    for one in known_workloads.changes(&workloads) {
        let [before, after] = [one.before, one.after].map(|line| line.map(|line| &**line));
        edits.insert(workload_file(one.key), file(&mut writer, before, after)?);
    }
    let totals =
        json!({"clusters": clusters.len(), "totals": summary.totals(), "workloads": workloads.len()});
    edits.insert("report.json".to_owned(), file(&mut writer, None, Some(&totals))?);
    let tree = writer.edited(from, edits.iter().map(|(path, kind)| (path.as_str(), *kind)))?;
    let commit = RefCommit { tree, message: "berth: report\n", identity, seconds };
    let commit = file_ref::point(repo, &mut writer, &refs.report, commit)?;
    Ok(WrittenReport { commit, tree, clusters, workloads })
}

fn cluster_file(cluster: &str) -> String {
    format!("clusters/{}.json", path::encode(cluster))
}

fn workload_file(key: &Key) -> String {
    let path = path::of_key(key);
    format!("workloads/{}.json", path.strip_suffix(".yaml").unwrap_or(&path))
}

fn file<T: Serialize>(
    writer: &mut Writer<'_>,
    before: Option<&T>,
    after: Option<&T>,
) -> Result<Option<EntryKind>, PublishError> {
    let Some(line) = after else { return Ok(None) };
    let mut text = serde_json::to_vec_pretty(line)
        .map_err(|error| PublishError::Report { message: error.to_string() })?;
    text.push(b'\n');
    // A changed line is certainly new.
    let id = if before.is_some() { writer.new_blob(&text)? } else { writer.blob(&text)? };
    Ok(Some(EntryKind::File(id)))
}
