//! The words for an edit: the usual name of the field, its old and its new value. No data of Secrets. Also
//! the words for overrides (the path and value of each patch), and for a change in a member's report.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use super::difference::{NodeChange, PathStep};
use berth_base::diag::harmless_line;
use berth_base::model::ClusterStatus;
use berth_base::text::some_of;
use berth_base::yaml::{Node, Value, emit_flow};

/// The longest value to show, in characters.
const LONGEST_VALUE: usize = 120;
/// The longest path to show in full, in characters.
const LONGEST_PATH: usize = 80;

/// Returns the words for a changed field. Its values are hidden if the field may belong to a Secret.
pub(super) fn of(change: &NodeChange<'_>, is_secret: bool) -> String {
    let (subject, named) = subject(&change.path);
    if change.before.is_none() && change.after.is_none() {
        return format!(
            "{}: order of fields changed",
            if subject.is_empty() { "document" } else { &subject }
        );
    }
    let show = |node: &Node| {
        let shown = value(node, last_list(&change.path));
        named.as_ref().map_or(shown.clone(), |name| format!("{}={shown}", harmless_line(name)))
    };
    let readable =
        !is_secret && change.before.is_none_or(is_readable) && change.after.is_none_or(is_readable);
    match (change.before, change.after) {
        (Some(before), Some(after)) if readable => {
            let name = named.as_ref().map_or(String::new(), |name| format!(" {}", harmless_line(name)));
            format!("{subject}{name}: {} → {}", value(before, None), value(after, None))
        }
        (None, Some(after)) if readable => format!("{subject} added: {}", show(after)),
        (Some(before), None) if readable => format!("{subject} removed: {}", show(before)),
        (before, after) => {
            let name = named.as_ref().map_or(String::new(), |name| format!(" {}", harmless_line(name)));
            let verb = match (before, after) {
                (None, _) => "added",
                (_, None) => "removed",
                _ => "changed",
            };
            format!("{subject}{name} {verb}")
        }
    }
}

/// Returns the field's usual name, and its own name if the usual one is a common noun.
fn subject(path: &[PathStep]) -> (String, Option<String>) {
    let field = |place: usize| match path.get(place) {
        Some(PathStep::Field(name)) => name.as_str(),
        _ => "",
    };
    if path.len() == 3 && field(0) == "metadata" {
        match field(1) {
            "labels" => return ("label".to_owned(), Some(field(2).to_owned())),
            "annotations" => return ("annotation".to_owned(), Some(field(2).to_owned())),
            _ => {}
        }
    }
    match (path.last(), last_list(path)) {
        (Some(PathStep::Item(_)), Some("taints")) => ("taint".to_owned(), None),
        (Some(PathStep::Item(_)), Some("tolerations")) => ("toleration".to_owned(), None),
        _ => (shortened(path), None),
    }
}

/// Returns the list whose item a path ends in.
fn last_list(path: &[PathStep]) -> Option<&str> {
    match path {
        [.., PathStep::Field(list), PathStep::Item(_)] => Some(list),
        _ => None,
    }
}

/// Writes the path of a field, safe to print on one line.
pub(super) fn path(path: &[PathStep]) -> String {
    harmless_line(&shortened(path)).into_owned()
}

/// Writes a path as text; a long one by its first field and its last ones.
fn shortened(path: &[PathStep]) -> String {
    let is_short = |text: &str| text.chars().count() <= LONGEST_PATH;
    let whole = path_text(path);
    let tails =
        (1..path.len().max(1)).map(|from| format!("{}…{}", path_text(&path[..1]), path_text(&path[from..])));
    let shown = std::iter::once(whole).chain(tails.skip(1)).find(|text| is_short(text));
    cut(&shown.unwrap_or_else(|| path_text(path.last().map_or(&[], std::slice::from_ref))), LONGEST_PATH)
}

fn path_text(path: &[PathStep]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            PathStep::Field(name) if name.contains(['.', '[', ' ']) => text.push_str(&format!("[{name}]")),
            PathStep::Field(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            PathStep::Item(name) => text.push_str(&format!("[{name}]")),
        }
    }
    text
}

