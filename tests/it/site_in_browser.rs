//! The page of `berth site` in a real browser.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::site::change::proposed;
use crate::support::browser::Browser;
use crate::support::removals::report;
use crate::support::{Repo, config_map, run, small_fleet};

/// A fleet with a failing copy, whose member's words are hostile, a held removal and a member that never reported.
fn unhappy() -> (tempfile::TempDir, PathBuf) {
    let repo = small_fleet();
    repo.write("apps/api.yaml", config_map("api", "one", "{clusterSelector: {matchLabels: {env: prod}}}"));
    repo.commit("<img src=x onerror=alert(1)> api");
    repo.publish().expect(0);
    repo.write("apps/api.yaml", config_map("api", "one", "{clusterSelector: {matchLabels: {env: prd}}}"));
    repo.commit("narrow api");
    repo.publish().expect(5);
    let words = "<script>alert(1)</script><img src=x onerror=alert(2)>";
    let problem =
        format!("  problems: [{{kind: ConfigMap, namespace: shop, name: web, message: \"{words}\"}}]\n");
    for (cluster, more) in [("a", ""), ("b", problem.as_str())] {
        let tree = repo.git(&["rev-parse", &format!("berth/rendered:clusters/{cluster}")]);
        report(&repo, cluster, 1, &format!("applied:\n  sequence: 1\n  tree: {tree}\n  objects: 3\n{more}"));
    }
    page_of(&repo)
}

fn page_of(repo: &Repo) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("page");
    run(&["site", "--repo", repo.arg(), "--out", out.to_str().expect("text")]).expect(0);
    (folder, out)
}

/// Waits until the map is drawn.
fn opened(browser: &mut Browser, out: &Path) {
    browser.open(out);
    browser.until("view?.rowUnits?.length > 0");
}

const VIEWS: [&str; 8] = [
    "#/",
    "#/?zoom=whole",
    "#/p/FederatedConfigMap/shop/web",
    "#/p/FederatedConfigMap/shop/api",
    "#/c/b",
    "#/n/2",
    "#/pubs",
    "#/rollouts",
];

