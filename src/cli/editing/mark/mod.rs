//! Shared by `berth label`, `taint` and `cordon`: selects clusters, finds the documents that describe them, and makes
//! all edits or none. Changes values of a document that describes a cluster, and nothing else in its text.
//!
//! - [`labels`], [`taints`]: parse command-line words and find changes of a document.

pub mod labels;
pub mod taints;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value as Json;

use super::working_tree::{Edit, WorkingTree, refused, would_be_faulty};
use crate::flags::fleet::RepoArg;
use crate::output::changes::coloured;
use crate::output::results::{Format, ResultKind};
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit, Outcome};
use berth_base::diag::did_you_mean;
use berth_base::edit::{self, EditError, Found, Step};
use berth_base::meta::parse_requirements;
use berth_base::text::counted;
use berth_engine::dialects::{ClusterKind, cluster_kinds};
use berth_engine::plan::Counts;

/// The clusters to edit, and the output
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct MarkArgs {
    /// All clusters with these labels, as kubectl selects: `env=prod,!legacy`
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub selector: Option<String>,
    #[command(flatten)]
    pub repo: RepoArg,
    /// Show the lines that would change, and write nothing
    #[arg(long)]
    pub dry_run: bool,
    #[arg(short, long, value_enum, default_value = "text")]
    pub output: Format,
}

/// A document that describes a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Described<'t> {
    pub file: &'t Arc<str>,
    pub found: &'t Found,
    pub kind: &'static ClusterKind,
}

/// A cluster, and every document that describes it.
#[derive(Debug)]
pub struct Chosen<'t> {
    pub name: String,
    pub documents: Vec<Described<'t>>,
}

/// The result for each document of one cluster, or all reasons to refuse it.
pub type EditResult<'t> = Result<Vec<(Described<'t>, DocumentChanges)>, Vec<String>>;

/// Returns the edited files. A file may have several of the documents.
fn edits(
    tree: &WorkingTree,
    done: &[(&Chosen<'_>, Described<'_>, DocumentChanges)],
) -> Result<Vec<Edit>, CommandError> {
    let mut texts: BTreeMap<&Arc<str>, String> = BTreeMap::new();
    for (_, Described { file, found, .. }, outcome) in done.iter().filter(|one| !one.2.changes.is_empty()) {
        let text = match texts.get(file) {
            Some(text) => text,
            None => tree.text(file)?,
        };
        let text = apply(text, found, &outcome.changes).map_err(|error| refused(file, found, &error))?;
        texts.insert(file, text);
    }
    Ok(texts.into_iter().map(|(file, text)| Edit { path: file.to_string(), text: Some(text) }).collect())
}

/// Returns the files with marks of these clusters, and writes nothing.
pub fn marked(
    tree: &WorkingTree,
    names: &[String],
    wanted: impl for<'t> Fn(&Chosen<'t>) -> EditResult<'t>,
) -> Result<Vec<Edit>, CommandError> {
    let chosen = choose(tree, names, None)?;
    edits(tree, &in_all(&chosen, wanted)?)
}

/// Returns the changes of every document of the clusters, or the problems of all.
fn in_all<'c, 't>(
    chosen: &'c [Chosen<'t>],
    wanted: impl Fn(&Chosen<'t>) -> EditResult<'t>,
) -> Result<Vec<(&'c Chosen<'t>, Described<'t>, DocumentChanges)>, CommandError> {
    let (mut done, mut problems) = (Vec::new(), Vec::new());
    for cluster in chosen {
        match wanted(cluster) {
            Ok(all) => done.extend(all.into_iter().map(|(document, outcome)| (cluster, document, outcome))),
            Err(all) => {
                problems.extend(all.into_iter().map(|problem| format!("{}: {problem}", cluster.name)));
            }
        }
    }
    match problems.is_empty() {
        true => Ok(done),
        false => Err(CommandError::usage(problems.join("\n")).hint("nothing was written")),
    }
}

