//! Why a file was not edited.

/// An edit that was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("the file has no document {0}")]
    NoSuchDocument(usize),
    #[error("there is no `{0}`")]
    Missing(String),
    #[error("there is a `{0}` already")]
    AlreadyThere(String),
    #[error("`{path}` is {what}, so that nothing can stand below it")]
    NotACollection { path: String, what: &'static str },
    #[error("{what} is written in a way that can not be changed in place")]
    NotInPlace { what: String, line: u32 },
}

impl EditError {
    /// Where the steps below can not tell what was asked for; who asked does.
    pub(super) fn not_in_place() -> EditError {
        EditError::NotInPlace { what: String::new(), line: 0 }
    }

    /// The line that can not be changed.
    pub fn line(&self) -> Option<u32> {
        match self {
            EditError::NotInPlace { line, .. } => Some(*line).filter(|line| *line > 0),
            _ => None,
        }
    }

    pub fn hint(&self) -> Option<&'static str> {
        match self {
            EditError::NotInPlace { .. } => {
                Some("aliases, merge keys and `? key` are left to people: edit the file by hand")
            }
            _ => None,
        }
    }
}
