//! The words for overrides: the path and value of each patch.

use berth_base::yaml::{Node, Value, emit_flow};

/// Returns the words for a patch, a list of patches, or an override with patches; `None` for anything else.
/// `is_named`: the path of the edit already names the cluster.
pub(super) fn of(node: &Node, is_named: bool) -> Option<String> {
    match &node.value {
        Value::List(items) if !items.is_empty() => {
            let patches: Option<Vec<String>> = items.iter().map(|item| of(item, false)).collect();
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
    let patches = of(patches, false)?;
    let cluster = node.get("clusterName").and_then(Node::as_str).filter(|_| !is_named);
    Some(match (node.get("clusterSelector"), cluster) {
        (Some(selector), _) => format!("{patches} where {}", emit_flow(&selector.to_json())),
        (None, Some(cluster)) => format!("{patches} in {cluster}"),
        (None, None) => patches,
    })
}
