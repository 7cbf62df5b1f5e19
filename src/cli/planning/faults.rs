//! Finds the errors that an edit adds to a fleet, misspelt fields, and changes that a hub would refuse.
//!
//! Editing a file moves its lines, so an error is identified by its file, its object and its message.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::process::exit::CommandError;
use crate::slips::{self, Slip};
use berth_base::diag::{Diagnostic, Diagnostics, Pos, Severity};
use berth_base::edit::{Found, Objects};
use berth_base::model::{Key, Object, Timestamp, Workload};
use berth_base::parallel;
use berth_base::source::{SourceFile, SourceTree};
use berth_base::yaml::{self, Limits, Mark, Node, Value};
use berth_engine::dialects::{DIALECTS, FileText};
use berth_git::source_tree::read_source;
use berth_git::{CommitId, Repo};
use berth_hub::inputs::{BuildCache, PassInputs, Reports, SourceCommit, UnpublishedContents};

/// An error without its line.
type FaultKey = (Option<Arc<str>>, Option<ObjectNames>, String);

/// Kind with group, namespace, name.
type ObjectNames = (String, String, String, String);

/// The number of occurrences of each error.
#[derive(Debug)]
pub struct Faults(BTreeMap<FaultKey, usize>);

impl Faults {
    pub fn of<'f>(found: &Diagnostics, files: impl Iterator<Item = &'f (Arc<str>, Objects)>) -> Faults {
        let files = by_path(files);
        let mut faults = BTreeMap::new();
        for one in found.errors() {
            *faults.entry(fault(one, &files)).or_default() += 1;
        }
        Faults(faults)
    }

    /// Returns the errors that are not among these, or that occur more often.
    pub(crate) fn not_among<'f>(
        mut self,
        found: &Diagnostics,
        files: impl Iterator<Item = &'f (Arc<str>, Objects)>,
    ) -> Diagnostics {
        let files = by_path(files);
        let mut new = Diagnostics::new();
        for one in found.errors() {
            match self.0.get_mut(&fault(one, &files)) {
                Some(left) if *left > 0 => *left -= 1,
                _ => new.push(one.clone()),
            }
        }
        new
    }
}

fn by_path<'f>(files: impl Iterator<Item = &'f (Arc<str>, Objects)>) -> BTreeMap<&'f str, &'f Objects> {
    files.map(|(path, objects)| (&**path, objects)).collect()
}

fn fault(one: &Diagnostic, files: &BTreeMap<&str, &Objects>) -> FaultKey {
    let file = one.at.as_ref().map(|at| at.file.clone());
    let object = one.at.as_ref().and_then(|at| {
        // The last document that begins before the error, among those that contain its line.
        let around = |found: &&Found| {
            found.lines.contains(&at.line) && (found.at.line, found.at.column) <= (at.line, at.column)
        };
        let found = files.get(&*at.file)?.found.iter().filter(around).max_by_key(|found| found.at)?;
        let Found { kind, namespace, name, .. } = found;
        Some((found.group().to_owned(), kind.clone(), namespace.clone(), name.clone()))
    });
    (file, object, without_lines(&one.message))
}

/// Removes the lines and columns of places from a message: `file:3:1` becomes `file`.
pub(crate) fn without_lines(message: &str) -> String {
    let mut parts = message.split(':');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        if rest.len() == part.len() {
            text.push(':');
        }
        text.push_str(rest);
    }
    text
}

/// The diagnostics of a source before a change, without their lines, with their numbers.
#[derive(Debug, Default)]
pub(crate) struct StandingFaults(BTreeMap<(Severity, String, String), usize>);

impl StandingFaults {
    /// Reads the source before a change. Includes misspelt fields of these workloads.
    pub fn of<'k>(
        before: SourceCommit<'_>,
        reports: Reports,
        workloads: impl Iterator<Item = &'k Key>,
        clock: Timestamp,
    ) -> Result<StandingFaults, CommandError> {
        let inputs = PassInputs::commit(before, reports, clock, BuildCache::default())?;
        let built = inputs.build(&mut UnpublishedContents::naming(&inputs)?)?;
        let workloads = workloads.filter_map(|key| built.fleet.workloads.get(key));
        let slips = misspelt_fields(workloads.map(|workload| &**workload), inputs.tree());
        let mut standing = StandingFaults::default();
        for one in built.diagnostics.iter().chain(inputs.reports.odd.iter()).chain(slips.iter()) {
            *standing.0.entry(standing_key(one)).or_default() += 1;
        }
        Ok(standing)
    }

    /// Returns the diagnostics that existed before the change, not more often than then.
    pub fn among(mut self, found: &Diagnostics) -> Diagnostics {
        let mut known = Diagnostics::new();
        for one in found.iter() {
            if let Some(left) = self.0.get_mut(&standing_key(one)).filter(|left| **left > 0) {
                *left -= 1;
                known.push(one.clone());
            }
        }
        known
    }
}

fn standing_key(one: &Diagnostic) -> (Severity, String, String) {
    let file = one.at.as_ref().map(|at| at.file.to_string()).unwrap_or_default();
    (one.severity, file, without_lines(&one.message))
}

