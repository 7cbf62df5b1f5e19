//! The schemas of the page's data. Each page that a test reads is held against them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::Value as Json;

use super::change::proposed;
use super::{Page, demo, page, rolling};
use crate::support::fixtures;
use crate::support::results::refusal;
use berth_site::form::FORMAT;

/// The schemas of `docs/page-data`, by name.
static SCHEMAS: LazyLock<BTreeMap<String, Json>> = LazyLock::new(|| {
    let files = std::fs::read_dir(fixtures("../docs/page-data")).expect("a folder");
    let schema = |path: std::path::PathBuf| {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        (name, serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("a schema"))
    };
    let paths = files.map(|file| file.expect("an entry").path());
    paths.filter(|path| path.extension().is_some_and(|end| end == "json")).map(schema).collect()
});

/// Returns the name of the schema of a block. The blocks of the map are bytes.
fn schema_of(key: &str) -> Option<&'static str> {
    match key.split_once('-').map_or(key, |(kind, _)| kind) {
        "names" => Some("names"),
        "p" => Some("placements"),
        "c" => Some("clusters"),
        "r" => Some("rollout"),
        "n" => Some("publications"),
        "change" => Some("change"),
        "map" => None,
        other => panic!("no schema of {other}"),
    }
}

/// Insists that the data of a page is what its schemas say.
pub fn check(page: &Page) {
    let head = serde_json::to_value(&page.head).expect("JSON");
    assert_eq!(refusal(&SCHEMAS["head"], &head, "head"), None);
    for key in page.head.files.keys() {
        let Some(name) = schema_of(key) else { continue };
        assert_eq!(refusal(&SCHEMAS[name], &page.block::<Json>(key), key), None);
    }
}

#[test]
fn every_kind_of_block_has_a_schema_on_the_page() {
    let (folder, fleet) = demo();
    let rollouts = rolling();
    let (_repo, change) = proposed();
    let pages = [
        Page::read(&change),
        page(&fleet, &folder.path().join("page"), &[]),
        page(rollouts.repo.path(), &folder.path().join("rolling"), &[]),
    ];
    let mut used: BTreeSet<&str> = BTreeSet::from(["head"]);
    used.extend(pages.iter().flat_map(|page| page.head.files.keys()).filter_map(|key| schema_of(key)));
    assert!(SCHEMAS.keys().map(String::as_str).eq(used.iter().copied()), "{used:?}");
    let docs = std::fs::read_to_string(fixtures("../docs/page-data/README.md")).expect("a page");
    for name in used {
        assert!(docs.contains(&format!("({name}.json)")), "{name} is not on the page");
    }
    assert_eq!(SCHEMAS["head"]["properties"]["format"]["enum"], serde_json::json!([FORMAT]));
    let mut wrong = serde_json::to_value(&pages[0].head).expect("JSON");
    wrong["totals"] = serde_json::json!([1]);
    assert!(refusal(&SCHEMAS["head"], &wrong, "head").is_some());
}
