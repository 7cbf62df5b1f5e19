//! A state as Git trees. Unchanged parts are reused by id, without being read or hashed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use super::error::PublishError;
use super::rendered_state::{CurrentState, Ids};
use berth_base::model::release::Release;
use berth_base::model::{ContentId, Decision, Folder, Key, differences, path};
use berth_engine::state::{State, decision_file, layout, placement_decision, releases_file};
use berth_git::{Entry, EntryKind, TreeId, Writer};

/// The entries of the branch's root that are berth's, and the ids below them.
pub(super) struct Written {
    pub(super) entries: Vec<Entry>,
    pub(super) ids: Ids,
}

pub(super) fn write(
    writer: &mut Writer<'_>,
    current: Option<&CurrentState>,
    next: &State,
) -> Result<Written, PublishError> {
    let mut ids = Ids::default();
    writer.progress().begin_of("building the clusters' folders", next.folders.len());
    for (cluster, folder) in &next.folders {
        writer.progress().add(1);
        if folder.is_empty() {
            continue;
        }
        ids.clusters.insert(cluster.clone(), cluster_tree(writer, current, cluster, folder)?);
    }
    writer.progress().begin_of("building the decisions", next.decisions.len());
    for (key, decision) in &next.decisions {
        writer.progress().add(1);
        ids.decisions.insert(key.clone(), decision_file(writer, current, key, decision)?);
    }
    for (cluster, status) in &next.facts {
        let known = current.filter(|current| current.state.facts.get(cluster) == Some(status));
        let id = match known.and_then(|current| current.ids.facts.get(cluster)) {
            Some(id) => *id,
            None => writer.blob(berth_base::status::write_status(status).as_bytes())?,
        };
        ids.facts.insert(cluster.clone(), id);
    }
    let mut releases = BTreeMap::new();
    for (key, one) in &next.releases {
        let same = current.filter(|current| current.state.releases.get(key) == Some(one));
        let id = match same.and_then(|current| current.ids.releases.get(key)) {
            Some(id) => *id,
            None => writer.blob(releases_file::write(one).as_bytes())?,
        };
        ids.releases.insert(key.clone(), id);
        releases.insert(releases_file::file(key), id);
        let inputs = |release: &Release| (releases_file::inputs_file(key, release.number), release.inputs);
        releases.extend(one.all().map(inputs));
    }
    let mut kept = BTreeMap::new();
    for (source, id) in &next.kept {
        if !writer.has_blob(*id) {
            return Err(PublishError::KeptIsMissing { path: source.clone() });
        }
        kept.insert(layout::kept_path(source), *id);
    }
    let clusters = ids.clusters.iter().map(|(cluster, tree)| Entry {
        name: path::encode(cluster).into_bytes(),
        kind: EntryKind::Folder(*tree),
    });
    let clusters = clusters.collect();
    let clusters = writer.tree(clusters)?;
    let mut decisions: BTreeMap<String, ContentId> =
        ids.decisions.iter().map(|(key, id)| (path::of_key(key), *id)).collect();
    decisions.extend(placement_decisions(writer, current, next)?);
    let facts = ids.facts.iter().map(|(cluster, id)| (layout::facts_file(cluster), *id)).collect();
    let folders = [
        (layout::CLUSTERS, clusters),
        (layout::DECISIONS, folder(writer, decisions)?),
        (layout::FACTS, folder(writer, facts)?),
        (layout::RELEASES, folder(writer, releases)?),
        (layout::KEPT, folder(writer, kept)?),
    ];
    let mut entries = vec![Entry {
        name: layout::MARKER.into(),
        kind: EntryKind::File(writer.blob(layout::marker().as_bytes())?),
    }];
    let folders = folders.into_iter().filter(|(_, tree)| *tree != TreeId::EMPTY);
    entries.extend(folders.map(|(name, tree)| Entry { name: name.into(), kind: EntryKind::Folder(tree) }));
    Ok(Written { entries, ids })
}

fn cluster_tree(
    writer: &mut Writer<'_>,
    current: Option<&CurrentState>,
    cluster: &str,
    folder: &Folder,
) -> Result<TreeId, PublishError> {
    let old = current
        .and_then(|current| Some((current.state.folders.get(cluster)?, *current.ids.clusters.get(cluster)?)));
    match old {
        Some((old, tree)) => write_changed(writer, folder, old, tree),
        None => write_folder(writer, folder),
    }
}

