//! Removing: the bytes that belong to a key or an item. A value in its own lines is removed with whole lines;
//! comments above it stay, because they may belong to something else.

use std::ops::Range;

use super::EditError;
use super::place::{Place, Step};
use super::verify::{Cut, Original};
use crate::yaml::outline::{OutlineEntry, Shape};

pub(super) fn remove(source: &Original<'_>, path: &[Step]) -> Result<Cut, EditError> {
    let refused = EditError::not_in_place;
    let (last, above) = path.split_last().ok_or_else(refused)?;
    let (parent, depth) = source.descend(above)?;
    if depth < above.len() {
        return Err(refused());
    }
    let (parts, index, inside) = match (&parent.value.shape, last) {
        (Shape::Map { entries, flow }, Step::Key(key)) => {
            let index = entries.iter().position(|entry| entry.key == *key).ok_or_else(refused)?;
            let part = |entry: &OutlineEntry| entry.key_bytes.start..entry.end();
            (entries.iter().map(part).collect::<Vec<_>>(), index, flow.map(|flow| flow.inside))
        }
        (Shape::List { items, flow: Some(flow) }, Step::Index(index)) => {
            (items.iter().map(|item| item.bytes.clone()).collect(), *index, Some(flow.inside))
        }
        (Shape::List { items, flow: None }, Step::Index(index)) => {
            let part = |index| {
                let dash = source.dash(parent, items, index)?;
                Ok(dash..items.get(index).map_or(dash + 1, |item| item.bytes.end.max(dash + 1)))
            };
            ((0..items.len()).map(part).collect::<Result<Vec<Range<usize>>, EditError>>()?, *index, None)
        }
        _ => return Err(refused()),
    };
    let part = parts.get(index).ok_or_else(refused)?.clone();
    let cut = |bytes| Ok(Cut { bytes, with: String::new() });
    match (inside, parts.len()) {
        (Some(inside), 1) => cut(inside..parent.value.bytes.end.saturating_sub(1).max(inside)),
        (Some(_), _) => match parts.get(index + 1) {
            Some(next) => cut(part.start..next.start),
            None => cut(parts.get(index.wrapping_sub(1)).map_or(part.start, |before| before.end)..part.end),
        },
        (None, 1) => Ok(emptied(source, parent, &part, matches!(last, Step::Index(_)))),
        (None, _) if source.begins_its_line(part.start) => cut(whole_lines(source, &part)),
        // A key directly behind a dash: the next key moves up to the dash.
        (None, _) => match parts.get(index + 1) {
            Some(next)
                if source.text.get(part.end..next.start).is_some_and(|between| between.trim().is_empty()) =>
            {
                cut(part.start..next.start)
            }
            _ => cut(part),
        },
    }
}

/// Reports whether a value has its own brackets and lines, outside of any brackets of its parent.
pub(super) fn is_bracketed(source: &Original<'_>, path: &[Step]) -> bool {
    let Ok((place, _)) = source.descend(path) else { return false };
    let brackets =
        matches!(place.value.shape, Shape::Map { flow: Some(_), .. } | Shape::List { flow: Some(_), .. });
    brackets && !place.in_flow
}

/// Reports whether a key or an item is the only content of its parent: nothing else, and no comment beside or
/// in it.
pub(super) fn is_alone(source: &Original<'_>, path: &[Step]) -> bool {
    let Some((last, above)) = path.split_last() else { return false };
    let Ok((holder, depth)) = source.descend(above) else { return false };
    let part = match (&holder.value.shape, last) {
        (Shape::Map { entries, .. }, Step::Key(key)) => match entries.as_slice() {
            [entry] if entry.key == *key => Some(entry.key_bytes.start..entry.end()),
            _ => None,
        },
        (Shape::List { items, flow }, Step::Index(0)) => match (items.as_slice(), flow) {
            ([item], Some(_)) => Some(item.bytes.clone()),
            ([item], None) => source.dash(holder, items, 0).ok().map(|dash| dash..item.bytes.end),
            _ => None,
        },
        _ => None,
    };
    let Some(part) = part else { return false };
    let end = holder.value.bytes.end.max(part.end);
    let behind = source.text.get(end..source.line_end(end)).unwrap_or_default();
    // After a closing bracket, the line belongs to more than the holder.
    let closing = behind.find(['}', ']']).filter(|_| holder.in_flow);
    let end = end + closing.unwrap_or(behind.len());
    let around = [holder.from..part.start, part.end..end];
    let comments =
        around.into_iter().any(|bytes| source.text.get(bytes).is_none_or(|text| text.contains('#')));
    depth == above.len() && !above.is_empty() && !comments
}

/// Replaces the last key or item of a block mapping or list by empty brackets.
fn emptied(source: &Original<'_>, parent: Place<'_>, part: &Range<usize>, is_list: bool) -> Cut {
    let brackets = if is_list { "[]" } else { "{}" };
    if parent.column.is_none() {
        return Cut { bytes: part.clone(), with: brackets.to_owned() };
    }
    // A comment on the key's line stays, and so do comments in between.
    let between = source.text.get(parent.from..part.start).unwrap_or_default();
    if between.trim().is_empty() {
        return Cut { bytes: parent.from..part.end, with: format!(" {brackets}") };
    }
    let kept = between.trim_end();
    Cut { bytes: parent.from..part.end, with: format!(" {brackets}{kept}", kept = spaced(kept)) }
}

fn spaced(kept: &str) -> String {
    if kept.starts_with([' ', '\n', '\r', '\t']) { kept.to_owned() } else { format!(" {kept}") }
}

fn whole_lines(source: &Original<'_>, part: &Range<usize>) -> Range<usize> {
    let start = source.line_start(part.start);
    // A block that keeps its line breaks ends at the beginning of a line.
    let ended = source.text.get(..part.end).is_some_and(|before| before.ends_with(['\n', '\r']));
    let end = if ended { part.end } else { source.next_line(part.end) };
    let unended = !source.text.get(..end).is_some_and(|before| before.ends_with(['\n', '\r']));
    if unended && start > 0 {
        // The last line of a file without a final line break: remove the break before it.
        let before = source.text.get(..start).unwrap_or_default();
        let before = before.strip_suffix('\n').unwrap_or(before);
        return before.strip_suffix('\r').unwrap_or(before).len()..end;
    }
    start..end
}