/// Returns warnings for misspelt fields of built-in kinds, for every object of these workloads.
pub(crate) fn misspelt_fields<'f>(
    workloads: impl Iterator<Item = &'f Workload>,
    tree: &SourceTree,
) -> Diagnostics {
    let mut found = Diagnostics::new();
    let mut files = BTreeMap::new();
    let templates = workloads.flat_map(|workload| &workload.templates);
    let mut seen = BTreeSet::new();
    let objects = templates.map(|template| &*template.object);
    // Several placements may contain the same object.
    let objects: Vec<&Object> = objects.filter(|object| seen.insert((&object.origin, &object.id))).collect();
    let slips = parallel::map(&objects, |object| slips::slips(&object.content.to_json()));
    for (object, slips) in objects.into_iter().zip(slips) {
        for slip in slips {
            let roots = files.entry(object.origin.file.clone()).or_insert_with(|| {
                let file = tree.files.get(&object.origin.file);
                file.map(|file| yaml::read(&file.bytes, &Limits::default()).documents).unwrap_or_default()
            });
            let nodes = roots.iter().map(|document| &document.root);
            let at = place(nodes, &object.origin, &slip).unwrap_or_else(|| object.origin.clone());
            let message = format!("{}: unknown field `{}`", object.id, slip.shown());
            let hint = format!("did you mean `{}`?", slip.meant);
            found.push(Diagnostic::warning(at, message).hint(hint));
        }
    }
    found
}

/// Returns the place of the misspelt key, in the document itself or in its template.
fn place<'n>(nodes: impl Iterator<Item = &'n Node>, origin: &Pos, slip: &Slip) -> Option<Pos> {
    let start = Mark { line: origin.line, column: origin.column };
    let mut documents: Vec<&Node> = nodes.collect();
    // The last document that does not begin after the object's description.
    documents.retain(|node| node.at <= start);
    let root = documents.into_iter().max_by_key(|node| node.at)?;
    let template = root.get("spec").and_then(|spec| spec.get("template"));
    let mark = [Some(root), template].into_iter().flatten().find_map(|node| key_mark(node, &slip.path))?;
    Some(Pos::new(origin.file.clone(), mark.line, mark.column))
}

fn key_mark(node: &Node, path: &[String]) -> Option<Mark> {
    let (first, rest) = path.split_first()?;
    match &node.value {
        Value::Map(entries) => {
            let entry = entries.iter().find(|entry| entry.key == *first)?;
            if rest.is_empty() { Some(entry.at) } else { key_mark(&entry.value, rest) }
        }
        Value::List(items) => key_mark(items.get(first.parse::<usize>().ok()?)?, rest),
        _ => None,
    }
}

/// Returns the changes since another commit's files that a hub would refuse, where that commit is available.
pub(crate) fn refused_by_hubs(
    repo: &Repo,
    base: Option<CommitId>,
    head: &SourceTree,
) -> Result<Diagnostics, CommandError> {
    let Some(base) = base.filter(|base| repo.has_commit(*base)) else { return Ok(Diagnostics::new()) };
    let base = read_source(repo, base)?;
    let (mut before, mut after): (Vec<FileText>, Vec<FileText>) = Default::default();
    let text = |file: &SourceFile| (file.path.clone(), file.bytes.clone());
    for change in base.files.changes_by(&head.files, |base, head| base.id == head.id) {
        before.extend(change.before.map(text));
        after.extend(change.after.map(text));
    }
    let mut refused = Diagnostics::new();
    for dialect in DIALECTS {
        refused.extend((dialect.shown.refused_by_hub)(&before, &after));
    }
    Ok(refused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_base::diag::Pos;
    use berth_base::edit::objects;

    fn file(path: &str, text: &str) -> (Arc<str>, Objects) {
        (path.into(), objects(text.as_bytes()))
    }

    fn errors(all: &[(&str, u32, &str)]) -> Diagnostics {
        let mut found = Diagnostics::new();
        found
            .extend(all.iter().map(|(path, line, text)| Diagnostic::error(Pos::new(*path, *line, 3), *text)));
        found
    }

    const TWO: &str =
        "apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\napiVersion: v1\nkind: B\nmetadata: {name: b}\n";

    #[test]
    fn an_error_that_moves_with_its_object_is_not_new_and_the_same_words_elsewhere_are() {
        let longer = TWO.replace("name: a}", "name: a}\ndata: {}");
        let (before, after) = ([file("x.yaml", TWO)], [file("x.yaml", &longer)]);
        let new = |was: &[(&str, u32, &str)], is: &[(&str, u32, &str)]| {
            Faults::of(&errors(was), before.iter()).not_among(&errors(is), after.iter()).len()
        };
        let (was, moved) =
            (("x.yaml", 6, "bad, as x.yaml:3:1 says"), ("x.yaml", 7, "bad, as x.yaml:4:1 says"));
        assert_eq!(new(&[was], &[moved]), 0);
        assert_eq!(new(&[was], &[moved, moved]), 1, "once more than before");
        assert_eq!(new(&[was], &[("x.yaml", 2, was.2)]), 1, "in another object");
        assert_eq!(new(&[was], &[("y.yaml", 6, was.2)]), 1, "in another file");
        assert_eq!(new(&[was], &[("x.yaml", 7, "worse")]), 1);
    }
}
