//! Small files in the repository's own folder.
//!
//! Cache files that one process leaves for the next: losing them only costs time. And the ids of commits that
//! this machine made or proved, in the file `berth/trusted`. A file, not a ref: refs can be pushed and
//! mirrored, a file cannot. Losing that file only costs proofs.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use berth_git::{CommitId, Repo};

/// The size limit of a file.
const MOST: u64 = 64 << 20;

/// The path of such a file.
pub(crate) fn path(repo: &Repo, name: &str) -> PathBuf {
    repo.shared_path().join("berth").join(name)
}

/// Reads a file. Only a plain file is read, because a pipe or a device may have no end.
pub(crate) fn read(path: &Path) -> Option<String> {
    fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    let mut text = String::new();
    File::open(path).ok()?.take(MOST).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Replaces a file atomically.
pub(crate) fn replace(target: &Path, text: &str) -> io::Result<()> {
    let _turn = take_turn(target);
    replace_in_turn(target, text)
}

/// Replaces a file while no other process does. The new file has one name for all processes, so that the next one
/// removes the remains of a killed one.
fn replace_in_turn(target: &Path, text: &str) -> io::Result<()> {
    fs::create_dir_all(target.parent().unwrap_or(target))?;
    let fresh = target.with_extension("new");
    let _ = fs::remove_file(&fresh);
    let written = File::create_new(&fresh).and_then(|mut file| file.write_all(text.as_bytes()));
    let done = written.and_then(|()| fs::rename(&fresh, target));
    if done.is_err() {
        let _ = fs::remove_file(&fresh);
    }
    done
}

const FILE: &str = "trusted";

const TITLE: &str =
    "# Commits that berth made or proved here, newest first. Without this file they are proved again.\n";

/// The number of ids kept for each ref. More than one, since a commit that lost a race never becomes the tip.
const MOST_COMMITS: usize = 16;

/// Stands in place of a ref's name for the rendered commits at the ends of passes. Unlike other remembered commits,
/// these were the branch's tip, and the branch must always contain them.
pub(crate) const IN_FORCE: &str = "in-force";

/// Returns the commits remembered for one ref, newest first.
pub fn remembered(repo: &Repo, name: &str) -> Vec<CommitId> {
    lines(repo).into_iter().filter(|(_, of)| of == name).map(|(id, _)| id).collect()
}

/// Remembers a commit. A file that cannot be written is no error: it only costs a proof later.
pub fn remember(repo: &Repo, name: &str, commit: CommitId) {
    // Locked until the end: otherwise two daemons of one repository would overwrite each other's lines.
    let _turn = take_turn(&file(repo));
    let mut known = lines(repo);
    if known.iter().find(|(_, of)| of == name).is_some_and(|(id, _)| *id == commit) {
        return;
    }
    known.retain(|(id, of)| *id != commit || of != name);
    known.insert(0, (commit, name.to_owned()));
    let mut seen = std::collections::BTreeMap::<&str, usize>::new();
    let mut text = TITLE.to_owned();
    for (id, of) in &known {
        let count = seen.entry(of).or_default();
        *count += 1;
        if *count <= MOST_COMMITS {
            text.push_str(&format!("{id} {of}\n"));
        }
    }
    let _ = replace_in_turn(&file(repo), &text);
}

/// Waits for other processes that change the file. Returns `None` if it cannot be locked; the change is made anyway.
fn take_turn(target: &Path) -> Option<File> {
    fs::create_dir_all(target.parent()?).ok()?;
    let lock = File::create(target.with_extension("lock")).ok()?;
    lock.lock().ok()?;
    Some(lock)
}

fn lines(repo: &Repo) -> Vec<(CommitId, String)> {
    let text = read(&file(repo)).unwrap_or_default();
    let line = |line: &str| {
        let (id, name) = line.split_once(' ')?;
        Some((id.parse().ok()?, name.to_owned()))
    };
    text.lines().filter_map(line).collect()
}

fn file(repo: &Repo) -> PathBuf {
    path(repo, FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_remember_at_once_lose_nothing() {
        let (folder, repo) = crate::testing::bare();
        std::thread::scope(|scope| {
            for name in ["a", "b", "c", "d"] {
                let folder = folder.path();
                scope.spawn(move || {
                    let repo = Repo::open(folder).unwrap();
                    (0..40).for_each(|byte| remember(&repo, name, CommitId([byte; 20])));
                });
            }
        });
        for name in ["a", "b", "c", "d"] {
            let newest: Vec<CommitId> = (24..40).rev().map(|byte| CommitId([byte; 20])).collect();
            assert_eq!(remembered(&repo, name), newest, "{name}");
        }
    }

    #[test]
    fn the_remains_of_a_killed_writer_go_with_the_next_write() {
        let (_folder, repo) = crate::testing::bare();
        let target = path(&repo, "cache/idle.json");
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::write(target.with_extension("new"), "hal").unwrap();
        replace(&target, "whole").unwrap();
        assert_eq!(read(&target).as_deref(), Some("whole"));
        assert!(!target.with_extension("new").exists());
    }

    #[test]
    fn the_newest_of_each_ref_are_kept_and_a_broken_file_is_no_memory() {
        let (_folder, repo) = crate::testing::bare();
        assert_eq!(remembered(&repo, "a"), []);
        for byte in 0..40 {
            remember(&repo, "a", CommitId([byte; 20]));
        }
        remember(&repo, "b", CommitId([99; 20]));
        remember(&repo, "a", CommitId([30; 20]));
        let known = remembered(&repo, "a");
        assert_eq!((known.len(), known[0], known[1]), (MOST_COMMITS, CommitId([30; 20]), CommitId([39; 20])));
        assert_eq!(remembered(&repo, "b"), [CommitId([99; 20])]);
        fs::write(file(&repo), [0xff, 0xfe, 0]).unwrap();
        assert_eq!(remembered(&repo, "a"), []);
        remember(&repo, "a", CommitId([1; 20]));
        assert_eq!(remembered(&repo, "a"), [CommitId([1; 20])]);
    }
}