fn value(node: &Node, list: Option<&str>) -> String {
    let text = |name: &str| node.get(name).and_then(Node::as_str).unwrap_or_default();
    let taint = || {
        let (key, value, effect) = (text("key"), text("value"), text("effect"));
        let value = if value.is_empty() { String::new() } else { format!("={value}") };
        let effect = if effect.is_empty() { String::new() } else { format!(":{effect}") };
        let key = if key.is_empty() { "any" } else { key };
        format!("{key}{value}{effect}")
    };
    let shown = match (list, &node.value) {
        (Some("taints"), Value::Map(_)) => taint(),
        (Some("tolerations"), Value::Map(_)) => match node.get("tolerationSeconds").map(Node::to_json) {
            Some(seconds) => format!("{} for {seconds} s", taint()),
            None => taint(),
        },
        (_, Value::String(text)) if text.is_empty() => "\"\"".to_owned(),
        (_, Value::String(text)) => text.clone(),
        _ => of_patches(node, list.is_some()).unwrap_or_else(|| emit_flow(&node.to_json())),
    };
    let shown = harmless_line(&shown).into_owned();
    let length = shown.chars().count();
    if length <= LONGEST_VALUE {
        return shown;
    }
    // Addresses and versions often differ at their ends.
    let start: String = shown.chars().take(LONGEST_VALUE / 3).collect();
    let end: String = shown.chars().skip(length - 2 * LONGEST_VALUE / 3).collect();
    format!("{start}…{end}")
}

fn cut(text: &str, longest: usize) -> String {
    let text = harmless_line(text);
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

/// Reports whether a value can be shown on a line: multi-line text cannot, and may contain any object.
fn is_readable(node: &Node) -> bool {
    match &node.value {
        Value::String(text) => !(text.contains('\n') || text.contains("Secret") && text.contains(':')),
        Value::List(items) => items.iter().all(is_readable),
        Value::Map(entries) => entries.iter().all(|entry| is_readable(&entry.value)),
        _ => true,
    }
}

/// The parts of a document that may contain a Secret's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Secrecy {
    Open,
    /// Everything except the fields that place the document.
    Secret,
}

/// Returns which parts of a document may be shown.
pub(super) fn secrecy(root: &Node) -> Secrecy {
    let kind = root.get("kind").and_then(Node::as_str).unwrap_or_default();
    let is_override = kind.contains("Override") || kind.contains("Patch");
    if is_of_secret(root) || holds_secret(root, is_override) { Secrecy::Secret } else { Secrecy::Open }
}

fn is_of_secret(node: &Node) -> bool {
    node.get("kind").and_then(Node::as_str).is_some_and(|kind| kind.contains("Secret"))
}

/// Reports whether a value contains a Secret; with `names`, also whether it only names one.
fn holds_secret(node: &Node, names: bool) -> bool {
    let is_one = |node: &Node| is_of_secret(node) && (names || node.get("apiVersion").is_some());
    match &node.value {
        Value::Map(entries) => {
            entries.iter().any(|entry| is_one(&entry.value) || holds_secret(&entry.value, names))
        }
        Value::List(items) => items.iter().any(|item| is_one(item) || holds_secret(item, names)),
        _ => false,
    }
}

/// Reports whether a field of such a document must be hidden.
pub(super) fn is_hidden(secrecy: Secrecy, path: &[PathStep]) -> bool {
    let starts = |names: &[&str]| {
        names.len() <= path.len()
            && names.iter().zip(path).all(|(name, step)| *step == PathStep::Field((*name).to_owned()))
    };
    let places = [
        &["metadata", "labels"][..],
        &["metadata", "namespace"],
        &["spec", "placement"],
        &["spec", "placementRefs"],
        &["spec", "policy"],
    ];
    secrecy == Secrecy::Secret && !places.iter().any(|place| starts(place))
}

/// Returns the words for a patch, a list of patches, or an override with patches; `None` for anything else.
/// `is_named`: the path of the edit already names the cluster.
fn of_patches(node: &Node, is_named: bool) -> Option<String> {
    match &node.value {
        Value::List(items) if !items.is_empty() => {
            let patches: Option<Vec<String>> = items.iter().map(|item| of_patches(item, false)).collect();
            Some(patches?.join(", "))
        }
        Value::Map(_) => patch(node).or_else(|| one_override(node, is_named)),
        _ => None,
    }
}

