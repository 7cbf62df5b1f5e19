//! Writes many new objects as one pack. A thread deflates them as they come, into memory or an unnamed file; then
//! everything is copied beside the other packs, with the count in front and the checksum behind. The index is written
//! from known offsets and checksums: letting a library read the pack again would take as long as deflating it.
//!
//! A pack begins with the number of its objects, which is known only at the end; hence the copy.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};
use std::thread::JoinHandle;
use std::{fs, io};

use flate2::{Compress, Compression, Crc, FlushCompress, Status};
use git2::{ObjectType, Oid};
use sha1::{Digest as _, Sha1};

use super::error::GitError;
use berth_base::text::hex;

/// Git's level for loose objects: twice as fast as its level for packs, a tenth larger.
const LEVEL: u32 = 1;

const CHUNK: usize = 1 << 20;

/// The deflated bytes kept in memory before they go to the unnamed file.
const KEPT: usize = 1 << 21;

/// The bytes of one batch for the deflating thread, and the number of batches that may wait for it.
const BATCH: usize = 1 << 18;
const WAITING: usize = 4;

/// The bytes before a pack's first object: its magic word, version and number of objects.
const HEADER: u64 = 12;

/// Objects on their way into one pack.
pub(super) struct Spool {
    folder: PathBuf,
    batch: Batch,
    batch_bytes: usize,
    batches: SyncSender<Batch>,
    deflating: JoinHandle<io::Result<(Deflated, Vec<Indexed>)>>,
}

type Batch = Vec<(Oid, ObjectType, Arc<[u8]>)>;

impl Spool {
    /// Creates a spool in the pack folder, so that it needs space on no other disk.
    pub(super) fn new(objects_folder: &Path) -> Result<Spool, GitError> {
        let folder = objects_folder.join("pack");
        fs::create_dir_all(&folder).map_err(spooling)?;
        let deflated = Deflated { folder: folder.clone(), kept: Vec::new(), file: None };
        let (batches, waiting) = std::sync::mpsc::sync_channel(WAITING);
        let thread = std::thread::Builder::new().name("pack".into());
        let deflating = thread.spawn(move || deflate_all(&waiting, deflated)).map_err(spooling)?;
        Ok(Spool { folder, batch: Vec::new(), batch_bytes: 0, batches, deflating })
    }

    pub(super) fn add(&mut self, id: Oid, kind: ObjectType, bytes: Arc<[u8]>) -> Result<(), GitError> {
        self.batch_bytes += bytes.len();
        self.batch.push((id, kind, bytes));
        if self.batch_bytes < BATCH {
            return Ok(());
        }
        self.batch_bytes = 0;
        // Sending fails only if the thread has failed; `finish` returns its error.
        self.batches
            .send(std::mem::take(&mut self.batch))
            .map_err(|_| spooling(io::Error::other("the pack cannot be written any more")))
    }

    /// Writes all objects as a pack of the repository.
    pub(super) fn finish(self) -> Result<(), GitError> {
        let _ = self.batches.send(self.batch);
        drop(self.batches);
        let deflated = self.deflating.join();
        let (deflated, objects) =
            deflated.unwrap_or_else(|_| Err(io::Error::other("deflating failed"))).map_err(spooling)?;
        write_pack(&self.folder, deflated, objects).map_err(spooling)
    }
}

