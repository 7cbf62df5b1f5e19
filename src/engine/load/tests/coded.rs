//! Fleets as another process finds them.

use std::fs;
use std::path::Path;

use super::rollout_policies::{WHOLE, policy};
use crate::dialects::FUNCTIONS;
use crate::load::{History, load};
use berth_base::codec::coded::Coded as _;
use berth_base::codec::file::{File, to_bytes};
use berth_base::model::{Fleet, Shared};
use berth_base::source::{SourceFile, SourceTree, read_dir};
use berth_base::yaml::Limits;

#[test]
fn a_stored_fleet_reads_as_it_was() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let mut trees = vec![read_dir(&folder, &Limits::default()).expect("a folder")];
    archives(&folder, &mut trees);
    trees.push(SourceTree {
        files: [SourceFile::new("policy.yaml", policy(WHOLE).as_bytes())].into(),
        ..SourceTree::default()
    });
    assert!(trees.len() > 50, "only {} trees", trees.len());
    let mut some = Fleet::default();
    for tree in &trees {
        let fleet = load(tree, History::None).fleet;
        let bytes = to_bytes(None, |encoder| fleet.put(encoder));
        let file = File::read_with(bytes, &FUNCTIONS).expect("a file");
        let stored: Shared<Fleet> = Shared::get(&mut file.decoder()).expect("readable");
        assert_eq!(*stored, *fleet);
        assert!(!file.is_damaged());
        take_any(&mut some, &fleet);
    }
    let all = [
        some.clusters.is_empty(),
        some.placements.is_empty(),
        some.workloads.is_empty(),
        some.rollout_policies.is_empty(),
        some.runs.is_empty(),
        some.stage_strategies.is_empty(),
    ];
    assert_eq!(all, [false; 6], "the fixtures have all of these");
}

/// Reads the archives below a folder, each as a tree of its own.
fn archives(folder: &Path, trees: &mut Vec<SourceTree>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            archives(&path, trees);
        } else if path.extension().is_some_and(|end| end == "txtar") {
            let text = fs::read_to_string(&path).expect("a text");
            let parts = text.split("\n-- ").skip(1).filter_map(|part| part.split_once(" --\n"));
            let file = |(name, text): (&str, &str)| SourceFile::new(name, text.as_bytes());
            let files = parts.filter(|(name, _)| name.ends_with(".yaml")).map(file).collect();
            trees.push(SourceTree { files, ..SourceTree::default() });
        }
    }
}

fn take_any(some: &mut Fleet, fleet: &Fleet) {
    some.clusters.extend(fleet.clusters.iter().map(|(key, one)| (key.clone(), one.clone())));
    some.placements.extend(fleet.placements.iter().map(|(key, one)| (key.clone(), one.clone())));
    some.workloads.extend(fleet.workloads.iter().map(|(key, one)| (key.clone(), one.clone())));
    let policies = fleet.rollout_policies.iter();
    some.rollout_policies.extend(policies.map(|(key, one)| (key.clone(), one.clone())));
    some.runs.extend(fleet.runs.clone());
    some.stage_strategies.extend(fleet.stage_strategies.clone());
}
