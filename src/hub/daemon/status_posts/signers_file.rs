//! The file that lists the keys and the clusters that each may report for. Read again when it changes.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use berth_git::signature::AllowedSigners;
use tracing::warn;

/// A file in the format of `ssh-keygen -Y verify`, whose principals are clusters.
#[derive(Debug)]
pub struct SignersFile {
    path: PathBuf,
    /// The file as last read; `None` inside if it was invalid.
    read: RefCell<Option<(Mark, Option<AllowedSigners>)>>,
}

/// The length and time of the file, by which changes are noticed.
type Mark = Option<(u64, SystemTime)>;

impl SignersFile {
    /// Opens the file, which must be valid now.
    pub fn new(path: &Path) -> Result<SignersFile, String> {
        read(path)?;
        Ok(SignersFile { path: path.to_owned(), read: RefCell::default() })
    }

    /// Passes the signers to `ask`. An invalid file is logged only once, because a stranger may send any number of
    /// requests.
    pub(super) fn with<T>(&self, ask: impl FnOnce(&AllowedSigners) -> T) -> Option<T> {
        let mark = fs::metadata(&self.path).and_then(|about| Ok((about.len(), about.modified()?))).ok();
        let mut kept = self.read.borrow_mut();
        let (_, signers) = match kept.take().filter(|(of, _)| *of == mark) {
            Some(same) => kept.insert(same),
            None => {
                let signers = read(&self.path).inspect_err(|error| {
                    let file = self.path.display();
                    warn!(%file, error, "statuses are refused: the file of their signers cannot be used");
                });
                kept.insert((mark, signers.ok()))
            }
        };
        signers.as_ref().map(ask)
    }
}

fn read(path: &Path) -> Result<AllowedSigners, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    AllowedSigners::read(&path.display().to_string(), &text)
}
