//! The lock: `vendor.lock` at the root of the repository says of each vendored folder where it came from, in which
//! version, and which files it has.

use std::collections::BTreeMap;

use berth_base::diag::harmless_line;
use serde::{Deserialize, Serialize};

use crate::VendorError;

/// The file, from the root of the repository. berth reads no objects from it, since its name does not end like YAML's.
pub const LOCK: &str = "vendor.lock";

/// The longest lock, and the longest `Chart.yaml`.
pub(crate) const LONGEST_FILE: usize = 256 << 10;

/// The longest name of a file or folder, as file systems have it.
const LONGEST_NAME: usize = 240;

const HEADING: &str =
    "# Written by `berth vendor`. Whoever edits a version runs `berth vendor fetch` afterwards.\n";

/// All vendored folders, by their paths from the root of the repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lock {
    pub folders: BTreeMap<String, Vendored>,
}

/// One vendored folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vendored {
    pub origin: Origin,
    /// The version, branch, tag or commit to which the digest or commit belongs, and the tree. Whoever edits the version
    /// leaves it as it is.
    pub fetched: String,
    /// The id of its tree in Git.
    pub tree: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The digest is that of the manifest in a registry, or of the archive in a repository of charts.
    Chart { chart: String, version: String, digest: String },
    /// A folder of a Git repository.
    Base { git: String, reference: String, path: String, commit: String },
}

/// An entry as it is written.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct EntryForm {
    #[serde(skip_serializing_if = "Option::is_none")]
    chart: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    git: Option<String>,
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fetched: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tree: Option<String>,
}

impl Lock {
    pub fn parse(text: &str) -> Result<Lock, VendorError> {
        if text.len() > LONGEST_FILE {
            return Err(VendorError::wrong(format!("{LOCK} has more than {LONGEST_FILE} bytes")));
        }
        let forms: Option<BTreeMap<String, EntryForm>> =
            serde_yaml::from_str(text).map_err(|error| VendorError::wrong(format!("{LOCK}: {error}")))?;
        let mut folders = BTreeMap::new();
        for (folder, form) in forms.unwrap_or_default() {
            if !is_folder(&folder) {
                let message = format!("{LOCK}: `{}` is no folder below the root", folder.escape_debug());
                return Err(VendorError::wrong(message));
            }
            let fault = format!(
                "{LOCK}: `{folder}` needs `chart`, `version`, `digest`, `fetched` and `tree`, or `git`, `ref`, `path`, `commit`, `fetched` and `tree`"
            );
            if let Some(outer) = folders.keys().find(|outer| folder.starts_with(&format!("{outer}/"))) {
                let message = format!("{LOCK}: `{folder}` is inside `{outer}`, which is vendored itself");
                return Err(VendorError::wrong(message));
            }
            let vendored = form.vendored().ok_or_else(|| VendorError::wrong(fault))?;
            folders.insert(folder, vendored);
        }
        Ok(Lock { folders })
    }

    pub fn text(&self) -> String {
        let forms: BTreeMap<&String, EntryForm> =
            self.folders.iter().map(|(folder, vendored)| (folder, EntryForm::of(vendored))).collect();
        // Texts and maps of texts have a form in YAML.
        format!("{HEADING}{}", serde_yaml::to_string(&forms).unwrap_or_default())
    }
}

impl EntryForm {
    fn of(vendored: &Vendored) -> EntryForm {
        let (fetched, tree) = (Some(vendored.fetched.clone()), Some(vendored.tree.clone()));
        match vendored.origin.clone() {
            Origin::Chart { chart, version, digest } => EntryForm {
                chart: Some(chart),
                version: Some(version),
                digest: Some(digest),
                fetched,
                tree,
                ..EntryForm::default()
            },
            Origin::Base { git, reference, path, commit } => EntryForm {
                git: Some(git),
                reference: Some(reference),
                path: Some(path),
                commit: Some(commit),
                fetched,
                tree,
                ..EntryForm::default()
            },
        }
    }

    fn vendored(self) -> Option<Vendored> {
        let origin = match self {
            EntryForm {
                chart: Some(chart),
                version: Some(version),
                digest: Some(digest),
                git: None,
                reference: None,
                path: None,
                commit: None,
                ..
            } => Origin::Chart { chart, version, digest },
            EntryForm {
                git: Some(git),
                reference: Some(reference),
                path: Some(path),
                commit: Some(commit),
                chart: None,
                version: None,
                digest: None,
                ..
            } => Origin::Base { git, reference, path, commit },
            _ => return None,
        };
        Some(Vendored { origin, fetched: self.fetched?, tree: self.tree? })
    }
}

/// Reports whether a path is a plain one below the root, and so fit for a vendored folder. Names that some file system
/// takes for `.git` are not.
pub fn is_folder(path: &str) -> bool {
    let is_part = |part: &str| {
        let bare = part.trim_end_matches(['.', ' ']).to_lowercase();
        !matches!(&*bare, "" | ".git" | "git~1") && part.len() <= LONGEST_NAME
    };
    path.split('/').all(is_part) && !path.contains(['\\', ':']) && harmless_line(path) == path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_read_as_it_was_written() {
        let chart = Origin::Chart {
            chart: "oci://registry.example.com/charts/web".to_owned(),
            version: "1.10".to_owned(),
            digest: "sha256:00".to_owned(),
        };
        let base = Origin::Base {
            git: "https://git.example.com/site.git".to_owned(),
            reference: "1e3".to_owned(),
            path: "base".to_owned(),
            commit: "0123".to_owned(),
        };
        let tree = "0123456789012345678901234567890123456789".to_owned();
        let entry = |origin| Vendored { origin, fetched: "1".to_owned(), tree: tree.clone() };
        let folders = [("charts/web", chart), ("site", base)];
        let folders = folders.map(|(folder, origin)| (folder.to_owned(), entry(origin)));
        let lock = Lock { folders: folders.into() };
        assert_eq!(Lock::parse(&lock.text()).unwrap(), lock);
        assert_eq!(Lock::parse("").unwrap(), Lock::default());
        assert_eq!(Lock::parse(HEADING).unwrap(), Lock::default());
    }

    #[test]
    fn a_faulty_lock_says_where() {
        for (text, words) in [
            (
                "charts/web: {chart: a, version: '1'}",
                "`charts/web` needs `chart`, `version`, `digest`, `fetched` and `tree`",
            ),
            ("../x: {}", "`../x` is no folder below the root"),
            ("a/.GIT/b: {}", "`a/.GIT/b` is no folder"),
            ("charts/web: {chart: a, versoin: b}", "unknown field `versoin`"),
            ("a: &a {chart: c, version: v, digest: d, fetched: v, tree: t}\na/b: *a", "`a/b` is inside `a`"),
            ("git~1/x: {}", "`git~1/x` is no folder"),
            (".git./x: {}", "`.git./x` is no folder"),
            ("charts/web: [", "line 1"),
            ("- a", "expected a map"),
        ] {
            let error = Lock::parse(text).unwrap_err().to_string();
            assert!(error.starts_with("vendor.lock: ") && error.contains(words), "{text}: {error}");
        }
    }
}
