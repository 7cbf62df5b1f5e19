//! The steps on repositories that every test takes, by libgit2 in this process: `git` would be started for each file.

use std::collections::BTreeMap;
use std::path::Path;

use git2::{
    IndexAddOption, ObjectType, Repository, RepositoryInitOptions, Signature, Time, TreeWalkMode,
    TreeWalkResult,
};

/// Makes a repository whose branch is `main`. Its own settings win over those of this machine's user.
pub fn init(folder: &Path) {
    let repo = Repository::init_opts(folder, RepositoryInitOptions::new().initial_head("main"))
        .expect("a repository");
    let mut settings = repo.config().expect("settings");
    settings.set_bool("core.autocrlf", false).expect("a setting");
    settings.set_str("core.excludesFile", "/dev/null").expect("a setting");
    // A machine may be unable to guess who its user is.
    settings.set_str("user.name", "Ann Author").expect("a setting");
    settings.set_str("user.email", "ann@example.com").expect("a setting");
}

/// Commits everything in the folder at this moment, as `git add -A` and `git commit --allow-empty` would.
#[track_caller]
pub fn commit_all(folder: &Path, message: &str, seconds: i64) -> String {
    let repo = open(folder);
    let mut index = repo.index().expect("an index");
    index.read(true).expect("an index");
    index.add_all(["*"], IndexAddOption::DEFAULT, None).expect("the files are added");
    index.update_all(["*"], None).expect("removed files are noticed");
    index.write().expect("the index is written");
    let tree = repo.find_tree(index.write_tree().expect("a tree")).expect("a tree");
    let who = Signature::new("Ann Author", "ann@example.com", &Time::new(seconds, 0)).expect("a signature");
    let message = git2::message_prettify(message, None).expect("a message");
    let merged = std::fs::read_to_string(repo.path().join("MERGE_HEAD")).unwrap_or_default();
    let merged = merged.lines().map(|id| repo.find_commit(id.parse().expect("an id")).expect("a commit"));
    let parents: Vec<_> = repo
        .head()
        .ok()
        .map(|head| head.peel_to_commit().expect("a commit"))
        .into_iter()
        .chain(merged)
        .collect();
    let parents: Vec<_> = parents.iter().collect();
    let id = repo.commit(Some("HEAD"), &who, &who, &message, &tree, &parents).expect("a commit");
    repo.cleanup_state().expect("no merge is left");
    id.to_string()
}

/// The id of a revision.
#[track_caller]
pub fn id(folder: &Path, revision: &str) -> String {
    let repo = open(folder);
    let found = repo.revparse_single(revision);
    found.unwrap_or_else(|error| panic!("`{revision}`: {error}")).id().to_string()
}

/// Every file of a revision, with its text.
#[track_caller]
pub fn files(folder: &Path, revision: &str) -> BTreeMap<String, String> {
    let repo = open(folder);
    let tree = tree(&repo, revision);
    let mut files = BTreeMap::new();
    tree.walk(TreeWalkMode::PreOrder, |parent, entry| {
        if entry.kind() == Some(ObjectType::Blob) {
            let blob = repo.find_blob(entry.id()).expect("a blob");
            let text = std::str::from_utf8(blob.content()).expect("text").trim_end();
            files.insert(format!("{parent}{}", entry.name().expect("a text name")), text.to_owned());
        }
        TreeWalkResult::Ok
    })
    .expect("the tree is read");
    files
}

/// The paths that differ between two revisions.
#[track_caller]
pub fn changed(folder: &Path, from: &str, to: &str) -> Vec<String> {
    let repo = open(folder);
    let (from, to) = (tree(&repo, from), tree(&repo, to));
    let differences = repo.diff_tree_to_tree(Some(&from), Some(&to), None).expect("the differences");
    let path = |delta: git2::DiffDelta<'_>| {
        let path = delta.new_file().path().or(delta.old_file().path()).expect("a path");
        path.to_str().expect("a text path").to_owned()
    };
    differences.deltas().map(path).collect()
}

#[track_caller]
fn open(folder: &Path) -> Repository {
    Repository::open(folder).unwrap_or_else(|error| panic!("`{}`: {error}", folder.display()))
}

#[track_caller]
fn tree<'a>(repo: &'a Repository, revision: &str) -> git2::Tree<'a> {
    let found = repo.revparse_single(revision).and_then(|object| object.peel_to_tree());
    found.unwrap_or_else(|error| panic!("`{revision}`: {error}"))
}
