//! The folder of a page: files are written only if they changed, and files of others stay.

use std::path::Path;

use super::{Page, arg, demo, files, page, site};
use crate::support::{config_map, run_at, small_fleet};
use berth_base::model::Timestamp;

#[test]
fn the_demo_becomes_a_page_and_a_second_run_writes_nothing() {
    let (folder, fleet) = demo();
    let out = folder.path().join("page");
    let first = page(&fleet, &out, &[]);
    let index = std::fs::read_to_string(out.join("index.html")).expect("a page");
    assert!(index.contains("<h1>One thing differs from what the source says.</h1>"), "{index}");
    assert!(index.contains("shop/web is held: it would lose all of its 3 clusters"), "{index}");
    assert!(index.contains("default-src 'none'; script-src 'self'") && !index.contains("{{"), "{index}");
    for script in index.split("src=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(out.join(script).is_file(), "{script}");
    }
    let held = first.head.attention.first().and_then(|item| item.remedy.clone()).unwrap_or_default();
    assert!(held.starts_with("Berth-Allow-Delete: "), "{held}");
    let before = files(&out);
    let again = site(&fleet, &out, &[]).expect(0);
    assert!(again.err.contains("is up to date"), "{}", again.err);
    assert_eq!(files(&out), before);
    // A file that is missing or was edited is written again, and no other.
    std::fs::remove_file(out.join("page/map.js")).expect("removed");
    std::fs::write(out.join("index.html"), "edited").expect("written");
    let mended = site(&fleet, &out, &[]).expect(0);
    assert!(mended.err.contains("wrote 2 of"), "{}", mended.err);
    let (map, index) = (out.join("page/map.js"), out.join("index.html"));
    let others = files(&out).into_iter().filter(|(path, _)| *path != map && *path != index);
    assert!(others.eq(before.into_iter().filter(|(path, _)| *path != map && *path != index)));
}

#[test]
fn a_page_is_true_until_a_member_counts_as_silent() {
    let (folder, fleet) = demo();
    let out = folder.path().join("page");
    let before = page(&fleet, &out, &[]);
    let until = before.head.stamp.until.expect("a moment");
    let at = |seconds: i64| {
        let moment = Timestamp::from_second(seconds).expect("a moment");
        run_at(moment, &["site", "--repo", arg(&fleet), "--out", arg(&out)]).expect(0)
    };
    assert!(at(until - 1).err.contains("is up to date"));
    at(until);
    let after = Page::read(&out);
    assert_eq!(before.head.numbers.silent, 0);
    assert!(after.head.numbers.silent > 0, "{:?}", after.head.clusters);
    assert!(after.head.as_of > before.head.as_of);
}

#[test]
fn an_edit_of_one_placement_leaves_most_blocks_alone() {
    let repo = small_fleet();
    repo.publish().expect(0);
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("page");
    let before = page(repo.path(), &out, &[]);
    repo.write("apps/web.yaml", config_map("web", "two", "{clusterSelector: {}}"));
    repo.commit("two");
    repo.publish().expect(0);
    let after = page(repo.path(), &out, &[]);
    assert_eq!(after.head.files["map-0"], before.head.files["map-0"]);
    assert_ne!(after.head.files["n-0"], before.head.files["n-0"]);
    let stale = out.join(format!("data/n-0.{}.js", before.head.files["n-0"]));
    assert!(!stale.exists(), "stale blocks are removed");
    let blocks = files(&out).into_keys().filter(|path| path.starts_with(out.join("data"))).count();
    assert_eq!(blocks, after.head.files.len() + 1);
}

