use super::*;
use berth_base::model::{Decision, Folder, Pick, path};

fn workload(name: &str) -> (Key, ObjectId) {
    (
        Key::new("types.kubefed.io", "FederatedConfigMap", "shop", name),
        ObjectId::new("", "ConfigMap", "shop", name),
    )
}

/// Returns a state with one config map for each workload, with this content, in these clusters.
fn state(workloads: &[(&str, u8, &[&str])], clusters: &[&str]) -> State {
    let mut state = State::default();
    for cluster in clusters {
        state.folders.insert((*cluster).to_owned(), Folder::new());
    }
    for (name, content, placed) in workloads {
        let (key, object) = workload(name);
        for cluster in *placed {
            let folder = state.folders.get_mut(*cluster).expect("a known cluster");
            folder.put((path::of_object(&object).into(), ContentId([*content; 20])).into());
        }
        let decision = Decision {
            picks: placed.iter().map(|cluster| Pick::of(*cluster)).collect(),
            objects: vec![object],
            ..Decision::new(key.clone(), "web.yaml")
        };
        state.decisions.insert(key, decision);
    }
    state
}

#[test]
fn equal_states_give_an_empty_plan() {
    let state = state(&[("web", 1, &["a", "b"])], &["a", "b"]);
    assert!(plan(&state, &state).is_empty());
}

#[test]
fn removals_come_first_and_name_their_workload() {
    let before = state(&[("web", 1, &["a", "b"])], &["a", "b", "c"]);
    let after = state(&[("web", 2, &["b", "c"])], &["a", "b", "c"]);
    let plan = plan(&before, &after);
    let (key, object) = workload("web");
    let changes: Vec<_> = plan.workloads[&key].iter().map(|c| (c.change, &*c.cluster)).collect();
    assert_eq!(changes, [(Change::Removed, "a"), (Change::Changed, "b"), (Change::Added, "c")]);
    assert_eq!(plan.workloads[&key][0].object.as_deref(), Some(&object));
    assert_eq!(plan.placements[&key], ClusterChange { lost: vec!["a".into()], gained: vec!["c".into()] });
    assert_eq!(plan.counts(), Counts { removed: 1, changed: 1, added: 1, clusters: 3 });
}

#[test]
fn a_cluster_that_left_takes_its_objects_along() {
    let before = state(&[("web", 1, &["a", "b"])], &["a", "b"]);
    let after = state(&[("web", 1, &["a"])], &["a"]);
    let plan = plan(&before, &after);
    assert_eq!(plan.clusters.lost, ["b".into()]);
    assert_eq!(plan.counts().removed, 1);
}

#[test]
fn a_file_no_decision_accounts_for_is_still_shown() {
    let before = state(&[], &["a"]);
    let mut after = before.clone();
    after
        .folders
        .get_mut("a")
        .expect("there")
        .put(("shop/ConfigMap_x.yaml".into(), ContentId([7; 20])).into());
    assert_eq!(plan(&before, &after).unaccounted.len(), 1);
}
