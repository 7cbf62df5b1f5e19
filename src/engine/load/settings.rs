//! The settings of a tree, and whether their file has a fault.

use super::config::{self, CONFIG_KIND, CONFIG_PATH, FleetConfig};
use super::documents::FileDocuments;
use super::file_cache::FileCache;
use crate::dialects::Dialects;
use berth_base::diag::Severity;
use berth_base::source::SourceTree;
use berth_base::yaml::Scope;

/// The settings of a tree. Their faults are reported with all others, see `berth_kinds`.
pub(super) struct Settings {
    pub(super) config: FleetConfig,
    /// The settings file has a fault, so its last good form is used if there is one.
    pub(super) are_broken: bool,
}

impl Settings {
    pub(super) fn of(tree: &SourceTree, dialects: Dialects, cache: &mut FileCache) -> Settings {
        let files = cache.read_all(tree.files.get(CONFIG_PATH).into_iter());
        // A link in place of the file is a fault, like a file that is too large.
        let refused = tree.found.iter().any(|one| one.at.as_ref().is_some_and(|at| *at.file == *CONFIG_PATH));
        let settings = files.first().and_then(|(_, file)| Settings::in_file(file, dialects));
        let are_broken = refused || !files.is_empty();
        settings.unwrap_or_else(|| Settings { config: FleetConfig::default(), are_broken })
    }

    pub(super) fn in_file(file: &FileDocuments, dialects: Dialects) -> Option<Settings> {
        let (document, _) = file.objects.iter().find(|(document, _)| *document.key.kind == *CONFIG_KIND)?;
        let scope = Scope::new(CONFIG_PATH.into(), Severity::Error);
        let config = config::read(&scope, &document.open(), dialects);
        Some(Settings { config, are_broken: scope.has_errors() })
    }
}
