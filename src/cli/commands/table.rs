//! Plain aligned columns.

use super::ui::Ui;

/// The last column is not made narrower than this: there, a terminal breaks the lines.
const NARROWEST: usize = 20;

/// Rows under a heading. On a terminal the last column is broken between words, to its width.
pub(crate) fn table(headings: &[&str], rows: &[Vec<String>], ui: &Ui) -> String {
    let terminal = ui.out_is_terminal().then(terminal_size::terminal_size).flatten();
    table_within(headings, rows, terminal.map(|(width, _)| usize::from(width.0)))
}

/// [`table`] for lines of so many characters, or any number.
fn table_within(headings: &[&str], rows: &[Vec<String>], most: Option<usize>) -> String {
    let mut widths: Vec<usize> = headings.iter().map(|heading| shown_width(heading)).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(shown_width(cell));
        }
    }
    let start: usize = widths.iter().rev().skip(1).map(|width| width + 2).sum();
    let room = most.map(|most| most.saturating_sub(start)).filter(|room| *room >= NARROWEST);
    let heading = headings.iter().map(|heading| (*heading).to_owned()).collect::<Vec<_>>();
    let mut text = String::new();
    for row in std::iter::once(&heading).chain(rows) {
        let last = row.len().saturating_sub(1);
        for (index, (cell, width)) in row.iter().zip(&widths).enumerate() {
            match room.filter(|_| index == last) {
                Some(room) => push_wrapped(&mut text, cell, start, room),
                None => text.push_str(cell),
            }
            if index < last {
                let padding = width.saturating_sub(shown_width(cell)) + 2;
                text.extend(std::iter::repeat_n(' ', padding));
            }
        }
        while text.ends_with(' ') {
            text.pop();
        }
        text.push('\n');
    }
    text
}

/// The width of a cell on a terminal. Colours take no room.
fn shown_width(cell: &str) -> usize {
    let mut parts = cell.split("\x1b[");
    let first = parts.next().map_or(0, |part| part.chars().count());
    first + parts.map(|part| part.split_once('m').map_or(0, |(_, rest)| rest.chars().count())).sum::<usize>()
}

/// Writes a cell in lines of so many characters, each but the first below the first. A word that is longer
/// stays whole: it may be a name to copy.
fn push_wrapped(text: &mut String, cell: &str, start: usize, room: usize) {
    let mut used = 0;
    for word in cell.split(' ') {
        let width = shown_width(word);
        if used > 0 && used + 1 + width > room {
            text.push('\n');
            text.extend(std::iter::repeat_n(' ', start));
            used = 0;
        } else if used > 0 {
            text.push(' ');
            used += 1;
        }
        text.push_str(word);
        used += width;
    }
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
    fn a_narrow_terminal_breaks_the_last_column_between_words() {
        let rows = [vec!["oslo".into(), "label env=prod is required, the cluster has env=prd".into()]];
        let text = table_within(&["CLUSTER", "WHY"], &rows, Some(34));
        assert_eq!(
            text,
            "CLUSTER  WHY\noslo     label env=prod is\n         required, the cluster has\n         env=prd\n"
        );
        assert!(text.lines().all(|line| line.chars().count() <= 34));
        // Where there is no room for it, and where nobody watches, nothing is broken.
        for most in [Some(20), None] {
            assert_eq!(table_within(&["CLUSTER", "WHY"], &rows, most).lines().count(), 2);
        }
    }

    #[test]
    fn colours_take_no_room() {
        let rows = [vec!["\x1b[32myes\x1b[0m".into(), "a".into()], vec!["a-name".into(), "b".into()]];
        assert_eq!(
            table_within(&["X", "Y"], &rows, None),
            "X       Y\n\x1b[32myes\x1b[0m     a\na-name  b\n"
        );
    }
}
