//! Cases with a folder `expected/`: the objects of each cluster, one JSON file each.
//!
//! Compared are metadata's name, namespace, labels and annotations, and all outside metadata. Labels and
//! annotations of berth's own and KubeFed's label on managed objects do not count.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json};

use crate::archive::Archive;
use crate::run::render;

/// Cluster, apiVersion, kind, namespace and name.
type Name = [String; 5];

/// Compares, and puts what was found into the case where it differs.
pub fn check(case: &mut Archive) -> Result<(), String> {
    let (objects, diagnostics) = render(case);
    let failed = failed(&case.about);
    if diagnostics.has_errors() == failed.is_empty() {
        let said: String = diagnostics.iter().map(|diagnostic| format!("{diagnostic}\n")).collect();
        return Err(format!("`failed:` lists {failed:?}, but berth says:\n{said}"));
    }
    let told = |part: &&String| diagnostics.iter().any(|diagnostic| diagnostic.to_string().contains(*part));
    if let Some(part) = failed.iter().find(|part| !told(part)) {
        return Err(format!("no diagnostic names `{part}`"));
    }
    let got: BTreeMap<Name, Json> =
        objects.into_iter().map(|(cluster, object)| named(&cluster, comparable(object))).collect();
    let (mut expected, mut wrong) = (BTreeSet::new(), Vec::new());
    let mut kept = Vec::new();
    for (path, text) in std::mem::take(&mut case.files) {
        let Some(file) = path.strip_prefix("expected/").filter(|file| file.ends_with(".json")) else {
            kept.push((path, text));
            continue;
        };
        let cluster = file.split('/').next().expect("a cluster");
        let (name, object) = named(cluster, comparable(serde_json::from_str(&text).expect("JSON")));
        match got.get(&name) {
            Some(got) if *got == object => kept.push((path, text)),
            Some(got) => {
                differences("", got, &object, &mut |line| wrong.push(format!("{file}{line}")));
                kept.push((path, format!("{got:#}\n")));
            }
            None => wrong.push(format!("{file}: no such object is rendered")),
        }
        expected.insert(name);
    }
    for (name, object) in got.iter().filter(|(name, _)| !expected.contains(*name)) {
        let [cluster, _, kind, namespace, own] = name;
        wrong.push(format!("not expected: {}", name.join(" ")));
        let path = format!("expected/{cluster}/{}-{namespace}-{own}.json", kind.to_lowercase());
        kept.push((path, format!("{object:#}\n")));
    }
    case.files = kept;
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Clusters and names of the objects listed under `failed:`.
fn failed(about: &str) -> Vec<String> {
    let lists = about.lines().filter_map(|line| line.trim().strip_prefix("- {cluster: "));
    let parts = lists.flat_map(|list| {
        let until = |text: &str| text.split([',', '}']).next().map(str::to_owned);
        [until(list), list.split("name: ").nth(1).and_then(until)]
    });
    parts.flatten().collect()
}

fn named(cluster: &str, object: Json) -> (Name, Json) {
    let field = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    let name = [
        cluster.to_owned(),
        field(&object["apiVersion"]),
        field(&object["kind"]),
        field(&metadata["namespace"]),
        field(&metadata["name"]),
    ];
    (name, object)
}

fn comparable(mut object: Json) -> Json {
    let metadata = object["metadata"].take();
    let mut kept = Map::new();
    for key in ["name", "namespace"] {
        if metadata[key].as_str().is_some_and(|text| !text.is_empty()) {
            kept.insert(key.into(), metadata[key].clone());
        }
    }
    for key in ["labels", "annotations"] {
        let ours = |name: &str| name.starts_with("berth.dev/") || name.starts_with("kubefed.io/managed");
        let all = metadata[key].as_object().into_iter().flatten();
        let others = all.filter(|(name, _)| !ours(name));
        let others: Map<_, _> = others.map(|(name, value)| (name.clone(), value.clone())).collect();
        if !others.is_empty() {
            kept.insert(key.into(), others.into());
        }
    }
    object["metadata"] = kept.into();
    object
}

/// Tells each place where two values differ.
fn differences(at: &str, got: &Json, want: &Json, tell: &mut impl FnMut(String)) {
    match (got, want) {
        (Json::Object(got), Json::Object(want)) => {
            for key in got.keys().chain(want.keys().filter(|key| !got.contains_key(*key))) {
                let at = format!("{at}/{key}");
                match (got.get(key), want.get(key)) {
                    (Some(got), Some(want)) => differences(&at, got, want, tell),
                    (Some(got), None) => tell(format!("{at} is {got}, expected nothing")),
                    (None, want) => {
                        tell(format!("{at} is missing, expected {}", want.unwrap_or(&Json::Null)));
                    }
                }
            }
        }
        _ if got == want => {}
        _ => tell(format!("{at} is {got}, expected {want}")),
    }
}
