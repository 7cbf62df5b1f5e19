//! The annotation `berth.dev/replaces`: a policy of the next API takes over the identity of a placement of
//! the old one, with its decision, releases and copies. Everything except the policy's own document sees that
//! placement.

use std::collections::BTreeMap;

use super::kinds::PLACEMENT_GROUP;
use super::{Lowered, Read};
use berth_base::diag::{Diagnostic, Pos};
use berth_base::model::Key;
use berth_base::yaml::fields::Scope;
use berth_base::yaml::node::Node;

const REPLACES: &str = "berth.dev/replaces";

/// Reads the annotation of a policy: the key of the placement that it replaces.
pub fn read(scope: &Scope, root: &Node, key: &Key) -> Option<(Key, Pos)> {
    let annotations = root.get("metadata").and_then(|metadata| metadata.get("annotations"));
    let node = annotations.and_then(|annotations| annotations.get(REPLACES))?;
    let kind =
        if &*key.kind == "ClusterPlacementPolicy" { "ClusterResourcePlacement" } else { "ResourcePlacement" };
    let at = scope.pos(node.at);
    let name = node.as_str().and_then(|text| text.split_once('/')).filter(|(written, _)| *written == kind);
    let Some((_, name)) = name.filter(|(_, name)| !name.is_empty() && !name.contains('/')) else {
        let message = format!("{REPLACES} must name the placement that this policy takes the place of");
        scope.report(Diagnostic::error(at, message).hint(format!("write `{kind}/NAME`")));
        return None;
    };
    Some((Key::new(PLACEMENT_GROUP, kind, &key.namespace, name), at))
}

/// Gives policies the identity of the placements that they replace. A placement that still exists keeps its
/// own; of two policies the first takes it.
pub(super) fn take_over(read: &mut Read, lowered: &mut Lowered) {
    let mut taken: BTreeMap<Key, Key> =
        read.placements.iter().map(|(_, spec)| (spec.key.clone(), spec.key.clone())).collect();
    read.placements.retain_mut(|(index, spec)| {
        let Some((old, at)) = spec.replaces.clone() else { return true };
        if let Some(holder) = taken.get(&old) {
            let message = if *holder == old {
                format!("{} cannot replace {old}, which still exists", spec.key)
            } else {
                format!("{} cannot replace {old}: {holder} already replaces it", spec.key)
            };
            let hint = format!("remove {old}, or the annotation {REPLACES}");
            lowered.diagnostics.push(Diagnostic::error(at, message).hint(hint));
            lowered.faulty.insert(*index);
            return false;
        }
        taken.insert(old.clone(), spec.key.clone());
        lowered.replaced.insert(spec.key.clone(), old.clone());
        spec.key = old;
        true
    });
}
