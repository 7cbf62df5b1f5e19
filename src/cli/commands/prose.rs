//! Sentences on a terminal, broken between words.

use super::table::{shown_width, wrapped};

/// Breaks the lines of a text that are wider than this, and indents what follows. Commands to copy stay whole.
pub(crate) fn fitted(text: &str, most: Option<usize>) -> String {
    let Some(most) = most else { return text.to_owned() };
    let lines = text.split('\n').map(|line| {
        if shown_width(line) <= most || is_to_copy(line) {
            return line.to_owned();
        }
        let (blanks, rest) = line.split_at(line.len() - line.trim_start_matches(' ').len());
        let room = most.saturating_sub(blanks.len() + INDENT.len());
        wrapped(rest, room)
            .iter()
            .map(|part| format!("{blanks}{part}"))
            .collect::<Vec<_>>()
            .join(&format!("\n{INDENT}"))
    });
    lines.collect::<Vec<_>>().join("\n")
}

const INDENT: &str = "  ";

/// Reports whether people copy a line into a shell: a hint, or the command in it.
fn is_to_copy(line: &str) -> bool {
    line.trim_start().starts_with("hint: ") || line.contains("git fetch ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_between_words_and_commands_stay_whole() {
        let text = "  note: one two three four\n  hint: git fetch origin main and more\nshort";
        assert_eq!(
            fitted(text, Some(16)),
            "  note: one\n    two three\n    four\n  hint: git fetch origin main and more\nshort"
        );
        assert_eq!(fitted(text, None), text);
    }
}
