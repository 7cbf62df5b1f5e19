//! A guard before each read of a loose object: libgit2 loops forever on a file that a full disk or a crash cut short.

use std::cell::RefCell;
use std::path::Path;
use std::time::{Duration, Instant};

use flate2::{Decompress, FlushDecompress, Status};
use git2::Oid;

use super::GitError;

/// The age from which the folders are looked at again.
const LONGEST: Duration = Duration::from_millis(100);

/// The folders of loose objects. Most repositories have few of them, so that most reads need no look for a file.
#[derive(Debug, Default)]
pub(super) struct LooseFolders(RefCell<Option<Known>>);

#[derive(Debug)]
struct Known {
    since: Instant,
    /// For each first byte of an id: true if its folder exists. `None` before the first look.
    exists: [Option<bool>; 256],
}

impl LooseFolders {
    /// Refuses an object whose own file is damaged. Packed and missing objects are not checked.
    pub fn refuse_damaged(&self, shared: &Path, id: Oid) -> Result<(), GitError> {
        let name = id.to_string();
        let Some((folder, file)) = name.split_at_checked(2) else { return Ok(()) };
        let folder = shared.join("objects").join(folder);
        if !self.may_have(&folder, id.as_bytes().first().copied().unwrap_or_default()) {
            return Ok(());
        }
        let path = folder.join(file);
        match std::fs::read(&path) {
            Ok(bytes) if !is_whole(&bytes) => Err(GitError::Failed {
                doing: format!("reading object {name}"),
                message: format!("`{}` is damaged", path.display()),
            }),
            _ => Ok(()),
        }
    }

    /// Forgets the folders, because new objects may have made some.
    pub fn forget(&self) {
        self.0.take();
    }

    fn may_have(&self, folder: &Path, first: u8) -> bool {
        let mut known = self.0.borrow_mut();
        let fresh = known.take().filter(|known| known.since.elapsed() < LONGEST);
        let known =
            known.insert(fresh.unwrap_or_else(|| Known { since: Instant::now(), exists: [None; 256] }));
        *known.exists[usize::from(first)].get_or_insert_with(|| folder.is_dir())
    }
}

fn is_whole(bytes: &[u8]) -> bool {
    let mut inflate = Decompress::new(true);
    let mut out = vec![0; 64 << 10];
    loop {
        let (read, written) = (inflate.total_in(), inflate.total_out());
        let rest = usize::try_from(read).ok().and_then(|read| bytes.get(read..)).unwrap_or_default();
        match inflate.decompress(rest, &mut out, FlushDecompress::None) {
            Ok(Status::StreamEnd) => return true,
            Ok(_) if (inflate.total_in(), inflate.total_out()) != (read, written) => {}
            Ok(_) | Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn only_what_reaches_its_end_is_whole() {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        let content: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
        encoder.write_all(&content).expect("it is written");
        let bytes = encoder.finish().expect("it is written");
        assert!(is_whole(&bytes));
        for much in [0, 1, 2, 10, bytes.len() / 2, bytes.len() - 1] {
            assert!(!is_whole(&bytes[..much]), "{much}");
        }
        assert!(!is_whole(b"nonsense"));
    }
}