/// Writes a folder whose namespaces are partly those of an older one, which has this tree.
fn write_changed(
    writer: &mut Writer<'_>,
    folder: &Folder,
    old: &Folder,
    old_tree: TreeId,
) -> Result<TreeId, PublishError> {
    let namespace = |path: &'_ Arc<str>| path.split_once('/').map(|(name, _)| name.to_owned());
    let changed: Option<BTreeSet<String>> = differences(old, folder).map(|one| namespace(one.path)).collect();
    // Every object's path is inside a namespace's folder.
    let Some(changed) = changed else { return write_folder(writer, folder) };
    if changed.is_empty() {
        return Ok(old_tree);
    }
    let mut entries = writer.read_tree(old_tree)?;
    entries.retain(|entry| !changed.iter().any(|name| name.as_bytes() == entry.name));
    for name in changed {
        let prefix = format!("{name}/");
        let from = (Bound::Included(&*prefix), Bound::Unbounded);
        let files = folder.range::<str, _>(from).take_while(|(path, _)| path.starts_with(&prefix));
        let files: Vec<_> = files.map(|(path, id)| (&path[prefix.len()..], *id)).collect();
        if !files.is_empty() {
            let kind = EntryKind::Folder(writer.folder(files)?);
            entries.push(Entry { name: name.into_bytes(), kind });
        }
    }
    Ok(writer.tree(entries)?)
}

/// Writes a cluster's folder as a tree.
pub(super) fn write_folder(writer: &mut Writer<'_>, folder: &Folder) -> Result<TreeId, PublishError> {
    Ok(writer.folder(folder.iter().map(|(path, id): (&Arc<str>, _)| (&**path, *id)))?)
}

fn decision_file(
    writer: &mut Writer<'_>,
    current: Option<&CurrentState>,
    key: &Key,
    decision: &Decision,
) -> Result<ContentId, PublishError> {
    let same = current.filter(|current| current.state.decisions.get(key) == Some(decision));
    match same.and_then(|current| current.ids.decisions.get(key)) {
        Some(id) => Ok(*id),
        None => Ok(writer.blob(decision_file::write_decision(decision).as_bytes())?),
    }
}

/// The objects beside the decisions. Those of a decision that stands are taken over from the tree before.
fn placement_decisions(
    writer: &mut Writer<'_>,
    current: Option<&CurrentState>,
    next: &State,
) -> Result<BTreeMap<String, ContentId>, PublishError> {
    let known = match current.filter(|current| current.foreign.is_empty()) {
        Some(current) => files_among_decisions(writer, current.tree)?,
        None => BTreeMap::new(),
    };
    let mut files = BTreeMap::new();
    for (key, decision) in &next.decisions {
        let before = current.and_then(|current| current.state.decisions.get(key));
        if before.is_some_and(|before| before.picks == decision.picks) {
            let paths = placement_decision::paths(decision);
            let there: Option<Vec<(String, ContentId)>> =
                paths.into_iter().map(|path| known.get(&path).map(|id| (path, *id))).collect();
            if let Some(there) = there {
                files.extend(there);
                continue;
            }
        }
        for (path, text) in placement_decision::files(decision) {
            files.insert(path, writer.blob(text.as_bytes())?);
        }
    }
    Ok(files)
}

/// The objects of a root tree's decisions, by path, without reading any.
fn files_among_decisions(
    writer: &Writer<'_>,
    root: TreeId,
) -> Result<BTreeMap<String, ContentId>, PublishError> {
    let mut files = BTreeMap::new();
    let is_decisions = |entry: &Entry| entry.name == layout::DECISIONS.as_bytes();
    let Some(Entry { kind: EntryKind::Folder(top), .. }) =
        writer.read_tree(root)?.into_iter().find(is_decisions)
    else {
        return Ok(files);
    };
    for namespace in writer.read_tree(top)? {
        let EntryKind::Folder(tree) = namespace.kind else { continue };
        for file in writer.read_tree(tree)? {
            let path = format!(
                "{}/{}",
                String::from_utf8_lossy(&namespace.name),
                String::from_utf8_lossy(&file.name)
            );
            if let EntryKind::File(id) = file.kind
                && placement_decision::is_one(&path)
            {
                files.insert(path, id);
            }
        }
    }
    Ok(files)
}

fn folder(writer: &mut Writer<'_>, files: BTreeMap<String, ContentId>) -> Result<TreeId, PublishError> {
    Ok(writer.folder(files.iter().map(|(path, id)| (path.as_str(), *id)))?)
}
