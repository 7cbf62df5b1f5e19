//! A List, as kubectl and the API server write it → its objects.
//!
//! All readers of files use the same rule: `v1` `List`, or a nameless kind that ends in `List` with a list of
//! `items`. Items of a typed list need not repeat the kind that the list's kind implies.

use super::node::{Entry, Node, Value};

/// Reports whether a document is a list of objects. The `items` of a `v1` `List` may be anything.
pub fn is_list(root: &Node) -> bool {
    let kind = text(root, "kind");
    if kind == "List" && text(root, "apiVersion") == "v1" {
        return true;
    }
    let is_blank = |name: &Node| name.is_null() || name.as_str() == Some("");
    let named =
        root.get("metadata").and_then(|metadata| metadata.get("name")).is_some_and(|one| !is_blank(one));
    let has_items = root.get("items").is_some_and(|items| matches!(items.value, Value::List(_)));
    kind.ends_with("List") && !text(root, "apiVersion").is_empty() && has_items && !named
}

/// Returns the objects of a list, each with an apiVersion and a kind if the list's own kind implies them.
pub fn items(list: Node) -> Vec<Node> {
    let of_items = text(&list, "kind").strip_suffix("List").filter(|kind| !kind.is_empty());
    let told = of_items
        .map(|kind| [("kind", kind.to_owned()), ("apiVersion", text(&list, "apiVersion").to_owned())]);
    let Value::Map(entries) = list.value else { return Vec::new() };
    let items = entries.into_iter().find(|entry| entry.key == "items").map(|entry| entry.value.value);
    let Some(Value::List(mut items)) = items else { return Vec::new() };
    for item in &mut items {
        for (key, value) in told.iter().flatten() {
            tell(item, key, value);
        }
    }
    items
}

/// Adds a missing field before the others.
fn tell(item: &mut Node, key: &str, value: &str) {
    let at = item.at;
    let Value::Map(entries) = &mut item.value else { return };
    if entries.iter().all(|entry| entry.key != key) {
        let value = Node { at, value: Value::String(value.to_owned()) };
        entries.insert(0, Entry { key: key.to_owned(), at, value });
    }
}

fn text<'n>(node: &'n Node, key: &str) -> &'n str {
    node.get(key).and_then(Node::as_str).unwrap_or_default()
}
