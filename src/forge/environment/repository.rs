//! A repository on a forge, named by flags.

use super::{EnvironmentError, Field, Forge, is_address, is_repository, wrong};

/// A repository on a forge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    pub forge: Forge,
    /// The address of the forge's API, without a slash at its end.
    pub api: String,
    /// `owner/name`; of GitLab the project's number or path.
    pub name: String,
}

impl Repository {
    /// Checks the parts of addresses. Without an API address, uses the forge's public one.
    pub fn new(forge: Forge, api: Option<&str>, name: &str) -> Result<Repository, EnvironmentError> {
        let api = api.or(forge.public_api()).ok_or(EnvironmentError::missing(Field::Api, None))?;
        let (api, name) = (api.trim_end_matches('/').to_owned(), name.to_owned());
        if !is_address(&api) {
            return Err(wrong(Field::Api, &api, forge));
        }
        if !is_repository(forge, &name) {
            return Err(wrong(Field::Repository, &name, forge));
        }
        Ok(Repository { forge, api, name })
    }
}
