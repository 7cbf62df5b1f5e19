//! The tree that was loaded last ↔ bytes, so that another process loads a small change of it by itself.

use std::sync::Arc;

use super::Loaded;
use super::config::{CONFIG_PATH, FleetConfig};
use super::documents::FileSize;
use super::file_cache::{FileCache, LastLoad};
use super::policy_tests::FleetTests;
use super::settings::Settings;
use crate::dialects::{DIALECTS, Document};
use berth_base::codec::coded::Coded;
use berth_base::codec::{Decoder, Encoder};
use berth_base::diag::{Diagnostic, Diagnostics};
use berth_base::model::{ContentId, Fleet, Shared};
use berth_base::source::{FileBytes, RulesFrom, SourceFile, SourceTree};

/// The place of a document: the path of its file, and its number there.
type Place = (Arc<str>, usize);

impl FileCache {
    /// Encodes the last load for another process, which knows its fleet already. `None` where that was another one.
    pub fn encode_last(&self, encoder: &mut Encoder, fleet: &Shared<Fleet>) -> Option<()> {
        let last = self.last.as_ref().filter(|last| last.loaded.fleet.is_same(fleet))?;
        encoder.optional(|encoder| {
            let Loaded { fleet: _, diagnostics, config: _, kept, passed_over, tests } = &last.loaded;
            let FleetTests { counting, own } = tests;
            let has_no_rules = matches!(last.tree.rules_from, RulesFrom::Nowhere);
            let is_plain = kept.is_empty() && counting.is_empty() && own.is_empty();
            let context: Vec<Place> = self.places(last)?;
            if !last.is_whole || !has_no_rules || !is_plain {
                return None;
            }
            encoder.list(last.tree.files.values(), |encoder, file| {
                file.path.put(encoder);
                file.id.put(encoder);
            });
            for said in [&last.tree.found, diagnostics] {
                said.iter().cloned().collect::<Vec<_>>().put(encoder);
            }
            passed_over.put(encoder);
            context.put(encoder);
            last.size.put(encoder);
            Some(())
        });
        Some(())
    }

    /// Takes the last load of another process, which left this `fleet`.
    pub fn decode_last(
        &mut self,
        decoder: &mut Decoder<'_>,
        fleet: Shared<Fleet>,
        bytes: impl Fn(ContentId) -> FileBytes,
    ) -> Option<()> {
        let whole = decoder.maybe(|decoder| {
            let files = decoder.list(|decoder| {
                let (path, id) = Coded::get(decoder)?;
                Some(SourceFile { path, id, bytes: bytes(id) })
            })?;
            let (found, said): (Vec<Diagnostic>, Vec<Diagnostic>) = Coded::get(decoder)?;
            let (passed_over, context): (usize, Vec<Place>) = Coded::get(decoder)?;
            let size: FileSize = Coded::get(decoder)?;
            let tree = SourceTree { files, found: all(found), rules_from: RulesFrom::Nowhere };
            Some((tree, all(said), (passed_over, size), context))
        })?;
        let nothing = Loaded { fleet, ..Loaded::default() };
        self.last = whole.and_then(|(tree, diagnostics, (passed_over, size), context)| {
            let context =
                context.into_iter().map(|place| self.document(&tree, place)).collect::<Option<_>>()?;
            let config = self.config(&tree)?;
            let loaded = Loaded { diagnostics, config, passed_over, ..nothing.clone() };
            Some(LastLoad { tree, loaded, is_whole: true, context, size })
        });
        // The fleet alone is worth to be compared with.
        self.last.get_or_insert_with(|| LastLoad {
            tree: SourceTree::default(),
            loaded: nothing,
            is_whole: false,
            context: Vec::new(),
            size: FileSize::default(),
        });
        Some(())
    }

    /// Returns the places of the context's documents, where all are of files that are stored.
    fn places(&self, last: &LastLoad) -> Option<Vec<Place>> {
        let files = &last.tree.files;
        let place = |document: &Document| {
            let file = files.get(&document.at.file)?;
            let number = self.known(file)?.objects.iter().position(|(one, _)| one.is_same(document))?;
            Some((file.path.clone(), number))
        };
        last.context.iter().map(place).collect()
    }

    fn document(&self, tree: &SourceTree, (path, number): Place) -> Option<Document> {
        let (document, _) = self.known(tree.files.get(&path)?)?.objects.get(number)?;
        Some(document.clone())
    }

    fn config(&self, tree: &SourceTree) -> Option<FleetConfig> {
        let Some(file) = tree.files.get(CONFIG_PATH) else {
            return Some(FleetConfig::default());
        };
        let settings = Settings::in_file(self.known(file)?, DIALECTS)?;
        (!settings.are_broken).then_some(settings.config)
    }
}

fn all(found: Vec<Diagnostic>) -> Diagnostics {
    let mut all = Diagnostics::new();
    all.extend(found);
    all
}
