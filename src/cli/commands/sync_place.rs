//! The place that a sync brings to its folder.

use std::path::PathBuf;

/// The target of a sync.
#[derive(Clone, Debug)]
pub(super) enum Place {
    Folder(PathBuf),
    Kube,
}

/// Parses `kube` or `dir:PATH`.
pub(super) fn place(text: &str) -> Result<Place, String> {
    match text.split_once(':') {
        Some(("dir", path)) if !path.is_empty() => Ok(Place::Folder(PathBuf::from(path))),
        None if text == "kube" => Ok(Place::Kube),
        _ => Err("write it as `kube` or `dir:PATH`".into()),
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Folder(path) => write!(f, "dir:{}", path.display()),
            Place::Kube => f.write_str("kube"),
        }
    }
}
