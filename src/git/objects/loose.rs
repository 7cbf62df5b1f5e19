//! A guard before each read of a loose object: libgit2 loops forever on a file that a full disk or a crash cut short.

use std::cell::RefCell;
use std::path::Path;
use std::time::{Duration, Instant};

use flate2::{Decompress, FlushDecompress, Status};
use git2::Oid;

use super::GitError;

/// The age from which the list of folders is read again.
const LONGEST: Duration = Duration::from_millis(100);

/// The folders of loose objects. Most repositories have few of them, so that most reads need no look for a file.
#[derive(Debug, Default)]
pub(super) struct LooseFolders(RefCell<Option<Listing>>);

#[derive(Debug)]
struct Listing {
    read: Instant,
    /// For each first byte of an id: true if objects may be loose.
    has: [bool; 256],
}

impl LooseFolders {
    /// Refuses an object whose own file is damaged. Packed and missing objects are not checked.
    pub fn refuse_damaged(&self, shared: &Path, id: Oid) -> Result<(), GitError> {
        let objects = shared.join("objects");
        let first = id.as_bytes().first().copied().unwrap_or_default();
        if !self.may_have(&objects, first) {
            return Ok(());
        }
        let name = id.to_string();
        let path = objects.join(&name[..2]).join(&name[2..]);
        match std::fs::read(&path) {
            Ok(bytes) if !is_whole(&bytes) => Err(GitError::Failed {
                doing: format!("reading object {name}"),
                message: format!("`{}` is damaged", path.display()),
            }),
            _ => Ok(()),
        }
    }

    /// Forgets the list, because new objects may have made new folders.
    pub fn forget(&self) {
        self.0.take();
    }

    fn may_have(&self, objects: &Path, first: u8) -> bool {
        let mut listing = self.0.borrow_mut();
        let fresh = listing.take().filter(|listing| listing.read.elapsed() < LONGEST);
        listing.insert(fresh.unwrap_or_else(|| Listing::read(objects))).has[usize::from(first)]
    }
}

impl Listing {
    fn read(objects: &Path) -> Listing {
        let read = Instant::now();
        let Ok(entries) = std::fs::read_dir(objects) else { return Listing { read, has: [true; 256] } };
        let mut has = [false; 256];
        for entry in entries {
            let Ok(entry) = entry else { return Listing { read, has: [true; 256] } };
            let name = entry.file_name();
            let first = name.to_str().filter(|name| name.len() == 2);
            if let Some(first) = first.and_then(|name| u8::from_str_radix(name, 16).ok()) {
                has[usize::from(first)] = true;
            }
        }
        Listing { read, has }
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
