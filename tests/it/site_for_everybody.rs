//! The page for everybody: axe-core finds nothing on any view or dialog, in both schemes, on a phone and on a desk.

use std::path::Path;

use serde_json::Value as Json;

use crate::support::browser::Browser;
use crate::support::page_fleets::{PageFleet, demo};
use crate::support::programs::{made, skipped};

/// The views of the busy fleet. Those of rollouts are added.
const VIEWS: [&str; 11] = [
    "#/",
    "#/?zoom=groups",
    "#/?mode=wave",
    "#/?is=failing",
    "#/p/FederatedDeployment/shop/web",
    "#/p/FederatedDeployment/billing/gate",
    "#/c/gothenburg-1",
    "#/c/kochi-1",
    "#/n/8",
    "#/pubs",
    "#/rollouts",
];

/// The keys that open something over a view.
const DIALOGS: [&str; 3] = ["/", "?", "t"];

/// Returns the checker's script. `None` where it cannot be had.
fn checker() -> Option<String> {
    match made(&["axe/ready"], "axe") {
        Ok(folder) => {
            let script = folder.join("node_modules/axe-core/axe.min.js");
            Some(std::fs::read_to_string(script).expect("a script"))
        }
        Err(why) => {
            skipped("axe-core", &why);
            None
        }
    }
}

/// Returns the findings about what the browser shows, one line each.
fn findings(browser: &mut Browser, place: &str) -> Vec<String> {
    let found =
        browser.value("axe.run(document, {resultTypes: ['violations']}).then((result) => result.violations)");
    let line = |finding: &Json| {
        let nodes = finding["nodes"].as_array().into_iter().flatten();
        let node = |node: &Json| format!("{} ({})", node["target"], node["any"][0]["message"]);
        let nodes: Vec<String> = nodes.take(3).map(node).collect();
        format!("{place}: {}: {}", finding["id"], nodes.join(", "))
    };
    found.as_array().into_iter().flatten().map(line).collect()
}

/// Opens a page, and checks all views and dialogs.
fn check(browser: &mut Browser, axe: &str, out: &Path, views: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for (width, scheme) in [(1280, "light"), (1280, "dark"), (360, "light"), (360, "dark")] {
        browser.size(width);
        browser.scheme(scheme);
        browser.open(out);
        browser.until("view?.rowUnits?.length > 0");
        browser.value(axe);
        for view in views {
            browser.go(view);
            found.extend(findings(browser, &format!("{view} at {width}, {scheme}")));
        }
        browser.go("#/");
        browser.until("view?.rowUnits?.length > 0");
        for key in DIALOGS {
            browser.press(key);
            browser.until("document.querySelector('dialog[open], .asTable') !== null");
            found.extend(findings(browser, &format!("the key {key} at {width}, {scheme}")));
            browser.press("Escape");
            browser.until("document.querySelector('dialog[open]') === null");
        }
    }
    found
}

#[test]
#[ignore = "needs Chromium and axe-core"]
fn a_checker_of_accessibility_finds_nothing() {
    let Some(axe) = checker() else { return };
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let busy = folder.path().join("busy");
    let fleet = PageFleet::busy();
    fleet.page(&busy);
    browser.open(&busy);
    browser.until("view?.rowUnits?.length > 0");
    let mut views: Vec<String> = VIEWS.map(str::to_owned).into();
    let rollouts = browser.value("head.rolling.map((rolling) => `#/r/${rolling.id}`)");
    views.extend(rollouts.as_array().into_iter().flatten().filter_map(Json::as_str).map(str::to_owned));
    let mut found = check(&mut browser, &axe, &busy, &views);
    let small = demo(folder.path());
    let views = ["#/", "#/pubs", "#/p/FederatedDeployment/shop/web"].map(str::to_owned);
    found.extend(check(&mut browser, &axe, &small, &views));
    let change = folder.path().join("change");
    fleet.change_page(&change);
    found.extend(check(&mut browser, &axe, &change, &["#/change".to_owned()]));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
#[ignore = "needs Chromium and axe-core"]
fn the_checker_sees_what_is_wrong() {
    let Some(axe) = checker() else { return };
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    browser.open(&demo(folder.path()));
    browser.value(&axe);
    browser.value("document.querySelector('main').append(document.createElement('button'))");
    let found = findings(&mut browser, "here");
    assert!(found.iter().any(|line| line.contains("button-name")), "{found:?}");
}
