//! berth's annotations of placements.
//!
//! `berth.dev/replaces`: a policy of the next API takes over the identity of a placement of the old one,
//! with its decision, releases and copies. Everything except the policy's own document sees that
//! placement.
//!
//! `berth.dev/replace-after`: the silence after which another cluster replaces a cluster. KubeFleet never
//! replaces a picked cluster, so berth does so only with this annotation.

use std::collections::BTreeMap;

use super::kinds::PLACEMENT_GROUP;
use super::{Lowered, ReadDocuments};
use berth_base::diag::{Diagnostic, Pos};
use berth_base::model::placement::Selection;
use berth_base::model::{Key, Policy};
use berth_base::yaml::fields::Scope;
use berth_base::yaml::node::Node;

const REPLACES: &str = "berth.dev/replaces";

/// Reads the annotation of a policy: the key of the placement that it replaces.
pub fn read_replaces(scope: &Scope, root: &Node, key: &Key) -> Option<(Key, Pos)> {
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
pub(super) fn take_over(read: &mut ReadDocuments, lowered: &mut Lowered) {
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

const REPLACE_AFTER: &str = "berth.dev/replace-after";

/// Reads the annotation of a placement into its policy.
pub fn read_replace_after(scope: &Scope, root: &Node, policy: &mut Policy) {
    let annotations = root.get("metadata").and_then(|metadata| metadata.get("annotations"));
    let Some(node) = annotations.and_then(|annotations| annotations.get(REPLACE_AFTER)) else { return };
    let text = node.as_str().unwrap_or_default();
    let Some(seconds) = seconds(text) else {
        let message = format!("{REPLACE_AFTER} is `{text}`, but must be a duration");
        let at = scope.pos(node.at);
        scope.report(Diagnostic::error(at, message).hint("write a duration such as `30m` or `1h30m`"));
        return;
    };
    if matches!(policy.selection, Selection::First(_)) {
        policy.replace_after = Some(seconds);
    } else {
        scope.warning(node.at, format!("{REPLACE_AFTER} has an effect only with the placement type PickN"));
    }
}

/// Reads a duration such as `30m` or `1h30m`; `None` for zero and for other texts.
fn seconds(text: &str) -> Option<i64> {
    let mut total: i64 = 0;
    for part in text.split_inclusive(['d', 'h', 'm', 's']) {
        let unit = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];
        let (letter, size) = unit.into_iter().find(|(letter, _)| part.ends_with(*letter))?;
        let count: u32 = part.strip_suffix(letter)?.parse().ok()?;
        total = total.checked_add(i64::from(count) * size)?;
    }
    (total > 0).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::kubefleet::placement;
    use berth_base::diag::Severity;
    use berth_base::model::Key;
    use berth_base::yaml;

    /// Returns the seconds that a placement is read with, and the diagnostics.
    fn read(policy: &str, value: &str) -> (Option<i64>, Vec<String>) {
        let text = format!(
            "apiVersion: placement.kubernetes-fleet.io/v1\nkind: ClusterResourcePlacement\n\
             metadata:\n  name: web\n  annotations:\n    berth.dev/replace-after: {value}\n\
             spec: {{resourceSelectors: [{{group: '', version: v1, kind: Namespace, name: shop}}], policy: {policy}}}\n"
        );
        let read = yaml::read(text.as_bytes(), &yaml::Limits::default());
        let scope = Scope::new("web.yaml".into(), Severity::Error);
        let key = Key::new("placement.kubernetes-fleet.io", "ClusterResourcePlacement", "", "web");
        let spec = placement::read(&scope, &read.documents[0].root, &key);
        let said = scope.into_diagnostics().iter().map(ToString::to_string).collect();
        (spec.and_then(|spec| spec.policy.replace_after), said)
    }

    #[test]
    fn a_placement_that_picks_a_number_may_replace_silent_clusters() {
        let pick_n = "{placementType: PickN, numberOfClusters: 2}";
        assert_eq!(read(pick_n, "30m"), (Some(1_800), Vec::new()));
        assert_eq!(read(pick_n, "1h30m"), (Some(5_400), Vec::new()));
        for wrong in ["'30'", "soon", "''", "0s", "-5m", "1.5h", "5m30", "99999999999999999999s"] {
            let (seconds, said) = read(pick_n, wrong);
            assert_eq!(seconds, None, "{wrong}");
            assert!(said[0].starts_with("web.yaml:6:30: error: berth.dev/replace-after is `"), "{said:?}");
        }
    }

    #[test]
    fn others_are_told_that_nothing_is_replaced() {
        for policy in ["{placementType: PickAll}", "{placementType: PickFixed, clusterNames: [a]}"] {
            let (seconds, said) = read(policy, "30m");
            assert_eq!(seconds, None);
            assert!(said[0].contains("has an effect only with the placement type PickN"), "{said:?}");
        }
    }
}
