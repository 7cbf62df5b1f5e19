//! Runs every case under `fixtures/health/`, and checks that every kind with checks has one.

use std::collections::BTreeSet;

use super::rules::RULES;
use super::*;
use berth_base::yaml::{self, Limits};

fn cases() -> Vec<Json> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/health");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut cases = Vec::new();
    for file in files {
        let read = yaml::read(&std::fs::read(&file).unwrap(), &Limits::default());
        assert!(read.faults.is_empty(), "{}: {:?}", file.display(), read.faults);
        cases.extend(read.documents.iter().map(|document| document.root.to_json()));
    }
    cases
}

#[test]
fn every_case_is_judged_as_it_says() {
    for case in cases() {
        let judged = of(&case["object"]);
        let (word, why) = match &judged {
            Health::Healthy => ("healthy", ""),
            Health::Progressing(why) => ("progressing", why.as_str()),
            Health::Failed(why) => ("failed", why.as_str()),
        };
        assert_eq!(case["expect"], word, "{judged:?} of {case}");
        let says = case["says"].as_str().unwrap_or_default();
        assert!(why.contains(says), "`{why}` does not say `{says}`: {case}");
    }
}

#[test]
fn every_kind_that_is_waited_for_has_a_case_of_each_end() {
    let seen: BTreeSet<(String, String, String)> = cases()
        .iter()
        .map(|case| {
            let text = |at: &str| case.pointer(at).and_then(Json::as_str).unwrap_or_default().to_owned();
            let group = berth_base::model::object::group_of(&text("/object/apiVersion")).to_owned();
            (group, text("/object/kind"), text("/expect"))
        })
        .collect();
    for (group, kind) in RULES
        .iter()
        .flat_map(|rule| rule.kinds)
        .copied()
        .filter(|(group, kind)| is_lively(group, kind) && *kind != "Namespace")
    {
        for end in ["healthy", "progressing"] {
            let wanted = (group.to_owned(), kind.to_owned(), end.to_owned());
            assert!(seen.contains(&wanted) || kind == "ReplicaSet", "{kind} has no case that is {end}");
        }
    }
}
