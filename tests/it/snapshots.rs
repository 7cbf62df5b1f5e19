//! A whole KubeFed fleet through the loop, into a folder for each member, byte for byte against
//! `fixtures/kubefed-fleet`: its README says what is where.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use similar::TextDiff;

use crate::support::{RENDERED, Repo, fixtures, run};

const CLUSTERS: [&str; 4] = ["lisbon", "oslo", "quito", "turin"];

/// Files by path, each with its text.
type Files = BTreeMap<String, String>;

/// Every file below a folder; none where there is no such folder. berth's own records are left out.
fn files_below(root: &Path) -> Files {
    let mut found = Files::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                if !path.ends_with(".berth") {
                    folders.push(path);
                }
                continue;
            }
            let name = path.strip_prefix(root).expect("below the root").to_string_lossy().into_owned();
            found.insert(name, std::fs::read_to_string(&path).expect("a text file"));
        }
    }
    found
}

fn lines_of(path: &Path) -> BTreeSet<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn is_update() -> bool {
    std::env::var_os("BERTH_UPDATE").is_some()
}

fn stages() -> Vec<PathBuf> {
    let folder = fixtures("kubefed-fleet/stages");
    let entries = std::fs::read_dir(folder).expect("the stages are there");
    let mut stages: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    stages.sort();
    assert!(stages.len() > 1, "{stages:?}");
    stages
}

/// The fleet's repository and its members' folders.
struct Loop {
    repo: Repo,
    members: tempfile::TempDir,
}

impl Loop {
    /// Commits a stage's edits, publishes, syncs every member, and gives what their folders hold.
    fn pass(&self, stage: &Path) -> Files {
        for (path, text) in files_below(&stage.join("fleet")) {
            self.repo.write(&path, text);
        }
        for path in lines_of(&stage.join("removed")) {
            std::fs::remove_file(self.repo.path().join(path)).expect("the file to remove is there");
        }
        self.repo.commit(&stage.file_name().expect("a name").to_string_lossy());
        self.repo.publish_ungated().expect(0);
        for cluster in CLUSTERS {
            self.repo.sync(cluster, &self.members.path().join(cluster), &[]).expect(0);
        }
        files_below(self.members.path())
    }
}

/// Writes the snapshot of a stage: what is new or differs, and what is gone.
fn update(stage: &Path, before: &Files, after: &Files) {
    let folder = stage.join("members");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).expect("the old snapshot is removed");
    }
    for (path, text) in after.iter().filter(|(path, text)| before.get(*path) != Some(text)) {
        let file = folder.join(path);
        std::fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
        std::fs::write(file, text).expect("a file");
    }
    let gone: String =
        before.keys().filter(|path| !after.contains_key(*path)).map(|path| format!("{path}\n")).collect();
    let list = stage.join("gone");
    if gone.is_empty() {
        let _ = std::fs::remove_file(list);
    } else {
        std::fs::write(list, gone).expect("the list");
    }
}

/// What members should hold after a stage, by its snapshot.
fn expected(stage: &Path, mut before: Files) -> Files {
    for path in lines_of(&stage.join("gone")) {
        assert!(before.remove(&path).is_some(), "{}: {path} was not there", stage.display());
    }
    before.extend(files_below(&stage.join("members")));
    before
}

/// Unified diffs of all files that differ.
fn differences(wanted: &Files, found: &Files) -> String {
    let paths: BTreeSet<&String> = wanted.keys().chain(found.keys()).collect();
    let mut text = String::new();
    for path in paths {
        let (old, new) = (wanted.get(path), found.get(path));
        if old != new {
            let side = |side: Option<&String>, prefix: &str| match side {
                Some(_) => format!("{prefix}/{path}"),
                None => "/dev/null".to_owned(),
            };
            let empty = String::new();
            let diff = TextDiff::from_lines(old.unwrap_or(&empty), new.unwrap_or(&empty));
            let header = (side(old, "snapshot"), side(new, "member"));
            text.push_str(&diff.unified_diff().header(&header.0, &header.1).to_string());
        }
    }
    text
}

