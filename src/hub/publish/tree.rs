//! Writes a state as Git trees, based on those of the current state: only differences are read and written.
//! The part of the rendered branch's root tree that belongs to berth.

use std::collections::BTreeMap;

use super::error::PublishError;
use super::rendered_state::CurrentState;
use berth_base::model::release::Releases;
use berth_base::model::shared::{ByAllocation, shared_by_several};
use berth_base::model::{Decision, Folder, Map, differences, path};
use berth_base::parallel;
use berth_engine::state::{State, decision, layout, ledger, placement_decision, releases_file};
use berth_git::{Entry, EntryKind, HashedBlob, TreeId, Writer, tree_id};

/// Berth's entries of the branch's root, and the trees of the clusters' folders.
pub(super) struct Written {
    pub(super) entries: Vec<Entry>,
    pub(super) trees: Map<String, TreeId>,
}

/// The new entries of paths below one of berth's folders; `None` removes a path.
type Edits = BTreeMap<String, Option<EntryKind>>;

/// The number of decisions written at a time.
const AT_ONCE: usize = 512;

pub(super) fn write(
    writer: &mut Writer<'_>,
    current: Option<&CurrentState>,
    next: &State,
) -> Result<Written, PublishError> {
    // Ignores the current state if others changed the branch.
    let current = current.filter(|current| current.foreign.is_empty());
    let nothing = State::default();
    let before = current.map_or(&nothing, |current| &current.state);
    let mut trees = current.map(|current| current.trees.clone()).unwrap_or_default();
    let edits = [
        (layout::CLUSTERS, clusters(writer, before, next, &mut trees)?),
        (layout::DECISIONS, decisions(writer, before, next)?),
        (layout::FACTS, facts(writer, before, next)?),
        (layout::RELEASES, releases(writer, before, next)?),
        (layout::KEPT, kept(writer, before, next)?),
        (layout::LEDGER, ledger(writer, before, next)?),
    ];
    let mut entries = match current {
        Some(current) => writer.read_tree(current.tree)?,
        None => Vec::new(),
    };
    entries.retain(|entry| edits.iter().any(|(name, _)| entry.name == name.as_bytes()));
    for (name, edits) in &edits {
        let old = entries.iter().position(|entry| entry.name == name.as_bytes()).map(|at| entries.remove(at));
        let old = match old.map(|entry| entry.kind) {
            Some(EntryKind::Folder(tree)) => tree,
            _ => TreeId::EMPTY,
        };
        let tree = writer.edited(old, edits.iter().map(|(path, kind)| (path.as_str(), *kind)))?;
        if tree != TreeId::EMPTY {
            entries.push(Entry { name: (*name).into(), kind: EntryKind::Folder(tree) });
        }
    }
    let marker = EntryKind::File(writer.blob(layout::marker().as_bytes())?);
    entries.push(Entry { name: layout::MARKER.into(), kind: marker });
    Ok(Written { entries, trees })
}

fn clusters(
    writer: &mut Writer<'_>,
    before: &State,
    next: &State,
    trees: &mut Map<String, TreeId>,
) -> Result<Edits, PublishError> {
    let mut edits = Edits::new();
    let (empty, changes) = (Folder::new(), before.folders.changes(&next.folders));
    let changes: Vec<_> = changes.collect();
    writer.progress().begin_of("building the clusters' folders", changes.len());
    for one in changes {
        writer.progress().add(1);
        let old = trees.get(one.key).copied().unwrap_or(TreeId::EMPTY);
        let (from, to) = (one.before.unwrap_or(&empty), one.after.unwrap_or(&empty));
        let files = differences(from, to).map(|one| (&**one.path, one.after.copied().map(EntryKind::File)));
        let tree = writer.edited(old, files)?;
        let tree = Some(tree).filter(|tree| *tree != TreeId::EMPTY);
        match tree {
            Some(tree) => drop(trees.insert(one.key.clone(), tree)),
            None => drop(trees.remove(one.key)),
        }
        edits.insert(path::encode(one.key), tree.map(EntryKind::Folder));
    }
    Ok(edits)
}

/// Writes a cluster's folder as a tree.
pub(super) fn write_folder(writer: &mut Writer<'_>, folder: &Folder) -> Result<TreeId, PublishError> {
    Ok(writer.folder(folder.iter().map(|(path, id)| (&**path, *id)))?)
}

