//! A plan as one comment of a pull request.
//!
//! Names, labels, messages and values come from strangers. They are always inside blocks or spans of code, where a
//! forge makes neither links nor mentions of them.

use std::fmt::Write as _;

use super::outline::{self, Line, Part};
use super::{FLEET, LATER, PlanReport, sections};
use crate::output::held::{MOST_ALONE, approvals_text, held_title, how_to_approve};
use crate::process::exit::CommandError;
use berth_base::diag::{Diagnostic, Severity, harmless_line, harmless_lines};
use berth_base::text::counted;

/// The size limit of a comment in bytes. Forges accept 65,536 characters or more.
const MOST: usize = 60_000;

/// The size limits of the text above and below the parts.
const HEAD: usize = 10_000;
const TAIL: usize = 30_000;

/// The space for the line about omitted parts.
const LEFT_OUT: usize = 200;

/// The number of parts that are expanded initially.
const OPEN: usize = 3;

/// The number of lines of a part if the whole is too long, and of each list.
const SHORT: usize = 12;
const LISTED: usize = 20;

/// The longest line.
const WIDEST: usize = 400;

/// Writes the comment: complete, else with shortened parts, else with as many of them as fit.
pub(super) fn comment(report: &PlanReport<'_>) -> String {
    let (head, tail) = (format!("{}{}", head(report), together_block(report)), tail(report));
    let room = MOST - head.len() - tail.len() - LEFT_OUT;
    let whole = parts(&report.parts(true), usize::MAX, usize::MAX);
    let middle = if whole.len() <= room { whole } else { parts(&report.parts(false), SHORT, room) };
    format!("{head}{middle}{tail}")
}

/// Writes the comment for a change without a plan.
pub(crate) fn failure(error: &CommandError) -> String {
    let hint = error.hint.as_ref().map_or_else(String::new, |hint| format!("\nhint: {hint}"));
    let mut lines: Vec<String> = error.message.lines().map(cut).collect();
    if lines.len() > LISTED {
        let left = counted(lines.len() - LISTED, "more line");
        lines.truncate(LISTED);
        lines.push(format!("and {left}"));
    }
    format!("### berth: no plan\n\n{}", block("", &format!("{}{hint}", lines.join("\n"))))
}

fn head(report: &PlanReport<'_>) -> String {
    let title = format!("### berth: {}\n\n{}\n", report.title(), code(&cut(report.words)));
    let mut text = title.clone();
    for refusal in report.refused.iter().take(LISTED) {
        let hint = refusal.hint.as_ref().map_or_else(String::new, |hint| format!("\nhint: {hint}"));
        let _ = write!(
            text,
            "\n**`berth run` would publish nothing:**\n\n{}",
            block("", &format!("{}{hint}", refusal.message))
        );
    }
    match text.len() <= HEAD {
        true => text,
        false => format!("{title}\n**`berth run` would publish nothing.** `berth plan` tells why.\n"),
    }
}

/// Writes the effects that only several branches together have.
fn together_block(report: &PlanReport<'_>) -> String {
    let Some(together) = report.together else { return String::new() };
    let lines = report.together_lines(together);
    let title = code(&cut(&sections::together_title(together)));
    match lines.is_empty() {
        true => format!("\n{title}\n"),
        false => format!("\n{title}\n\n{}", block("diff", &diff_lines(&lines, LISTED))),
    }
}

/// Writes parts as blocks, as many as fit.
fn parts(parts: &[Part], most_lines: usize, room: usize) -> String {
    let mut text = String::new();
    for (index, part) in parts.iter().enumerate() {
        let shown = part_text(part, index < OPEN, most_lines);
        if text.len() + shown.len() > room {
            let left = counted(parts.len() - index, "more cause");
            let _ = write!(text, "\n{left} left out. `berth plan -v` in a clone shows all of them.\n");
            break;
        }
        text.push_str(&shown);
    }
    text
}

fn part_text(part: &Part, is_open: bool, most_lines: usize) -> String {
    let lines = diff_lines(&part.lines, most_lines);
    match part.headings.split_first() {
        _ if is_open => {
            let headings: Vec<String> = part.headings.iter().map(|heading| code(heading)).collect();
            format!("\n{}\n\n{}", headings.join("<br>\n"), block("diff", &lines))
        }
        Some((first, rest)) => {
            let rest: String = rest.iter().map(|heading| format!("<br>{}", html_code(heading))).collect();
            let summary = format!("{}{rest}", html_code(first));
            format!("\n<details><summary>{summary}</summary>\n\n{}\n</details>\n", block("diff", &lines))
        }
        None => String::new(),
    }
}

/// Writes lines whose first character selects their colour.
fn diff_lines(lines: &[Line], most: usize) -> String {
    let mut text = String::new();
    for line in lines.iter().take(most) {
        let _ = writeln!(text, "{} {}{}", line.sign.mark(), "  ".repeat(line.depth), cut(&line.words));
    }
    if lines.len() > most {
        let _ = writeln!(text, "  and {}", counted(lines.len() - most, "more line"));
    }
    text
}

