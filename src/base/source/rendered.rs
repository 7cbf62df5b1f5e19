//! Rendered files: the objects of a chart or base, as files of the tree. Each file is one template of a source
//! document.
//!
//! The path of a rendered file is below the file of its source document:
//! `apps/sources.yaml/.helm/web/templates/deployment.yaml`. No other file has such a path, because a folder whose name
//! begins with a dot is never read. What the variant `south` of the source renders is in `.helm/web@south`.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::diag::Diagnostics;

/// The programs whose sources are rendered, as folders in the paths of rendered files.
pub const HELM: &str = ".helm";
pub const KUSTOMIZE: &str = ".kustomize";

/// The rendered files of a tree.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rendered {
    /// The paths of all rendered files.
    pub files: BTreeSet<Arc<str>>,
    /// A path for each source that cannot be rendered. Its last published files stay in the tree, but it may now
    /// contain any object, like an unreadable file.
    pub failed: BTreeSet<Arc<str>>,
    /// The folders of the sources with variants, now or when they were published last.
    pub varied: BTreeSet<String>,
    /// The folders of the sources whose documents cannot be used.
    pub faulty: BTreeSet<String>,
    /// The faults of sources, of their charts and of their values.
    pub diagnostics: Diagnostics,
}

impl Rendered {
    /// Reports whether a file is up to date: it was not rendered, or its source did not fail.
    pub fn is_current(&self, path: &str) -> bool {
        let source = folder_of(path);
        source.is_none_or(|source| !self.failed.iter().any(|failed| folder_of(failed) == Some(source)))
    }
}

/// Reports whether this is the path of a rendered file.
pub fn is_rendered(path: &str) -> bool {
    mark_of(path).is_some()
}

/// Returns the file that contains the source document of a rendered file.
pub fn document_file(path: &str) -> Option<&str> {
    mark_of(path).map(|(at, _)| &path[..at])
}

/// Returns the folder of a source's rendered files, without the slash at its end.
pub fn folder_of(path: &str) -> Option<&str> {
    let (at, mark) = mark_of(path)?;
    let name = at + mark.len() + 2;
    let end = path[name..].find('/').map_or(path.len(), |end| name + end);
    Some(&path[..end])
}

/// Returns the folder of the files that a source document renders.
pub fn folder(file: &str, program: &str, name: &str) -> String {
    format!("{file}/{program}/{name}")
}

/// Returns the folder of the files that a variant of a source renders.
pub fn variant_folder(folder: &str, variant: &str) -> String {
    format!("{folder}@{variant}")
}

/// Splits the folder of a variant into that of its source and its name. `None` for the folder of a source.
pub fn variant_of(folder: &str) -> Option<(&str, &str)> {
    let name = folder.rfind('/').map_or(0, |slash| slash + 1);
    let at = name + folder[name..].find('@')?;
    Some((&folder[..at], &folder[at + 1..]))
}

/// Returns the folder of the source, for its own folder or that of a variant.
pub fn source_folder(folder: &str) -> &str {
    variant_of(folder).map_or(folder, |(source, _)| source)
}

/// Returns the path that stands for everything that a failed source may contain.
pub fn failed_path(folder: &str) -> Arc<str> {
    format!("{folder}/unknown.yaml").into()
}

/// Names a file for people: a rendered one by its source.
pub fn shown(path: &str) -> String {
    match (document_file(path), folder_of(path).and_then(|folder| folder.rsplit('/').next())) {
        (Some(file), Some(name)) => format!("what the source `{name}` of {file} renders"),
        _ => format!("`{path}`"),
    }
}

/// Returns the place of the slash before a program's folder, and that folder.
fn mark_of(path: &str) -> Option<(usize, &'static str)> {
    // Most paths have no folder whose name begins with a dot.
    path.match_indices("/.").find_map(|(at, _)| {
        let rest = &path[at + 1..];
        let mark =
            [HELM, KUSTOMIZE].into_iter().find(|mark| rest.strip_prefix(mark).is_some_and(is_below))?;
        Some((at, mark))
    })
}

fn is_below(rest: &str) -> bool {
    rest.len() > 1 && rest.starts_with('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rendered_file_names_its_source() {
        let path = "apps/sources.yaml/.helm/web/templates/deployment.yaml";
        assert!(is_rendered(path));
        assert_eq!(document_file(path), Some("apps/sources.yaml"));
        assert_eq!(folder_of(path), Some("apps/sources.yaml/.helm/web"));
        assert_eq!(shown(path), "what the source `web` of apps/sources.yaml renders");
        assert_eq!(shown("apps/web.yaml"), "`apps/web.yaml`");
        assert_eq!(folder_of(&failed_path("s.yaml/.kustomize/web")), Some("s.yaml/.kustomize/web"));
        assert_eq!(variant_of("s@1.yaml/.helm/web"), None);
        let folder = variant_folder("s@1.yaml/.helm/web", "south");
        assert_eq!(variant_of(&folder), Some(("s@1.yaml/.helm/web", "south")));
        assert_eq!((source_folder(&folder), source_folder("a/.helm/b")), ("s@1.yaml/.helm/web", "a/.helm/b"));
        for path in ["apps/sources.yaml", "apps/.helmet/x.yaml", ".github/x.yaml", "a/.helm", "a/.helm/"] {
            assert!(!is_rendered(path), "{path}");
        }
    }

    #[test]
    fn only_the_files_of_a_failed_source_are_out_of_date() {
        let failed = BTreeSet::from([failed_path("s.yaml/.helm/web")]);
        let rendered = Rendered { failed, ..Rendered::default() };
        assert!(!rendered.is_current("s.yaml/.helm/web/templates/a.yaml"));
        assert!(rendered.is_current("s.yaml/.helm/web2/templates/a.yaml"));
        assert!(rendered.is_current("s.yaml"));
    }
}
