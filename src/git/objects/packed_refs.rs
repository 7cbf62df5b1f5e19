//! Many refs moved at once, through the one file that holds packed refs: ten thousand small files are slow
//! to write and slow to list.
//!
//! Refs that have a file of their own are moved there first, since that file would win. The packed file is replaced under
//! its lock, as Git does it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::{fs, io};

use super::error::GitError;
use super::id::CommitId;
use super::locks::PACKED;
use super::ref_lock::RefLock;
use super::refs::{RefMove, is_valid_ref};
use super::repo::Repo;

/// Fewer are moved one by one, which leaves the packed file alone.
const MANY: usize = 16;

/// So much of the file is searched line by line.
const FEW_BYTES: usize = 1 << 10;

const HEADER: &str = "# pack-refs with: peeled fully-peeled sorted \n";

impl Repo {
    /// Moves refs, each only if it still is where it was last seen. The first that is not ends it: those
    /// before may have moved.
    pub fn move_refs(&self, moves: &[RefMove]) -> Result<(), GitError> {
        moves.iter().try_for_each(|one| self.refuse_in_rehearsal(&one.name))?;
        let folder = self.inner.commondir();
        let (own_file, packed): (Vec<&RefMove>, Vec<&RefMove>) =
            moves.iter().partition(|one| moves.len() < MANY || folder.join(&one.name).exists());
        self.move_one_by_one(&own_file)?;
        if packed.is_empty() {
            return Ok(());
        }
        if let Some(bad) = packed.iter().find(|one| !is_valid_ref(&one.name)) {
            return Err(GitError::InvalidRef { name: bad.name.clone() });
        }
        // State is written before it is pointed at.
        self.flush()?;
        match self.despite_locks(PACKED, || self.replace_packed(&packed)) {
            // Somebody packs refs for long: each ref has a lock of its own as well.
            Err(GitError::Locked { .. }) => self.move_one_by_one(&packed),
            done => done,
        }
    }

    fn replace_packed(&self, moves: &[&RefMove]) -> Result<(), GitError> {
        let lock = RefLock::take(self.inner.commondir(), PACKED)?;
        let mut text = match fs::read_to_string(&lock.target) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(failed(&error)),
        };
        if !text.ends_with('\n') {
            text.push('\n');
        }
        let mut lines = parse(&text);
        for one in moves {
            let line = format!("{} {}\n", one.new, one.name);
            let before = lines.insert(&one.name, line.into());
            let before = before.as_deref().and_then(|line| line.split(' ').next());
            if before != one.old.map(|id| id.to_string()).as_deref() {
                return Err(GitError::Raced { name: one.name.clone() });
            }
        }
        let mut out = HEADER.to_owned();
        out.extend(lines.into_values());
        lock.replace_for_good(&out)
    }
}

/// The target and the name of each ref.
pub(super) fn lines(packed: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let lines =
        packed.split(|byte| *byte == b'\n').filter(|line| !line.starts_with(b"#") && !line.starts_with(b"^"));
    lines
        .filter_map(|line| line.split_at_checked(40))
        .filter_map(|(id, name)| Some((id, name.strip_prefix(b" ")?)))
}

/// Returns the target of a ref.
pub(super) fn find(packed: &[u8], name: &str) -> Option<CommitId> {
    let (id, _) = beginning_with(packed, name).find(|(_, found)| *found == name.as_bytes())?;
    str::from_utf8(id).ok()?.parse().ok()
}

/// The target and the name of each ref whose name begins so. A file that says that it is sorted is searched by halves.
pub(super) fn beginning_with<'t>(
    packed: &'t [u8],
    prefix: &'t str,
) -> impl Iterator<Item = (&'t [u8], &'t [u8])> {
    let header = packed.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let is_sorted = header.starts_with(b"#") && header.ends_with(b" sorted ");
    let mut rest = packed.get(header.len() + 1..).unwrap_or_default();
    // The part of the rest in which the first such line begins.
    let mut near = rest.len();
    while is_sorted && near > FEW_BYTES {
        // The second half begins with the line after the middle.
        let middle = near / 2;
        let Some(end) = rest[middle..near].iter().position(|byte| *byte == b'\n') else { break };
        let second = &rest[middle + end + 1..];
        match lines(second).next() {
            Some((_, begin)) if begin <= prefix.as_bytes() => {
                (rest, near) = (second, near - (middle + end + 1));
            }
            _ => near = middle,
        }
    }
    let lines = lines(rest).skip_while(move |(_, name)| is_sorted && *name < prefix.as_bytes());
    lines
        .take_while(move |(_, name)| !is_sorted || name.starts_with(prefix.as_bytes()))
        .filter(|(_, name)| name.starts_with(prefix.as_bytes()))
}

/// The lines of each ref by its name: its target, and below it the commit of a tag.
fn parse(text: &str) -> BTreeMap<&str, Cow<'_, str>> {
    let mut refs: Vec<(&str, Range<usize>)> = Vec::new();
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        let start = end;
        end += line.len();
        if line.starts_with('^') {
            if let Some((_, range)) = refs.last_mut()
                && range.end == start
            {
                range.end = end;
            }
        } else if let Some((_, name)) = line.trim_end().split_once(' ').filter(|_| !line.starts_with('#')) {
            refs.push((name, start..end));
        }
    }
    refs.into_iter().map(|(name, range)| (name, text[range].into())).collect()
}

fn failed(error: &io::Error) -> GitError {
    GitError::Failed { doing: format!("writing `{PACKED}`"), message: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_keeps_the_line_of_its_commit() {
        let (one, other) = ("1".repeat(40), "2".repeat(40));
        let lines = [format!("{one} refs/tags/b\n^{other}\n"), format!("{other} refs/heads/a\n")];
        let text = format!("# pack-refs with: peeled \n{}\n{}", lines[0], lines[1]);
        let found: Vec<_> = parse(&text).into_iter().collect();
        assert_eq!(
            found,
            [("refs/heads/a", lines[1].as_str().into()), ("refs/tags/b", lines[0].as_str().into())]
        );
    }

    #[test]
    fn every_ref_of_a_sorted_file_is_found_and_no_other() {
        let name = |number: usize| format!("refs/tags/{number:04}");
        let id = |number: usize| format!("{number:040x}");
        for count in [0, 1, 2, 17, 300] {
            let line = |number: usize| {
                let peeled = if number.is_multiple_of(3) { format!("^{}\n", id(7)) } else { String::new() };
                format!("{} {}\n{peeled}", id(number), name(2 * number))
            };
            let lines: String = (0..count).map(line).collect();
            for text in [format!("{HEADER}{lines}"), format!("# pack-refs with: peeled \n{lines}")] {
                for number in 0..count {
                    let found = find(text.as_bytes(), &name(2 * number));
                    assert_eq!(found.map(|id| id.to_string()), Some(id(number)));
                    assert_eq!(find(text.as_bytes(), &name(2 * number + 1)), None);
                }
                for prefix in ["", "refs/", "refs/tags/00", "refs/tags/0100", "refs/tags/031", "refs/zebra"] {
                    let begin = |(_, name): &(&[u8], &[u8])| name.starts_with(prefix.as_bytes());
                    let all: Vec<_> = super::lines(text.as_bytes()).filter(begin).collect();
                    assert_eq!(beginning_with(text.as_bytes(), prefix).collect::<Vec<_>>(), all, "{prefix}");
                }
            }
        }
    }
}
