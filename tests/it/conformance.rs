//! The cases of `fixtures/<system>/`: what the three systems decide and render for a given input.
//!
//! A folder's file `pending` lists the cases that do not pass yet. A pending case that passes fails
//! the test too, so that the list can only shrink.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use crate::support::{Ran, fixtures, run};

fn text(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

fn cases(system: &str) -> Vec<PathBuf> {
    let mut cases: Vec<_> = std::fs::read_dir(fixtures(system))
        .expect("the fixtures are there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.join("fleet").is_dir())
        .collect();
    cases.sort();
    cases
}

fn check_system(system: &str) {
    let pending: BTreeSet<String> =
        text(&fixtures(system).join("pending")).unwrap_or_default().lines().map(str::to_owned).collect();
    let mut wrong = Vec::new();
    let cases = cases(system);
    assert!(!cases.is_empty(), "no cases for {system}");
    for case in &cases {
        let name = case.file_name().expect("a name").to_string_lossy().into_owned();
        match (check(case), pending.contains(&name)) {
            (Err(why), false) => wrong.push(format!("{name}: {why}")),
            (Ok(()), true) => {
                wrong.push(format!("{name}: passes now; take it off the list of pending cases"));
            }
            _ => {}
        }
    }
    let known: BTreeSet<_> = cases.iter().filter_map(|case| case.file_name()).collect();
    wrong.extend(
        pending
            .iter()
            .filter(|name| !known.contains(name.as_ref() as &std::ffi::OsStr))
            .map(|name| format!("{name}: pending, but no such case")),
    );
    assert!(wrong.is_empty(), "{} of {} cases of {system}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

fn check(case: &Path) -> Result<(), String> {
    let about = text(&case.join("case.yaml")).unwrap_or_default();
    let now = about
        .lines()
        .find_map(|line| line.strip_prefix("now:"))
        .map(|now| now.trim().trim_matches(['\'', '"']).to_owned());
    if case.join("expected").is_dir() {
        return check_rendering(case, &about, now.as_deref());
    }
    let expected: Json =
        serde_json::from_str(&text(&case.join("expected.json")).expect("an expectation")).expect("JSON");
    if let Some(part) = expected.get("render_error").and_then(Json::as_str) {
        let out = tempfile::tempdir().expect("a folder");
        let ran = run(&["render", "--repo", &fleet(case), "--out", &out.path().to_string_lossy()]);
        return (ran.code != 0 && ran.err.contains(part))
            .then_some(())
            .ok_or(format!("exit {}: {}", ran.code, ran.err));
    }
    let fleet = fleet(case);
    let mut args = vec!["decide", "--repo", &fleet, "-o", "json"];
    let previous = case.join("previous.json").to_string_lossy().into_owned();
    if Path::new(&previous).exists() {
        args.extend(["--previous", &previous]);
    }
    if let Some(now) = &now {
        args.extend(["--now", now]);
    }
    let ran = run(&args);
    if let Some(part) = expected.get("error").and_then(Json::as_str) {
        return (ran.code != 0 && ran.err.contains(part) && names_a_place(&ran.err))
            .then_some(())
            .ok_or(format!("exit {}: {}", ran.code, ran.err));
    }
    if ran.code != 0 {
        return Err(format!("exit {}: {}", ran.code, ran.err));
    }
    let differences = differences(&expected, &ran.json());
    if !differences.is_empty() {
        return Err(differences.join("; "));
    }
    deciding_again_changes_nothing(&fleet, &ran, now.as_deref())
}

/// What was decided, taken as the decisions in force, is decided again.
fn deciding_again_changes_nothing(fleet: &str, first: &Ran, now: Option<&str>) -> Result<(), String> {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), &first.out).expect("the file is written");
    let path = file.path().to_string_lossy();
    let mut args = vec!["decide", "--repo", fleet, "-o", "json", "--previous", &path];
    if let Some(now) = now {
        args.extend(["--now", now]);
    }
    let again = run(&args);
    if again.out == first.out { Ok(()) } else { Err(format!("deciding again gives {}", again.out)) }
}

/// Whether every error stands at a line and column of a file.
fn names_a_place(text: &str) -> bool {
    let is_placed = |line: &str| {
        let place = line.split(": error: ").next().unwrap_or_default();
        let mut parts = place.rsplitn(3, ':');
        let mut number = || parts.next().is_some_and(|part| part.parse::<u32>().is_ok());
        number() && number()
    };
    text.lines().filter(|line| line.contains("error: ")).all(is_placed)
}

fn fleet(case: &Path) -> String {
    case.join("fleet").to_string_lossy().into_owned()
}

fn placements(value: &Json) -> BTreeMap<(String, String, String), &Json> {
    let field = |placement: &Json, name: &str| placement[name].as_str().unwrap_or_default().to_owned();
    let list = value["placements"].as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().map(|p| ((field(p, "kind"), field(p, "namespace"), field(p, "name")), p)).collect()
}

fn by_name(placement: &Json) -> BTreeMap<&str, &Json> {
    let list = placement["clusters"].as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(|cluster| Some((cluster["name"].as_str()?, cluster))).collect()
}

fn differences(expected: &Json, actual: &Json) -> Vec<String> {
    let found = placements(actual);
    let mut wrong = Vec::new();
    for (key, want) in placements(expected) {
        let Some(got) = found.get(&key) else {
            wrong.push(format!("{key:?} was not decided"));
            continue;
        };
        if want.get("clusters").is_some() {
            let (want, got) = (by_name(want), by_name(got));
            if !want.keys().eq(got.keys()) {
                wrong.push(format!("{key:?}: {:?}, expected {:?}", got.keys(), want.keys()));
            }
            for (name, want) in want {
                for (field, value) in want.as_object().expect("a cluster") {
                    if let Some(got) = got.get(name).filter(|got| got.get(field) != Some(value)) {
                        wrong.push(format!(
                            "{key:?} {name}: {field} is {:?}, expected {value}",
                            got.get(field)
                        ));
                    }
                }
            }
        }
        for (field, value) in want["condition"].as_object().into_iter().flatten() {
            if got["condition"].get(field) != Some(value) {
                wrong.push(format!(
                    "{key:?}: condition.{field} is {}, expected {value}",
                    got["condition"][field]
                ));
            }
        }
    }
    wrong
}

fn check_rendering(case: &Path, about: &str, now: Option<&str>) -> Result<(), String> {
    let out = tempfile::tempdir().expect("a folder");
    let out_path = out.path().to_string_lossy().into_owned();
    let fleet = fleet(case);
    let mut args = vec!["render", "--repo", &fleet, "--out", &out_path];
    if let Some(now) = now {
        args.extend(["--now", now]);
    }
    let ran = run(&args);
    let failing: Vec<&str> = about
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- {cluster: "))
        .flat_map(|line| {
            let cluster = line.split([',', '}']).next();
            let name = line.split("name: ").nth(1).and_then(|rest| rest.split([',', '}']).next());
            [cluster, name]
        })
        .flatten()
        .collect();
    if ran.code != i32::from(!failing.is_empty()) {
        return Err(format!("exit {}: {}", ran.code, ran.err));
    }
    if let Some(part) = failing.iter().find(|part| !ran.err.contains(**part)) {
        return Err(format!("stderr does not name `{part}`: {}", ran.err));
    }
    let want = objects(&case.join("expected"), "json");
    let got = objects(&out.path().join("clusters"), "yaml");
    let missing: Vec<_> = want.keys().filter(|key| !got.contains_key(*key)).collect();
    let surplus: Vec<_> = got.keys().filter(|key| !want.contains_key(*key)).collect();
    let differing: Vec<_> = want
        .iter()
        .filter(|(key, object)| got.get(*key).is_some_and(|got| got != *object))
        .map(|(key, want)| format!("{key:?} is {}, expected {want}", got[key]))
        .collect();
    if missing.is_empty() && surplus.is_empty() && differing.is_empty() {
        return Ok(());
    }
    Err(format!("missing {missing:?}, surplus {surplus:?}, differing {differing:?}"))
}

type Named = (String, String, String, String, String);

/// Every object below a folder of cluster folders, in comparable form.
fn objects(root: &Path, extension: &str) -> BTreeMap<Named, Json> {
    let mut found = BTreeMap::new();
    let Ok(clusters) = std::fs::read_dir(root) else { return found };
    for cluster in clusters {
        let cluster = cluster.expect("an entry").path();
        let name = cluster.file_name().expect("a name").to_string_lossy().into_owned();
        let mut folders = vec![cluster];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten() {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|found| found == extension) {
                    let object: Json =
                        serde_yaml::from_str(&text(&path).expect("a file")).expect("an object");
                    let object = comparable(object);
                    let field = |value: &Json| value.as_str().unwrap_or_default().to_owned();
                    let metadata = &object["metadata"];
                    let key = (
                        name.clone(),
                        field(&object["apiVersion"]),
                        field(&object["kind"]),
                        field(&metadata["namespace"]),
                        field(&metadata["name"]),
                    );
                    found.insert(key, object);
                }
            }
        }
    }
    found
}

fn comparable(mut object: Json) -> Json {
    let metadata = object["metadata"].take();
    let mut kept = serde_json::Map::new();
    for key in ["name", "namespace"] {
        if metadata[key].as_str().is_some_and(|text| !text.is_empty()) {
            kept.insert(key.into(), metadata[key].clone());
        }
    }
    for key in ["labels", "annotations"] {
        let ours = |name: &str| name.starts_with("berth.dev/") || name.starts_with("kubefed.io/managed");
        let own: serde_json::Map<_, _> = metadata[key]
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(name, _)| !ours(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        if !own.is_empty() {
            kept.insert(key.into(), own.into());
        }
    }
    object["metadata"] = kept.into();
    object
}

#[test]
fn kubefed_decisions() {
    check_system("kubefed");
}

#[test]
fn kubefed_rendering() {
    check_system("kubefed-render");
}

#[test]
fn kubefleet_decisions() {
    check_system("kubefleet");
}

#[test]
fn kubefleet_rendering() {
    check_system("kubefleet-render");
}

#[test]
fn ocm_decisions() {
    check_system("ocm");
}

#[test]
fn ocm_rendering() {
    check_system("ocm-render");
}

#[test]
fn rfc_6902() {
    check_system("rfc6902");
}
