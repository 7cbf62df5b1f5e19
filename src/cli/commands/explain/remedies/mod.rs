//! Finds the smallest edits of the fleet's files with which a placement picks a cluster.
//!
//! [`candidates`] lists edits of fields that the placement's rules read: edits of single values in a source tree, each with
//! its place and description. [`find`] tries each in memory, smallest first, lets the engine decide again, and keeps those
//! with which the cluster is picked.

mod candidates;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::Value as Json;

use crate::editing::mark::{ValueChange, ValueEdit, apply};
use crate::output::ui::{Tone, Ui};
use berth_base::diag::{Diagnostics, Pos, harmless_line};
use berth_base::edit::{Found, Step, objects};
use berth_base::model::{Decision, Key, Map};
use berth_base::source::{SourceFile, SourceTree};
use berth_base::text::{counted, some_of};
use berth_base::yaml::{Node, Value};
use berth_engine::decide::ClusterTrace;
use berth_hub::inputs::PassInputs;
use candidates::{Question, Ways};

/// The number of remedies printed, and of names in a line.
const SHOWN: usize = 8;
const NAMES: usize = 3;

/// The edits found, and the number of edits tried.
#[derive(Debug, Default)]
pub(crate) struct Remedies {
    /// All have the same size: no smaller edit helps.
    pub found: Vec<Remedy>,
    pub tried: usize,
    /// The step that refused the cluster.
    pub reason: String,
}

/// Edits that together let the placement pick the cluster.
#[derive(Debug)]
pub(crate) struct Remedy {
    pub edits: Vec<PlacedEdit>,
    /// Other clusters that the placement then picks, or no longer picks.
    pub gained: Vec<String>,
    pub lost: Vec<String>,
    /// Other placements whose clusters change.
    pub others: Vec<Key>,
}

/// The description of an edit, such as `label env: prd → prod`, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlacedEdit {
    pub at: Pos,
    pub words: String,
}

impl Remedies {
    pub fn text(&self, ui: &Ui) -> String {
        let tried = counted(self.tried, "edit");
        if self.found.is_empty() {
            let line = format!("no edit of the fleet's files was found that makes it picked ({tried} tried)");
            return format!("\n{}\n  {}\n", ui.tint(&line, Tone::Warn), harmless_line(&self.reason));
        }
        let title = match self.found.len() {
            1 => "it would be picked with",
            _ => "it would be picked with any one of",
        };
        let mut text = format!("\n{}\n", ui.tint(title, Tone::Strong));
        for remedy in self.found.iter().take(SHOWN) {
            for (index, edit) in remedy.edits.iter().enumerate() {
                let sign = if index == 0 { "*" } else { "  and" };
                let _ = writeln!(text, "  {sign} {}: {}", place(&edit.at), harmless_line(&edit.words));
            }
            for effect in remedy.effects() {
                let _ = writeln!(text, "      {}", harmless_line(&effect));
            }
        }
        if self.found.len() > SHOWN {
            let _ = writeln!(text, "  and {}", counted(self.found.len() - SHOWN, "other edit"));
        }
        text
    }
}

impl Serialize for Remedy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let form = RemedyForm {
            edits: self.edits.iter().map(RemedyEditForm::of).collect(),
            gained: &self.gained,
            lost: &self.lost,
            other_placements: self.others.iter().map(ToString::to_string).collect(),
        };
        form.serialize(serializer)
    }
}

/// A remedy, for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RemedyForm<'a> {
    edits: Vec<RemedyEditForm<'a>>,
    gained: &'a [String],
    lost: &'a [String],
    other_placements: Vec<String>,
}

#[derive(Serialize)]
struct RemedyEditForm<'a> {
    file: &'a str,
    line: Option<u32>,
    words: &'a str,
}

