//! Moves many refs at once through the file of packed refs: ten thousand small files are slow to write and to list.
//!
//! Refs with a file of their own are moved there first, because that file overrides the packed ref. The packed file
//! is replaced under its lock, as Git does it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;

use super::error::GitError;
use super::id::CommitId;
use super::locks::PACKED;
use super::refs::{RefLock, RefMove, is_valid_ref};
use super::repo::Repo;

/// Fewer refs are moved one by one, which leaves the packed file alone.
const MANY: usize = 16;

/// A part of the file this small is searched line by line.
const FEW_BYTES: usize = 1 << 10;

/// An estimate of the bytes of a long line.
const LONG_LINE: usize = 1 << 7;

impl Repo {
    /// Moves refs, each only if it still has the value last seen. Stops at the first that has not; earlier refs may
    /// have moved.
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
        // Objects must be written before a ref points at them.
        self.flush()?;
        match self.despite_locks(PACKED, || self.replace_packed(&packed)) {
            // Another process holds the packed file for long. Each ref can still be moved under its own lock.
            Err(GitError::Locked { .. }) => self.move_one_by_one(&packed),
            done => done,
        }
    }

    fn replace_packed(&self, moves: &[&RefMove]) -> Result<(), GitError> {
        let lock = RefLock::take(self.shared_path(), PACKED)?;
        let mut file = self.packed_file().map_err(|error| failed(&error))?;
        let text = with_moves(&sorted(file.text()), moves)?;
        let target = lock.target.clone();
        let written = lock.replace_for_good(&text)?;
        file.take_moves(text, moves, target, written);
        Ok(())
    }
}

/// Returns the sorted file with the new targets.
fn with_moves(text: &[u8], moves: &[&RefMove]) -> Result<Vec<u8>, GitError> {
    let mut moves = moves.to_vec();
    moves.sort_by_key(|one| &one.name);
    let mut out = Vec::with_capacity(text.len() + moves.len() * LONG_LINE);
    let mut rest = text;
    let mut last = None;
    for RefMove { name, old, new } in moves {
        let (before, after) = rest.split_at(first_from(rest, name.as_bytes()));
        out.extend_from_slice(before);
        let here = Record::first(after).filter(|record| record.name == name.as_bytes());
        let is = here.as_ref().map(|record| record.target);
        if is != old.map(|id| id.to_string()).as_deref().map(str::as_bytes) || last == Some(name) {
            return Err(GitError::Raced { name: name.clone() });
        }
        out.extend_from_slice(format!("{new} {name}\n").as_bytes());
        rest = after.get(here.map_or(0, |record| record.length)..).unwrap_or_default();
        last = Some(name);
    }
    out.extend_from_slice(rest);
    Ok(out)
}

/// The lines of one ref: its target, and after it the peeled commit of a tag.
struct Record<'t> {
    target: &'t [u8],
    name: &'t [u8],
    /// The bytes of the ref's lines and of the skipped lines before them.
    length: usize,
}

impl<'t> Record<'t> {
    fn first(text: &'t [u8]) -> Option<Record<'t>> {
        let mut length = 0;
        let mut lines = text.split_inclusive(|byte| *byte == b'\n').peekable();
        while let Some(line) = lines.next() {
            length += line.len();
            if let Some((target, name)) = ref_of(line) {
                while let Some(peeled) = lines.next_if(|line| line.starts_with(b"^")) {
                    length += peeled.len();
                }
                return Some(Record { target, name, length });
            }
        }
        None
    }
}

fn ref_of(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (id, name) =
        line.split_at_checked(40).filter(|_| !line.starts_with(b"#") && !line.starts_with(b"^"))?;
    Some((id, name.strip_prefix(b" ")?.trim_ascii_end()))
}

/// Iterates over the target and name of each ref.
pub(super) fn lines(packed: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    packed.split(|byte| *byte == b'\n').filter_map(ref_of)
}

/// Returns the target of a ref.
pub(super) fn find(packed: &[u8], name: &str) -> Option<CommitId> {
    let (id, _) = beginning_with(packed, name).find(|(_, found)| *found == name.as_bytes())?;
    str::from_utf8(id).ok()?.parse().ok()
}

/// Iterates over the target and name of each ref with this prefix. Uses binary search if the header declares the file
/// sorted.
pub(super) fn beginning_with<'t>(
    packed: &'t [u8],
    prefix: &'t str,
) -> impl Iterator<Item = (&'t [u8], &'t [u8])> {
    let is_sorted = is_sorted(packed);
    let begin = if is_sorted { first_from(packed, prefix.as_bytes()) } else { 0 };
    lines(packed.get(begin..).unwrap_or_default())
        .take_while(move |(_, name)| !is_sorted || name.starts_with(prefix.as_bytes()))
        .filter(|(_, name)| name.starts_with(prefix.as_bytes()))
}

fn header(packed: &[u8]) -> &[u8] {
    let line = packed.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
    if line.starts_with(b"#") { line } else { &[] }
}

fn is_sorted(packed: &[u8]) -> bool {
    header(packed).trim_ascii_end().ends_with(b" sorted")
}

