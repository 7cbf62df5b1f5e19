//! Two texts' difference, line by line, in colours.

use similar::TextDiff;

use super::ui::{Tone, Ui};

/// The unified difference under a title.
pub(crate) fn coloured(before: &str, after: &str, title: &str, ui: &Ui) -> String {
    let diff = TextDiff::from_lines(before, after);
    let mut shown = String::new();
    for line in diff.unified_diff().context_radius(2).header(title, title).to_string().lines() {
        let tone = match line.as_bytes().first() {
            Some(b'-') => Some(Tone::Bad),
            Some(b'+') => Some(Tone::Good),
            _ => None,
        };
        shown.push_str(&tone.map_or_else(|| line.to_owned(), |tone| ui.tint(line, tone)));
        shown.push('\n');
    }
    shown
}
