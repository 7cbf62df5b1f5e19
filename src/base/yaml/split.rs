//! Splits a file into its documents before parsing, so that one broken document affects no other.
//!
//! A document ends before a line with `---`, and at a line with `...`: YAML allows neither inside any scalar,
//! so no parser is needed. As in the parser, lines end with `\n`, `\r\n` or a lone `\r`.

use std::ops::Range;

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
}
