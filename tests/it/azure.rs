//! The examples of the public documentation of Azure Kubernetes Fleet Manager through validate, decide, explain
//! and render, byte for byte against `fixtures/kubefleet-azure`: its README says what is where.

use std::collections::BTreeMap;
use std::path::Path;

use crate::archive::Archive;
use crate::support::{Ran, berth, fixtures, run};

const EXPECTED: &str = "kubefleet-azure/expected.txtar";
const NOW: &str = "2026-01-01T00:00:00Z";

/// Runs the binary in the fixture's folder, so that no path of this machine shows.
fn ran(args: &[&str]) -> Ran {
    Ran::of(berth().current_dir(fixtures("kubefleet-azure")).arg("--quiet").args(args))
}

fn told(ran: &Ran) -> String {
    format!("{}{}", ran.err, ran.out)
}

/// Files below a folder by path.
fn files_below(root: &Path, prefix: &str, found: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(root).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        let name = format!("{prefix}{}", path.file_name().expect("a name").to_string_lossy());
        if path.is_dir() {
            files_below(&path, &format!("{name}/"), found);
        } else {
            found.insert(name, std::fs::read_to_string(&path).expect("a text file"));
        }
    }
}

#[test]
fn the_examples_of_the_documentation_are_read_decided_explained_and_rendered() {
    let mut found = BTreeMap::new();
    found.insert("validate".to_owned(), told(&ran(&["validate", "fleet"]).expect(0)));
    found.insert("decide".to_owned(), ran(&["decide", "--repo", "fleet", "--now", NOW]).expect(0).out);
    let out = tempfile::tempdir().expect("a folder");
    let folder = out.path().to_string_lossy().into_owned();
    ran(&["render", "--repo", "fleet", "--now", NOW, "--out", &folder]).expect(0);
    files_below(&out.path().join("clusters"), "rendered/", &mut found);
    let placements = ran(&["decide", "--repo", "fleet", "--now", NOW, "-o", "json"]).expect(0).json();
    let placements = placements["placements"].as_array().expect("placements").clone();
    assert_eq!(placements.len(), 8);
    for placement in placements {
        let name = placement["name"].as_str().expect("a name");
        let explained = ran(&["explain", name, "--repo", "fleet", "--now", NOW]).expect(0);
        found.insert(format!("explain/{name}"), explained.out);
    }
    if std::env::var_os("BERTH_UPDATE").is_some() {
        let found = Archive { files: found.clone().into_iter().collect(), ..Archive::default() };
        std::fs::write(fixtures(EXPECTED), found.text()).expect("a file");
    }
    let wanted: BTreeMap<_, _> = Archive::read(&fixtures(EXPECTED)).files.into_iter().collect();
    for (path, text) in &found {
        assert_eq!(
            wanted.get(path),
            Some(text),
            "{path}: if it should differ, run `BERTH_UPDATE=1 cargo test --test it azure`"
        );
    }
    assert!(wanted.keys().eq(found.keys()), "{:?} {:?}", wanted.keys(), found.keys());
}

#[test]
fn the_snapshots_show_each_slip_once_and_pick_as_the_documentation_says() {
    let expected = Archive::read(&fixtures(EXPECTED));
    let text = |path: &str| expected.file(path).expect(path).to_owned();
    let validate = text("validate");
    for slip in ["is a mapping, but must be a list", "is a list, but must be a mapping", "is the number 1"] {
        assert_eq!(validate.matches(slip).count(), 1, "{validate}");
    }
    assert_eq!(validate.matches("warning").count(), 3, "{validate}");
    let explained = text("explain/crp-pickn-01");
    assert!(explained.contains("picks 3 of 5 clusters"), "{explained}");
    let cluster = |name: &str| explained.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    assert!(cluster("cluster1").contains("affinityScore 20"), "{explained}");
    assert!(cluster("cluster5").contains("no"), "{explained}");
}

#[test]
fn the_spread_example_as_it_is_published_is_refused_with_what_it_lacks() {
    let ran = ran(&["validate", "without-number"]).expect(1);
    let told = told(&ran);
    assert!(told.contains("placement.yaml:12:5: error: spec.policy.numberOfClusters is required"), "{told}");
    assert!(told.contains("hint: give the number of clusters, such as `numberOfClusters: 3`"), "{told}");
    // With the hint taken it is accepted.
    let fixed = tempfile::tempdir().expect("a folder");
    let text =
        std::fs::read_to_string(fixtures("kubefleet-azure/without-number/placement.yaml")).expect("it");
    let text = text.replace("placementType: PickN\n", "placementType: PickN\n    numberOfClusters: 3\n");
    std::fs::write(fixed.path().join("placement.yaml"), text).expect("written");
    run(&["validate", &fixed.path().to_string_lossy()]).expect(0);
}
