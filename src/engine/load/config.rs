//! `berth.yaml`, the fleet's own settings: excluded files, and how strict reading is; and whether the file
//! has a fault.
//!
//! Anyone who can open a pull request can edit these settings, so they may narrow what berth does but
//! never widen it.

use std::collections::BTreeSet;

use super::documents::FileDocuments;
use super::file_cache::FileCache;
use super::glob::Pattern;
use super::packages::Packages;
use crate::dialects::{Dialect, Dialects};
use crate::{access, policy_tests};
use berth_base::diag::Severity;
use berth_base::source::SourceTree;
use berth_base::source::rendered::document_file;
use berth_base::yaml::{Fields, Node, Scope};

/// The path of the settings.
pub const CONFIG_PATH: &str = "berth.yaml";
pub(crate) const CONFIG_KIND: &str = "FleetConfig";

/// A fleet's settings.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetConfig {
    /// Files that are not read.
    pub exclude: Vec<Pattern>,
    /// The severity of an unknown field.
    pub unknown_fields: Severity,
    /// The disabled switches of dialects, each with the dialect's name.
    pub switched_off: BTreeSet<(&'static str, &'static str)>,
    /// The folders of the tree that other programs render.
    pub packages: Packages,
}

impl Default for FleetConfig {
    fn default() -> FleetConfig {
        FleetConfig {
            exclude: Vec::new(),
            unknown_fields: Severity::Error,
            switched_off: BTreeSet::new(),
            packages: Packages::default(),
        }
    }
}

impl FleetConfig {
    /// Reports whether a file is excluded, by the settings or as a part of a package. The settings, access rules and policy tests never are; the
    /// examples of policy tests always are.
    pub fn excludes(&self, path: &str) -> bool {
        // Patterns for the files of charts must not match what a chart renders.
        if let Some(file) = document_file(path) {
            return self.excludes(file);
        }
        if path.starts_with(policy_tests::FOLDER) {
            return policy_tests::is_of_an_example(path);
        }
        path != CONFIG_PATH
            && !path.starts_with(access::FOLDER)
            && (self.packages.has(path) || self.leaves_out(path))
    }

    /// Reports whether the settings exclude a file.
    fn leaves_out(&self, path: &str) -> bool {
        self.exclude.iter().any(|pattern| pattern.matches(path))
    }

    /// Finds the packages of a tree.
    pub(super) fn with_packages(
        mut self,
        tree: &SourceTree,
        dialects: Dialects,
        cache: &mut FileCache,
    ) -> FleetConfig {
        self.packages =
            Packages::of(tree, dialects, &|path| !self.leaves_out(path) && !is_of_rules(path), cache);
        self
    }

    /// Returns the disabled switches of one dialect.
    pub(crate) fn switched_off_of(&self, dialect: &Dialect) -> Vec<&'static str> {
        let off = self.switched_off.iter().filter(|(of, _)| *of == dialect.name);
        off.map(|(_, switch)| *switch).collect()
    }
}

/// Reports whether a file is below a folder of rules, which nothing excludes.
fn is_of_rules(path: &str) -> bool {
    [access::FOLDER, policy_tests::FOLDER].iter().any(|folder| path.starts_with(folder))
}

/// Reads the settings and reports their faults.
pub fn read(scope: &Scope, root: &Node, dialects: Dialects) -> FleetConfig {
    let mut config = FleetConfig::default();
    let Some(mut fields) = scope.fields(root, "") else { return config };
    fields.accept(&["apiVersion", "kind"]);
    if let Some(mut metadata) = fields.fields("metadata") {
        metadata.accept(&["name", "labels", "annotations"]);
        metadata.finish();
    }
    if let Some(mut spec) = fields.fields("spec") {
        config.exclude = exclude(&mut spec);
        if let Some("warning") = spec.choice("unknownFields", &["error", "warning"]) {
            config.unknown_fields = Severity::Warning;
        }
        for dialect in dialects.iter().filter(|dialect| !dialect.switches.is_empty()) {
            let Some(mut switches) = spec.fields(dialect.name) else { continue };
            let off = dialect.switches.iter().filter(|switch| switches.bool(switch) == Some(false));
            config.switched_off.extend(off.map(|switch| (dialect.name, *switch)));
            switches.finish();
        }
        spec.finish();
    }
    fields.finish();
    config
}

fn exclude(spec: &mut Fields<'_>) -> Vec<Pattern> {
    let at = spec.place_of("exclude");
    let texts = spec.strings("exclude").unwrap_or_default();
    let pattern = |text: &str| match Pattern::new(text) {
        Ok(pattern) => Some(pattern),
        Err(reason) => {
            spec.scope().error(at, format!("spec.exclude holds `{text}`, which {reason}"));
            None
        }
    };
    texts.into_iter().filter_map(pattern).collect()
}

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
        let config = read(&scope, &document.open(), dialects);
        Some(Settings { config, are_broken: scope.has_errors() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::DIALECTS;
    use berth_base::yaml;

    fn config(text: &str) -> (FleetConfig, Vec<String>) {
        let root = yaml::read(text.as_bytes(), &yaml::Limits::default()).documents.remove(0).root;
        let scope = Scope::new(CONFIG_PATH.into(), Severity::Error);
        let config = read(&scope, &root, DIALECTS);
        (config, scope.into_diagnostics().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn settings_are_read() {
        let (config, faults) = config(
            "spec: {exclude: ['charts/', '*.values.yaml'], unknownFields: warning, kubefleet: {unwrapConfigMaps: false}}\n",
        );
        assert!(faults.is_empty(), "{faults:?}");
        assert_eq!(config.switched_off, [("kubefleet", "unwrapConfigMaps")].into());
        assert_eq!(config.unknown_fields, Severity::Warning);
        assert!(config.excludes("charts/web/values.yaml") && config.excludes("a.values.yaml"));
        assert!(!config.excludes("clusters/a.yaml"));
    }

    #[test]
    fn the_settings_can_not_leave_out_themselves_nor_access_rules() {
        let (config, _) = config("spec: {exclude: ['**']}\n");
        assert!(config.excludes("a.yaml") && !config.excludes(CONFIG_PATH));
        assert!(!config.excludes("access/team.yaml"));
    }

    #[test]
    fn unknown_settings_are_errors_even_where_fields_are_lenient() {
        let (_, faults) = config("spec: {unknownFields: warning, remote: x, exclude: ['', '../x']}\n");
        assert_eq!(faults.iter().filter(|fault| fault.contains("error: ")).count(), 3, "{faults:?}");
    }
}
