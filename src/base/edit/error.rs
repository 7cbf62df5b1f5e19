//! The reasons why an edit was refused.

/// The reason for refusing an edit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("the file has no document {0}")]
    NoSuchDocument(usize),
    #[error("there is no `{0}`")]
    Missing(String),
    #[error("`{0}` already exists")]
    AlreadyThere(String),
    #[error("`{path}` is {what} and cannot hold a field")]
    NotACollection { path: String, what: &'static str },
    #[error("{what} is written in a way that cannot be changed in place")]
    NotInPlace { what: String, line: u32 },
}

impl EditError {
    /// Returns an error without a path, for steps that do not know the path. The caller adds it.
    pub(super) fn not_in_place() -> EditError {
        EditError::NotInPlace { what: String::new(), line: 0 }
    }

    /// Returns the line that cannot be changed.
    pub fn line(&self) -> Option<u32> {
        match self {
            EditError::NotInPlace { line, .. } => Some(*line).filter(|line| *line > 0),
            _ => None,
        }
    }

    pub fn hint(&self) -> Option<&'static str> {
        match self {
            EditError::NotInPlace { .. } => {
                Some("edit the file by hand: berth does not change aliases, merge keys or `? key`")
            }
            _ => None,
        }
    }
}
