//! The publications of a branch, each with what it touches, kept in the repository's own folder.
//!
//! A question about the past compares only the publications that may have changed its subject. The file is a cache: it
//! holds hashes of the changed names, so that it may say too much and never too little, and is made anew where it is missing
//! or damaged. Commits never change, so neither do their lines.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

use crate::inputs::InputError;
use crate::publish::claimed;
use crate::publish::own_files;
use berth_base::parallel;
use berth_base::text::hex;
use berth_engine::state::layout;
use berth_git::{CommitId, Repo, TreeId};
use sha2::{Digest as _, Sha256};

use super::{in_folder, is_first_of_all};

const FILE: &str = "cache/history";

/// The first word of the file, with the number of its form.
const TITLE: &str = "berth-history-1";

/// A publication with more changed names touches everything.
const MOST_NAMES: usize = 1_000;

/// The number of publications that one thread compares at a time.
const BATCH: usize = 64;

/// A pass completes the file after so many publications.
const KEPT_EVERY: u64 = 64;

/// Publications in their order on a branch, the newest last.
#[derive(Debug, Default)]
pub(super) struct HistoryIndex(Vec<IndexEntry>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IndexEntry {
    pub commit: CommitId,
    touched: TouchedNames,
}

/// The names that a publication changed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum TouchedNames {
    /// The hashes of the names, in order.
    Some(Vec<u32>),
    All,
}

/// A name whose changes are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NameHash(u32);

impl NameHash {
    /// The folder of a cluster, as it is called on the branch.
    pub fn of_cluster(folder: &str) -> NameHash {
        NameHash::of(&["cluster", folder])
    }

    /// A file below the folder of some cluster.
    pub fn of_file(file: &str) -> NameHash {
        NameHash::of(&["file", file])
    }

    /// A decision, by its path in a state.
    pub fn of_decision(place: &str) -> NameHash {
        NameHash::of(&["decision", place])
    }

    fn of(parts: &[&str]) -> NameHash {
        let digest = Sha256::digest(parts.join("\0"));
        NameHash(u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]))
    }
}

impl IndexEntry {
    /// Reports whether the publication may have changed this. A `false` is certain.
    pub fn may_touch(&self, name: NameHash) -> bool {
        match &self.touched {
            TouchedNames::Some(names) => names.binary_search(&name.0).is_ok(),
            TouchedNames::All => true,
        }
    }
}

impl HistoryIndex {
    /// Returns the publications up to one. Compares those that the file lacks, and adds them to it.
    pub fn up_to(repo: &Repo, newest: CommitId) -> Result<HistoryIndex, InputError> {
        let mut index = HistoryIndex::read(repo).unwrap_or_default();
        let known: HashMap<CommitId, usize> =
            index.0.iter().enumerate().map(|(place, entry)| (entry.commit, place)).collect();
        let (mut missing, mut last, mut base) = (Vec::new(), None, 0);
        for commit in repo.first_parents(newest) {
            if let Some(place) = known.get(&commit.id) {
                (last, base) = (Some(commit.tree), place + 1);
                break;
            }
            if claimed(repo, &commit)?.is_some() {
                missing.push(commit);
            }
        }
        index.0.truncate(base);
        if missing.is_empty() {
            return Ok(index);
        }
        missing.reverse();
        let first = missing.first().filter(|commit| last.is_none() && is_first_of_all(commit));
        let mut before = last.or(first.map(|_| TreeId::EMPTY));
        let pairs: Vec<_> =
            missing.iter().map(|commit| (commit.id, before.replace(commit.tree), commit.tree)).collect();
        let batches: Vec<&[(CommitId, Option<TreeId>, TreeId)]> = pairs.chunks(BATCH).collect();
        let path = repo.shared_path().to_owned();
        let compared = parallel::map_large(&batches, |batch| compare(&path, batch));
        for batch in compared {
            index.0.extend(batch?);
        }
        index.write(repo);
        Ok(index)
    }

    /// The publications, the newest last.
    pub fn into_entries(self) -> Vec<IndexEntry> {
        self.0
    }

    fn read(repo: &Repo) -> Option<HistoryIndex> {
        let text = own_files::read(&own_files::path(repo, FILE))?;
        let (head, lines) = text.split_once('\n')?;
        (head == self::head(lines)).then_some(())?;
        lines.lines().map(IndexEntry::read).collect::<Option<Vec<IndexEntry>>>().map(HistoryIndex)
    }

    /// Writes the file. Without it, the next question takes longer.
    fn write(&self, repo: &Repo) {
        let mut lines = String::new();
        self.0.iter().for_each(|entry| entry.write(&mut lines));
        let _ = own_files::replace(&own_files::path(repo, FILE), &format!("{}\n{lines}", head(&lines)));
    }
}

/// Completes the file now and then, so that the next question compares few publications.
pub(crate) fn keep(repo: &Repo, newest: CommitId, sequence: u64) {
    if sequence.is_multiple_of(KEPT_EVERY) {
        // Without the file, the next question takes longer.
        let _ = HistoryIndex::up_to(repo, newest);
    }
}

/// Returns the first line of the file, which shows damage of the others.
fn head(lines: &str) -> String {
    format!("{TITLE} {}", hex(&Sha256::digest(lines)))
}

impl IndexEntry {
    fn read(line: &str) -> Option<IndexEntry> {
        let (commit, names) = line.split_once(' ')?;
        let touched = match names {
            "*" => TouchedNames::All,
            names => {
                let names = names.split_terminator(' ').map(|name| u32::from_str_radix(name, 16).ok());
                TouchedNames::Some(names.collect::<Option<Vec<u32>>>()?)
            }
        };
        Some(IndexEntry { commit: commit.parse().ok()?, touched })
    }

    fn write(&self, text: &mut String) {
        let _ = write!(text, "{} ", self.commit);
        match &self.touched {
            TouchedNames::All => text.push('*'),
            TouchedNames::Some(names) => {
                for name in names {
                    let _ = write!(text, "{name:x} ");
                }
            }
        }
        text.push('\n');
    }
}

/// Compares some publications with those before them, in a repository opened for this thread.
fn compare(path: &Path, pairs: &[(CommitId, Option<TreeId>, TreeId)]) -> Result<Vec<IndexEntry>, InputError> {
    let repo = Repo::open(path)?;
    let entry = |(commit, before, after): &(CommitId, Option<TreeId>, TreeId)| {
        let touched = match before {
            Some(before) => touched(&repo, *before, *after)?,
            // A shallow clone lacks the publication before.
            None => TouchedNames::All,
        };
        Ok(IndexEntry { commit: *commit, touched })
    };
    pairs.iter().map(entry).collect()
}

fn touched(repo: &Repo, before: TreeId, after: TreeId) -> Result<TouchedNames, InputError> {
    let mut names = Vec::new();
    for (place, _) in repo.path_changes(before, after, &[layout::CLUSTERS, layout::DECISIONS])? {
        match in_folder(&place) {
            Some((folder, file)) => {
                names.extend([NameHash::of_cluster(folder).0, NameHash::of_file(file).0]);
            }
            None => names.push(NameHash::of_decision(&place).0),
        }
    }
    names.sort_unstable();
    names.dedup();
    Ok(if names.len() > MOST_NAMES { TouchedNames::All } else { TouchedNames::Some(names) })
}
