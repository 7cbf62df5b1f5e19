//! Escapes untrusted text, so that it cannot forge a line of output or control a terminal.

use std::borrow::Cow;

/// Reports whether printing a character only shows it: no control character, no line break, no change of the
/// writing direction.
pub fn is_harmless(c: char) -> bool {
    let turns =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}') && !turns
}

/// Reports whether a character is visible in a name. Some characters take no space on the screen.
pub fn is_visible(c: char) -> bool {
    let hidden = matches!(
        c,
        '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}'
    );
    is_harmless(c) && !hidden
}

/// Escapes a text for a single line, including its line breaks.
pub fn harmless_line(text: &str) -> Cow<'_, str> {
    escape(text, is_harmless)
}

/// Escapes a text that may have several lines.
pub fn harmless_lines(text: &str) -> Cow<'_, str> {
    escape(text, |c| is_harmless(c) || c == '\n')
}

fn escape(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.chars().all(&stays) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if stays(c) { shown.push(c) } else { shown.extend(c.escape_default()) }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commands_a_terminal_or_forges_a_line_is_spelt_out() {
        assert_eq!(harmless_line("a\u{1b}[2Jb\nc\u{202e}"), "a\\u{1b}[2Jb\\nc\\u{202e}");
        assert_eq!(harmless_lines("a\nb\u{9b}"), "a\nb\\u{9b}");
        assert_eq!(harmless_line("größe ✓"), "größe ✓");
    }
}