/// Copies the spool to a pack, then writes its index: readers find a pack by its index.
fn write_pack(folder: &Path, deflated: Deflated, objects: Vec<Indexed>) -> io::Result<()> {
    let count = u32::try_from(objects.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
    let mut pack = Unfinished::new(folder)?;
    let mut sum = Sha1::new();
    let mut put = |part: &[u8]| {
        sum.update(part);
        pack.file.write_all(part)
    };
    put(b"PACK\0\0\0\x02")?;
    put(&count.to_be_bytes())?;
    deflated.each_part(put)?;
    let sum = sum.finalize();
    pack.file.write_all(&sum)?;
    let mut index = Unfinished::new(folder)?;
    index.file.write_all(&write(objects, &sum))?;
    let name = format!("pack-{}", hex(&sum));
    pack.finish(&folder.join(format!("{name}.pack")))?;
    index.finish(&folder.join(format!("{name}.idx")))
}

/// A file that is removed on drop, unless `finish` gave it its name.
struct Unfinished {
    file: File,
    path: PathBuf,
}

impl Unfinished {
    fn new(folder: &Path) -> io::Result<Unfinished> {
        let (file, path) = new_file(folder)?;
        Ok(Unfinished { file, path })
    }

    /// Makes the file read-only and renames it.
    fn finish(mut self, name: &Path) -> io::Result<()> {
        let mut rights = self.file.metadata()?.permissions();
        rights.set_readonly(true);
        self.file.set_permissions(rights)?;
        fs::rename(&self.path, name)?;
        // Another process may create a file at the old path: drop must not remove it.
        self.path = PathBuf::new();
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Deflated objects, one after another: the last ones in memory, the earlier ones in a file.
struct Deflated {
    folder: PathBuf,
    kept: Vec<u8>,
    file: Option<File>,
}

impl Deflated {
    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.kept.extend_from_slice(bytes);
        if self.kept.len() < KEPT {
            return Ok(());
        }
        let mut file = match self.file.take() {
            Some(file) => file,
            None => unnamed_file(&self.folder)?,
        };
        file.write_all(&self.kept)?;
        self.kept.clear();
        self.file = Some(file);
        Ok(())
    }

    /// Passes all bytes to `take`, from the first on.
    fn each_part(self, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        if let Some(mut file) = self.file {
            file.seek(SeekFrom::Start(0))?;
            let mut chunk = Vec::new();
            while (&file).take(CHUNK as u64).read_to_end(&mut chunk)? > 0 {
                take(&chunk)?;
                chunk.clear();
            }
        }
        take(&self.kept)
    }
}

/// Creates a file that the system removes when the process ends. Where an open file cannot be removed, `git gc`
/// recognises its name and removes it later.
fn unnamed_file(folder: &Path) -> io::Result<File> {
    let (file, path) = new_file(folder)?;
    let _ = fs::remove_file(path);
    Ok(file)
}

/// Deflates the entries of all batches. Returns them with the offset of each object.
fn deflate_all(batches: &Receiver<Batch>, mut deflated: Deflated) -> io::Result<(Deflated, Vec<Indexed>)> {
    let mut deflate = Compress::new(Compression::new(LEVEL), true);
    let mut buffer = Vec::new();
    let mut objects = Vec::new();
    let mut offset = HEADER;
    for (id, kind, bytes) in batches.iter().flatten() {
        buffer.clear();
        entry_header(&mut buffer, kind, bytes.len());
        // Deflated text is never much longer than the text.
        buffer.reserve(bytes.len() + bytes.len() / 1000 + 64);
        deflate.reset();
        let ended = deflate.compress_vec(&bytes, &mut buffer, FlushCompress::Finish);
        if !matches!(ended, Ok(Status::StreamEnd)) {
            return Err(io::Error::other("zlib did not come to an end"));
        }
        deflated.add(&buffer)?;
        let mut crc = Crc::new();
        crc.update(&buffer);
        objects.push(Indexed { id, crc: crc.sum(), offset });
        offset += buffer.len() as u64;
    }
    Ok((deflated, objects))
}

/// Writes the kind and the inflated length, seven bits a byte, lowest first.
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

/// Creates a file whose name marks it as unfinished for `git gc`.
fn new_file(folder: &Path) -> io::Result<(File, PathBuf)> {
    let mut number = 0_u32;
    loop {
        let path = folder.join(format!("tmp_berth_{}_{number}", std::process::id()));
        match OpenOptions::new().read(true).write(true).create_new(true).open(&path) {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1000 => number += 1,
            Err(error) => return Err(error),
        }
    }
}

fn spooling(error: io::Error) -> GitError {
    GitError::Failed { doing: "collecting new objects for a pack".to_owned(), message: error.to_string() }
}

/// An object's id, checksum and offset in a pack.
pub(super) struct Indexed {
    pub(super) id: Oid,
    /// The checksum of the object's deflated bytes and their header.
    pub(super) crc: u32,
    pub(super) offset: u64,
}

/// Offsets from here on are stored in a second table, with eight bytes each.
const LONG: u64 = 1 << 31;

/// Returns the bytes of the index file.
pub(super) fn write(mut objects: Vec<Indexed>, pack_sum: &[u8]) -> Vec<u8> {
    objects.sort_unstable_by_key(|object| object.id);
    let mut out = Vec::with_capacity(1100 + 28 * objects.len());
    out.extend(b"\xfftOc\0\0\0\x02");
    for first in 0..=u8::MAX {
        let until = objects.partition_point(|object| object.id.as_bytes().first() <= Some(&first));
        out.extend((until as u32).to_be_bytes());
    }
    objects.iter().for_each(|object| out.extend(object.id.as_bytes()));
    objects.iter().for_each(|object| out.extend(object.crc.to_be_bytes()));
    let mut long: Vec<u64> = Vec::new();
    for Indexed { offset, .. } in &objects {
        let short = if *offset < LONG {
            *offset as u32
        } else {
            long.push(*offset);
            LONG as u32 | (long.len() - 1) as u32
        };
        out.extend(short.to_be_bytes());
    }
    long.iter().for_each(|offset| out.extend(offset.to_be_bytes()));
    out.extend(pack_sum);
    let sum = Sha1::digest(&out);
    out.extend(sum);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_that_are_too_long_for_four_bytes_stand_in_the_second_table() {
        let id = |byte: u8| Oid::from_bytes(&[byte; 20]).unwrap();
        let at = |byte, offset| Indexed { id: id(byte), crc: 7, offset };
        let index = write(vec![at(9, LONG + 5), at(3, LONG - 1), at(200, 12)], &[1; 20]);
        let fanout = 8..8 + 4 * 256;
        let last: Vec<u8> = index[fanout.clone()].chunks(4).map(|count| count[3]).collect();
        assert_eq!((last[2], last[3], last[9], last[199], last[200], last[255]), (0, 1, 2, 2, 3, 3));
        let offsets = fanout.end + 3 * 20 + 3 * 4;
        assert_eq!(index[offsets..offsets + 12], [0x7f, 255, 255, 255, 0x80, 0, 0, 0, 0, 0, 0, 12]);
        assert_eq!(index[offsets + 12..offsets + 20], [0, 0, 0, 0, 0x80, 0, 0, 5]);
        assert_eq!(index.len(), offsets + 20 + 2 * 20);
    }
}