#[test]
#[ignore = "needs Chromium"]
fn every_view_opens_from_a_folder_fits_and_asks_nobody_else() {
    let Some(mut browser) = Browser::start() else { return };
    let (_folder, out) = unhappy();
    for (width, scheme) in [(320, "light"), (1280, "light"), (1280, "dark"), (2560, "dark")] {
        browser.size(width);
        browser.scheme(scheme);
        opened(&mut browser, &out);
        for view in VIEWS {
            browser.go(view);
            let wide = browser.value("document.documentElement.scrollWidth");
            assert!(wide.as_u64().is_some_and(|wide| wide <= u64::from(width)), "{view} at {width}: {wide}");
            assert_ne!(
                browser.text("document.querySelector('h1').textContent"),
                "This view cannot be shown."
            );
        }
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
    let requests = browser.requests();
    let own = |address: &&String| address.starts_with("file://") || address.starts_with("data:");
    assert!(requests.len() > 10 && requests.iter().all(|address| own(&address)), "{requests:?}");
}

#[test]
#[ignore = "needs Chromium"]
fn the_page_of_a_change_opens_with_the_change_and_fits() {
    let Some(mut browser) = Browser::start() else { return };
    let (_repo, out) = proposed();
    for width in [320, 1280, 2560] {
        browser.size(width);
        opened(&mut browser, &out);
        assert_eq!(browser.value("location.hash"), "#/change");
        assert_eq!(
            browser.text("document.querySelector('h1').textContent"),
            browser.text("head.change.title")
        );
        assert_eq!(browser.text("[...document.querySelectorAll('.steps > div > p')].map((step) => step.textContent).slice(0, 2).join(', ')"), "first step, in the end");
        assert!(browser.text("document.body.textContent").contains("<b>two</b>"));
        let wide = browser.value("document.documentElement.scrollWidth");
        assert!(wide.as_u64().is_some_and(|wide| wide <= u64::from(width)), "at {width}: {wide}");
        browser.press("g");
        browser.press("f");
        browser.until("location.hash === '#/' && view?.rowUnits?.length > 0");
        browser.press("g");
        browser.press("c");
        browser.until("location.hash === '#/change'");
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// The budgets of a page of 5,000 placements and 5,000 clusters, in milliseconds of processor time. `BERTH_LARGE_PAGE=DIR` measures
/// that of a large fleet (`cargo bench --bench page` makes one, and keeps it with `BERTH_BENCH_KEEP=1`).
#[test]
#[ignore = "needs Chromium"]
fn a_page_is_drawn_searched_and_scrolled_within_its_budgets() {
    let Some(mut browser) = Browser::start() else { return };
    let large = std::env::var_os("BERTH_LARGE_PAGE").map(PathBuf::from);
    let (_folder, small) = unhappy();
    let page = large.clone().unwrap_or(small);
    let begun = browser.milliseconds();
    opened(&mut browser, &page);
    browser.until("fleet !== null && view.rowCount > 0");
    browser.settle();
    let drawn = browser.milliseconds() - begun;
    browser.press("/");
    browser.until("document.querySelector('dialog[open] input') !== null");
    let (begun, keys) = (browser.milliseconds(), ["a", "p", "p", "-", "0", "0"]);
    for key in keys {
        browser.press(key);
        browser.settle();
    }
    let key = (browser.milliseconds() - begun) / keys.len() as f64;
    browser.press("Escape");
    browser.go("#/?zoom=whole");
    browser.until("view?.rowUnits?.length > 0");
    browser.settle();
    let begun = browser.milliseconds();
    let scroll = "new Promise((done) => { let left = 60; const step = () => { view.box.scrollTop += 17; view.box.scrollLeft += 11; \
                  left-- ? requestAnimationFrame(step) : done(true); }; step(); })";
    browser.value(scroll);
    let frame = (browser.milliseconds() - begun) / 60.0;
    eprintln!("drawn in {drawn:.0} ms, a key of search {key:.1} ms, a frame of scrolling {frame:.1} ms");
    // Under coverage, sanitizers or a foreign load, times say nothing about a small page.
    let slack = if large.is_some() { 1.0 } else { 3.0 };
    assert!(drawn < 400.0 * slack && key < 20.0 * slack && frame < 16.0 * slack);
}

#[test]
#[ignore = "needs Chromium"]
fn texts_of_the_fleet_stay_text_in_every_view() {
    let Some(mut browser) = Browser::start() else { return };
    let (_folder, out) = unhappy();
    opened(&mut browser, &out);
    assert!(browser.text("document.body.textContent").contains("<script>alert(1)</script>"));
    for view in VIEWS {
        browser.go(view);
        assert_eq!(browser.value("document.querySelectorAll('img, main script').length"), 0, "{view}");
    }
    browser.go("#/n/1");
    assert!(
        browser.text("document.querySelector('h1').textContent").contains("<img src=x onerror=alert(1)>")
    );
}

#[test]
#[ignore = "needs Chromium"]
fn keys_alone_lead_to_what_is_wrong_and_back() {
    let Some(mut browser) = Browser::start() else { return };
    let (_folder, out) = unhappy();
    opened(&mut browser, &out);
    let spoken = |browser: &mut Browser| browser.text("document.getElementById('live').textContent");
    browser.press("n");
    assert!(spoken(&mut browser).starts_with("shop/web in b: failing"));
    browser.until("document.getElementById('live').textContent.includes('alert(1)')");
    browser.press("n");
    assert!(spoken(&mut browser).starts_with("shop/api in a: held"));
    browser.press("N");
    assert!(spoken(&mut browser).starts_with("shop/web in b: failing"));
    browser.press("/");
    browser.press("b");
    browser.until("document.querySelectorAll('#hits li').length > 0");
    browser.press("Enter");
    browser.until("location.hash === '#/c/b' && document.querySelector('h1')?.textContent === 'b'");
    browser.press("g");
    browser.press("p");
    browser.until("location.hash === '#/pubs'");
    browser.go("#/n/2");
    browser.press("[");
    browser.until("location.hash === '#/n/1'");
    browser.press("g");
    browser.press("f");
    browser.until("location.hash === '#/' && view?.rowUnits?.length > 0");
    browser.press("?");
    browser.until("document.querySelector('dialog[open]') !== null");
    browser.press("Escape");
    browser.until("document.querySelector('dialog[open]') === null");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
#[ignore = "needs Chromium"]
fn the_map_its_table_and_the_head_have_the_same_numbers() {
    let Some(mut browser) = Browser::start() else { return };
    let (_folder, out) = unhappy();
    opened(&mut browser, &out);
    let counted = "(() => { const totals = STATES.map(() => 0); \
                   fleet.placements.forEach((_, placement) => fleet.eachCopy(placement, (_, state) => totals[state]++)); \
                   return JSON.stringify(totals) === JSON.stringify(head.totals); })()";
    assert_eq!(browser.value(counted), true);
    browser.press("t");
    let shown = browser.value("[...document.querySelectorAll('.asTable tbody tr')].map((row) => Number(row.cells[1].textContent)).reduce((a, b) => a + b)");
    assert_eq!(shown, browser.value("head.totals.reduce((a, b) => a + b)"));
    browser.press("t");
    assert_eq!(browser.value("document.querySelector('.asTable')"), json!(null));
    // A filter keeps the rows and columns that have such a copy.
    browser.go("#/?is=failing");
    browser.until("view?.rowUnits?.length > 0");
    assert_eq!(browser.value("[view.rowCount, view.columnCount]"), json!([1, 1]));
}

#[test]
#[ignore = "needs Chromium"]
fn a_missing_block_is_named_and_a_page_without_scripts_is_readable() {
    let Some(mut browser) = Browser::start() else { return };
    let (_folder, out) = unhappy();
    opened(&mut browser, &out);
    for entry in std::fs::read_dir(out.join("data")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.starts_with("n-") {
            std::fs::remove_file(path).expect("removed");
        }
    }
    browser.value("location.hash = '#/n/1'");
    browser.until("/Load it again/.test(document.querySelector('main').textContent)");
    browser.scripts(false);
    browser.open(&out);
    let page = browser.text("document.querySelector('main').textContent");
    assert!(
        page.contains("things differ from what the source says") && page.contains("shop/web fails in b"),
        "{page}"
    );
}

#[test]
#[ignore = "needs Chromium"]
fn ways_to_a_view_that_overlap_come_to_an_end() {
    let Some(mut browser) = Browser::start() else { return };
    let (_folder, out) = unhappy();
    opened(&mut browser, &out);
    browser.go("#/n/1");
    let way = "dispatchEvent(new Event('hashchange'))";
    browser.value(&format!("{way}; {way}; {way}"));
    assert!(browser.text("document.querySelector('h1').textContent").starts_with("Number 1"));
}

#[test]
#[ignore = "needs Chromium"]
fn a_view_that_waits_for_its_data_does_not_replace_a_newer_one() {
    let Some(mut browser) = Browser::start() else { return };
    let (_folder, out) = unhappy();
    opened(&mut browser, &out);
    let shown = browser.text(
        "(async () => { \
         const moved = new Promise((done) => addEventListener('hashchange', done, { once: true })); \
         location.hash = '#/p/FederatedConfigMap/shop/web'; \
         await moved; \
         location.hash = '#/rollouts'; \
         await placementDetails('FederatedConfigMap/shop/web'); \
         await new Promise((done) => setTimeout(done, 200)); \
         return document.querySelector('h1').textContent; })()",
    );
    assert_eq!(shown, "No release is on its way.");
}
