//! A Placement's decision as the PlacementDecision objects of Open Cluster Management, for its consumers.
//!
//! These objects are files beside the decision file. They add nothing to it and are never read back: the
//! decision determines them.

use serde_json::{Value as Json, json};

use berth_base::model::{Decision, Group, Key, Pick, path};
use berth_base::yaml;

const GROUP: &str = "cluster.open-cluster-management.io";
const KIND: &str = "PlacementDecision";

/// The maximal number of clusters in one object.
const MOST: usize = 100;

/// Returns the objects with their text, by path among the decisions.
pub fn files(decision: &Decision) -> Vec<(String, String)> {
    let objects = objects(decision).into_iter();
    objects.map(|(key, object)| (path::of_key(&key), yaml::emit(&object))).collect()
}

/// Returns the paths of a decision's objects.
pub fn paths(decision: &Decision) -> Vec<String> {
    let count = if is_placement(&decision.key) { chunks(decision).len() } else { 0 };
    (1..=count).map(|number| path::of_key(&key(decision, number))).collect()
}

/// Reports whether a path among the decisions belongs to such an object.
pub fn is_one(path: &str) -> bool {
    let file = path.rsplit_once('/').map_or(path, |(_, file)| file);
    file.strip_prefix(KIND)
        .and_then(|rest| rest.strip_prefix('.'))
        .is_some_and(|rest| rest.strip_prefix(GROUP).is_some_and(|rest| rest.starts_with('_')))
}

/// Reports whether a key belongs to a Placement, whose decision others may consume.
pub fn is_placement(key: &Key) -> bool {
    &*key.group == GROUP && &*key.kind == "Placement"
}

/// Returns the key of an object; the objects of all groups are numbered from 1.
fn key(decision: &Decision, number: usize) -> Key {
    Key::new(GROUP, KIND, &decision.key.namespace, &format!("{}-decision-{number}", decision.key.name))
}

fn objects(decision: &Decision) -> Vec<(Key, Json)> {
    if !is_placement(&decision.key) {
        return Vec::new();
    }
    let object = |(index, (group, picks)): (usize, (Group, Vec<&Pick>))| {
        let key = key(decision, index + 1);
        let decisions: Vec<Json> =
            picks.iter().map(|pick| json!({ "clusterName": pick.cluster, "reason": "" })).collect();
        let label = |name: &str| format!("{GROUP}/{name}");
        let object = json!({
            "apiVersion": format!("{GROUP}/v1beta1"),
            "kind": KIND,
            "metadata": {
                "name": &*key.name,
                "namespace": &*key.namespace,
                "labels": {
                    label("placement"): &*decision.key.name,
                    label("decision-group-index"): group.index.to_string(),
                    label("decision-group-name"): group.name,
                },
            },
            "status": { "decisions": decisions },
        });
        (key, object)
    };
    chunks(decision).into_iter().enumerate().map(object).collect()
}

/// Returns the clusters of each object: clusters of one group, by name. Without any cluster there is one
/// empty object.
fn chunks(decision: &Decision) -> Vec<(Group, Vec<&Pick>)> {
    let first = Group { index: 0, name: String::new() };
    let mut groups: std::collections::BTreeMap<usize, (Group, Vec<&Pick>)> = Default::default();
    for pick in &decision.picks {
        let group = pick.group.as_ref().unwrap_or(&first);
        groups.entry(group.index).or_insert_with(|| (group.clone(), Vec::new())).1.push(pick);
    }
    let mut chunks = Vec::new();
    for (group, picks) in groups.into_values() {
        chunks.extend(picks.chunks(MOST).map(|chunk| (group.clone(), chunk.to_vec())));
    }
    if chunks.is_empty() {
        chunks.push((first, Vec::new()));
    }
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_base::model::Shared;

    fn decision(group: &str, picks: Vec<Pick>) -> Decision {
        Decision {
            picks: Shared::from(picks),
            ..Decision::new(Key::new(group, "Placement", "shop", "web"), "a.yaml")
        }
    }

    fn pick(cluster: String, index: usize, name: &str) -> Pick {
        Pick::of(cluster).with(|details| details.group = Some(Group { index, name: name.to_owned() }))
    }

    #[test]
    fn groups_are_cut_into_objects_of_a_hundred_and_numbered_through() {
        let canary = (0..3).map(|n| pick(format!("c{n:03}"), 0, "canary"));
        let rest = (3..208).map(|n| pick(format!("c{n:03}"), 1, ""));
        let decision = decision(GROUP, canary.chain(rest).collect());
        let files = files(&decision);
        let counts: Vec<usize> = files.iter().map(|(_, text)| text.matches("clusterName").count()).collect();
        assert_eq!(counts, [3, 100, 100, 5]);
        let paths: Vec<String> = files.iter().map(|(path, _)| path.clone()).collect();
        assert_eq!(
            (paths[3].as_str(), paths.clone()),
            (
                "shop/PlacementDecision.cluster.open-cluster-management.io_web-decision-4.yaml",
                super::paths(&decision)
            )
        );
        assert!(paths.iter().all(|path| is_one(path)) && !is_one(&path::of_key(&decision.key)));
        let last = &files[3].1;
        assert!(
            last.contains("decision-group-index: \"1\"") && last.contains("decision-group-name: \"\""),
            "{last}"
        );
        assert!(files[0].1.contains("decision-group-name: canary"), "{}", files[0].1);
    }

    #[test]
    fn no_cluster_gives_one_empty_object_and_other_systems_none() {
        let empty = files(&decision(GROUP, Vec::new()));
        assert_eq!(empty.len(), 1);
        assert!(empty[0].1.contains("decisions: []"), "{}", empty[0].1);
        assert!(files(&decision("placement.kubernetes-fleet.io", Vec::new())).is_empty());
    }
}
