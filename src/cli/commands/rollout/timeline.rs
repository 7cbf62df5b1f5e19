//! A rollout over time, for a terminal.

use std::fmt::Write as _;

use crate::output::ui::{Tone, Ui};
use berth_base::diag::harmless_line;
use berth_base::model::Timestamp;
use berth_base::text::counted;
use berth_engine::rollouts::RolloutProgress;
use berth_site::{TextRollout, TimeLine, TimeMark};

/// The number of lines of a stage, and the width of names.
const LINES: usize = 12;
const NAMES: usize = 18;

/// The width where it is not a terminal's, and the smallest one of the marks.
const WIDTH: usize = 80;
const NARROWEST: usize = 44;

/// Draws a rollout until this moment, with the marks of `berth rollout list`. `None` for one that has not begun.
pub(super) fn timeline(rollout: &RolloutProgress, now: Timestamp, ui: &Ui) -> Option<String> {
    let width = ui.out_width().unwrap_or(WIDTH).saturating_sub(NAMES + 3).max(NARROWEST);
    let drawn = TextRollout::of(rollout, now.as_second(), LINES, width);
    if drawn.begin == drawn.end {
        return None;
    }
    let mut text = format!("{:NAMES$}   {}\n", "", axis(&drawn, width));
    for stage in &drawn.stages {
        if !stage.name.is_empty() {
            let _ = writeln!(text, "{}", ui.tint(&name(&stage.name, NAMES), Tone::Strong));
        }
        for line in &stage.lines {
            let marks: String = line.marks.iter().map(|one| mark(*one, ui)).collect();
            let _ = writeln!(text, "  {} {marks}", name(&names(line), NAMES));
        }
    }
    Some(text.trim_end().to_owned())
}

/// Returns the first and the last moment, at both ends of the lines.
fn axis(drawn: &TextRollout, width: usize) -> String {
    let moment = |seconds| Timestamp::from_second(seconds).map(|at| at.to_string()).unwrap_or_default();
    let (begin, end) = (moment(drawn.begin), moment(drawn.end));
    let room = width.saturating_sub(begin.len());
    format!("{begin}{end:>room$}")
}

fn names(line: &TimeLine) -> String {
    match line.clusters.as_slice() {
        [one] => one.clone(),
        several => counted(several.len(), "cluster"),
    }
}

/// Returns a text in exactly this many characters.
fn name(text: &str, width: usize) -> String {
    let text = harmless_line(text);
    match text.chars().count() > width {
        true => text.chars().take(width - 1).chain(['~']).collect(),
        false => format!("{text:width$}"),
    }
}

fn mark(mark: TimeMark, ui: &Ui) -> String {
    let (mark, tone) = match mark {
        TimeMark::Succeeded => ("#", Tone::Good),
        TimeMark::Waits => (".", Tone::Faint),
        TimeMark::Assigned => (">", Tone::Strong),
        TimeMark::Failed => ("x", Tone::Bad),
    };
    ui.tint(mark, tone)
}