/// Edits the selected clusters, all or none of them.
pub fn mark(
    args: &MarkArgs,
    names: &[String],
    ui: &Ui,
    wanted: impl for<'t> Fn(&Chosen<'t>) -> EditResult<'t>,
) -> Outcome {
    let tree = WorkingTree::read(&args.repo.path)?;
    ui.diagnostics(&tree.unreadable());
    let chosen = choose(&tree, names, args.selector.as_deref())?;
    let done = in_all(&chosen, wanted)?;
    let edits = edits(&tree, &done)?;
    let (_, new_errors) = tree.check(&edits);
    if let Some(error) = would_be_faulty(&new_errors) {
        return Err(error);
    }
    let counts = if edits.is_empty() { Counts::default() } else { tree.plan(&edits)?.counts() };
    if !edits.is_empty() {
        ui.diagnostics(&tree.lacking(&edits)?);
    }
    if !args.dry_run {
        tree.write(&edits)?;
    }
    match args.output {
        Format::Text if args.dry_run => {
            for Edit { path, text } in &edits {
                ui.out(&coloured(tree.text(path)?, text.as_deref().unwrap_or_default(), path, ui));
            }
        }
        Format::Text => {
            for (cluster, Described { file, .. }, outcome) in &done {
                outcome
                    .descriptions
                    .iter()
                    .for_each(|change| ui.out(&format!("{}: {change} ({file})", cluster.name)));
            }
        }
        format => format.write(ResultKind::MarkResult, &MarkResult::of(&done, counts, !args.dry_run), ui),
    }
    for (cluster, _, outcome) in &done {
        outcome.notes.iter().for_each(|note| ui.status(&format!("{}: {note}", cluster.name)));
    }
    ui.status(&next(&edits, counts, args.dry_run));
    Ok(Exit::Done)
}

/// Sorts command-line words into clusters' names and requests.
pub(crate) fn sort_words<W>(
    words: &[String],
    is_wish: fn(&str) -> bool,
    parse: fn(&str) -> Result<W, String>,
) -> Result<(Vec<String>, Vec<W>), CommandError> {
    let (requests, names): (Vec<_>, Vec<_>) = words.iter().cloned().partition(|word| is_wish(word));
    let read: Vec<Result<W, String>> = requests.iter().map(|word| parse(word)).collect();
    let faults: Vec<String> = read.iter().filter_map(|one| one.as_ref().err().cloned()).collect();
    if !faults.is_empty() {
        return Err(CommandError::usage(faults.join("\n")));
    }
    Ok((names, read.into_iter().flatten().collect()))
}

fn choose<'t>(
    tree: &'t WorkingTree,
    names: &[String],
    selector: Option<&str>,
) -> Result<Vec<Chosen<'t>>, CommandError> {
    if names.is_empty() == selector.is_none() {
        return Err(CommandError::usage("name clusters, or select them by labels with -l, but not both"));
    }
    let mut described: BTreeMap<&str, Vec<Described<'t>>> = BTreeMap::new();
    for (file, found) in tree.objects() {
        let kind = cluster_kinds().find(|kind| (kind.group, kind.kind) == (found.group(), &*found.kind));
        if let Some(kind) = kind {
            described.entry(&found.name).or_default().push(Described { file, found, kind });
        }
    }
    let names: Vec<String> = match selector {
        None => names.to_vec(),
        Some(text) => {
            let selector =
                parse_requirements(text).map_err(|fault| CommandError::usage(format!("-l: {fault}")))?;
            let clusters = tree.loaded.fleet.clusters.values();
            let meant = clusters.filter(|cluster| selector.matches(&cluster.labels));
            let names: Vec<String> = meant.map(|cluster| cluster.name.to_string()).collect();
            if names.is_empty() {
                return Err(CommandError::usage(format!("no cluster has the labels `{text}`")));
            }
            names
        }
    };
    let mut problems = Vec::new();
    let mut chosen: BTreeMap<String, Chosen<'t>> = BTreeMap::new();
    for name in names {
        match described.get(name.as_str()) {
            None => {
                let near = did_you_mean(&name, described.keys().copied());
                let near = near.map_or_else(String::new, |near| format!("; {near}"));
                problems.push(format!("no file of this fleet describes the cluster `{name}`{near}"));
            }
            Some(documents) => {
                problems.extend(described_twice(&name, documents));
                chosen.insert(name.clone(), Chosen { name, documents: documents.clone() });
            }
        }
    }
    if problems.is_empty() {
        Ok(chosen.into_values().collect())
    } else {
        Err(CommandError::usage(problems.join("\n")))
    }
}

