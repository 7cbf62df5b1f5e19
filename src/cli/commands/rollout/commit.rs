//! A small commit of the files that an order edited, by the user's own `git`: with their name, hooks and signature.

use std::path::Path;
use std::process::{Command, Output};

use crate::process::exit::{CommandError, Exit};
use berth_base::diag::harmless_lines;

/// Refuses files with changes that are not committed: they would be part of the commit.
pub(super) fn require_committed(root: &Path, paths: &[&str]) -> Result<(), CommandError> {
    let status = git(root, &[&["status", "--porcelain", "--"], paths].concat())?;
    let changed: Vec<&str> = status.lines().filter_map(|line| line.get(3..)).collect();
    if changed.is_empty() {
        return Ok(());
    }
    let message = format!("{} has changes that are not committed", changed.join(", "));
    Err(CommandError::usage(message).hint("commit them first, or leave `--commit` out"))
}

/// Commits these files and no others; returns the commit's short id.
pub(super) fn commit(root: &Path, paths: &[&str], message: &str) -> Result<String, CommandError> {
    let done = git(root, &[&["add", "--"], paths].concat())
        .and_then(|_| git(root, &[&["commit", "-q", "-m", message, "--only", "--"], paths].concat()))
        .and_then(|_| git(root, &["rev-parse", "--short", "HEAD"]));
    done.map_err(|error| error.hint("the files are edited; commit them yourself"))
}

fn git(root: &Path, args: &[&str]) -> Result<String, CommandError> {
    let mut command = Command::new("git");
    command.arg("--literal-pathspecs").arg("-C").arg(root).args(args);
    let Output { status, stdout, stderr } =
        command.output().map_err(|error| CommandError::io("running git", &error))?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).trim_end().to_owned());
    }
    let verb = args.first().copied().unwrap_or_default();
    let said = String::from_utf8_lossy(&stderr);
    let message = format!("`git {verb}` failed: {}", harmless_lines(said.trim()));
    Err(CommandError::new(Exit::Unreachable, message))
}
