//! A file that a process leaves for the next one, in the repository's own folder: `berth/cache`.
//!
//! It begins with a checksum, the length of what follows, and the build of berth that wrote it. For any other build,
//! and where it is damaged, it counts as missing. It may be deleted at any time.

use std::cell::RefCell;
use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;
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
    let target = path(repo, name);
    fs::create_dir_all(target.parent()?).ok()?;
    sweep(target.parent()?);
    let fresh = target.with_extension(std::process::id().to_string());
    let _ = fs::remove_file(&fresh);
    let file = fs::OpenOptions::new().write(true).create_new(true).open(&fresh).ok()?;
    let done = write(file, earlier, encode).and_then(|()| fs::rename(&fresh, &target).ok());
    if done.is_none() {
        let _ = fs::remove_file(&fresh);
    }
    done
}

/// Writes a file as it is made: what is in it is never in memory as a whole.
fn write(
    mut file: fs::File,
    earlier: Option<&Arc<File>>,
    encode: impl FnOnce(&mut Encoder) -> Option<()>,
) -> Option<()> {
    file.write_all(&header(0, 0)).ok()?;
    let body = Rc::new(RefCell::new(Body {
        file,
        checksum: Hasher::new(),
        length: 0,
        buffer: Vec::new(),
        failed: false,
    }));
    let sink = body.clone();
    let mut encoder = Encoder::of_file(earlier, Box::new(move |bytes| sink.borrow_mut().take(bytes)));
    encoder.text(BUILD);
    encode(&mut encoder)?;
    encoder.finish();
    let mut body = body.borrow_mut();
    body.flush();
    let header = header(body.checksum.clone().finalize(), body.length);
    let Body { file, failed, .. } = &mut *body;
    file.seek(SeekFrom::Start(0)).ok()?;
    file.write_all(&header).ok()?;
    (!*failed).then_some(())
}

fn header(checksum: u32, length: u64) -> [u8; 12] {
    let mut header = [0; 12];
    let (first, rest) = header.split_at_mut(4);
    first.copy_from_slice(&checksum.to_le_bytes());
    rest.copy_from_slice(&length.to_le_bytes());
    header
}

/// The bytes after the header, as far as they are made.
struct Body {
    file: fs::File,
    checksum: Hasher,
    length: u64,
    /// Most pieces are small, and written together.
    buffer: Vec<u8>,
    failed: bool,
}

impl Body {
    fn take(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.checksum.update(&self.buffer);
        self.length += self.buffer.len() as u64;
        self.failed |= self.file.write_all(&self.buffer).is_err();
        self.buffer.clear();
    }
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
