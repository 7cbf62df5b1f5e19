//! JSON writes characters beyond U+FFFF as two escapes, which YAML does not support. A document that is JSON
//! is read as kubectl reads it: both escapes are one character.

use std::borrow::Cow;

use serde::de::IgnoredAny;

use super::node::Mark;

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
pub(super) fn join(text: &str) -> Joined<'_> {
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
    pub(super) fn written_column(&self, line: usize, column: usize) -> usize {
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
pub(super) fn correct(joined: &Joined<'_>, first_line: u32, at: Mark) -> Mark {
    let line = at.line.saturating_sub(first_line) as usize;
    let column = joined.written_column(line, at.column.saturating_sub(1) as usize);
    Mark { line: at.line, column: u32::try_from(column).unwrap_or(u32::MAX).saturating_add(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_joined_in_json_alone() {
        let text = "{\"a\": \"\\ud83d\\ude00\", \"b\": \"\\\\ud83d\\\\ude00\"}";
        let joined = join(text);
        assert_eq!(joined.text, "{\"a\": \"\\U0001F600\", \"b\": \"\\\\ud83d\\\\ude00\"}");
        let b = joined.text.find("\"b\"").expect("a key");
        assert_eq!(joined.written_column(0, b), text.find("\"b\"").expect("a key"));
        for plain in ["a: '\\ud83d\\ude00'", "{\"a\": \"\\ud83d\"}", "{\"a\": \"\\u00e4\\u00f6\"}"] {
            assert!(matches!(join(plain).text, Cow::Borrowed(_)), "{plain}");
        }
    }
}