impl<'a> RemedyEditForm<'a> {
    fn of(PlacedEdit { at, words }: &'a PlacedEdit) -> RemedyEditForm<'a> {
        RemedyEditForm { file: &at.file, line: (at.line > 0).then_some(at.line), words }
    }
}

impl Remedy {
    /// Describes the other effects.
    fn effects(&self) -> Vec<String> {
        let mut effects = Vec::new();
        for (verb, clusters) in [("picks", &self.gained), ("loses", &self.lost)] {
            if !clusters.is_empty() {
                effects.push(format!("it also {verb} {}", some_of(clusters, NAMES)));
            }
        }
        if !self.others.is_empty() {
            let count = counted(self.others.len(), "other placement");
            let verb = if self.others.len() == 1 { "picks or loses" } else { "pick or lose" };
            effects.push(format!(
                "{count} {verb} clusters by it: {}",
                some_of(self.others.iter().map(Key::full_name), NAMES)
            ));
        }
        effects
    }
}

/// Writes a place as `clusters/oslo.yaml:7`. A new file has no line.
fn place(at: &Pos) -> String {
    let file = harmless_line(&at.file);
    if at.line > 0 { format!("{file}:{}", at.line) } else { format!("{file} (new)") }
}

/// The number of edits tried. Each requires all decisions.
const MOST: usize = 120;

/// The number of rules that one remedy satisfies, and of its edits.
const MOST_RULES: usize = 3;
const MOST_EDITS: usize = 6;

/// Finds the smallest edits with which a placement picks a cluster. Restores the inputs afterwards.
pub(crate) fn find(inputs: &mut PassInputs, key: &Key, traced: &ClusterTrace) -> Remedies {
    let (loaded, decided, diagnostics) = inputs.decide();
    let fleet = &loaded.fleet;
    let mut remedies = Remedies { reason: traced.reason.clone(), ..Remedies::default() };
    let (Some(placement), Some(cluster)) = (fleet.placements.get(key), fleet.clusters.get(&traced.cluster))
    else {
        return remedies;
    };
    let tree = inputs.tree().clone();
    let question = Question { tree: &tree, fleet, cluster, rank: traced.rank };
    let rules = question.ways(placement);
    let (before, errors) = (&decided.decisions, errors(&diagnostics));
    let asked = RemedySearch { key, cluster: &traced.cluster, before, errors };
    let mut size = None;
    for edits in combined(&rules).into_iter().take(MOST) {
        // Keep all remedies of the smallest size, and no larger ones.
        if size.is_some_and(|size| edits.len() > size) {
            break;
        }
        let Some(edited) = made(&tree, &edits) else { continue };
        remedies.tried += 1;
        if let Some(remedy) = asked.remedy(inputs, edited, &edits) {
            size = Some(edits.len());
            remedies.found.push(remedy);
        }
    }
    inputs.edit_tree(|now| *now = tree.clone());
    remedies
}

/// Combines one way for each of up to [`MOST_RULES`] rules, fewest edits first.
fn combined(rules: &[Ways]) -> Vec<Vec<&FileEdit>> {
    let mut found: Vec<Vec<&FileEdit>> = Vec::new();
    let mut last: Vec<(usize, Vec<&FileEdit>)> = vec![(0, Vec::new())];
    for _ in 0..MOST_RULES {
        let mut next = Vec::new();
        for (from, chosen) in &last {
            for (index, ways) in rules.iter().enumerate().skip(*from) {
                for way in ways {
                    let edits: Vec<&FileEdit> = chosen.iter().copied().chain(way).collect();
                    if edits.len() <= MOST_EDITS && next.len() < MOST {
                        next.push((index + 1, edits));
                    }
                }
            }
        }
        for (_, edits) in &next {
            if !found.contains(edits) {
                found.push(edits.clone());
            }
        }
        last = next;
    }
    found.sort_by_key(Vec::len);
    found
}

/// The question, with the answer before any edit.
struct RemedySearch<'a> {
    key: &'a Key,
    cluster: &'a str,
    before: &'a Map<Key, Decision>,
    errors: usize,
}

impl RemedySearch<'_> {
    /// Lets the engine decide with the edited tree.
    fn remedy(&self, inputs: &mut PassInputs, edited: SourceTree, edits: &[&FileEdit]) -> Option<Remedy> {
        inputs.edit_tree(|tree| *tree = edited);
        let (_, decided, diagnostics) = inputs.decide();
        let after = &decided.decisions;
        if !after.get(self.key)?.has(self.cluster) || errors(&diagnostics) > self.errors {
            return None;
        }
        let (before, now) = (names(self.before.get(self.key)), names(after.get(self.key)));
        let only = |these: &BTreeSet<&str>, those: &BTreeSet<&str>| -> Vec<String> {
            let other = these.difference(those).filter(|name| **name != self.cluster);
            other.map(|name| (*name).to_owned()).collect()
        };
        let keys: BTreeSet<&Key> = self.before.keys().chain(after.keys()).collect();
        let differs = |key: &&Key| names(self.before.get(*key)) != names(after.get(*key));
        let others = keys.into_iter().filter(|key| *key != self.key).filter(differs);
        Some(Remedy {
            edits: edits.iter().map(|edit| edit.shown.clone()).collect(),
            gained: only(&now, &before),
            lost: only(&before, &now),
            others: others.cloned().collect(),
        })
    }
}

