//! The trailers of a rendered commit: its inputs, in the last paragraph of its message. And those of people's
//! commits.
//!
//! `Berth-Digest` covers the state's tree and the other trailers. It distinguishes berth's commits from other
//! commits on the branch: berth's own are those whose digest matches their tree.
//!
//! The trailers of people's commit messages are found as `git interpret-trailers --parse` finds them. Forges
//! append paragraphs when they squash a branch. A last paragraph with only their lines does not hide the
//! trailers of the paragraph before it.

use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use super::error::PublishError;
use super::rendered_state::CurrentState;
use super::tree;
use berth_base::model::{Digest, Timestamp};
use berth_git::shared_refs::trailers::{DIGEST, FLEET, NOW, SEQ, SOURCE, one_line, paragraph};
use berth_git::{CommitId, CommitInfo, Repo, TreeId};

/// The trailers of berth's last commit. Empty if there is no such commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trailers {
    /// The source commit.
    pub source: Option<CommitId>,
    pub now: Option<Timestamp>,
    /// The parent's sequence plus one; 1 for the first commit.
    pub seq: u64,
    pub digest: Option<Digest>,
    /// Trailers of other steps, such as approvals.
    pub others: Vec<(String, String)>,
}

impl Trailers {
    /// Returns the paragraph, with the digest of its other lines and the state's tree.
    pub(super) fn write(&self, state_tree: TreeId) -> (String, Digest) {
        let lines = self.lines();
        let digest = digest_of(state_tree, &lines);
        (format!("{lines}{DIGEST}: {digest}\n"), digest)
    }

    fn lines(&self) -> String {
        let own = [
            (SOURCE, self.source.map(|id| id.to_string())),
            (NOW, self.now.map(|now| now.to_string())),
            (SEQ, Some(self.seq.to_string())),
        ];
        let own = own.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let own = own.map(|(name, value)| format!("{name}: {value}\n"));
        let others = self.others.iter().map(|(name, value)| {
            format!("{}: {}\n", one_line(name).replace([':', ' '], "-"), one_line(value))
        });
        own.chain(others).collect()
    }

    /// Returns the fleet's name, if the commit has one.
    pub fn fleet(&self) -> Option<&str> {
        self.others.iter().find(|(name, _)| name == FLEET).map(|(_, value)| value.as_str())
    }

    /// Reads a message's last paragraph. `None` if a required trailer is missing.
    pub fn read(message: &str) -> Option<Trailers> {
        let mut trailers = Trailers::default();
        let mut seq = None;
        for (name, value) in paragraph(message) {
            match name {
                SOURCE => trailers.source = Some(value.parse().ok()?),
                NOW => trailers.now = Some(Timestamp::from_str(value).ok()?),
                SEQ => seq = Some(value.parse().ok()?),
                DIGEST => trailers.digest = Some(value.parse().ok()?),
                _ => trailers.others.push((name.to_owned(), value.to_owned())),
            }
        }
        trailers.seq = seq?;
        trailers.digest.is_some().then_some(trailers)
    }

    /// Reports whether the digest matches, so that the commit is as berth made it.
    pub(super) fn fit(&self, state_tree: TreeId) -> bool {
        self.digest == Some(digest_of(state_tree, &self.lines()))
    }
}

/// Returns the values of one trailer, in any case of its name.
pub fn values<'m>(message: &'m str, name: &str) -> impl Iterator<Item = &'m str> {
    paragraph(message)
        .filter(move |(found, _)| found.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
}

fn digest_of(state_tree: TreeId, lines: &str) -> Digest {
    let hash = Sha256::digest(format!("{state_tree}\n{lines}").as_bytes());
    let mut digest = Digest([0; 16]);
    for (to, from) in digest.0.iter_mut().zip(hash) {
        *to = from;
    }
    digest
}

/// The number of foreign commits in a row that are skipped. More are an attack.
pub(crate) const LONGEST_WALK: usize = 100_000;

/// Returns the nearest first-parent ancestor whose digest matches its tree.
pub(super) fn last_own(repo: &Repo, from: CommitId) -> Result<Option<(CommitId, Trailers)>, PublishError> {
    for commit in repo.first_parents(from).take(LONGEST_WALK) {
        if let Some(trailers) = claimed(repo, &commit)? {
            return Ok(Some((commit.id, trailers)));
        }
    }
    Ok(None)
}

/// Returns the trailers of a commit that claims to be berth's: its digest matches its tree. The digest has no key, so
/// anyone can make such a commit. A daemon proves commits before it builds on them.
pub fn claimed(repo: &Repo, commit: &CommitInfo) -> Result<Option<Trailers>, PublishError> {
    let Some(trailers) = Trailers::read(&commit.message) else { return Ok(None) };
    let is_own = trailers.fit(tree::state_tree(&repo.tree(commit.tree)?)?);
    Ok(is_own.then_some(trailers))
}