/// Describes a patch as `/spec/replicas = 5`, with any other operation named.
fn patch(node: &Node) -> Option<String> {
    let text = |name: &str| node.get(name).and_then(Node::as_str);
    let (path, value) = (text("path").filter(|path| path.starts_with('/'))?, node.get("value"));
    let op = text("op").filter(|op| *op != "replace").map_or_else(String::new, |op| format!("{op} "));
    let value = value.map(|value| match value.as_str() {
        Some(text) if !text.is_empty() => format!(" = {text}"),
        _ => format!(" = {}", emit_flow(&value.to_json())),
    });
    Some(format!("{op}{path}{}", value.unwrap_or_default()))
}

/// Describes the patches of a KubeFed override or a KubeFleet rule, with its clusters.
fn one_override(node: &Node, is_named: bool) -> Option<String> {
    let patches = ["clusterOverrides", "jsonPatchOverrides"].into_iter().find_map(|list| node.get(list))?;
    let patches = of_patches(patches, false)?;
    let cluster = node.get("clusterName").and_then(Node::as_str).filter(|_| !is_named);
    Some(match (node.get("clusterSelector"), cluster) {
        (Some(selector), _) => format!("{patches} where {}", emit_flow(&selector.to_json())),
        (None, Some(cluster)) => format!("{patches} in {cluster}"),
        (None, None) => patches,
    })
}

/// The maximal number of differences to name.
const MOST_NAMED: usize = 3;

/// Describes the change in a member's report, as far as decisions read it.
pub fn of_reports(cluster: &str, was: &ClusterStatus, is: &ClusterStatus) -> String {
    let mut found = Vec::new();
    add(&mut found, "label", &was.labels, &is.labels);
    add(&mut found, "claim", &was.claims, &is.claims);
    add(&mut found, "property", &was.properties, &is.properties);
    let [old, new] = [was, is].map(|status| {
        let scores = status.scores.iter();
        scores.map(|((resource, name), score)| (format!("{resource} {name}"), score.value)).collect()
    });
    add(&mut found, "score", &old, &new);
    let [old, new] = [was, is].map(|status| {
        let room = status.workloads.iter().filter_map(|(name, report)| Some((name, report.capacity?)));
        room.map(|(of, room)| (format!("{} {}/{}", of.kind, of.namespace, of.name), room)).collect()
    });
    add(&mut found, "room for", &old, &new);
    found.extend(match (was.silent, is.silent) {
        (None, Some(since)) => Some(format!("silent since {since}")),
        (Some(_), None) => Some("no longer silent".to_owned()),
        _ if was.frozen != is.frozen => Some(if is.frozen.is_some() {
            "its silence has no further effect while much of the fleet is silent".to_owned()
        } else {
            "its silence counts again".to_owned()
        }),
        _ => None,
    });
    found.extend(match (was.heard, is.heard) {
        (false, true) => Some("newer than the status in its file".to_owned()),
        (true, false) => Some("no longer newer than the status in its file".to_owned()),
        _ => None,
    });
    format!("report of {}: {}", harmless_line(cluster), some_of(found, MOST_NAMED))
}

fn add<V: Display + PartialEq>(
    found: &mut Vec<String>,
    noun: &str,
    was: &BTreeMap<String, V>,
    is: &BTreeMap<String, V>,
) {
    let names: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
    for name in names {
        let shown = |value: &V| harmless_line(&value.to_string()).into_owned();
        let named = harmless_line(name);
        match (was.get(name), is.get(name)) {
            (Some(was), Some(is)) if was != is => {
                found.push(format!("{noun} {named}: {} → {}", shown(was), shown(is)));
            }
            (None, Some(is)) => found.push(format!("{noun} {named}: {}, not reported before", shown(is))),
            (Some(was), None) => {
                found.push(format!("{noun} {named}: no longer reported, was {}", shown(was)));
            }
            _ => {}
        }
    }
}
