//! Quoting: the form in which every YAML reader reads the same text.
//!
//! The considered readers: go-yaml v2 and v3, PyYAML, Ruby's Psych, serde_yaml and YAML 1.2's core schema.

use std::fmt::Write as _;

use crate::diag::is_harmless;

/// Reports whether a text reads as itself without quotes. False in case of doubt.
pub fn is_plain(text: &str) -> bool {
    let Some(first) = text.bytes().next() else { return false };
    let safe_start = first.is_ascii_alphabetic() || matches!(first, b'/' | b'_' | b'.' | b'0'..=b'9' | b'(');
    let mut before = first;
    let is_safe = |byte: u8| {
        let before = std::mem::replace(&mut before, byte);
        SAFE[usize::from(byte)] && !matches!((before, byte), (b':', b' ') | (b' ', b'#'))
    };
    safe_start
        && text.bytes().all(is_safe)
        && !text.ends_with([' ', ':'])
        && !is_word(text)
        && !like_number(text)
}

/// The characters that require quotes anywhere in a text.
const SPECIAL: &[u8] = b"\"'`\\{}[]|>&*!%@?";

/// By byte: whether it may occur in a text without quotes, if its neighbours allow it.
const SAFE: [bool; 256] = {
    let mut safe = [false; 256];
    let mut byte = b' ';
    while byte <= b'~' {
        safe[byte as usize] = true;
        byte += 1;
    }
    let mut at = 0;
    while at < SPECIAL.len() {
        safe[SPECIAL[at] as usize] = false;
        at += 1;
    }
    safe
};

fn is_word(text: &str) -> bool {
    const WORDS: &[&str] = &["y", "n", "yes", "no", "on", "off", "true", "false", "null", "nil"];
    text.starts_with("...") || WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Reports whether a text could be a number or a date: it begins like one and has only characters of these.
fn like_number(text: &str) -> bool {
    let begins = text.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let part = |byte: u8| {
        byte.is_ascii_hexdigit()
            || matches!(
                byte,
                b'.' | b'_'
                    | b'+'
                    | b'-'
                    | b':'
                    | b','
                    | b' '
                    | b'x'
                    | b'X'
                    | b'o'
                    | b'O'
                    | b'T'
                    | b't'
                    | b'Z'
                    | b'z'
                    | b'i'
                    | b'I'
                    | b'n'
                    | b'N'
            )
    };
    begins && text.bytes().all(part)
}

/// Returns the header of the literal block for exactly this text, if there is one.
pub(crate) fn literal_header(text: &str) -> Option<&'static str> {
    // Most texts have one line.
    if !text.as_bytes().contains(&b'\n') {
        return None;
    }
    let body = text.strip_suffix('\n').unwrap_or(text);
    let clean = |c: char| c == '\n' || c == '\t' || (c == ' ' || is_printable(c));
    let clean_line = |line: &str| !line.ends_with([' ', '\t']) && !line.starts_with('\t');
    let fits = body.contains('\n')
        && !body.starts_with([' ', '\n'])
        && !body.ends_with('\n')
        && body.chars().all(clean)
        && body.split('\n').all(clean_line);
    fits.then_some(if text.ends_with('\n') { "|" } else { "|-" })
}

/// Reports whether readers of both versions accept the character unescaped.
fn is_printable(c: char) -> bool {
    match c {
        '\u{FEFF}' | '\u{85}' | '\u{A0}' | '\u{2028}' | '\u{2029}' | '\u{FFFE}' | '\u{FFFF}' => false,
        // Characters that hide or reorder their neighbours are escaped, so that a diff shows them.
        c => is_harmless(c),
    }
}

/// Writes a text in double quotes.
pub fn quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if is_printable(c) => out.push(c),
            c if u32::from(c) > 0xFFFF => {
                let _ = write!(out, "\\U{:08X}", u32::from(c));
            }
            c => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
        }
    }
    out.push('"');
}
