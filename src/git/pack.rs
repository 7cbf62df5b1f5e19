//! Many new objects as one pack: deflated one by one into an unnamed file as they come, then handed to
//! libgit2 with the count in front and the checksum behind, which indexes it.
//!
//! A pack begins with the number of its objects, which is known only at the end; hence the file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use flate2::{Compress, Compression, FlushCompress, Status};
use git2::ObjectType;
use sha1::{Digest as _, Sha1};

use super::error::GitError;

/// Git's own level for objects that may not live long: twice as fast as its level for archives, a tenth larger.
const LEVEL: u32 = 1;

/// How much is handed over at a time; libgit2 maps the file anew each time.
const CHUNK: usize = 1 << 20;

/// Objects on their way into one pack.
pub(super) struct Spool {
    file: BufWriter<File>,
    objects: u32,
    deflate: Compress,
    buffer: Vec<u8>,
}

impl Spool {
    /// A spool beside the packs, so that it needs no room elsewhere.
    pub(super) fn new(objects_folder: &Path) -> Result<Spool, GitError> {
        let file = unnamed_file(&objects_folder.join("pack")).map_err(spooling)?;
        Ok(Spool {
            file: BufWriter::with_capacity(CHUNK, file),
            objects: 0,
            deflate: Compress::new(Compression::new(LEVEL), true),
            buffer: Vec::new(),
        })
    }

    pub(super) fn add(&mut self, kind: ObjectType, bytes: &[u8]) -> Result<(), GitError> {
        self.buffer.clear();
        entry_header(&mut self.buffer, kind, bytes.len());
        // Deflated text is never much longer than the text.
        self.buffer.reserve(bytes.len() + bytes.len() / 1000 + 64);
        self.deflate.reset();
        let ended = self.deflate.compress_vec(bytes, &mut self.buffer, FlushCompress::Finish);
        if !matches!(ended, Ok(Status::StreamEnd)) {
            let message = "zlib did not come to an end".to_owned();
            return Err(GitError::Failed { doing: "deflating an object".to_owned(), message });
        }
        self.file.write_all(&self.buffer).map_err(spooling)?;
        self.objects =
            self.objects.checked_add(1).ok_or_else(|| spooling(io::ErrorKind::FileTooLarge.into()))?;
        Ok(())
    }

    /// Makes all of it a pack of the repository.
    pub(super) fn finish(self, odb: &git2::Odb<'_>) -> Result<(), GitError> {
        let mut file = self.file.into_inner().map_err(|error| spooling(error.into_error()))?;
        file.seek(SeekFrom::Start(0)).map_err(spooling)?;
        let mut pack = odb.packwriter().map_err(GitError::failed("starting a pack"))?;
        let mut sum = Sha1::new();
        let mut header = b"PACK\0\0\0\x02".to_vec();
        header.extend(self.objects.to_be_bytes());
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

/// A file that is gone with the process, however it ends. Where a file in use can not be removed, its name is
/// one that `git gc` clears away.
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
