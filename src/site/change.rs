//! A change that is not published yet: its first step beside its end.

use std::collections::{BTreeMap, VecDeque};

use berth_base::text::cut;
use berth_engine::consequences::folded::Section;

use crate::form::{ChangeDetails, RemarkForm, StepForm, StepsForm};
use crate::grid::Grid;
use crate::inputs::{PlannedChange, Remark, words_of};
use crate::publications::{cause, changes, consequence, held, replicas};

/// The number of lines of a remark, and the length of one.
const MOST_LINES: usize = 200;
const LONGEST_LINE: usize = 2_000;

pub(crate) fn details(change: &PlannedChange, grid: &Grid<'_>) -> ChangeDetails {
    ChangeDetails {
        title: cut(&change.title, LONGEST_LINE),
        words: cut(&change.words, LONGEST_LINE),
        source: change.source.clone(),
        now: changes(change.now.counts),
        end: changes(change.end.counts),
        held: change.held.iter().map(|one| held(one, grid)).collect(),
        remarks: change.remarks.iter().map(remark).collect(),
        rows: rows(change, grid),
        idle: change.end.plan.idle.iter().map(cause).collect(),
    }
}

/// Pairs the sections of both sides by their edits. A section that only the first step has comes last.
fn rows(change: &PlannedChange, grid: &Grid<'_>) -> Vec<StepsForm> {
    let mut first: BTreeMap<_, VecDeque<&Section>> = BTreeMap::new();
    for section in &change.now.plan.sections {
        first.entry(&section.inputs).or_default().push_back(section);
    }
    let ends = change.end.plan.sections.iter().map(|end| {
        let now = first.get_mut(&end.inputs).and_then(VecDeque::pop_front);
        row([now, Some(end)], grid)
    });
    let mut rows: Vec<StepsForm> = ends.collect();
    rows.extend(first.values().flatten().map(|now| row([Some(*now), None], grid)));
    rows
}

fn row(sides: [Option<&Section>; 2], grid: &Grid<'_>) -> StepsForm {
    let step = |side: Option<&Section>| StepForm {
        consequences: side
            .into_iter()
            .flat_map(|side| &side.consequences)
            .map(|one| consequence(one, grid))
            .collect(),
        replicas: side.into_iter().flat_map(|side| &side.replicas).map(replicas).collect(),
    };
    let known = sides[1].or(sides[0]);
    StepsForm {
        causes: known.into_iter().flat_map(|section| &section.causes).map(cause).collect(),
        how: known.and_then(|section| section.how).and_then(words_of).map(str::to_owned),
        now: step(sides[0]),
        end: step(sides[1]),
    }
}

fn remark(remark: &Remark) -> RemarkForm {
    let line = |(mark, words): &(char, String)| (*mark, cut(words, LONGEST_LINE));
    let mut lines: Vec<(char, String)> = remark.lines.iter().take(MOST_LINES).map(line).collect();
    if remark.lines.len() > MOST_LINES {
        lines.push((' ', format!("and {} more", remark.lines.len() - MOST_LINES)));
    }
    RemarkForm { heading: cut(&remark.heading, LONGEST_LINE), lines }
}