/// Returns the offset of the first ref whose name is `name` or sorts after it, in a sorted file or its tail.
fn first_from(sorted: &[u8], name: &[u8]) -> usize {
    let comes_before = |from: usize| {
        let first = sorted.get(from..).and_then(|text| lines(text).next());
        first.is_some_and(|(_, first)| first < name)
    };
    let line_after = |at: usize| {
        let end = sorted.get(at..).and_then(|text| text.iter().position(|byte| *byte == b'\n'));
        end.map_or(sorted.len(), |end| at + end + 1)
    };
    // Refs before `begin` sort before `name`, refs from `end` on do not. Most searched refs are near the start.
    let (mut begin, mut end, mut step) = (header(sorted).len(), sorted.len(), FEW_BYTES);
    while begin + step < end {
        let middle = line_after(begin + step);
        match comes_before(middle) {
            true => (begin, step) = (middle, step * 2),
            false => end = begin + step,
        }
    }
    while end - begin > FEW_BYTES {
        let half = begin + (end - begin) / 2;
        match line_after(half) {
            middle if comes_before(middle) => begin = middle,
            _ => end = half,
        }
    }
    while let Some(record) = sorted.get(begin..).and_then(Record::first).filter(|record| record.name < name) {
        begin += record.length;
    }
    begin
}

/// Returns the file sorted by name, with a header that declares it sorted.
fn sorted(text: &[u8]) -> Cow<'_, [u8]> {
    if is_sorted(text) && text.ends_with(b"\n") {
        return text.into();
    }
    let mut records = BTreeMap::new();
    let mut rest = text;
    while let Some(record) = Record::first(rest) {
        let (lines, after) = rest.split_at(record.length);
        records.insert(record.name, lines);
        rest = after;
    }
    let mut out = match header(text).trim_ascii_end() {
        _ if records.is_empty() => b"# pack-refs with: peeled fully-peeled".to_vec(),
        [] => b"# pack-refs with:".to_vec(),
        header => header.strip_suffix(b" sorted").unwrap_or(header).to_vec(),
    };
    out.extend_from_slice(b" sorted \n");
    for lines in records.into_values() {
        let lines =
            lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && !line.starts_with(b"#"));
        lines.for_each(|line| out.extend_from_slice(&[line, b"\n"].concat()));
    }
    out.into()
}

fn failed(error: &io::Error) -> GitError {
    GitError::Failed { doing: format!("writing `{PACKED}`"), message: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "# pack-refs with: peeled fully-peeled sorted \n";

    #[test]
    fn a_tag_keeps_the_line_of_its_commit() {
        let (one, other) = ("1".repeat(40), "2".repeat(40));
        let lines = [format!("{other} refs/heads/a\n"), format!("{one} refs/tags/b\n^{other}\n")];
        let [a, b] = &lines;
        for (header, is) in [
            ("", "# pack-refs with: sorted \n"),
            ("# pack-refs with: peeled \n", "# pack-refs with: peeled sorted \n"),
            ("# pack-refs with: peeled sorted \n", "# pack-refs with: peeled sorted \n"),
        ] {
            for text in [format!("{header}{a}{b}"), format!("{header}{a}\n{}", b.trim_end())] {
                assert_eq!(String::from_utf8_lossy(&sorted(text.as_bytes())), format!("{is}{a}{b}"));
            }
        }
        assert_eq!(
            &*sorted(format!("{b}\n{a}").as_bytes()),
            format!("# pack-refs with: sorted \n{a}{b}").as_bytes()
        );
        assert_eq!(&*sorted(b""), HEADER.as_bytes());
    }

    #[test]
    fn moves_leave_every_other_line_as_it_is() {
        let commit =
            |number: usize| CommitId(std::array::from_fn(|at| if at == 0 { number as u8 } else { 7 }));
        let line = |name: usize, is: usize| {
            let peeled = if name.is_multiple_of(3) { format!("^{}\n", commit(9)) } else { String::new() };
            format!("{} refs/tags/{name:04}\n{peeled}", commit(is))
        };
        for count in [0, 1, 2, 17, 100] {
            let lines: String = (0..count).map(|n| line(2 * n, 1)).collect();
            let text = format!("{HEADER}{lines}");
            for step in [1, 2, 3, 7, 50] {
                let names = || (0..2 * count + 2).rev().step_by(step);
                let one = |name: usize| RefMove {
                    name: format!("refs/tags/{name:04}"),
                    old: (name < 2 * count && name.is_multiple_of(2)).then(|| commit(1)),
                    new: commit(2),
                };
                let moves: Vec<RefMove> = names().map(one).collect();
                let moved = with_moves(text.as_bytes(), &moves.iter().collect::<Vec<_>>()).unwrap();
                let expected = (0..2 * count + 2).map(|name| {
                    let is_moved = names().any(|moved| moved == name);
                    match one(name).old {
                        _ if is_moved => format!("{} refs/tags/{name:04}\n", commit(2)),
                        Some(_) => line(name, 1),
                        None => String::new(),
                    }
                });
                assert_eq!(
                    String::from_utf8(moved).unwrap(),
                    format!("{HEADER}{}", expected.collect::<String>())
                );
                for raced in &moves {
                    for old in [Some(commit(2)), raced.old.xor(Some(commit(1)))] {
                        let wrong = RefMove { old, ..raced.clone() };
                        let lost = with_moves(text.as_bytes(), &[&wrong]);
                        assert!(matches!(lost, Err(GitError::Raced { name }) if name == raced.name));
                    }
                }
                let twice = with_moves(text.as_bytes(), &[&moves[0], &moves[0]]);
                assert!(matches!(twice, Err(GitError::Raced { .. })));
            }
        }
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
