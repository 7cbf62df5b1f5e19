//! A working copy that is damaged while its daemon runs, or between two starts, is cloned anew.

use std::path::Path;

use crate::support::remote::{Fleet, Folder, Running};
use crate::support::wait::until;
use crate::support::{RENDERED, Ran, berth};

/// Cuts every file of objects short.
fn damage(folder: &Path) -> usize {
    let mut damaged = 0;
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            damaged += damage(&path);
            continue;
        }
        let bytes = std::fs::read(&path).expect("a file");
        let _ = std::fs::remove_file(&path);
        std::fs::write(&path, &bytes[..bytes.len() / 2]).expect("a file");
        damaged += 1;
    }
    damaged
}

#[test]
fn a_damaged_working_copy_is_cloned_anew_and_nothing_is_lost() {
    let fleet = Fleet::new();
    let server = Folder::of(&fleet);
    let objects = fleet.root().join("copies/daemon/objects");
    let count = || fleet.bare(&["rev-list", "--count", RENDERED]);
    let daemon = Running::daemon(&fleet, &server, &[]);
    daemon.wait_for(&["\"pass done\""]);
    assert!(damage(&objects) > 0);
    fleet.edit("two");
    daemon.wait_for(&["the working copy is damaged; cloning it again"]);
    until("the edit is published", || count() == "2");
    assert_eq!(daemon.stop().0, 0);

    assert!(damage(&objects) > 0);
    fleet.edit("three");
    let daemon = Running::daemon(&fleet, &server, &[]);
    until("the next edit is published", || count() == "3");
    assert_eq!(daemon.stop().0, 0);
    Ran::of(berth().args(["verify", "--repo"]).arg(fleet.bare_path())).expect(0);
    fleet.bare(&["fsck", "--strict", "--no-dangling"]);
}
