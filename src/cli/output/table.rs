//! Tables of aligned columns, and sentences broken between words.

use super::ui::Ui;

/// The width below which no column is narrowed, unless its words are shorter.
const NARROWEST: usize = 12;

/// The spaces between columns.
const GAP: usize = 2;

/// Formats rows under a heading. On a terminal, wide columns are broken between words to fit.
pub(crate) fn table(headings: &[&str], rows: &[Vec<String>], ui: &Ui) -> String {
    table_within(headings, rows, ui.out_width())
}

/// Like [`table`], for lines of up to `most` characters.
fn table_within(headings: &[&str], rows: &[Vec<String>], most: Option<usize>) -> String {
    let headings: Vec<String> = headings.iter().map(|heading| (*heading).to_owned()).collect();
    let all: Vec<&Vec<String>> = std::iter::once(&headings).chain(rows).collect();
    let widths = widths(&all, most);
    let mut text = String::new();
    for row in all {
        let cells: Vec<Vec<String>> =
            row.iter().zip(&widths).map(|(cell, width)| wrapped(cell, *width)).collect();
        for line in 0..cells.iter().map(Vec::len).max().unwrap_or_default() {
            let start = text.len();
            for (cell, width) in cells.iter().zip(&widths) {
                let part = cell.get(line).map_or("", String::as_str);
                text.push_str(part);
                let padding = width.saturating_sub(shown_width(part)) + GAP;
                text.extend(std::iter::repeat_n(' ', padding));
            }
            text.truncate(start + text[start..].trim_end_matches(' ').len());
            text.push('\n');
        }
    }
    text
}

/// Returns the width of each column. If the rows do not fit, narrows the widest columns that can be broken.
fn widths(rows: &[&Vec<String>], most: Option<usize>) -> Vec<usize> {
    let columns = rows.iter().map(|row| row.len()).max().unwrap_or_default();
    let cells = |column: usize| rows.iter().filter_map(move |row| row.get(column));
    let widest = |column: usize| cells(column).map(|cell| shown_width(cell)).max().unwrap_or_default();
    let mut widths: Vec<usize> = (0..columns).map(widest).collect();
    let least = |column: usize| {
        // In a broken cell, a colour would continue into the neighbouring columns.
        if cells(column).any(|cell| cell.contains('\x1b')) {
            return widest(column);
        }
        let words = cells(column).flat_map(|cell| cell.split(' '));
        words.map(shown_width).max().unwrap_or_default().max(NARROWEST)
    };
    let least: Vec<usize> = (0..columns).map(least).collect();
    let Some(most) = most else { return widths };
    loop {
        let total = widths.iter().sum::<usize>() + GAP * columns.saturating_sub(1);
        let over = total.saturating_sub(most);
        let mut breakable: Vec<usize> = (0..columns).filter(|at| widths[*at] > least[*at]).collect();
        breakable.sort_by_key(|at| widths[*at]);
        let Some(at) = breakable.pop().filter(|_| over > 0) else { return widths };
        // Not narrower than the next column: then both are narrowed.
        let next = breakable.pop().map_or(0, |next| widths[next].saturating_sub(1));
        widths[at] = widths[at].saturating_sub(over).max(least[at]).max(next.min(widths[at] - 1));
    }
}

/// Returns the width of a cell on a terminal. Colours take no space.
pub(crate) fn shown_width(cell: &str) -> usize {
    let mut parts = cell.split("\x1b[");
    let first = parts.next().map_or(0, |part| part.chars().count());
    first + parts.map(|part| part.split_once('m').map_or(0, |(_, rest)| rest.chars().count())).sum::<usize>()
}

/// Breaks a text into lines of up to `width` characters. Keeps longer words whole, since users may copy them.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for (index, word) in text.split(' ').enumerate() {
        let room = shown_width(word);
        if used > 0 && used + 1 + room > width {
            lines.push(String::new());
            used = 0;
        } else if index > 0 {
            lines.last_mut().into_iter().for_each(|line| line.push(' '));
            used += 1;
        }
        lines.last_mut().into_iter().for_each(|line| line.push_str(word));
        used += room;
    }
    lines
}

/// Breaks lines that are too wide, and indents their continuations. Keeps commands to copy whole.
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

/// Reports whether users copy a line into a shell: a hint, or its command.
fn is_to_copy(line: &str) -> bool {
    line.trim_start().starts_with("hint: ") || line.contains("git fetch ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_have_no_trailing_spaces() {
        let text = table_within(
            &["NAME", "CLUSTERS"],
            &[vec!["web".into(), String::new()], vec!["a-long-name".into(), "3".into()]],
            None,
        );
        assert_eq!(text, "NAME         CLUSTERS\nweb\na-long-name  3\n");
    }

    #[test]
    fn a_narrow_terminal_breaks_wide_columns_between_words() {
        let rows = [vec!["oslo".into(), "label env=prod is required, the cluster has env=prd".into()]];
        let text = table_within(&["CLUSTER", "WHY"], &rows, Some(34));
        assert_eq!(
            text,
            "CLUSTER  WHY\noslo     label env=prod is\n         required, the cluster has\n         env=prd\n"
        );
        assert!(text.lines().all(|line| line.chars().count() <= 34));
        // Without a terminal, nothing is broken.
        assert_eq!(table_within(&["CLUSTER", "WHY"], &rows, None).lines().count(), 2);
        let rows = [vec!["web".into(), "bergen, graz, lisbon, oslo, turin".into(), "Satisfied".into()]];
        assert_eq!(
            table_within(&["NAME", "CLUSTERS", "CONDITION"], &rows, Some(34)),
            "NAME  CLUSTERS           CONDITION\nweb   bergen, graz,      Satisfied\n      lisbon, oslo,\n      turin\n"
        );
        // No word is broken, and no colour continues into another cell.
        let rows =
            [vec!["registry.example.com/web:1.5.0".into(), "\x1b[33mwaits for its turn\x1b[0m".into()]];
        assert_eq!(table_within(&["IMAGE", "STATE"], &rows, Some(20)).lines().count(), 2);
    }

    #[test]
    fn colours_take_no_room() {
        let rows = [vec!["\x1b[32myes\x1b[0m".into(), "a".into()], vec!["a-name".into(), "b".into()]];
        assert_eq!(
            table_within(&["X", "Y"], &rows, None),
            "X       Y\n\x1b[32myes\x1b[0m     a\na-name  b\n"
        );
    }

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
