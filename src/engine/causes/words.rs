//! The words for an edit: the usual name of the field, its old and its new value. No data of Secrets.

use super::difference::{Change, Step};
use super::patch_words;
use berth_base::diag::harmless_line;
use berth_base::yaml::{Node, Value, emit_flow};

/// The longest value to show, in characters.
const LONGEST_VALUE: usize = 120;
/// The longest path to show in full, in characters.
const LONGEST_PATH: usize = 80;

/// Returns the words for a changed field. Its values are hidden if the field may belong to a Secret.
pub(super) fn of(change: &Change<'_>, is_secret: bool) -> String {
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
fn subject(path: &[Step]) -> (String, Option<String>) {
    let field = |place: usize| match path.get(place) {
        Some(Step::Field(name)) => name.as_str(),
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
        (Some(Step::Item(_)), Some("taints")) => ("taint".to_owned(), None),
        (Some(Step::Item(_)), Some("tolerations")) => ("toleration".to_owned(), None),
        _ => (shortened(path), None),
    }
}

/// Returns the list whose item a path ends in.
fn last_list(path: &[Step]) -> Option<&str> {
    match path {
        [.., Step::Field(list), Step::Item(_)] => Some(list),
        _ => None,
    }
}

/// Writes a path as text; a long one by its first field and its last ones.
fn shortened(path: &[Step]) -> String {
    let is_short = |text: &str| text.chars().count() <= LONGEST_PATH;
    let whole = path_text(path);
    let tails =
        (1..path.len().max(1)).map(|from| format!("{}…{}", path_text(&path[..1]), path_text(&path[from..])));
    let shown = std::iter::once(whole).chain(tails.skip(1)).find(|text| is_short(text));
    cut(&shown.unwrap_or_else(|| path_text(path.last().map_or(&[], std::slice::from_ref))), LONGEST_PATH)
}

fn path_text(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Field(name) if name.contains(['.', '[', ' ']) => text.push_str(&format!("[{name}]")),
            Step::Field(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            Step::Item(name) => text.push_str(&format!("[{name}]")),
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
        _ => patch_words::of(node, list.is_some()).unwrap_or_else(|| emit_flow(&node.to_json())),
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
pub(super) fn is_hidden(secrecy: Secrecy, path: &[Step]) -> bool {
    let starts = |names: &[&str]| {
        names.len() <= path.len()
            && names.iter().zip(path).all(|(name, step)| *step == Step::Field((*name).to_owned()))
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
