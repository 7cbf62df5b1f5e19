//! Unpacks a layer into Git objects. Whatever the layer contains, only the object store is written, and memory stays
//! limited.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

use flate2::read::GzDecoder;
use tar::{Archive, EntryType};

use super::layer::{LONGEST_PATH, folders_above, is_fit};
use super::{LONGEST_FILE, LONGEST_LAYER, MOST_ENTRIES};
use berth_base::model::ContentId;
use berth_git::{GitError, Repo, TreeId, Writer};

/// The reasons why a layer is refused.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    #[error("{0}")]
    Unfit(String),
    /// The bytes did not arrive completely, or are not an archive.
    #[error("its layer cannot be unpacked: {0}")]
    Unreadable(#[from] io::Error),
    #[error(transparent)]
    Git(#[from] GitError),
}

/// Writes the files of a layer into a repository, and returns their tree. No ref points to it yet.
pub fn unpack(repo: &Repo, layer: impl Read) -> Result<TreeId, UnpackError> {
    let mut writer = Writer::new(repo)?;
    let unfit = |reason: String| Err(UnpackError::Unfit(reason));
    let bytes = Limited { from: GzDecoder::new(layer), left: LONGEST_LAYER };
    let mut archive = Archive::new(bytes);
    let mut files: BTreeMap<String, ContentId> = BTreeMap::new();
    let (mut count, mut long_path) = (0, None);
    // Raw mode, because for long names the reader would allocate as much memory as they claim.
    for entry in archive.entries()?.raw(true) {
        let mut entry = entry?;
        count += 1;
        if count > 2 * MOST_ENTRIES || files.len() as u64 >= MOST_ENTRIES {
            return unfit(format!("its layer has more than {MOST_ENTRIES} files"));
        }
        let (kind, size) = (entry.header().entry_type(), entry.header().entry_size()?);
        if kind == EntryType::GNULongName && long_path.is_none() {
            if size > LONGEST_PATH as u64 {
                return unfit("a path in its layer is too long".to_owned());
            }
            let mut path = Vec::new();
            entry.read_to_end(&mut path)?;
            while path.last() == Some(&0) {
                path.pop();
            }
            long_path = Some(path);
            continue;
        }
        let path = long_path.take().unwrap_or_else(|| entry.header().path_bytes().into_owned());
        let shown = String::from_utf8_lossy(&path).escape_debug().to_string();
        let path = match String::from_utf8(path) {
            Ok(path) if is_fit(path.strip_suffix('/').unwrap_or(&path)) => path,
            _ => return unfit(format!("the path `{shown}` in its layer leads elsewhere")),
        };
        match kind {
            // Git has no empty folders; other folders exist through their files.
            EntryType::Directory if size == 0 => {}
            EntryType::Regular if path.ends_with('/') || files.contains_key(&path) => {
                return unfit(format!("the path `{shown}` in its layer is not one file's"));
            }
            EntryType::Regular if size > LONGEST_FILE => {
                return unfit(format!("`{shown}` in its layer has more than {LONGEST_FILE} bytes"));
            }
            EntryType::Regular => {
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes)?;
                if bytes.len() as u64 != size {
                    return unfit(format!("`{shown}` in its layer is cut off"));
                }
                files.insert(path, writer.blob(&bytes)?);
            }
            _ => return unfit(format!("`{shown}` in its layer is neither a file nor a folder")),
        }
    }
    let folders: BTreeSet<&str> = files.keys().flat_map(|path| folders_above(path)).collect();
    if let Some(both) = files.keys().find(|path| folders.contains(path.as_str())) {
        return unfit(format!("`{}` in its layer is both a file and a folder", both.escape_debug()));
    }
    Ok(writer.folder(files.iter().map(|(path, id)| (path.as_str(), *id)))?)
}

/// Fails when more bytes come than the limit.
struct Limited<R> {
    from: R,
    left: u64,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.from.read(into)?;
        self.left = self
            .left
            .checked_sub(length as u64)
            .ok_or_else(|| io::Error::other(format!("it has more than {LONGEST_LAYER} bytes")))?;
        Ok(length)
    }
}