fn decisions(writer: &mut Writer<'_>, before: &State, next: &State) -> Result<Edits, PublishError> {
    let mut edits = Edits::new();
    let changes: Vec<_> = before.decisions.changes(&next.decisions).collect();
    writer.progress().begin_of("building the decisions", changes.len());
    // Written in parts, so that not all texts are in memory at once.
    for part in changes.chunks(AT_ONCE) {
        let lists = part.iter().filter_map(|one| one.after).map(|decision| &decision.picks);
        let shared = shared_by_several(lists);
        let texts = parallel::map_large(&shared, |picks| decision::write_picks(picks));
        let texts: BTreeMap<_, _> = shared.into_iter().map(ByAllocation).zip(texts).collect();
        let blob = |decision: &Decision| {
            let text = match texts.get(&ByAllocation(&decision.picks)) {
                Some(picks) => decision::write_with_picks(decision, picks),
                None => decision::write_decision(decision),
            };
            HashedBlob::of(text.as_bytes())
        };
        let blobs = parallel::map_large(part, |one| one.after.map(blob));
        for (one, blob) in part.iter().zip(blobs) {
            writer.progress().add(1);
            let written = blob.transpose()?.map(|blob| writer.new_hashed_blob(blob)).transpose()?;
            edits.insert(path::of_key(one.key), written.map(EntryKind::File));
            let [before, after] = [one.before, one.after].map(|one| one.map(|decision| &decision.picks));
            if before == after {
                continue;
            }
            let gone = one.before.map(placement_decision::paths).unwrap_or_default();
            edits.extend(gone.into_iter().map(|path| (path, None)));
            for (path, text) in one.after.map(placement_decision::files).unwrap_or_default() {
                edits.insert(path, Some(file(writer, &text)?));
            }
        }
    }
    Ok(edits)
}

fn facts(writer: &mut Writer<'_>, before: &State, next: &State) -> Result<Edits, PublishError> {
    let mut edits = Edits::new();
    for one in before.facts.changes(&next.facts) {
        let status = one.after.map(|status| file(writer, &berth_base::status::write_status(status)));
        edits.insert(layout::facts_file(one.key), status.transpose()?);
    }
    Ok(edits)
}

fn releases(writer: &mut Writer<'_>, before: &State, next: &State) -> Result<Edits, PublishError> {
    let mut edits = Edits::new();
    for one in before.releases.changes(&next.releases) {
        let inputs = |releases: &Releases| {
            let inputs = releases.all().map(|release| (release.number, release.inputs));
            inputs.map(|(number, id)| (releases_file::inputs_file(one.key, number), id)).collect::<Vec<_>>()
        };
        edits.extend(one.before.into_iter().flat_map(|before| inputs(before)).map(|(path, _)| (path, None)));
        let written = one.after.map(|after| file(writer, &releases_file::write(after))).transpose()?;
        edits.insert(releases_file::file(one.key), written);
        let inputs = one.after.into_iter().flat_map(|after| inputs(after));
        edits.extend(inputs.map(|(path, id)| (path, Some(EntryKind::File(id)))));
    }
    Ok(edits)
}

fn kept(writer: &Writer<'_>, before: &State, next: &State) -> Result<Edits, PublishError> {
    let mut edits: Edits = before.kept.keys().map(|source| (layout::kept_path(source), None)).collect();
    for (source, id) in &next.kept {
        if !writer.has_blob(*id) {
            return Err(PublishError::KeptIsMissing { path: source.clone() });
        }
        edits.insert(layout::kept_path(source), Some(EntryKind::File(*id)));
    }
    Ok(edits)
}

fn ledger(writer: &mut Writer<'_>, before: &State, next: &State) -> Result<Edits, PublishError> {
    if before.ledger == next.ledger {
        return Ok(Edits::new());
    }
    let text = (!next.ledger.is_empty()).then(|| ledger::write_ledger(&next.ledger));
    let written = text.map(|text| file(writer, &text)).transpose()?;
    Ok(Edits::from([(layout::LEDGER_FILE.to_owned(), written)]))
}

fn file(writer: &mut Writer<'_>, text: &str) -> Result<EntryKind, PublishError> {
    Ok(EntryKind::File(writer.blob(text.as_bytes())?))
}

/// Reports whether an entry of the branch's root belongs to berth.
pub(super) fn is_owned(entry: &Entry) -> bool {
    let name = entry.name.as_slice();
    name == layout::MARKER.as_bytes() || layout::OWNED.iter().any(|owned| name == owned.as_bytes())
}

/// Returns the tree id of the state: the root tree with only berth's entries.
pub(super) fn state_tree(root: &[Entry]) -> Result<TreeId, PublishError> {
    Ok(tree_id(root.iter().filter(|entry| is_owned(entry)).cloned().collect())?)
}