/// Reports whether the last publication has no signature. Another machine that only knows the key would refuse it.
pub fn is_unsigned(repo: &Repo, current: Option<&CurrentState>) -> Result<bool, PublishError> {
    let Some(current) = current else { return Ok(false) };
    let last = last_own(repo, current.commit)?;
    Ok(last.map(|(commit, _)| repo.claimed_key(commit)).transpose()?.is_some_and(|key| key.is_none()))
}

/// Returns the source from which berth made this commit.
pub fn own_source(repo: &Repo, commit: &CommitInfo) -> Result<Option<CommitId>, PublishError> {
    Ok(claimed(repo, commit)?.and_then(|trailers| trailers.source))
}

/// Lines that Git itself writes: a paragraph with one of them may contain other text as well.
const BY_GIT: [&str; 2] = ["Signed-off-by: ", "(cherry picked from commit "];

/// The trailers that forges append, in lower case.
const BY_FORGES: [&str; 2] = ["co-authored-by", "signed-off-by"];

/// Returns the values of one trailer, in any case of its name.
pub(crate) fn values_in_message(message: &str, name: &str) -> Vec<String> {
    let named = |(found, _): &(String, String)| found.eq_ignore_ascii_case(name);
    trailers(message).into_iter().filter(named).map(|(_, value)| value).collect()
}

/// Returns all trailers as names and values.
fn trailers(message: &str) -> Vec<(String, String)> {
    let lines = body(message);
    let (start, mut found) = block(&lines);
    let is_of_forge =
        |(name, _): &(String, String)| BY_FORGES.iter().any(|known| name.eq_ignore_ascii_case(known));
    if !found.is_empty() && found.iter().all(is_of_forge) {
        let above = &lines[..without_ruler(&lines[..start])];
        found.splice(0..0, block(above).1);
    }
    found
}

/// Returns the lines of the message up to a divider, without comments at its end.
fn body(message: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = message.split_inclusive('\n').collect();
    let is_divider = |line: &&str| {
        line.strip_prefix("---").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_whitespace()))
    };
    if let Some(end) = lines.iter().position(is_divider) {
        lines.truncate(end);
    }
    while lines.last().is_some_and(|line| line.starts_with('#') || *line == "\n") {
        lines.pop();
    }
    lines
}

/// Returns the trailers at the end of these lines, and the index of their first line.
fn block(lines: &[&str]) -> (usize, Vec<(String, String)>) {
    let nothing = (lines.len(), Vec::new());
    let title = lines.iter().position(|line| !line.starts_with('#') && is_blank(line));
    let Some(title) = title else { return nothing };
    let (mut trailers, mut others, mut continued) = (0, 0, 0);
    let (mut only_spaces, mut by_git) = (true, false);
    let mut start = None;
    for at in (title..lines.len()).rev() {
        let line = lines[at];
        if line.starts_with('#') {
            others += continued;
            continued = 0;
        } else if is_blank(line) {
            if only_spaces {
                continue;
            }
            others += continued;
            let counts = (by_git && trailers * 3 >= others) || (trailers > 0 && others == 0);
            start = counts.then_some(at + 1);
            break;
        } else {
            only_spaces = false;
            if BY_GIT.iter().any(|known| line.starts_with(known)) {
                (trailers, continued, by_git) = (trailers + 1, 0, true);
            } else if separator(line).is_some_and(|at| at > 0) && !begins_with_space(line) {
                (trailers, continued) = (trailers + 1, 0);
            } else if begins_with_space(line) {
                continued += 1;
            } else {
                others += 1 + continued;
                continued = 0;
            }
        }
    }
    match start {
        Some(start) => (start, read(&lines[start..])),
        None => nothing,
    }
}

fn read(lines: &[&str]) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in lines {
        if begins_with_space(line)
            && let Some((_, value)) = found.last_mut()
        {
            // The continuation of a folded value.
            let more = line.trim();
            if !more.is_empty() {
                value.push(' ');
                value.push_str(more);
            }
        } else if let Some(at) = separator(line).filter(|at| *at > 0) {
            found.push((line[..at].trim().to_owned(), line[at + 1..].trim().to_owned()));
        }
    }
    found
}

/// Returns the index of a trailer's colon. Only letters, digits, dashes and then spaces may precede it.
fn separator(line: &str) -> Option<usize> {
    let mut spaced = false;
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b':' => return Some(at),
            b' ' | b'\t' if at > 0 => spaced = true,
            b'-' if !spaced => {}
            _ if byte.is_ascii_alphanumeric() && !spaced => {}
            _ => return None,
        }
    }
    None
}

fn is_blank(line: &str) -> bool {
    line.bytes().all(|byte| byte.is_ascii_whitespace())
}

fn begins_with_space(line: &str) -> bool {
    line.starts_with(|c: char| c.is_ascii_whitespace())
}

/// Returns the number of lines without the rule that a forge draws above its own paragraph.
fn without_ruler(lines: &[&str]) -> usize {
    let filled = lines.iter().rposition(|line| !is_blank(line));
    match filled {
        Some(at) if lines[at].trim().len() >= 3 && lines[at].trim().bytes().all(|byte| byte == b'-') => at,
        _ => lines.len(),
    }
}
