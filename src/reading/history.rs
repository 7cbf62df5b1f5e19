//! Finds the last good form of each file that is broken now.
//!
//! Looked for in the source's own history first, newest first, back to the commit that was published
//! last; then in what that publication kept; then in that commit itself. So the result depends on the
//! history alone, not on which of its commits a daemon happened to see.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{GoodForms, ReadingError};
use crate::git::{CommitId, Repo, read_file_at};
use crate::load::{self, History, Loaded, Parsed};
use crate::publish::Previous;
use crate::source::{self, SourceFile, SourceTree};

/// How far back, and how many forms of one file, are looked at. Both are far beyond what a person breaks.
const MOST_COMMITS: usize = 2_000;
const MOST_FORMS: usize = 64;

/// The good forms of the tree's broken files; where there are none, what reading it gave.
/// `older` is the commit before the tree.
pub(super) fn find(
    repo: &Repo,
    tree: &SourceTree,
    older: Option<CommitId>,
    previous: Option<&Previous>,
    parsed: &mut Parsed,
) -> Result<(GoodForms, Option<Loaded>), ReadingError> {
    let Some(previous) = previous else { return Ok((GoodForms::None, None)) };
    let mut forms: BTreeMap<String, Arc<[u8]>> = BTreeMap::new();
    // What the source met and did not read, a link in a file's place say, may have been a file before.
    let met = tree.found.iter().filter_map(|found| Some(found.at.as_ref()?.file.to_string()));
    let loaded = load::load_knowing(tree, History::None, parsed);
    let broken: BTreeSet<String> =
        loaded.broken.iter().cloned().chain(met.filter(|path| source::wanted(path))).collect();
    if broken.is_empty() {
        // With nothing to look up, reading with a history gives the same.
        return Ok((GoodForms::Found(forms), Some(loaded)));
    }
    let published = match previous.trailers.source {
        Some(source) if repo.has_commit(source) => Some(source),
        _ => None,
    };
    let commits = commits_since(repo, older, published)?;
    for path in broken {
        let found = match newest_good(repo, tree, &path, &commits, parsed)? {
            Some(bytes) => Some(bytes),
            None => kept_form(repo, &path, previous, published)?,
        };
        match found {
            Some(bytes) => {
                forms.insert(path, bytes);
            }
            None if published.is_none() => return Ok((GoodForms::Unavailable, None)),
            None => {}
        }
    }
    Ok((GoodForms::Found(forms), None))
}

/// First parents from `from` down to the published commit, which is not among them.
fn commits_since(
    repo: &Repo,
    from: Option<CommitId>,
    published: Option<CommitId>,
) -> Result<Vec<CommitId>, ReadingError> {
    let mut commits = Vec::new();
    let mut next = from;
    while let Some(commit) = next.filter(|commit| Some(*commit) != published && commits.len() < MOST_COMMITS)
    {
        // A shallow clone ends early.
        if !repo.has_commit(commit) {
            break;
        }
        commits.push(commit);
        next = repo.commit(commit)?.parents.first().copied();
    }
    // Without the published commit among the ancestors this is another history: nothing in it was in force.
    Ok(if next.is_some() && next == published { commits } else { Vec::new() })
}

fn newest_good(
    repo: &Repo,
    tree: &SourceTree,
    path: &str,
    commits: &[CommitId],
    parsed: &mut Parsed,
) -> Result<Option<Arc<[u8]>>, ReadingError> {
    let mut seen: BTreeSet<Vec<u8>> = BTreeSet::new();
    for commit in commits {
        let Some(bytes) = read_file_at(repo, *commit, path)? else { return Ok(None) };
        if seen.contains(&bytes) {
            continue;
        }
        if is_good(tree, path, &bytes, parsed) {
            return Ok(Some(bytes.into()));
        }
        seen.insert(bytes);
        if seen.len() >= MOST_FORMS {
            break;
        }
    }
    Ok(None)
}

/// Whether the file would be without fault in today's tree.
fn is_good(tree: &SourceTree, path: &str, bytes: &[u8], parsed: &mut Parsed) -> bool {
    let file = SourceFile { path: path.into(), bytes: bytes.into() };
    let others = tree.files.iter().filter(|other| &*other.path != path).cloned();
    let mut files: Vec<SourceFile> = others.chain([file]).collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let changed = SourceTree { files, ..SourceTree::default() };
    !load::broken_files_knowing(&changed, parsed).contains(path)
}

fn kept_form(
    repo: &Repo,
    path: &str,
    previous: &Previous,
    published: Option<CommitId>,
) -> Result<Option<Arc<[u8]>>, ReadingError> {
    if let Some(id) = previous.state.kept.get(path) {
        return Ok(Some(repo.blob(*id)?.into()));
    }
    match published {
        Some(commit) => Ok(read_file_at(repo, commit, path)?.map(Into::into)),
        None => Ok(None),
    }
}
