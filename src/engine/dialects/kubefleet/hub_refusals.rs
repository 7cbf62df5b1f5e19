//! Two trees → the changes between them that KubeFleet's hub would refuse.
//!
//! The hub's webhook only allows adding tolerations, and never allows changes of a placement's type and some
//! other fields. Here a revert must work, so all of these are warnings.

use std::collections::BTreeMap;
use std::sync::Arc;

use berth_base::diag::{Diagnostic, Diagnostics, Pos};
use berth_base::model::Key;
use berth_base::model::object::group_of;
use berth_base::yaml::{self, Limits, Mark, Node, Value};

use super::kinds::PLACEMENT_GROUP;
use super::policy::normal_form;
use crate::dialects::FileText;

/// Returns warnings for changes between two trees; equal files may be left out.
pub fn refused_by_hub(before: &[FileText], after: &[FileText]) -> Diagnostics {
    let before = objects(before);
    let mut found = Diagnostics::new();
    if before.is_empty() {
        return found;
    }
    for (key, after) in objects(after) {
        let Some(before) = before.get(&key) else { continue };
        match &*key.kind {
            "ClusterResourcePlacement" | "ResourcePlacement" => placement(&key, before, &after, &mut found),
            "ClusterResourceOverride" | "ResourceOverride" => {
                fixed(&key, before, &after, "spec.placement", &mut found);
            }
            "ClusterStagedUpdateRun" | "StagedUpdateRun" => run(&key, before, &after, &mut found),
            "ClusterApprovalRequest" | "ApprovalRequest" => {
                fixed(&key, before, &after, "spec.parentStageRollout", &mut found);
                fixed(&key, before, &after, "spec.targetStage", &mut found);
            }
            _ => {}
        }
    }
    found
}

/// An object of the placement group, as written.
struct Written {
    file: Arc<str>,
    root: Node,
}

impl Written {
    fn get(&self, path: &str) -> Option<&Node> {
        path.split('.').try_fold(&self.root, |node, part| node.get(part)).filter(|node| !node.is_null())
    }

    /// Returns the place of a field, or of the nearest mapping that would contain it.
    fn pos(&self, path: &str) -> Pos {
        let mut at: Mark = self.root.at;
        let mut node = Some(&self.root);
        for part in path.split('.') {
            node = node.and_then(|node| node.get(part));
            at = node.map_or(at, |node| node.at);
        }
        Pos { file: self.file.clone(), line: at.line, column: at.column }
    }
}

fn objects(files: &[FileText]) -> BTreeMap<Key, Written> {
    let mut found = BTreeMap::new();
    for (path, bytes) in files {
        // Most files contain no object of this group.
        if !bytes.windows(PLACEMENT_GROUP.len()).any(|part| part == PLACEMENT_GROUP.as_bytes()) {
            continue;
        }
        for document in yaml::read(bytes, &Limits::default()).documents {
            if let Some(key) = key_of(&document.root) {
                found.insert(key, Written { file: path.clone(), root: document.root });
            }
        }
    }
    found
}

fn key_of(root: &Node) -> Option<Key> {
    let text = |node: Option<&Node>| node.and_then(Node::as_str).unwrap_or_default().to_owned();
    let group = text(root.get("apiVersion"));
    if group_of(&group) != PLACEMENT_GROUP {
        return None;
    }
    let metadata = root.get("metadata")?;
    let kind = text(root.get("kind"));
    Some(Key::new(PLACEMENT_GROUP, &kind, &text(metadata.get("namespace")), &text(metadata.get("name"))))
}

fn placement(key: &Key, before: &Written, after: &Written, found: &mut Diagnostics) {
    let policy =
        |one: &Written| normal_form(&one.get("spec.policy").map_or(serde_json::Value::Null, Node::to_json));
    let (old, new) = (policy(before), policy(after));
    let mut refuse = |path: &str, what: String, hint: &str| {
        let message = format!("{key}: {path} {what}, which a KubeFleet hub refuses");
        found.push(Diagnostic::warning(after.pos(path), message).hint(hint));
    };
    let again = "berth decides again under the new policy; on a hub, make a new placement";
    let word = |policy: &serde_json::Value| policy["placementType"].as_str().unwrap_or_default().to_owned();
    if old["placementType"] != new["placementType"] {
        let what = format!("changes from {} to {}", word(&old), word(&new));
        refuse("spec.policy.placementType", what, again);
    } else if before.get("spec.policy").is_some() && after.get("spec.policy").is_none() {
        refuse("spec.policy", "is taken away".to_owned(), again);
    }
    let list = |policy: &serde_json::Value| policy["tolerations"].as_array().cloned().unwrap_or_default();
    let (kept, lost) = (list(&new), list(&old));
    let lost = lost.iter().filter(|one| !kept.contains(one)).count();
    if lost > 0 {
        let what =
            if lost == 1 { "loses a toleration".to_owned() } else { format!("loses {lost} tolerations") };
        refuse("spec.policy.tolerations", what, "clusters that are placed stay, whatever their taints");
    }
    let strategy = |one: &Written| one.get("spec.strategy.type").and_then(Node::as_str).map(str::to_owned);
    if strategy(before).as_deref() == Some("External") && strategy(after).as_deref() != Some("External") {
        refuse("spec.strategy.type", "is no longer External".to_owned(), again);
    }
    fixed(key, before, after, "spec.statusReportingScope", found);
}

