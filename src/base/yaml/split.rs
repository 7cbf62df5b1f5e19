//! Splits a file into its documents before parsing, so that one broken document affects no other.
//!
//! A document ends before a line with `---`, and at a line with `...`: YAML allows neither inside any
//! scalar, so no parser is needed. As in the parser, lines end with `\n`, `\r\n` or a lone `\r`.
//!
//! JSON writes characters beyond U+FFFF as two escapes, which YAML does not support. They are joined here:
//! a document that is JSON is read as kubectl reads it, both escapes as one character.

use std::borrow::Cow;
use std::ops::Range;

use serde::de::IgnoredAny;

use super::node::Mark;

/// A document's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    pub bytes: Range<usize>,
    /// The line of the file on which it begins, from 1.
    pub line: u32,
    /// The line of a `...` that is followed by more than a comment.
    pub junk: Option<u32>,
}

/// Returns the documents of a file that have more than blanks and comments.
pub fn split(text: &str) -> Vec<Slice> {
    let mut slices = Vec::new();
    let mut open = Open::at(0, 1);
    let mut start = 0;
    let mut line = 1;
    while start < text.len() {
        let end = start + line_length(&text.as_bytes()[start..]);
        // Both ends are at line breaks, which are ASCII.
        let content = text[start..end].trim_end_matches(['\n', '\r']);
        if let Some(rest) = after_marker(content, "---") {
            if !(open.prologue && open.directives) {
                slices.extend(open.close(start));
                open = Open::at(start, line);
            }
            open.prologue = false;
            open.content |= says_something(rest);
        } else if let Some(rest) = after_marker(content, "...") {
            let junk = says_something(rest).then_some(line);
            open.content |= junk.is_some();
            slices.extend(open.close(start).map(|slice| Slice { junk, ..slice }));
            open = Open::at(end, line.saturating_add(1));
        } else if open.prologue && content.starts_with('%') {
            open.directives = true;
            open.content = true;
        } else if says_something(content) {
            open.prologue = false;
            open.content = true;
        }
        start = end;
        line = line.saturating_add(1);
    }
    slices.extend(open.close(text.len()));
    slices
}

/// Returns the number of the line at the end of a text.
pub fn last_line(text: &[u8]) -> u32 {
    let mut start = 0;
    let mut line: u32 = 1;
    while start < text.len() {
        let length = line_length(&text[start..]);
        start += length;
        if matches!(text[start - 1], b'\n' | b'\r') {
            line = line.saturating_add(1);
        }
    }
    line
}

struct Open {
    start: usize,
    line: u32,
    /// Only blanks, comments and directives so far, without a `---`.
    prologue: bool,
    directives: bool,
    content: bool,
}

impl Open {
    fn at(start: usize, line: u32) -> Open {
        Open { start, line, prologue: true, directives: false, content: false }
    }

    fn close(self, end: usize) -> Option<Slice> {
        self.content.then_some(Slice { bytes: self.start..end, line: self.line, junk: None })
    }
}

/// Returns the rest of a line that begins with a marker, if white space or nothing follows it.
fn after_marker<'a>(line: &'a str, marker: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(marker)?;
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then_some(rest)
}

fn says_something(line: &str) -> bool {
    let text = line.trim_start_matches([' ', '\t']);
    !text.is_empty() && !text.starts_with('#')
}

/// Returns the length of the first line, including its break.
fn line_length(bytes: &[u8]) -> usize {
    match bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
        Some(at) if bytes[at] == b'\r' && bytes.get(at + 1) == Some(&b'\n') => at + 2,
        Some(at) => at + 1,
        None => bytes.len(),
    }
}

/// A document's text with one escape for each pair, and the places of the pairs.
#[derive(Debug)]
pub(super) struct Joined<'t> {
    pub(super) text: Cow<'t, str>,
    /// Line and column in the joined text, from 0, ascending.
    pairs: Vec<(usize, usize)>,
}

/// The lengths of a pair of escapes such as `\ud83d\ude00`, and of the escape that replaces it.
const PAIR: usize = 12;
const ONE: usize = 10;