fn tail(report: &PlanReport<'_>) -> String {
    let mut text = String::new();
    let clusters = report.cluster_lines();
    if !clusters.is_empty() {
        let _ = write!(text, "\n**{FLEET}**\n\n{}", block("diff", &diff_lines(&clusters, LISTED)));
    }
    if let Some(title) = sections::policy_title(report.policy) {
        let _ = write!(text, "\n**{title}**\n");
        let lines = diff_lines(&sections::policy_lines(report.policy), 2 * LISTED);
        if !lines.is_empty() {
            let _ = write!(text, "\n{}", block("diff", &lines));
        }
    }
    for (heading, lines) in sections::rollout_parts(report.rollouts) {
        let _ = write!(text, "\n**{heading}**\n\n{}", block("diff", &diff_lines(&lines, LISTED)));
    }
    if !report.deadlines.is_empty() {
        let lines = diff_lines(&report.deadline_lines(), LISTED);
        let _ = write!(text, "\n**{LATER}**\n\n{}", block("diff", &lines));
    }
    if !report.held.is_empty() {
        let lines = diff_lines(&outline::held_lines(report.held), 2 * LISTED);
        let _ = write!(text, "\n**{}**\n\n{}", held_title(report.held), block("diff", &lines));
    }
    if let Some((how, approval)) = how_to_approve(report.held) {
        let _ = write!(text, "\n{how}\n\n{}", block("", &approval));
        let alone = approvals_text(report.held, MOST_ALONE);
        if let Some((how, lines)) = alone.trim_start().split_once("\n\n") {
            let _ = write!(text, "\n{how}\n\n{}", block("", lines));
        }
    }
    let (new, standing) = report.news();
    let (notes, faults): (Vec<_>, Vec<_>) = new.into_iter().partition(|one| one.severity == Severity::Note);
    text.push_str(&diagnostics("Faults of the fleet's files", &faults));
    // These include approvals that the change contains.
    text.push_str(&diagnostics("Notes", &notes));
    if !standing.is_empty() {
        let summary = format!("Faults and notes that were there before this change: {}", standing.len());
        let _ = write!(
            text,
            "\n<details><summary>{summary}</summary>\n\n{}\n</details>\n",
            diagnostics_block(&standing)
        );
    }
    if text.len() > TAIL {
        text = "\nThe policy findings, held workloads and faults are too many for a comment: `berth plan -v` shows them.\n"
            .to_owned();
    }
    text
}

fn diagnostics(title: &str, found: &[&Diagnostic]) -> String {
    if found.is_empty() {
        return String::new();
    }
    format!("\n**{title}**\n\n{}", diagnostics_block(found))
}

fn diagnostics_block(found: &[&Diagnostic]) -> String {
    let mut lines = String::new();
    for one in found.iter().take(LISTED) {
        let _ = writeln!(lines, "{}", one.to_string().lines().map(cut).collect::<Vec<_>>().join("\n"));
    }
    if found.len() > LISTED {
        let _ = writeln!(lines, "and {} more", found.len() - LISTED);
    }
    block("", &lines)
}

/// Cuts a long line.
fn cut(line: &str) -> String {
    if line.chars().count() <= WIDEST {
        return line.to_owned();
    }
    let start: String = line.chars().take(WIDEST).collect();
    format!("{start}…")
}

/// Writes a block of code, with a fence longer than any in the text.
fn block(language: &str, text: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n", harmless_lines(text).trim_end())
}

/// Writes a span of code, with a delimiter longer than any in the text.
fn code(text: &str) -> String {
    let text = harmless_line(text);
    let delimiter = "`".repeat(longest_run(&text) + 1);
    format!("{delimiter} {text} {delimiter}")
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or_default()
}

/// Writes a span of code in HTML.
fn html_code(text: &str) -> String {
    let mut shown = String::new();
    for c in harmless_line(text).chars() {
        match c {
            '&' => shown.push_str("&amp;"),
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            '"' => shown.push_str("&quot;"),
            '\'' => shown.push_str("&#39;"),
            '`' => shown.push_str("&#96;"),
            '*' | '_' | '[' | ']' | '~' | '|' | '\\' | '@' | '#' | '!' | ':' | '/' | '.' => {
                let _ = write!(shown, "&#{};", u32::from(c));
            }
            other => shown.push(other),
        }
    }
    format!("<code>{shown}</code>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_strangers_ends_no_block_and_no_span() {
        assert_eq!(block("", "a\n````\nb"), "`````\na\n````\nb\n`````\n");
        assert_eq!(code("a `` b"), "``` a `` b ```");
        assert_eq!(html_code("</code><b>@me"), "<code>&lt;&#47;code&gt;&lt;b&gt;&#64;me</code>");
    }
}
