//! The bytes of source files that an earlier process read. Few of them are ever looked at.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use berth_base::codec::file::File;
use berth_base::model::ContentId;
use berth_base::source::FileBytes;
use berth_git::Repo;

/// Reads files of a repository, which it opens for the first one.
pub(super) struct EarlierFiles {
    path: PathBuf,
    repo: Mutex<Option<Repo>>,
    /// The cache file that names them. It counts as damaged where one cannot be read.
    file: Arc<File>,
}

impl EarlierFiles {
    pub(super) fn new(repo: &Repo, file: &Arc<File>) -> Arc<EarlierFiles> {
        let path = repo.path().to_owned();
        Arc::new(EarlierFiles { path, repo: Mutex::new(None), file: file.clone() })
    }

    /// Returns the bytes of a blob, which are read when they are looked at first.
    pub(super) fn bytes(self: &Arc<EarlierFiles>, id: ContentId) -> FileBytes {
        let files = self.clone();
        FileBytes::later(move || files.read(id).unwrap_or_else(|| files.nothing()).into())
    }

    fn read(&self, id: ContentId) -> Option<Vec<u8>> {
        let mut repo = self.repo.lock().unwrap_or_else(PoisonError::into_inner);
        if repo.is_none() {
            *repo = Repo::open(&self.path).ok();
        }
        repo.as_ref()?.blob(id).ok()
    }

    fn nothing(&self) -> Vec<u8> {
        self.file.damage();
        Vec::new()
    }
}
