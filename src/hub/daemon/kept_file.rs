//! A file that a process leaves for the next one, in the repository's own folder: `berth/cache`.
//!
//! It begins with a checksum, the length of what follows, and the build of berth that wrote it. For any other build,
//! and where it is damaged, it counts as missing. It may be deleted at any time.

use std::fs;
use std::io::{BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crc32fast::Hasher;

use berth_base::codec::file::File;
use berth_base::codec::{Decoder, Encoder};
use berth_engine::dialects::FUNCTIONS;
use berth_git::Repo;

const FOLDER: &str = "berth/cache";

/// The length of checksum and length.
const HEADER: u64 = 4 + 8;

/// Bytes that are written at once: most pieces of a file are small.
const BUFFER: usize = 1 << 18;

/// The age at which nobody still writes to an unfinished file.
const UNFINISHED: Duration = Duration::from_secs(3_600);

/// Reads a file's value. Parts of it may be decoded later, from the bytes as they were read now.
pub(super) fn read<T>(
    repo: &Repo,
    name: &str,
    decode: impl FnOnce(&mut Decoder<'_>) -> Option<T>,
) -> Option<T> {
    let file = File::read_with(body(&path(repo, name))?, &FUNCTIONS)?;
    let mut decoder = file.decoder();
    if *decoder.text()? != *BUILD {
        return None;
    }
    decode(&mut decoder)
}

/// Reads the bytes after the header. A pipe or a device may have no end, and a file without blocks has any length: only
/// a plain file that is as long as its header says is read.
fn body(path: &Path) -> Option<Vec<u8>> {
    let about = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    let mut file = fs::File::open(path).ok()?;
    let (mut checksum, mut length) = ([0; 4], [0; 8]);
    file.read_exact(&mut checksum).ok()?;
    file.read_exact(&mut length).ok()?;
    let length = u64::from_le_bytes(length);
    if about.len().checked_sub(HEADER) != Some(length) {
        return None;
    }
    let mut body = Vec::new();
    body.try_reserve_exact(usize::try_from(length).ok()?).ok()?;
    file.take(length).read_to_end(&mut body).ok()?;
    (crc32fast::hash(&body) == u32::from_le_bytes(checksum)).then_some(body)
}

/// Replaces a file. Unchanged parts of an `earlier` one are copied as they are. Nothing depends on its success.
pub(super) fn replace(
    repo: &Repo,
    name: &str,
    earlier: Option<&Arc<File>>,
    encode: impl FnOnce(&mut Encoder) -> Option<()>,
) -> Option<()> {
    let mut encoder = Encoder::of_file(earlier);
    encoder.text(BUILD);
    encode(&mut encoder)?;
    let written = encoder.into_file();
    let (mut checksum, mut length) = (Hasher::new(), 0);
    for piece in written.pieces() {
        checksum.update(piece);
        length += piece.len() as u64;
    }
    let target = path(repo, name);
    fs::create_dir_all(target.parent()?).ok()?;
    sweep(target.parent()?);
    let fresh = target.with_extension(std::process::id().to_string());
    let _ = fs::remove_file(&fresh);
    let write = || {
        let file = fs::OpenOptions::new().write(true).create_new(true).open(&fresh)?;
        let mut file = BufWriter::with_capacity(BUFFER, file);
        file.write_all(&checksum.finalize().to_le_bytes())?;
        file.write_all(&length.to_le_bytes())?;
        written.pieces().try_for_each(|piece| file.write_all(piece))?;
        file.flush()?;
        fs::rename(&fresh, &target)
    };
    let done = write();
    if done.is_err() {
        let _ = fs::remove_file(&fresh);
    }
    done.ok()
}

/// Removes unfinished files of processes that were killed.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_unfinished = Path::new(&entry.file_name()).extension().is_some();
        let age = entry.metadata().and_then(|about| about.modified()).ok().and_then(|at| at.elapsed().ok());
        if is_unfinished && age.is_some_and(|age| age > UNFINISHED) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn path(repo: &Repo, name: &str) -> PathBuf {
    repo.shared_path().join(FOLDER).join(name)
}

/// The version of this build, and a digest of its sources.
const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), " ", env!("BERTH_SOURCES"));