/// Describes two documents of the same kind and name: it is undefined which of them counts.
fn described_twice(name: &str, documents: &[Described<'_>]) -> Option<String> {
    let same = |(index, one): (usize, &Described<'_>)| {
        let other = documents[..index].iter().find(|other| other.found.kind == one.found.kind)?;
        let place =
            |one: &Described<'_>| format!("{}:{}:{}", one.file, one.found.at.line, one.found.at.column);
        Some(format!("{} {name} is described twice: {} and {}", one.found.kind, place(other), place(one)))
    };
    documents.iter().enumerate().find_map(same)
}

/// The edited clusters, for programs.
#[derive(Serialize)]
struct MarkResult<'a> {
    clusters: Vec<MarkedForm<'a>>,
    plan: CountsForm,
    written: bool,
}

#[derive(Serialize)]
struct MarkedForm<'a> {
    cluster: &'a str,
    kind: &'a str,
    file: &'a str,
    line: u32,
    changes: &'a [String],
    notes: &'a [String],
}

#[derive(Serialize)]
struct CountsForm {
    removed: usize,
    changed: usize,
    added: usize,
    clusters: usize,
}

impl<'a> MarkResult<'a> {
    fn of(
        done: &'a [(&Chosen<'_>, Described<'_>, DocumentChanges)],
        counts: Counts,
        written: bool,
    ) -> MarkResult<'a> {
        let one =
            |(cluster, document, outcome): &'a (&Chosen<'_>, Described<'_>, DocumentChanges)| MarkedForm {
                cluster: &cluster.name,
                kind: document.kind.kind,
                file: document.file,
                line: document.found.at.line,
                changes: &outcome.descriptions,
                notes: &outcome.notes,
            };
        let Counts { removed, changed, added, clusters, .. } = counts;
        let plan = CountsForm { removed, changed, added, clusters };
        MarkResult { clusters: done.iter().map(one).collect(), plan, written }
    }
}

fn next(edits: &[Edit], counts: Counts, dry_run: bool) -> String {
    if edits.is_empty() {
        return "nothing to change".to_owned();
    }
    let does = match in_words(counts) {
        None => "changes no objects".to_owned(),
        Some(words) => format!("{words} in {}", counted(counts.clusters, "cluster")),
    };
    match dry_run {
        true => format!("{does}\nnothing was written; run without --dry-run to edit the files"),
        false => format!("{does}\nnext: commit, and look at `berth plan`"),
    }
}

/// Describes counts, as `removes 1 object, changes 2 objects`; `None` if nothing changes.
fn in_words(counts: Counts) -> Option<String> {
    let Counts { removed, changed, added, .. } = counts;
    let sorts = [("removes", removed), ("changes", changed), ("adds", added)];
    let sorts = sorts.into_iter().filter(|(_, count)| *count > 0);
    let words: Vec<String> =
        sorts.map(|(verb, count)| format!("{verb} {}", counted(count, "object"))).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// A change of one value of the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueChange {
    pub path: Vec<Step>,
    pub what: ValueEdit,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueEdit {
    Set(Json),
    Append(Json),
    /// Removes the value, and parents that an insertion would have created.
    Remove,
}

/// The changes of a document, and notes about requests that are already fulfilled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentChanges {
    /// In an order that keeps indexes valid.
    pub changes: Vec<ValueChange>,
    /// The descriptions of the changes.
    pub descriptions: Vec<String>,
    /// The requests that were already fulfilled.
    pub notes: Vec<String>,
}

/// Applies the changes to the text of the document's file.
pub fn apply(text: &str, found: &Found, changes: &[ValueChange]) -> Result<String, EditError> {
    let mut text = text.to_owned();
    for ValueChange { path, what } in changes {
        let path = found.path_to(path);
        text = match what {
            ValueEdit::Set(value) => edit::set(&text, found.document, &path, value),
            ValueEdit::Append(value) => edit::insert(&text, found.document, &path, value),
            ValueEdit::Remove => edit::undo_insert(&text, found.document, &path),
        }?;
    }
    Ok(text)
}