/// Checks a run: only its state may change, and a run that has begun cannot return to its initial state.
fn run(key: &Key, before: &Written, after: &Written, found: &mut Diagnostics) {
    for path in ["spec.placementName", "spec.stagedRolloutStrategyName", "spec.resourceSnapshotIndex"] {
        fixed(key, before, after, path, found);
    }
    let path = "spec.state";
    let state = |one: &Written| one.get(path).and_then(Node::as_str).unwrap_or("Initialize").to_owned();
    let (old, new) = (state(before), state(after));
    if matches!((&*old, &*new), ("Initialize", "Stop") | ("Run" | "Stop", "Initialize")) {
        let message = format!("{key}: {path} changes from {old} to {new}, which a KubeFleet hub refuses");
        let hint =
            if old == "Initialize" { "leave the state at Initialize" } else { "use the states Run and Stop" };
        found.push(Diagnostic::warning(after.pos(path), message).hint(hint));
    }
}

/// Checks a field that is fixed once the object exists.
fn fixed(key: &Key, before: &Written, after: &Written, path: &str, found: &mut Diagnostics) {
    let value = |one: &Written| {
        let node = one.get(path).filter(|node| node.value != Value::String("ClusterScopeOnly".to_owned()));
        node.map(Node::to_json)
    };
    if value(before) != value(after) {
        let message = format!("{key}: {path} changes, which a KubeFleet hub refuses");
        found.push(Diagnostic::warning(after.pos(path), message).hint("on a hub, make a new object"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(before: &str, after: &str) -> Vec<String> {
        let file = |spec: &str| {
            let (kind, spec) = spec.split_once(' ').expect("a kind and a spec");
            let text = format!(
                "apiVersion: {PLACEMENT_GROUP}/v1beta1\nkind: {kind}\nmetadata: {{name: web}}\nspec: {spec}\n"
            );
            (Arc::<str>::from("a.yaml"), Arc::<[u8]>::from(text.into_bytes()))
        };
        let all = refused_by_hub(&[file(before)], &[file(after)]);
        all.iter().map(ToString::to_string).collect()
    }

    const CRP: &str = "ClusterResourcePlacement";

    #[test]
    fn what_a_hub_fixes_for_good_is_warned_of() {
        for (before, after, part) in [
            (
                "{policy: {placementType: PickAll}}",
                "{policy: {placementType: PickN, numberOfClusters: 1}}",
                "from PickAll to PickN",
            ),
            ("{}", "{policy: {placementType: PickFixed, clusterNames: [a]}}", "from PickAll to PickFixed"),
            ("{policy: {placementType: PickAll}}", "{}", "spec.policy is taken away"),
            (
                "{policy: {tolerations: [{key: a}, {key: b}]}}",
                "{policy: {tolerations: [{key: b}]}}",
                "loses a toleration",
            ),
            ("{strategy: {type: External}}", "{strategy: {type: RollingUpdate}}", "is no longer External"),
            ("{statusReportingScope: NamespaceAccessible}", "{}", "statusReportingScope changes"),
        ] {
            let found = found(&format!("{CRP} {before}"), &format!("{CRP} {after}"));
            assert!(found.len() == 1 && found[0].contains(part), "{before} {after}: {found:?}");
            assert!(found[0].starts_with("a.yaml:4:"), "{found:?}");
        }
        const RUN: &str = "ClusterStagedUpdateRun";
        for (before, after, part) in [
            ("{placementName: a}", "{placementName: b}", "placementName changes"),
            ("{stagedRolloutStrategyName: a}", "{stagedRolloutStrategyName: b}", "StrategyName changes"),
            ("{resourceSnapshotIndex: '1'}", "{state: Run}", "resourceSnapshotIndex changes"),
            ("{}", "{state: Stop}", "from Initialize to Stop"),
            ("{state: Run}", "{state: Initialize}", "from Run to Initialize"),
            ("{state: Stop}", "{}", "from Stop to Initialize"),
        ] {
            let found = found(&format!("{RUN} {before}"), &format!("{RUN} {after}"));
            assert!(found.len() == 1 && found[0].contains(part), "{before} {after}: {found:?}");
        }
        let approval = |stage: &str| format!("ClusterApprovalRequest {{targetStage: {stage}}}");
        assert!(found(&approval("a"), &approval("b"))[0].contains("targetStage changes"));
        let over = |name: &str| format!("ClusterResourceOverride {{placement: {{name: {name}}}}}");
        assert!(found(&over("a"), &over("b"))[0].contains("spec.placement changes"));
    }

    #[test]
    fn what_a_hub_allows_is_not() {
        for (before, after) in [
            (
                "{policy: {placementType: PickN, numberOfClusters: 1}}",
                "{policy: {placementType: PickN, numberOfClusters: 9}}",
            ),
            (
                "{policy: {tolerations: [{key: a}]}}",
                "{policy: {tolerations: [{key: b}, {key: a, operator: Equal}]}}",
            ),
            ("{}", "{policy: {placementType: PickAll}}"),
            ("{strategy: {type: RollingUpdate}}", "{strategy: {type: External}}"),
            ("{}", "{statusReportingScope: ClusterScopeOnly}"),
        ] {
            let found = found(&format!("{CRP} {before}"), &format!("{CRP} {after}"));
            assert!(found.is_empty(), "{before} {after}: {found:?}");
        }
        for (before, after) in
            [("{}", "{state: Run}"), ("{state: Run}", "{state: Stop}"), ("{state: Stop}", "{state: Run}")]
        {
            let found = found(&format!("StagedUpdateRun {before}"), &format!("StagedUpdateRun {after}"));
            assert!(found.is_empty(), "{before} {after}: {found:?}");
        }
    }
}
