//! Repositories for tests of this crate and of the crates above it.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on fails")]
#![allow(dead_code, reason = "not every crate needs all of it")]

use tempfile::TempDir;

use berth_git::{CommitId, Identity, Repo, Writer};

/// Makes a bare repository that is removed with the guard.
pub fn bare() -> (TempDir, Repo) {
    let folder = TempDir::new().expect("a temporary folder");
    for part in ["objects/info", "objects/pack", "refs/heads", "refs/tags"] {
        std::fs::create_dir_all(folder.path().join(part)).expect("a folder");
    }
    std::fs::write(folder.path().join("HEAD"), "ref: refs/heads/main\n").expect("a file");
    std::fs::write(folder.path().join("config"), "[core]\n\tbare = true\n").expect("a file");
    let repo = Repo::open(folder.path()).expect("opens");
    (folder, repo)
}

/// Commits these files and points the ref to the commit.
pub fn commit_files(repo: &Repo, refname: &str, files: &[(&str, &str)]) -> CommitId {
    let mut writer = Writer::new(repo).unwrap();
    let mut files: Vec<(&str, _)> =
        files.iter().map(|(path, text)| (*path, writer.blob(text.as_bytes()).unwrap())).collect();
    files.sort();
    let tree = writer.folder(files).unwrap();
    let parent = repo.read_ref(refname).unwrap();
    let parents: Vec<CommitId> = parent.into_iter().collect();
    let commit =
        writer.commit(tree, &parents, "change by hand\n", &Identity::default(), 1_700_000_000).unwrap();
    repo.move_ref(refname, parent, commit).unwrap();
    commit
}

/// Checks that `git fsck --strict` finds nothing. Without a `git` executable, prints a note and passes.
pub fn assert_clean(repo: &Repo) {
    let command = std::process::Command::new("git")
        .args(["fsck", "--strict", "--no-dangling"])
        .env("GIT_DIR", repo.path())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output();
    let Ok(output) = command else {
        println!("SKIPPED: no git executable, so `git fsck` has not looked at the repository");
        return;
    };
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    let found: Vec<&str> = said.lines().filter(|line| !line.starts_with("notice: ")).collect();
    assert!(output.status.success() && found.is_empty(), "fsck: {found:?}");
}
