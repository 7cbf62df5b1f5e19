//! A small disk of its own: a file system in memory with only so much room, as Linux gives it to root.

use std::path::{Path, PathBuf};

use super::{Ran, hermetic};

/// Taken away with all it holds when dropped.
#[derive(Debug)]
pub struct Disk {
    path: PathBuf,
}

/// How much more a disk can hold.
#[derive(Clone, Copy, Debug)]
pub enum Room {
    /// So many files and folders.
    Files(u64),
    /// So many blocks of 4 KiB.
    Blocks(u64),
    Plenty,
}

impl Disk {
    /// A disk at a new folder. Where the system gives none, the test is told so and goes without.
    pub fn new(path: &Path) -> Option<Disk> {
        std::fs::create_dir_all(path).expect("a folder");
        let ran = Ran::of(hermetic("mount").args(["-t", "tmpfs", "-o", "size=64m", "tmpfs"]).arg(path));
        if ran.code == 0 {
            return Some(Disk { path: path.to_owned() });
        }
        eprintln!("NOT TESTED: no file system can be mounted here: {}", ran.err.trim());
        None
    }

    /// Sets how much there is room for beside what the disk holds now.
    pub fn leave(&self, room: Room) {
        // A disk that grew since it was measured cannot shrink to that.
        let done = (0..100).any(|_| self.remount(room).code == 0);
        if !done {
            self.remount(room).expect(0);
        }
    }

    fn remount(&self, room: Room) -> Ran {
        let ran = Ran::of(hermetic("stat").args(["-f", "-c", "%b %f %c %d"]).arg(&self.path)).expect(0);
        let numbers: Vec<u64> = ran.out.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [blocks, blocks_free, files, files_free] = numbers[..] else { panic!("{}", ran.out) };
        let (used_blocks, used_files) = (blocks - blocks_free, files - files_free);
        let plenty = 16_384;
        let (blocks, files) = match room {
            Room::Files(more) => (used_blocks + plenty, used_files + more),
            Room::Blocks(more) => (used_blocks + more, used_files + plenty),
            Room::Plenty => (used_blocks + plenty, used_files + plenty),
        };
        // No room at all would be no limit.
        let options = format!("remount,size={},nr_inodes={}", blocks.max(1) * 4096, files.max(1));
        Ran::of(hermetic("mount").args(["-o", &options]).arg(&self.path))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // What still runs there may end later.
        let _ = hermetic("umount").arg("-l").arg(&self.path).status();
    }
}
