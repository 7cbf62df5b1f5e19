//! The ids of commits that this machine made or proved, in the file `berth/trusted` of the repository's own folder.
//!
//! A file, not a ref: refs can be pushed and mirrored, a file cannot. Losing the file only costs proofs.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::own_files;
use berth_git::{CommitId, Repo};

const FILE: &str = "trusted";

const TITLE: &str =
    "# Commits that berth made or proved here, newest first. Without this file they are proved again.\n";

/// The number of ids kept for each ref. More than one, since a commit that lost a race never becomes the tip.
const MOST: usize = 16;

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
        if *count <= MOST {
            text.push_str(&format!("{id} {of}\n"));
        }
    }
    let _ = own_files::replace(&file(repo), &text);
}

/// Waits for other processes that change the file. Returns `None` if it cannot be locked; the change is made anyway.
fn take_turn(target: &Path) -> Option<File> {
    fs::create_dir_all(target.parent()?).ok()?;
    let lock = File::create(target.with_extension("lock")).ok()?;
    lock.lock().ok()?;
    Some(lock)
}

fn lines(repo: &Repo) -> Vec<(CommitId, String)> {
    let text = own_files::read(&file(repo)).unwrap_or_default();
    let line = |line: &str| {
        let (id, name) = line.split_once(' ')?;
        Some((id.parse().ok()?, name.to_owned()))
    };
    text.lines().filter_map(line).collect()
}

fn file(repo: &Repo) -> PathBuf {
    own_files::path(repo, FILE)
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
    fn the_newest_of_each_ref_are_kept_and_a_broken_file_is_no_memory() {
        let (_folder, repo) = crate::testing::bare();
        assert_eq!(remembered(&repo, "a"), []);
        for byte in 0..40 {
            remember(&repo, "a", CommitId([byte; 20]));
        }
        remember(&repo, "b", CommitId([99; 20]));
        remember(&repo, "a", CommitId([30; 20]));
        let known = remembered(&repo, "a");
        assert_eq!((known.len(), known[0], known[1]), (MOST, CommitId([30; 20]), CommitId([39; 20])));
        assert_eq!(remembered(&repo, "b"), [CommitId([99; 20])]);
        fs::write(file(&repo), [0xff, 0xfe, 0]).unwrap();
        assert_eq!(remembered(&repo, "a"), []);
        remember(&repo, "a", CommitId([1; 20]));
        assert_eq!(remembered(&repo, "a"), [CommitId([1; 20])]);
    }
}