#[test]
fn every_kubefed_type_reaches_its_members_byte_for_byte_stage_by_stage() {
    let all = Loop { repo: Repo::new(), members: tempfile::tempdir().expect("a folder") };
    let start = fixtures("kubefed-fleet");
    let mut snapshot = Files::new();
    let mut held = Files::new();
    for stage in std::iter::once(start).chain(stages()) {
        let found = all.pass(&stage);
        if is_update() {
            update(&stage, &held, &found);
        }
        snapshot = expected(&stage, snapshot);
        let differences = differences(&snapshot, &found);
        assert!(
            differences.is_empty(),
            "{}: members differ from their snapshot; if they should, run \
             `BERTH_UPDATE=1 cargo test --test it snapshots`\n{differences}",
            stage.display()
        );
        held = found;
    }
    assert_all_in_sync(&all.repo);
    let last = all.repo.id(RENDERED);
    all.repo.publish().expect(0);
    assert_eq!(all.repo.id(RENDERED), last, "nothing is left to do");
    run(&["verify", "berth/rendered", "--repo", all.repo.arg()]).expect(0);
}

/// KubeFed's own word for it: the condition `Propagation` is true everywhere.
fn assert_all_in_sync(repo: &Repo) {
    let status = run(&["status", "--repo", repo.arg(), "-o", "json"]).expect(0).json();
    let workloads = status["fleet"]["workloads"].as_array().expect("workloads");
    assert_eq!(workloads.len(), 16);
    for workload in workloads {
        let status = &workload["status"];
        assert_eq!(status["conditions"][0]["status"], "True", "{workload}");
        assert_eq!(status["summary"]["inSync"], status["summary"]["clusters"], "{workload}");
    }
}

#[test]
fn the_snapshots_have_every_type_that_kubefed_ships_and_a_custom_resource() {
    let members = files_below(&fixtures("kubefed-fleet/members"));
    let kinds: BTreeSet<&str> = members
        .keys()
        .filter_map(|path| path.rsplit('/').next()?.split('_').next()?.split('.').next())
        .collect();
    let wanted = [
        "ClusterRole",
        "ClusterRoleBinding",
        "ConfigMap",
        "CustomResourceDefinition",
        "Deployment",
        "Gauge",
        "Ingress",
        "Job",
        "Namespace",
        "ReplicaSet",
        "Secret",
        "Service",
        "ServiceAccount",
    ];
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), wanted);
}

#[test]
fn the_stages_change_no_more_than_they_say() {
    if is_update() {
        return;
    }
    let root = fixtures("kubefed-fleet");
    let of = |stage: &str| {
        let found = files_below(&root.join("stages").join(stage).join("members"));
        found.into_keys().collect::<Vec<_>>()
    };
    let start = files_below(&root.join("members"));
    let clock = |cluster: &str| format!("{cluster}/tides/Deployment.apps_clock.yaml");
    assert!(start[&clock("oslo")].contains("replicas: 5"));
    assert!(start[&clock("oslo")].contains("image: nginx:1.17.0-alpine"));
    assert!(start[&clock("turin")].contains("replicas: 3"));
    assert_eq!(of("1-annotation-in-template"), [clock("oslo"), clock("turin")]);
    let again = files_below(&root.join("stages/2-annotation-removed/members"));
    assert!(again.iter().all(|(path, text)| start[path] == *text), "as it was before");
    assert_eq!(of("3-annotation-by-override"), [clock("oslo")]);
    let again = files_below(&root.join("stages/4-override-removes-it-again/members"));
    // An override on the whole map of annotations means it, as in KubeFed: the member keeps none of its own.
    let retained = ("/metadata/annotations,/metadata/finalizers", "/metadata/finalizers");
    assert_eq!(again[&clock("oslo")], start[&clock("oslo")].replace(retained.0, retained.1));
    let gone = lines_of(&root.join("stages/5-out-of-placement/gone"));
    assert_eq!(
        gone.into_iter().collect::<Vec<_>>(),
        ["oslo/tides/ConfigMap_almanac.yaml", "quito/tides/ConfigMap_almanac.yaml", &clock("turin")]
    );
    let gone = lines_of(&root.join("stages/6-orphan/gone"));
    assert_eq!(gone.into_iter().collect::<Vec<_>>(), ["turin/tides/ConfigMap_almanac.yaml"]);
    assert!(start.contains_key("oslo/tides/ConfigMap_readings.yaml"), "which stays, as an orphan");
}