/// Joins the pairs of a document that is JSON; other text is returned unchanged.
pub(super) fn join_surrogates(text: &str) -> Joined<'_> {
    if !has_pair(text) || !is_json(text) {
        return Joined { text: Cow::Borrowed(text), pairs: Vec::new() };
    }
    let (mut joined, mut pairs, mut rest) = (String::with_capacity(text.len()), Vec::new(), text);
    let (mut line, mut column) = (0, 0);
    while let Some(next) = rest.chars().next() {
        let taken = match pair_at(rest) {
            Some(character) => {
                joined.push_str(&format!("\\U{:08X}", u32::from(character)));
                pairs.push((line, column));
                column += ONE;
                PAIR
            }
            // In JSON an escape begins with a backslash; the next character begins none.
            None => {
                let escape = rest.get(..2).filter(|_| next == '\\');
                let taken = escape.map_or(next.len_utf8(), str::len);
                joined.push_str(&rest[..taken]);
                column += if escape.is_some() { 2 } else { 1 };
                if next == '\n' {
                    (line, column) = (line + 1, 0);
                }
                taken
            }
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
    Joined { text: Cow::Owned(joined), pairs }
}

impl Joined<'_> {
    /// Returns the column in the original text for a place in the joined one; both from 0.
    fn written_column(&self, line: usize, column: usize) -> usize {
        let before = self.pairs.partition_point(|place| *place < (line, column));
        let of_line = self.pairs.partition_point(|place| *place < (line, 0));
        column + (before - of_line) * (PAIR - ONE)
    }
}

fn has_pair(text: &str) -> bool {
    text.match_indices("\\u").any(|(at, _)| pair_at(&text[at..]).is_some())
}

fn is_json(text: &str) -> bool {
    let body = text.trim_start();
    let body = body.strip_prefix("---").unwrap_or(body);
    serde_json::from_str::<IgnoredAny>(body).is_ok()
}

/// Returns the character of the two escapes at the beginning of a text.
fn pair_at(text: &str) -> Option<char> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
    };
    let mut decoded = char::decode_utf16([unit(0)?, unit(6)?]);
    let first = decoded.next()?.ok()?;
    decoded.next().is_none().then_some(first)
}

/// Converts a place of the joined text into one of the original.
pub(super) fn correct_surrogates(joined: &Joined<'_>, first_line: u32, at: Mark) -> Mark {
    let line = at.line.saturating_sub(first_line) as usize;
    let column = joined.written_column(line, at.column.saturating_sub(1) as usize);
    Mark { line: at.line, column: u32::try_from(column).unwrap_or(u32::MAX).saturating_add(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<(u32, &str)> {
        split(text).into_iter().map(|slice| (slice.line, &text[slice.bytes])).collect()
    }

    #[test]
    fn a_file_is_cut_at_its_markers() {
        assert_eq!(texts("a: 1\n---\nb: 2\n--- c\n"), [(1, "a: 1\n"), (2, "---\nb: 2\n"), (4, "--- c\n")]);
        assert_eq!(texts("a: 1\n...\nb: 2\n"), [(1, "a: 1\n"), (3, "b: 2\n")]);
        assert_eq!(texts("a: 1\r\n---\r\nb: 2"), [(1, "a: 1\r\n"), (2, "---\r\nb: 2")]);
    }

    #[test]
    fn documents_without_content_are_left_out() {
        assert_eq!(texts("# only words\n---\n\n---\n# more\n---\na: 1\n---\n"), [(6, "---\na: 1\n")]);
        assert_eq!(texts(""), []);
    }

    #[test]
    fn directives_belong_to_the_document_after_them() {
        assert_eq!(texts("%YAML 1.2\n---\na: 1\n"), [(1, "%YAML 1.2\n---\na: 1\n")]);
    }

    #[test]
    fn a_marker_needs_the_first_column_and_an_end() {
        assert_eq!(texts("a: |\n  ---\n  x\n----\n").len(), 1);
    }

    #[test]
    fn lines_are_counted_as_the_parser_counts_them() {
        assert_eq!(last_line(b""), 1);
        assert_eq!(last_line(b"a\nb"), 2);
        assert_eq!(last_line(b"a\r\nb\rc\n"), 4);
    }

    #[test]
    fn pairs_are_joined_in_json_alone() {
        let text = "{\"a\": \"\\ud83d\\ude00\", \"b\": \"\\\\ud83d\\\\ude00\"}";
        let joined = join_surrogates(text);
        assert_eq!(joined.text, "{\"a\": \"\\U0001F600\", \"b\": \"\\\\ud83d\\\\ude00\"}");
        let b = joined.text.find("\"b\"").expect("a key");
        assert_eq!(joined.written_column(0, b), text.find("\"b\"").expect("a key"));
        for plain in ["a: '\\ud83d\\ude00'", "{\"a\": \"\\ud83d\"}", "{\"a\": \"\\u00e4\\u00f6\"}"] {
            assert!(matches!(join_surrogates(plain).text, Cow::Borrowed(_)), "{plain}");
        }
    }
}
