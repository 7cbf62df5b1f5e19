//! Lists the differences of two commits, in the words of a report.

use std::fmt;

use crate::publish::Trailers;
use berth_git::{CommitId, CommitInfo, GitError, Repo};

/// A difference between a commit and the one computed from its inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// A file of the tree.
    Path(String),
    /// The first differing line of the message.
    Message {
        line: usize,
        committed: String,
        computed: String,
    },
    Date {
        committed: i64,
        computed: i64,
    },
    Parents(usize),
    /// A difference in the commit's header, such as a committer who is not the author.
    Header,
    /// The inputs give the parent's state, so no commit would have been made.
    Nothing,
    /// Berth refuses the inputs.
    Refused(String),
    /// The commit claims to be an import, but is not a first commit as berth makes it.
    NoRoot,
    /// The commit begins the branch, but only the named import may.
    OtherRoot(CommitId),
    /// The commit is an import, but no ref or setting pins it.
    UnpinnedRoot(CommitId),
    /// The commit does not name its source.
    NoSource,
    /// The commit names another renderer than this machine has, which may explain all other differences.
    Renderer(String),
    /// A trailer contradicts earlier commits, the source's history or the settings.
    Claim(String),
}

impl Difference {
    /// Reports whether the next commit would be computed from a wrong value. The summary's words, the committer and a
    /// date within its bounds are only for people.
    pub(crate) fn is_of_substance(&self) -> bool {
        match self {
            Difference::Message { line: _, committed, computed } => {
                is_trailer(committed) || is_trailer(computed)
            }
            Difference::Header | Difference::Date { .. } | Difference::Renderer(_) => false,
            _ => true,
        }
    }
}

fn is_trailer(line: &str) -> bool {
    line.starts_with("Berth-")
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Path(path) => write!(f, "{path}"),
            Difference::Message { line, committed, computed } => {
                write!(f, "line {line} of the message is `{committed}`, but must be `{computed}`")
            }
            Difference::Date { committed, computed } => {
                write!(f, "the date is {committed}, but must be {computed}, in seconds since 1970")
            }
            Difference::Parents(count) => write!(f, "the commit has {count} parents"),
            Difference::Header => f.write_str("the commit's header has something that berth does not write"),
            Difference::Nothing => f.write_str("its inputs change nothing, so there must be no commit"),
            Difference::Refused(why) => write!(f, "its inputs are refused: {why}"),
            Difference::NoRoot => f.write_str("it claims to be an import, but is not a valid first commit"),
            Difference::OtherRoot(root) => {
                write!(f, "it begins the branch, but only the import {root} may")
            }
            Difference::UnpinnedRoot(commit) => write!(
                f,
                "it claims to be an import, but `refs/berth/root`, which an import writes, is missing in this \
                 repository; if the import itself printed this commit, run `berth verify --root {commit}`"
            ),
            Difference::Renderer(named) => write!(
                f,
                "charts and bases were rendered by another renderer ({named}); verify with that one, or with the \
                 berth of that release"
            ),
            Difference::Claim(text) => f.write_str(text),
            Difference::NoSource => f.write_str("it does not name its source commit"),
        }
    }
}

/// Returns all differences. Never empty for two different commits.
pub fn compare(
    repo: &Repo,
    committed: &CommitInfo,
    computed: &CommitInfo,
) -> Result<Vec<Difference>, GitError> {
    let mut found = Vec::new();
    if committed.parents.len() > 1 {
        found.push(Difference::Parents(committed.parents.len()));
    }
    if committed.tree != computed.tree {
        let paths = repo.changed_paths(computed.tree, committed.tree, &[])?;
        found.extend(paths.into_iter().map(Difference::Path));
    }
    if committed.message != computed.message {
        let difference = first_line(&committed.message, &computed.message);
        let trailers = [committed, computed].map(|commit| Trailers::read(&commit.message));
        if !difference.is_of_substance() && trailers[0] != trailers[1] {
            let [committed, computed] = [committed, computed].map(|commit| trailers_of(&commit.message));
            found.push(first_line(&committed, &computed));
        }
        found.push(difference);
    }
    if committed.seconds != computed.seconds {
        found.push(Difference::Date { committed: committed.seconds, computed: computed.seconds });
    }
    if found.is_empty() && committed.id != computed.id {
        found.push(Difference::Header);
    }
    Ok(found)
}

fn trailers_of(message: &str) -> String {
    message.lines().filter(|line| is_trailer(line)).map(|line| format!("{line}\n")).collect()
}

fn first_line(committed: &str, computed: &str) -> Difference {
    let mut sides = (committed.split('\n'), computed.split('\n'));
    let mut line = 0;
    loop {
        line += 1;
        let (a, b) = (sides.0.next(), sides.1.next());
        if a != b || a.is_none() {
            let text = |side: Option<&str>| side.unwrap_or_default().to_owned();
            return Difference::Message { line, committed: text(a), computed: text(b) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_differs_is_named() {
        let found = first_line("berth: web\n\nBerth-Seq: 2\n", "berth: web\n\nBerth-Seq: 3\n");
        assert_eq!(found.to_string(), "line 3 of the message is `Berth-Seq: 2`, but must be `Berth-Seq: 3`");
        let longer = first_line("one\ntwo", "one");
        assert_eq!(longer.to_string(), "line 2 of the message is `two`, but must be ``");
    }
}
