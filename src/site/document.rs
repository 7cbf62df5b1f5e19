//! The first page: the sentence and the list as plain HTML, readable without scripts and without data.

use berth_base::diag::is_harmless;
use berth_base::text::counted;

use crate::cell::CellState;
use crate::form::{Attention, Head};

/// The page around it.
const PAGE: &str = include_str!("assets/page.html");

/// The number of items in the list. Scripts show all of them.
const MOST_ITEMS: usize = 12;

/// Returns `index.html`.
pub(crate) fn first_page(head: &Head) -> String {
    let mut page = String::with_capacity(PAGE.len() * 2);
    // The values are inserted in one walk: a value that looks like a placeholder stays a text.
    for (index, part) in PAGE.split("{{").enumerate() {
        let Some((name, rest)) = part.split_once("}}").filter(|_| index > 0) else {
            page.push_str(part);
            continue;
        };
        match name {
            "fleet" => page.push_str(&escaped(&head.fleet)),
            "title" => {
                let title = head.change.as_ref().map_or(&head.title, |change| &change.title);
                page.push_str(&escaped(title));
            }
            "first" => page.push_str(&first_view(head)),
            _ => {}
        }
        page.push_str(rest);
    }
    page
}

/// Sets the sentence and the title. They claim no more than every item, copy and cluster of the head allows.
pub(crate) fn set_sentence(head: &mut Head) {
    let copies = |states: &[CellState]| -> usize {
        states.iter().filter_map(|state| head.totals.get(*state as usize)).sum()
    };
    let clusters = |is_own: &dyn Fn(CellState) -> bool| -> usize {
        let of_state = head.clusters.iter().filter(|(word, _)| is_own(CellState::of_cluster(word)));
        of_state.map(|(_, count)| count).sum()
    };
    let bad: usize = head.totals.iter().skip(CellState::Drifted as usize).sum();
    let bad_clusters = clusters(&|state| !state.is_in_order());
    let moving = copies(&[CellState::Waits, CellState::Progressing]);
    let moving_clusters = clusters(&|state| state == CellState::Progressing);
    let on_their_way = |count: usize, noun: &str| {
        let (counted, verb) = (counted(count, noun), if count == 1 { "is" } else { "are" });
        let way = if count == 1 { "its" } else { "their" };
        (format!("Nothing is wrong; {counted} {verb} on {way} way."), format!("{count} on {way} way"))
    };
    let out_of_order = |count: usize, noun: &str| {
        let (counted, verb) = (counted(count, noun), if count == 1 { "is" } else { "are" });
        (format!("{counted} {verb} not in order."), format!("{count} not in order"))
    };
    let (sentence, title) = match head.attention.len() {
        0 if bad > 0 => out_of_order(bad, "copy"),
        0 if bad_clusters > 0 => out_of_order(bad_clusters, "cluster"),
        0 if !head.has_reports => {
            let number = head.shown.sequence;
            (format!("Number {number} is published."), format!("number {number}"))
        }
        0 if moving > 0 => on_their_way(moving, "copy"),
        0 if moving_clusters > 0 => on_their_way(moving_clusters, "cluster"),
        0 => ("Every cluster has what the source says.".to_owned(), "all in sync".to_owned()),
        1 => ("One thing differs from what the source says.".to_owned(), "1 to look at".to_owned()),
        count => (format!("{count} things differ from what the source says."), format!("{count} to look at")),
    };
    (head.sentence, head.title) = (sentence, title);
}

fn first_view(head: &Head) -> String {
    let items: String = head.attention.iter().take(MOST_ITEMS).map(item).collect();
    let list = if items.is_empty() { items } else { format!("<ol class=\"items\">{items}</ol>") };
    let (sentence, summary) = (escaped(&head.sentence), escaped(&summary(head)));
    let change = head.change.as_ref().map(|change| {
        let (title, words) = (escaped(&change.title), escaped(&change.words));
        format!("<h1>{title}</h1><p class=\"sub\">{words}</p><h2>The fleet as it is</h2>")
    });
    let level = if change.is_some() { "h3" } else { "h1" };
    let fleet = format!("<{level}>{sentence}</{level}><p class=\"sub\">{summary}</p>{list}");
    change.unwrap_or_default() + &fleet
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
            c if !is_harmless(c) && c != '\n' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
