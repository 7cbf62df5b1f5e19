//! The first page: the sentence and the list as plain HTML, readable without scripts and without data.

use berth_base::text::counted;

use crate::cell::CellState;
use crate::form::{Attention, Head};

/// The page around it.
const PAGE: &str = include_str!("assets/page.html");

/// The number of items in the list. Scripts show all of them.
const MOST_ITEMS: usize = 12;

/// Returns `index.html`.
pub(crate) fn first_page(head: &Head) -> String {
    let title = match head.attention.len() {
        0 => "all in sync".to_owned(),
        count => format!("{count} to look at"),
    };
    let mut page = String::with_capacity(PAGE.len() * 2);
    // The values are inserted in one walk: a value that looks like a placeholder stays a text.
    for (index, part) in PAGE.split("{{").enumerate() {
        let Some((name, rest)) = part.split_once("}}").filter(|_| index > 0) else {
            page.push_str(part);
            continue;
        };
        match name {
            "fleet" => page.push_str(&escaped(&head.fleet)),
            "title" => page.push_str(&escaped(&title)),
            "first" => page.push_str(&first_view(head)),
            _ => {}
        }
        page.push_str(rest);
    }
    page
}

/// Returns the sentence that the page begins with.
pub(crate) fn sentence(head: &Head) -> String {
    match head.attention.len() {
        0 if head.has_reports => "Every cluster has what the source says.".to_owned(),
        0 => "Everything that the source says is published.".to_owned(),
        1 => "One thing differs from what the source says.".to_owned(),
        count => format!("{count} things differ from what the source says."),
    }
}

fn first_view(head: &Head) -> String {
    let items: String = head.attention.iter().take(MOST_ITEMS).map(item).collect();
    let list = if items.is_empty() { items } else { format!("<ol class=\"items\">{items}</ol>") };
    let (sentence, summary) = (escaped(&sentence(head)), escaped(&summary(head)));
    format!("<h1>{sentence}</h1><p class=\"sub\">{summary}</p>{list}")
}

fn summary(head: &Head) -> String {
    let copies: usize = head.numbers.copies;
    let (clusters, number) = (counted(head.numbers.clusters, "cluster"), head.shown.sequence);
    if !head.has_reports {
        return format!(
            "{copies} copies in {clusters}, as published with number {number}; without members' reports."
        );
    }
    let bad: usize = head.totals.iter().skip(CellState::Drifted as usize).sum();
    let good = copies.saturating_sub(bad);
    format!("{good} of {copies} copies are in order, in {clusters}, at number {number}.")
}

fn item(item: &Attention) -> String {
    let (title, text) = (escaped(&item.title), escaped(&item.text));
    format!("<li class=\"s{}\"><div><strong>{title}</strong><p>{text}</p></div></li>", item.state)
}

/// Escapes a text for HTML. Control characters, and those that change the direction of a text, become �.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                out.push('\u{fffd}');
            }
            c if c.is_control() && c != '\n' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