#[test]
fn a_folder_with_other_files_is_refused_and_left_alone() {
    let repo = small_fleet();
    repo.publish().expect(0);
    let refused = site(repo.path(), &repo.path().join("apps"), &[]).expect(2);
    assert!(refused.err.contains("contains files that are not part of a page"), "{}", refused.err);
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("page");
    page(repo.path(), &out, &[]);
    std::fs::write(out.join("CNAME"), "fleet.example.com").expect("a file");
    page(repo.path(), &out, &[]);
    assert!(out.join("CNAME").is_file(), "files of others stay");
    // A page whose first run was interrupted is finished.
    std::fs::remove_file(out.join("CNAME")).expect("removed");
    std::fs::remove_file(out.join("data/head.js")).expect("removed");
    std::fs::write(out.join("data/.head.js.berth-new"), "berth(").expect("written");
    page(repo.path(), &out, &[]);
    assert!(!out.join("data/.head.js.berth-new").exists());
    // A script of the same name that is no head is no mark.
    std::fs::write(out.join("data/head.js"), "other").expect("written");
    std::fs::write(out.join("data/main.abcdef12.js"), "other").expect("written");
    site(repo.path(), &out, &[]).expect(2);
    assert!(out.join("data/main.abcdef12.js").is_file());
}

#[cfg(unix)]
#[test]
fn a_link_at_an_unfinished_file_is_replaced_and_not_followed() {
    let repo = small_fleet();
    repo.publish().expect(0);
    let folder = tempfile::tempdir().expect("a folder");
    let (out, outside) = (folder.path().join("page"), folder.path().join("outside"));
    page(repo.path(), &out, &[]);
    std::fs::write(&outside, "kept").expect("written");
    std::fs::remove_file(out.join("page/dom.js")).expect("removed");
    std::os::unix::fs::symlink(&outside, out.join("page/.dom.js.berth-new")).expect("a link");
    page(repo.path(), &out, &[]);
    assert_eq!(std::fs::read_to_string(&outside).expect("a file"), "kept");
    assert!(out.join("page/dom.js").symlink_metadata().expect("a file").is_file());
}

#[test]
fn runs_at_once_wait_for_each_other() {
    let (folder, fleet) = demo();
    let out = folder.path().join("page");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (fleet, out) = (&fleet, &out);
            scope.spawn(move || {
                for count in ["1", "2", "3"] {
                    let history = if thread % 2 == 0 { count } else { "200" };
                    site(fleet, out, &["--history", history]).expect(0);
                }
            });
        }
    });
    let last = Page::read(&out);
    assert!(!last.words().is_empty());
    let written = files(&out).into_keys();
    assert!(!written.into_iter().any(|path| path.display().to_string().ends_with(".berth-new")));
    let mut other = std::fs::File::open(&out).ok();
    assert!(other.take().is_some_and(|folder| folder.try_lock().is_ok()), "the lock ends with the run");
}

/// Removes the content of a folder, and keeps the folder.
fn emptied(folder: &Path) {
    std::fs::remove_dir_all(folder).expect("removed");
    std::fs::create_dir(folder).expect("made");
}

#[test]
fn an_unchanged_repository_is_not_read_again() {
    let (folder, fleet) = demo();
    let out = folder.path().join("page");
    page(&fleet, &out, &[]);
    // Only refs are needed to find that nothing changed: without its objects, the repository cannot be read.
    let objects = fleet.join(".git/objects");
    std::fs::rename(&objects, folder.path().join("objects")).expect("moved");
    std::fs::create_dir(&objects).expect("made");
    assert!(site(&fleet, &out, &[]).expect(0).err.contains("is up to date"));
    // Other options need other inputs.
    assert_ne!(site(&fleet, &out, &["--history", "1"]).code, 0);
    emptied(&objects);
    std::fs::remove_dir(&objects).expect("removed");
    std::fs::rename(folder.path().join("objects"), &objects).expect("moved");
    assert!(site(&fleet, &out, &["--history", "1"]).expect(0).err.contains("wrote "));
    // The addresses of files come from the remote.
    let config = ["config", "remote.origin.url", "https://user:token@github.com/team/fleet.git"];
    crate::support::hermetic("git").current_dir(&fleet).args(config).status().expect("git");
    let linked = page(&fleet, &out, &["--history", "1"]);
    assert!(linked.head.links.is_some_and(|links| links.file.starts_with("https://github.com/team/fleet/")));
    assert!(!std::fs::read_to_string(out.join("data/head.js")).expect("a head").contains("token"));
}
