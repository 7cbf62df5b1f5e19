//! Rendered bytes of a run that publishes nothing: named as Git would. Earlier ones are in the repository, if there is one.

use std::collections::BTreeMap;

use super::PassInputs;
use berth_base::model::{ContentError, ContentId, Contents};
use berth_git::{BlobIds, Repo};

/// Names bytes, and keeps them where somebody wants to read them.
#[derive(Debug)]
pub struct UnpublishedContents {
    repo: Option<Repo>,
    kept: Option<BTreeMap<ContentId, Box<[u8]>>>,
}

impl UnpublishedContents {
    /// Keeps no bytes: for whoever wants the faults of a rendering alone.
    pub fn naming(inputs: &PassInputs) -> Result<UnpublishedContents, ContentError> {
        let repo = inputs.repo.as_deref().map(Repo::open).transpose();
        let repo = repo.map_err(|error| ContentError(error.to_string()))?;
        Ok(UnpublishedContents { repo, kept: None })
    }

    /// Keeps all bytes in memory.
    pub fn keeping(inputs: &PassInputs) -> Result<UnpublishedContents, ContentError> {
        Ok(UnpublishedContents { kept: Some(BTreeMap::new()), ..Self::naming(inputs)? })
    }
}

impl Contents for UnpublishedContents {
    fn put(&mut self, bytes: &[u8]) -> Result<ContentId, ContentError> {
        let id = BlobIds.put(bytes)?;
        if let Some(kept) = &mut self.kept {
            kept.entry(id).or_insert_with(|| bytes.into());
        }
        Ok(id)
    }

    fn get(&self, id: ContentId) -> Result<Vec<u8>, ContentError> {
        match (self.kept.as_ref().and_then(|kept| kept.get(&id)), &self.repo) {
            (Some(bytes), _) => Ok(bytes.to_vec()),
            (None, Some(repo)) => repo.blob(id).map_err(|error| ContentError(error.to_string())),
            (None, None) => BlobIds.get(id),
        }
    }
}
