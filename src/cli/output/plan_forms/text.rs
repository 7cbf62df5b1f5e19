//! A plan for a terminal: lines of 80 columns, with colours if the terminal supports them.

use super::outline::{Line, Part, Sign};
use crate::output::ui::{Tone, Ui};
use crate::process::exit::CommandError;

/// The width of lines.
const WIDTH: usize = 80;

/// The number of lines, unless the complete plan is requested.
const SCREEN: usize = 60;

/// Writes the parts. A long plan ends early, with a note about the omitted parts and how to see them.
pub(super) fn text(parts: &[Part], whole: bool, ui: &Ui) -> String {
    let (mut shown, mut lines, mut left_out) = (String::new(), 0, 0);
    for part in parts {
        let part = part_text(part, ui);
        let length = part.lines().count() + 1;
        if !whole && lines > 0 && lines + length > SCREEN {
            left_out += 1;
            continue;
        }
        lines += length;
        shown.push('\n');
        shown.push_str(&part);
    }
    if left_out > 0 {
        shown.push_str(&format!("\nand {left_out} more causes: `-v` shows all, `-o json` is for programs\n"));
    }
    shown
}

fn part_text(part: &Part, ui: &Ui) -> String {
    let mut text = String::new();
    for heading in &part.headings {
        text.push_str(&ui.tint(&wrapped(heading, 0), Tone::Strong));
        text.push('\n');
    }
    part.lines.iter().for_each(|line| text.push_str(&line_text(line, ui)));
    text
}

/// Writes a line with its sign, broken between words.
pub(super) fn line_text(line: &Line, ui: &Ui) -> String {
    let sign = line.sign.mark();
    let tone = match line.sign {
        Sign::Removed | Sign::Attention => Some(Tone::Bad),
        Sign::Changed | Sign::Held => Some(Tone::Warn),
        Sign::Added => Some(Tone::Good),
        Sign::More => None,
    };
    let start = 4 + 2 * line.depth;
    let words = wrapped(&line.words, start);
    let text = format!("  {sign} {}{words}", "  ".repeat(line.depth));
    format!("{}\n", tone.map_or_else(|| text.clone(), |tone| ui.tint(&text, tone)))
}

/// Breaks a text between words. Further lines are indented to a column.
pub(super) fn wrapped(text: &str, start: usize) -> String {
    let indent = if start == 0 { 2 } else { start };
    let mut shown = String::new();
    let mut used = start;
    for word in text.split(' ') {
        let width = word.chars().count();
        if used > start.max(indent) && used + 1 + width > WIDTH {
            shown.push('\n');
            shown.extend(std::iter::repeat_n(' ', indent));
            used = indent;
        } else if !shown.is_empty() {
            shown.push(' ');
            used += 1;
        }
        shown.push_str(word);
        used += width;
    }
    shown
}

/// Describes refusals, which come before the rest of the plan.
pub(super) fn refusals_text(refusals: &[CommandError], ui: &Ui) -> String {
    let one = |refusal: &CommandError| {
        let hint = refusal.hint.as_ref().map_or_else(String::new, |hint| format!("  hint: {hint}\n"));
        let title = ui.tint("berth run would refuse this commit and publish nothing:", Tone::Bad);
        format!("{title} {}\n{hint}\n", refusal.message)
    };
    refusals.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn long_lines_break_between_words_and_long_words_stay_whole() {
        let words = "word ".repeat(30);
        let text = wrapped(words.trim(), 4);
        assert!(text.lines().count() == 2 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let long = "x".repeat(100);
        assert_eq!(wrapped(&format!("a {long} b"), 4), format!("a\n    {long}\n    b"));
    }
}
