//! Rendered contents in memory, for rendering without Git.

use std::collections::BTreeMap;
use std::sync::Arc;

use berth_base::model::{ContentError, ContentId, Contents};

/// A store that keeps all bytes by id.
#[derive(Clone, Debug, Default)]
pub struct MemoryContents {
    by_id: BTreeMap<ContentId, Arc<[u8]>>,
}

impl MemoryContents {
    pub fn bytes(&self, id: &ContentId) -> Option<&Arc<[u8]>> {
        self.by_id.get(id)
    }
}

impl Contents for MemoryContents {
    fn put(&mut self, bytes: &[u8]) -> Result<ContentId, ContentError> {
        let id = ContentId::of(bytes);
        self.by_id.entry(id).or_insert_with(|| bytes.into());
        Ok(id)
    }

    fn get(&self, id: ContentId) -> Result<Vec<u8>, ContentError> {
        let bytes = self.by_id.get(&id).map(|bytes| bytes.to_vec());
        bytes.ok_or_else(|| ContentError(format!("{id} was never put here")))
    }
}
