//! The units of `deploy/systemd`: systemd takes them, and finds little that they could do to a machine.

use std::path::Path;

use crate::support::programs::skipped;
use crate::support::{Ran, hermetic};

#[test]
fn systemd_takes_the_units_and_finds_them_confined() {
    let folder = tempfile::tempdir().expect("a folder");
    for unit in ["berth-run.service", "berth-sync@.service"] {
        let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/systemd").join(unit);
        let text = std::fs::read_to_string(text).expect("a unit");
        assert!(text.contains("ExecStart=/usr/local/bin/berth "), "{text}");
        let path = folder.path().join(unit);
        // The program must be there, and systemd runs none.
        std::fs::write(&path, text.replace("/usr/local/bin/berth", env!("CARGO_BIN_EXE_berth")))
            .expect("a file");
        let path = path.to_str().expect("a text path");
        if !hermetic("systemd-analyze").arg("--version").output().is_ok_and(|output| output.status.success())
        {
            return skipped("systemd-analyze", "it is not installed");
        }
        let taken = Ran::of(hermetic("systemd-analyze").args(["verify", "--man=no", path]));
        assert_eq!((taken.code, &*taken.err), (0, ""), "{}", taken.out);
        // In tenths: 16 when this was written, of 100 for a unit without any limit.
        let limit = ["security", "--offline=true", "--threshold=20", path];
        let confined = Ran::of(hermetic("systemd-analyze").args(limit));
        assert_eq!(confined.code, 0, "{}{}", confined.out, confined.err);
    }
}
