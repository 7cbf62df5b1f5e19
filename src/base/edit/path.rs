//! Paths of values in a document: keys and indexes from the root.

use std::fmt::Write as _;

/// A single step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Key(String),
    Index(usize),
}

impl From<&str> for Step {
    fn from(key: &str) -> Step {
        Step::Key(key.to_owned())
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Step {
        Step::Index(index)
    }
}

/// Returns a path of keys only.
pub fn keys<const N: usize>(keys: [&str; N]) -> Vec<Step> {
    keys.map(Step::from).to_vec()
}

/// Writes a path for messages: `spec.taints[0].key`, `metadata.annotations["a.b/c"]`.
pub fn show(path: &[Step]) -> String {
    let mut shown = String::new();
    for step in path {
        let _ = match step {
            Step::Index(index) => write!(shown, "[{index}]"),
            Step::Key(key) if key.contains(['.', '/', '[', ' ']) => write!(shown, "[\"{key}\"]"),
            Step::Key(key) if shown.is_empty() => write!(shown, "{key}"),
            Step::Key(key) => write!(shown, ".{key}"),
        };
    }
    shown
}
