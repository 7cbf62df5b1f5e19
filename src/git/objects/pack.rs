//! Many new objects as one pack: deflated into an unnamed file as they come, by a thread of its own, then
//! handed to libgit2 with the count in front and the checksum behind, which indexes it.
//!
//! A pack begins with the number of its objects, which is known only at the end; hence the file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender};
use std::thread::JoinHandle;

use flate2::{Compress, Compression, FlushCompress, Status};
use git2::ObjectType;
use sha1::{Digest as _, Sha1};

use super::error::GitError;

/// Git's own level for objects that may not live long: twice as fast as its level for archives, a tenth larger.
const LEVEL: u32 = 1;

/// The bytes handed over at a time; libgit2 maps the file anew each time.
const CHUNK: usize = 1 << 20;

/// So much is collected before it goes over to the thread that deflates, and so many of these may wait there.
const BATCH: usize = 1 << 18;
const WAITING: usize = 4;

/// Objects on their way into one pack.
pub(super) struct Spool {
    batch: Vec<(ObjectType, Vec<u8>)>,
    batch_bytes: usize,
    batches: SyncSender<Vec<(ObjectType, Vec<u8>)>>,
    deflating: JoinHandle<io::Result<(File, u32)>>,
}

impl Spool {
    /// A spool beside the packs, so that it needs no room elsewhere.
    pub(super) fn new(objects_folder: &Path) -> Result<Spool, GitError> {
        let file = unnamed_file(&objects_folder.join("pack")).map_err(spooling)?;
        let (batches, waiting) = std::sync::mpsc::sync_channel(WAITING);
        let thread = std::thread::Builder::new().name("pack".into());
        let deflating = thread.spawn(move || deflate_all(&waiting, file)).map_err(spooling)?;
        Ok(Spool { batch: Vec::new(), batch_bytes: 0, batches, deflating })
    }

    pub(super) fn add(&mut self, kind: ObjectType, bytes: &[u8]) -> Result<(), GitError> {
        self.batch_bytes += bytes.len();
        self.batch.push((kind, bytes.to_vec()));
        if self.batch_bytes < BATCH {
            return Ok(());
        }
        self.batch_bytes = 0;
        // Only a thread that has failed does not listen; its error comes with the end.
        self.batches
            .send(std::mem::take(&mut self.batch))
            .map_err(|_| spooling(io::Error::other("the pack cannot be written any more")))
    }

    /// Makes all of it a pack of the repository.
    pub(super) fn finish(self, odb: &git2::Odb<'_>) -> Result<(), GitError> {
        let _ = self.batches.send(self.batch);
        drop(self.batches);
        let deflated = self.deflating.join();
        let (mut file, objects) =
            deflated.unwrap_or_else(|_| Err(io::Error::other("deflating failed"))).map_err(spooling)?;
        file.seek(SeekFrom::Start(0)).map_err(spooling)?;
        let mut pack = odb.packwriter().map_err(GitError::failed("starting a pack"))?;
        let mut sum = Sha1::new();
        let mut header = b"PACK\0\0\0\x02".to_vec();
        header.extend(objects.to_be_bytes());
        sum.update(&header);
        pack.write_all(&header).map_err(spooling)?;
        let mut chunk = vec![0; CHUNK];
        loop {
            let length = file.read(&mut chunk).map_err(spooling)?;
            if length == 0 {
                break;
            }
            sum.update(&chunk[..length]);
            pack.write_all(&chunk[..length]).map_err(spooling)?;
        }
        pack.write_all(&sum.finalize()).map_err(spooling)?;
        pack.commit().map_err(GitError::failed("indexing a pack"))?;
        odb.refresh().map_err(GitError::failed("looking for the new pack"))
    }
}

/// Writes the entries of all batches, deflated; gives the file and how many there are.
fn deflate_all(batches: &Receiver<Vec<(ObjectType, Vec<u8>)>>, file: File) -> io::Result<(File, u32)> {
    let mut file = BufWriter::with_capacity(CHUNK, file);
    let mut deflate = Compress::new(Compression::new(LEVEL), true);
    let mut buffer = Vec::new();
    let mut objects: u32 = 0;
    for (kind, bytes) in batches.iter().flatten() {
        buffer.clear();
        entry_header(&mut buffer, kind, bytes.len());
        // Deflated text is never much longer than the text.
        buffer.reserve(bytes.len() + bytes.len() / 1000 + 64);
        deflate.reset();
        let ended = deflate.compress_vec(&bytes, &mut buffer, FlushCompress::Finish);
        if !matches!(ended, Ok(Status::StreamEnd)) {
            return Err(io::Error::other("zlib did not come to an end"));
        }
        file.write_all(&buffer)?;
        objects = objects.checked_add(1).ok_or(io::ErrorKind::FileTooLarge)?;
    }
    Ok((file.into_inner().map_err(io::IntoInnerError::into_error)?, objects))
}

/// The kind and the length before deflating, in seven bits a byte, the lowest first.
fn entry_header(out: &mut Vec<u8>, kind: ObjectType, length: usize) {
    let kind: usize = match kind {
        ObjectType::Commit => 1,
        ObjectType::Tree => 2,
        _ => 3,
    };
    let mut byte = kind << 4 | length & 0xF;
    let mut rest = length >> 4;
    while rest > 0 {
        out.push((byte | 0x80) as u8);
        byte = rest & 0x7F;
        rest >>= 7;
    }
    out.push(byte as u8);
}

/// Creates a file that disappears with the process, however it ends. Where a file in use cannot be removed, `git gc`
/// recognises its name and clears it away.
fn unnamed_file(folder: &Path) -> io::Result<File> {
    fs::create_dir_all(folder)?;
    let mut number = 0_u32;
    loop {
        let path = folder.join(format!("tmp_berth_{}_{number}", std::process::id()));
        match OpenOptions::new().read(true).write(true).create_new(true).open(&path) {
            Ok(file) => {
                let _ = fs::remove_file(&path);
                return Ok(file);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1000 => number += 1,
            Err(error) => return Err(error),
        }
    }
}

fn spooling(error: io::Error) -> GitError {
    GitError::Failed { doing: "collecting new objects for a pack".to_owned(), message: error.to_string() }
}
