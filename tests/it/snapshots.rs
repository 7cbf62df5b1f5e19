//! A whole KubeFed fleet through the loop, into a folder for each member, byte for byte against
//! `fixtures/kubefed-fleet`: its README says what is where.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use similar::TextDiff;

use crate::archive::{Archive, archives};
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

fn is_update() -> bool {
    std::env::var_os("BERTH_UPDATE").is_some()
}

/// A step of the fleet: an archive of edits, and of what members hold afterwards.
struct Stage {
    path: PathBuf,
    archive: Archive,
}

impl Stage {
    fn read(path: PathBuf) -> Stage {
        let archive = Archive::read(&path);
        Stage { path, archive }
    }

    fn named(name: &str) -> Stage {
        Stage::read(fixtures(&format!("kubefed-fleet/{name}.txtar")))
    }

    /// The start, whose fleet is a folder of its own, and the stages after it.
    fn all() -> Vec<Stage> {
        let after = archives(&fixtures("kubefed-fleet/stages"));
        assert!(after.len() > 1, "{after:?}");
        std::iter::once(Stage::named("members")).chain(after.into_iter().map(Stage::read)).collect()
    }

    fn files(&self, folder: &str) -> Files {
        self.archive.below(folder).map(|(path, text)| (path.to_owned(), text.to_owned())).collect()
    }

    fn lines(&self, file: &str) -> BTreeSet<String> {
        self.archive.file(file).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Writes the snapshot: what is new or differs, and what is gone.
    fn update(&mut self, before: &Files, after: &Files) {
        self.archive.files.retain(|(path, _)| path != "gone" && !path.starts_with("members/"));
        let gone = before.keys().filter(|path| !after.contains_key(*path));
        let gone: String = gone.map(|path| format!("{path}\n")).collect();
        if !gone.is_empty() {
            self.archive.files.push(("gone".to_owned(), gone));
        }
        let differing = after.iter().filter(|(path, text)| before.get(*path) != Some(text));
        self.archive.files.extend(differing.map(|(path, text)| (format!("members/{path}"), text.clone())));
        std::fs::write(&self.path, self.archive.text()).expect("the snapshot is written");
    }

    /// The members' expected files after this step, by its snapshot.
    fn expected(&self, mut before: Files) -> Files {
        for path in self.lines("gone") {
            assert!(before.remove(&path).is_some(), "{}: {path} was not there", self.path.display());
        }
        before.extend(self.files("members"));
        before
    }
}

/// The fleet's repository and its members' folders.
struct Loop {
    repo: Repo,
    members: tempfile::TempDir,
}

impl Loop {
    /// Commits a stage's edits, publishes, syncs every member, and gives what their folders hold.
    fn pass(&self, stage: &Stage) -> Files {
        for (path, text) in stage.files("fleet") {
            self.repo.write(&path, text);
        }
        for path in stage.lines("removed") {
            std::fs::remove_file(self.repo.path().join(path)).expect("the file to remove is there");
        }
        self.repo.commit(&stage.path.file_stem().expect("a name").to_string_lossy());
        self.repo.publish_ungated().expect(0);
        for cluster in CLUSTERS {
            self.repo.sync(cluster, &self.members.path().join(cluster), &[]).expect(0);
        }
        files_below(self.members.path())
    }
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
    for (path, text) in files_below(&fixtures("kubefed-fleet/fleet")) {
        all.repo.write(&path, text);
    }
    let mut snapshot = Files::new();
    let mut held = Files::new();
    for mut stage in Stage::all() {
        let found = all.pass(&stage);
        if is_update() {
            stage.update(&held, &found);
        }
        snapshot = stage.expected(snapshot);
        let differences = differences(&snapshot, &found);
        assert!(
            differences.is_empty(),
            "{}: members differ from their snapshot; if they should, run \
             `BERTH_UPDATE=1 cargo test --test it snapshots`\n{differences}",
            stage.path.display()
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
    let members = Stage::named("members").files("members");
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
    let stage = |name: &str| Stage::named(&format!("stages/{name}"));
    let of = |name: &str| stage(name).files("members").into_keys().collect::<Vec<_>>();
    let start = Stage::named("members").files("members");
    let clock = |cluster: &str| format!("{cluster}/tides/Deployment.apps_clock.yaml");
    assert!(start[&clock("oslo")].contains("replicas: 5"));
    assert!(start[&clock("oslo")].contains("image: nginx:1.17.0-alpine"));
    assert!(start[&clock("turin")].contains("replicas: 3"));
    assert_eq!(of("1-annotation-in-template"), [clock("oslo"), clock("turin")]);
    let again = stage("2-annotation-removed").files("members");
    assert!(again.iter().all(|(path, text)| start[path] == *text), "as it was before");
    assert_eq!(of("3-annotation-by-override"), [clock("oslo")]);
    let again = stage("4-override-removes-it-again").files("members");
    // An override on the whole map of annotations means it, as in KubeFed: the member keeps none of its own.
    let retained = ("/metadata/annotations,/metadata/finalizers", "/metadata/finalizers");
    assert_eq!(again[&clock("oslo")], start[&clock("oslo")].replace(retained.0, retained.1));
    let gone = stage("5-out-of-placement").lines("gone");
    assert_eq!(
        gone.into_iter().collect::<Vec<_>>(),
        ["oslo/tides/ConfigMap_almanac.yaml", "quito/tides/ConfigMap_almanac.yaml", &clock("turin")]
    );
    let gone = stage("6-orphan").lines("gone");
    assert_eq!(gone.into_iter().collect::<Vec<_>>(), ["turin/tides/ConfigMap_almanac.yaml"]);
    assert!(start.contains_key("oslo/tides/ConfigMap_readings.yaml"), "which stays, as an orphan");
}
