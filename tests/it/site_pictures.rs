//! Pictures of the page: `BERTH_PICTURES=DIR` writes those of all widths into a folder, beside the page, for people to look at, and
//! `BERTH_UPDATE=1` those of the documentation.

use std::path::{Path, PathBuf};

use crate::support::browser::Browser;
use crate::support::fixtures;
use crate::support::page_fleets::{PageFleet, demo};
use berth_base::model::Timestamp;

/// The views of the busy fleet.
const VIEWS: [(&str, &str); 7] = [
    ("fleet", "#/"),
    ("waves", "#/?mode=wave"),
    ("placement", "#/p/FederatedDeployment/shop/web"),
    ("held", "#/p/FederatedDeployment/billing/gate"),
    ("cluster", "#/c/gothenburg-1"),
    ("publication", "#/n/7"),
    ("publications", "#/pubs"),
];

/// The longest picture, in bytes.
const LONGEST: usize = 230_000;

/// Takes pictures of views at a width in both schemes.
fn take(browser: &mut Browser, page: &Path, to: &Path, (fleet, views): (&str, &[(&str, &str)])) {
    for width in [360, 1280, 2560] {
        browser.size(width);
        for scheme in ["light", "dark"] {
            browser.scheme(scheme);
            browser.open(page);
            browser.until("view?.rowUnits?.length > 0");
            for (name, view) in views {
                browser.go(view);
                browser.settle();
                let picture = browser.picture(true);
                let file = to.join(format!("{fleet}-{name}-{width}-{scheme}.png"));
                std::fs::write(file, picture).expect("a picture");
            }
        }
    }
}

#[test]
#[ignore = "needs Chromium"]
fn every_view_can_be_a_picture() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let asked = std::env::var_os("BERTH_PICTURES").map(PathBuf::from);
    let to = asked.clone().unwrap_or_else(|| folder.path().join("pictures"));
    std::fs::create_dir_all(&to).expect("a folder");
    let busy = to.join("page");
    let fleet = PageFleet::busy();
    fleet.page(&busy);
    browser.at(fleet.milliseconds());
    browser.open(&busy);
    browser.until("view?.rowUnits?.length > 0");
    let rollouts = browser.value("head.rolling.map((rolling) => `#/r/${rolling.id}`)");
    let rollout = rollouts[0].as_str().expect("a rollout").to_owned();
    let views = [&VIEWS[..], &[("rollout", &rollout)]].concat();
    // Without being asked, one view is enough to know that pictures work.
    let views = if asked.is_some() { &views[..] } else { &views[..1] };
    take(&mut browser, &busy, &to, ("busy", views));
    let change = folder.path().join("change");
    fleet.change_page(&change);
    take(&mut browser, &change, &to, ("busy", &[("change", "#/change")]));
    let (fleet, page) = (PageFleet::well(), folder.path().join("well"));
    fleet.page(&page);
    browser.at(fleet.milliseconds());
    take(&mut browser, &page, &to, ("well", &[("fleet", "#/")]));
    let demo = demo(folder.path());
    browser.at(Timestamp::now().as_millisecond());
    take(&mut browser, &demo, &to, ("demo", &[("fleet", "#/")]));
    assert!(std::fs::read_dir(&to).expect("a folder").count() >= 18);
}

/// Two machines draw texts differently, so that pictures of the documentation are not compared.
#[test]
#[ignore = "needs Chromium"]
fn the_documentation_shows_the_page_in_both_schemes() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let [busy, change] = ["busy", "change"].map(|name| folder.path().join(name));
    let fleet = PageFleet::busy();
    fleet.page(&busy);
    fleet.change_page(&change);
    browser.at(fleet.milliseconds());
    browser.area(1280, 1120);
    for (scheme, name, page) in
        ["light", "dark"].iter().flat_map(|scheme| [(scheme, "fleet", &busy), (scheme, "change", &change)])
    {
        browser.scheme(scheme);
        browser.open(page);
        browser.until("view?.rowUnits?.length > 0");
        browser.settle();
        let picture = browser.picture(false);
        assert!(picture.len() < LONGEST, "{} bytes", picture.len());
        let file = fixtures("../docs/pictures").join(format!("{name}-{scheme}.png"));
        if std::env::var_os("BERTH_UPDATE").is_some() {
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            std::fs::write(&file, picture).expect("a picture");
        }
        assert!(file.metadata().expect("a picture").len() < LONGEST as u64);
    }
}
