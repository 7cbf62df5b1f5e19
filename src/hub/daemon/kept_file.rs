//! A file that a process leaves for the next one, in the repository's own folder: `berth/cache`.
//!
//! It begins with a checksum, the length of what follows, and the build of berth that wrote it. For any other build,
//! and where it is damaged, it counts as missing. It may be deleted at any time.

use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::Duration;
use std::{fs, mem, thread};

use crc32fast::Hasher;

use berth_base::codec::file::File;
use berth_base::codec::{Decoder, Encoder};
use berth_engine::dialects::FUNCTIONS;
use berth_git::Repo;

const FOLDER: &str = "berth/cache";

/// The length of checksum and length.
const HEADER: u64 = 4 + 8;

/// Bytes that are written at once.
const PIECE: usize = 1 << 18;

/// Pieces that may wait to be written.
const AHEAD: usize = 4;

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

/// Writes a file as it is made: what is in it is never in memory as a whole. The system takes it on another thread,
/// meanwhile.
fn write(
    file: fs::File,
    earlier: Option<&Arc<File>>,
    encode: impl FnOnce(&mut Encoder) -> Option<()>,
) -> Option<()> {
    let (pieces, made) = mpsc::sync_channel(AHEAD);
    let writing = thread::Builder::new().name("cache file".to_owned());
    let writing = writing.spawn(move || write_pieces(file, &made)).ok()?;
    let mut gathered = Gathered { piece: Vec::new(), pieces };
    let mut encoder = Encoder::of_file(earlier, Box::new(move |bytes| gathered.add(bytes)));
    encoder.text(BUILD);
    let encoded = encode(&mut encoder).map(|()| encoder.finish());
    let written = writing.join().ok()?;
    encoded.and(written.ok())
}

/// Writes the pieces of a file behind its header, until there are no more.
fn write_pieces(mut file: fs::File, made: &Receiver<Vec<u8>>) -> io::Result<()> {
    file.write_all(&header(0, 0))?;
    let (mut checksum, mut length) = (Hasher::new(), 0);
    for piece in made {
        checksum.update(&piece);
        length += piece.len() as u64;
        file.write_all(&piece)?;
    }
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&header(checksum.finalize(), length))
}

fn header(checksum: u32, length: u64) -> [u8; 12] {
    let mut header = [0; 12];
    let (first, rest) = header.split_at_mut(4);
    first.copy_from_slice(&checksum.to_le_bytes());
    rest.copy_from_slice(&length.to_le_bytes());
    header
}

/// Small pieces of a file, which are handed over together.
struct Gathered {
    piece: Vec<u8>,
    pieces: SyncSender<Vec<u8>>,
}

impl Gathered {
    fn add(&mut self, bytes: &[u8]) {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE {
            self.hand_over();
        }
    }

    /// A thread that could not write takes nothing more, and says so at its end.
    fn hand_over(&mut self) {
        let _ = self.pieces.send(mem::take(&mut self.piece));
    }
}

impl Drop for Gathered {
    fn drop(&mut self) {
        self.hand_over();
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
