//! Plain aligned columns.

/// Rows under a heading; the last column may be as long as it likes.
pub fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = headings.iter().map(|heading| heading.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let heading = headings.iter().map(|heading| (*heading).to_owned()).collect::<Vec<_>>();
    let mut text = String::new();
    for row in std::iter::once(&heading).chain(rows) {
        let last = row.len().saturating_sub(1);
        for (index, (cell, width)) in row.iter().zip(&widths).enumerate() {
            text.push_str(cell);
            if index < last {
                let padding = width.saturating_sub(cell.chars().count()) + 2;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_have_no_trailing_spaces() {
        let text = table(
            &["NAME", "CLUSTERS"],
            &[vec!["web".into(), String::new()], vec!["a-long-name".into(), "3".into()]],
        );
        assert_eq!(text, "NAME         CLUSTERS\nweb\na-long-name  3\n");
    }
}
