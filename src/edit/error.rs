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
    #[error("`{0}` is written in a way that can not be changed in place")]
    NotInPlace(String),
}

impl EditError {
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            EditError::NotInPlace(_) => {
                Some("aliases, merge keys and `? key` are left to people: edit the file by hand")
            }
            _ => None,
        }
    }
}
