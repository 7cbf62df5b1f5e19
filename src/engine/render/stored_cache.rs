//! The cache of a rendering ↔ bytes, as far as the state that the rendering became does not tell it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Previous;
use super::cache::{ProcessCache, Results};
use super::inputs::RenderInputs;
use super::warnings::Warnings;
use crate::state::{ObjectIndex, decision_differences};
use berth_base::codec::{Decoder, Encoder};
use berth_base::model::fleet::Doubt;
use berth_base::model::{ContentId, Decision, Fleet, Folder, Folders, Key, Map, Shared, differences};

/// The cache that another process left, without its fleet and most of its decisions and folders.
#[derive(Clone, Debug)]
pub struct StoredCache {
    /// Where the decisions were others before rendering, without their objects.
    before: Map<Key, Option<Decision>>,
    /// Where those with their objects are others than those of the state.
    decisions: Map<Key, Option<Decision>>,
    folders: Vec<(String, Option<Changed>)>,
    unsettled: BTreeSet<String>,
    warnings: Warnings,
}

/// The paths of a folder that are not those of the state.
type Changed = Vec<(Arc<str>, Option<ContentId>)>;

impl ProcessCache {
    /// Encodes all but the fleet; `current` is the state that the rendering became. `None` for an uncertain fleet.
    pub fn encode(&self, encoder: &mut Encoder, current: Previous<'_>) -> Option<()> {
        let ProcessCache { inputs, results, made: _ } = self;
        if inputs.fleet.doubt != Doubt::default() || inputs.has_frozen() {
            return None;
        }
        let Results { decisions, objects: _, folders, unsettled, warnings } = results;
        let before = decision_differences::without_objects(current.decisions);
        decision_differences::put(encoder, &before, &inputs.decisions);
        decision_differences::put(encoder, current.decisions, decisions);
        let changes: Vec<_> = current.folders.changes(folders).collect();
        let nothing = Folder::new();
        encoder.list(changes.into_iter(), |encoder, one| {
            encoder.text(one.key);
            encoder.maybe(one.after, |encoder, after| {
                let changes: Vec<_> = differences(one.before.unwrap_or(&nothing), after).collect();
                encoder.list(changes.into_iter(), |encoder, one| {
                    encoder.text(one.path);
                    encoder.maybe(one.after, |encoder, ContentId(id)| encoder.raw(id));
                });
            });
        });
        encoder.list(unsettled.iter(), |encoder, path| encoder.text(path));
        warnings.encode(encoder);
        Some(())
    }
}

impl StoredCache {
    pub fn decode(decoder: &mut Decoder<'_>) -> Option<StoredCache> {
        let id = |decoder: &mut Decoder<'_>| Some(ContentId(decoder.raw()?));
        Some(StoredCache {
            before: decision_differences::get(decoder)?,
            decisions: decision_differences::get(decoder)?,
            folders: decoder.list(|decoder| {
                let changed = |decoder: &mut Decoder<'_>| {
                    decoder.list(|decoder| Some((decoder.text()?, decoder.maybe(id)?)))
                };
                Some((decoder.string()?, decoder.maybe(changed)?))
            })?,
            unsettled: decoder.list(Decoder::string)?,
            warnings: Warnings::decode(decoder)?,
        })
    }

    /// Returns the decisions with the objects that were rendered. Clusters may have none of these so far.
    pub(crate) fn decisions(&self, current: Previous<'_>) -> Map<Key, Decision> {
        decision_differences::apply(current.decisions, &self.decisions)
    }

    /// Puts the cache together again: with the fleet of that process, and the state that its rendering became.
    pub(crate) fn restore(&self, fleet: &Shared<Fleet>, current: Previous<'_>) -> ProcessCache {
        let StoredCache { before, decisions: _, folders, unsettled, warnings } = self;
        let before =
            decision_differences::apply(&decision_differences::without_objects(current.decisions), before);
        let decisions = self.decisions(current);
        let results = Results {
            decisions,
            objects: ObjectIndex::default(),
            folders: changed(current.folders, folders),
            unsettled: unsettled.clone(),
            warnings: warnings.clone(),
        };
        ProcessCache { inputs: RenderInputs::earlier(fleet, before), results, made: 0 }
    }
}

fn changed(folders: &Folders, changes: &[(String, Option<Changed>)]) -> Folders {
    let mut folders = folders.clone();
    for (cluster, changes) in changes {
        let Some(changes) = changes else {
            folders.remove(cluster);
            continue;
        };
        let folder = folders.or_default(cluster);
        for (path, id) in changes {
            match id {
                Some(id) => drop(folder.put((path.clone(), *id).into())),
                None => drop(folder.take(path)),
            }
        }
    }
    folders
}