fn names(decision: Option<&Decision>) -> BTreeSet<&str> {
    let picks = decision.into_iter().flat_map(|decision| decision.picks.iter());
    picks.map(|pick| &*pick.cluster).collect()
}

fn errors(diagnostics: &Diagnostics) -> usize {
    diagnostics.errors().count()
}

/// An edit of one file.
#[derive(Clone, Debug, PartialEq)]
struct FileEdit {
    pub shown: PlacedEdit,
    pub act: Act,
}

/// The change that an edit makes to a file.
#[derive(Clone, Debug, PartialEq)]
enum Act {
    /// Changes one value of an object.
    Change { object: Key, change: ValueChange },
    /// Adds a new file.
    Add { text: String },
}

/// The place of an object: its file in the tree.
#[derive(Clone, Debug)]
struct ObjectPlace {
    pub file: Arc<str>,
    pub found: Found,
}

impl ObjectPlace {
    /// Returns the value of a field.
    pub fn get(&self, path: &[Step]) -> Option<&Node> {
        path.iter().try_fold(&self.found.node, child)
    }

    /// Makes an edit of a field.
    pub fn edit(&self, path: Vec<Step>, what: ValueEdit, words: String) -> FileEdit {
        let at = self.position(&path);
        let act = Act::Change { object: key_of(&self.found), change: ValueChange { path, what } };
        FileEdit { shown: PlacedEdit { at, words }, act }
    }

    /// Returns the position of a field or, if the field is missing, that of the object around it.
    pub fn position(&self, path: &[Step]) -> Pos {
        let mut node = &self.found.node;
        for step in path {
            let Some(next) = child(node, step) else { break };
            node = next;
        }
        Pos::new(self.file.clone(), node.at.line, node.at.column)
    }

    /// Makes an edit that appends to a list, which is created if it is missing.
    pub fn append(&self, path: &[Step], item: Json, words: String) -> FileEdit {
        match self.get(path).map(|node| &node.value) {
            Some(Value::List(items)) => {
                let end = path.iter().cloned().chain([Step::from(items.len())]).collect();
                self.edit(end, ValueEdit::Append(item), words)
            }
            _ => self.edit(path.to_vec(), ValueEdit::Set(Json::Array(vec![item])), words),
        }
    }
}

fn child<'n>(node: &'n Node, step: &Step) -> Option<&'n Node> {
    match (step, &node.value) {
        (Step::Key(key), _) => node.get(key),
        (Step::Index(index), Value::List(items)) => items.get(*index),
        _ => None,
    }
}

fn key_of(found: &Found) -> Key {
    Key::new(found.group(), &found.kind, &found.namespace, &found.name)
}

/// Returns the objects of a file that match.
fn places(tree: &SourceTree, file: &str, fits: impl Fn(&Found) -> bool) -> Vec<ObjectPlace> {
    let Some(source) = tree.files.get(file) else { return Vec::new() };
    let found = objects(&source.bytes).found.into_iter().filter(|found| fits(found));
    found.map(|found| ObjectPlace { file: source.path.clone(), found }).collect()
}

/// Returns the object with a key in a file.
fn place_of(tree: &SourceTree, file: &str, key: &Key) -> Option<ObjectPlace> {
    places(tree, file, |found| key_of(found) == *key).into_iter().next()
}

/// Applies edits to a tree; `None` if they conflict.
fn made(tree: &SourceTree, edits: &[&FileEdit]) -> Option<SourceTree> {
    let mut texts: BTreeMap<Arc<str>, String> = BTreeMap::new();
    // From last to first, so that the indexes of removed items stay valid.
    for edit in edits.iter().rev() {
        let file = &edit.shown.at.file;
        let (object, change) = match &edit.act {
            Act::Change { object, change } => (object, change),
            Act::Add { text } => {
                texts.insert(file.clone(), text.clone());
                continue;
            }
        };
        let text = match texts.get(file) {
            Some(text) => text.clone(),
            None => text_of(tree, file)?,
        };
        let found = objects(text.as_bytes()).found.into_iter().find(|found| key_of(found) == *object)?;
        texts.insert(file.clone(), apply(&text, &found, std::slice::from_ref(change)).ok()?);
    }
    let mut edited = tree.clone();
    edited.files.extend(texts.into_iter().map(|(path, text)| SourceFile::new(path, text.into_bytes())));
    Some(edited)
}

fn text_of(tree: &SourceTree, path: &str) -> Option<String> {
    let file = tree.files.get(path)?;
    Some(std::str::from_utf8(&file.bytes).ok()?.to_owned())
}
