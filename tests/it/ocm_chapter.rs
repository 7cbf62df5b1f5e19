//! Each example of OCM's chapter on cluster sets and placements through validate, decide and explain,
//! against `fixtures/ocm-chapter`.

use similar::TextDiff;

use crate::support::{Ran, berth, fixtures};

const NOW: &str = "2024-02-01T00:01:00Z";

#[test]
fn every_example_of_the_chapter_says_what_it_said() {
    let root = fixtures("ocm-chapter");
    let mut wrong = Vec::new();
    let names = |folder: &str| -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(root.join(folder)).expect("the fixtures are there");
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
        paths.sort();
        paths
    };
    let examples = names("placements");
    assert!(examples.len() > 10, "{examples:?}");
    for example in examples {
        let folder = tempfile::tempdir().expect("a folder");
        for file in names("fleet").iter().chain([&example]) {
            std::fs::copy(file, folder.path().join(file.file_name().expect("a name"))).expect("a copy");
        }
        let mut said = String::new();
        for args in [
            &["validate", "."][..],
            &["decide", "--repo", ".", "--now", NOW],
            &["explain", "ns1/placement1", "--repo", ".", "--now", NOW],
        ] {
            let ran = Ran::of(berth().current_dir(folder.path()).args(args));
            said.push_str(&format!("$ berth {}\n{}{}", args.join(" "), ran.err, ran.out));
            if ran.code != 0 {
                said.push_str(&format!("exit code {}\n", ran.code));
            }
            said.push('\n');
        }
        let stem = example.file_stem().expect("a name").to_string_lossy().into_owned();
        let expected = root.join("expected").join(format!("{stem}.txt"));
        if std::env::var_os("BERTH_UPDATE").is_some() {
            std::fs::write(&expected, &said).expect("a file");
        }
        let known = std::fs::read_to_string(&expected).unwrap_or_default();
        if known != said {
            wrong.push(format!("{stem}:\n{}", TextDiff::from_lines(&known, &said).unified_diff()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
