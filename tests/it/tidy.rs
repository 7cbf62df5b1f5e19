//! Holds the structure: which folder may use which, what pure folders may not name, how long a file
//! may be. docs/architecture.md draws the same table; a new arrow is a reviewed change here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Folder (or file) of `src/`, and the others it may name.
const MAY_USE: &[(&str, &[&str])] = &[
    ("diag", &[]),
    ("model", &["diag"]),
    ("yaml", &["diag"]),
    ("meta", &["diag", "model", "yaml"]),
    ("source", &["diag", "yaml"]),
    ("patch", &["diag", "model", "yaml"]),
    ("report", &["diag", "model", "yaml"]),
    ("dialects", &["diag", "meta", "model", "patch", "yaml"]),
    ("load", &["diag", "dialects", "meta", "model", "report", "source", "yaml"]),
    ("decide", &["diag", "model"]),
    ("render", &["diag", "model", "patch", "yaml"]),
    ("state", &["diag", "model", "report", "yaml"]),
    ("plan", &["model", "state"]),
    ("pipeline", &["decide", "diag", "load", "model", "render", "source", "state"]),
    ("git", &["diag", "model", "source", "yaml"]),
    ("publish", &["diag", "git", "model", "plan", "report", "state", "yaml"]),
    (
        "reading",
        &[
            "decide", "diag", "dialects", "git", "load", "model", "pipeline", "publish", "render", "source",
            "state", "yaml",
        ],
    ),
    ("daemon", &["diag", "git", "model", "pipeline", "plan", "publish", "reading", "report"]),
    ("sync", &["diag", "git", "meta", "model", "patch", "publish", "report", "state", "yaml"]),
];

/// Folders whose result is a function of their arguments.
const PURE: &[&str] = &[
    "diag", "model", "yaml", "meta", "patch", "report", "dialects", "load", "decide", "render", "state",
    "plan", "pipeline",
];

const IMPURE: &[&str] = &[
    "std::fs",
    "std::env",
    "std::net",
    "std::process",
    "std::time::SystemTime",
    "std::time::Instant",
    "Timestamp::now",
    "Zoned::now",
    "async fn",
    "tokio::",
    "HashMap",
    "HashSet",
    "static mut",
    "OnceLock",
    "thread_local",
];

/// A crate, and the one folder that may name it.
const CONFINED: &[(&str, &str)] = &[
    ("git2::", "git"),
    ("flate2::", "git"),
    ("sha1::", "git"),
    ("saphyr_parser", "yaml"),
    ("json_patch", "patch"),
    ("notify::", "daemon"),
    ("tokio::", "daemon"),
    ("clap", "commands"),
    ("similar::", "commands"),
    ("tracing_subscriber", "commands"),
];

const LONGEST_FILE: usize = 400;

fn sources() -> BTreeMap<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![root.clone()];
    let mut found = BTreeMap::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("a file");
                found.insert(path.strip_prefix(&root).expect("below src").to_owned(), text);
            }
        }
    }
    found
}

/// The first part of a path in `src/`: its folder, or its name without `.rs`.
fn home(path: &Path) -> String {
    let first = path.iter().next().expect("a part").to_string_lossy();
    first.trim_end_matches(".rs").to_owned()
}

/// A file without its unit tests, comments and strings of documentation.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

fn is_test(path: &Path) -> bool {
    path.iter().any(|part| part == "tests" || part == "tests.rs")
}

#[test]
fn folders_use_only_what_the_table_allows() {
    let table: BTreeMap<_, BTreeSet<_>> =
        MAY_USE.iter().map(|(name, uses)| (*name, uses.iter().copied().collect())).collect();
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let from = home(&path);
        if ["lib", "main", "commands"].contains(&from.as_str()) || is_test(&path) {
            continue;
        }
        let Some(allowed) = table.get(from.as_str()) else {
            wrong.push(format!("{from} is not in the table"));
            continue;
        };
        let text = code(&text);
        for (index, _) in text.match_indices("crate::") {
            let rest = &text[index + "crate::".len()..];
            let names: Vec<&str> = match rest.strip_prefix('{') {
                Some(list) => list
                    .split('}')
                    .next()
                    .unwrap_or_default()
                    .split(',')
                    .map(|name| name.trim().split("::").next().unwrap_or_default())
                    .collect(),
                None => {
                    vec![rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()]
                }
            };
            for name in names.into_iter().filter(|name| !name.is_empty() && *name != from) {
                if !allowed.contains(name) {
                    wrong.push(format!("{} uses {name}, which {from} may not", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_has_no_circle() {
    // Rows are listed so that each uses only rows above it.
    let mut above = BTreeSet::new();
    for (name, uses) in MAY_USE {
        for used in *uses {
            assert!(above.contains(used), "{name} uses {used}, which is not above it");
        }
        above.insert(*name);
    }
}

#[test]
fn pure_folders_name_nothing_of_the_outside() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        if PURE.contains(&home(&path).as_str()) && !is_test(&path) {
            let text = code(&text);
            wrong.extend(
                IMPURE
                    .iter()
                    .filter(|word| text.contains(**word))
                    .map(|word| format!("{}: {word}", path.display())),
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_library_stays_in_its_folder() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let from = home(&path);
        if is_test(&path) {
            continue;
        }
        let text = code(&text);
        for (library, folder) in CONFINED {
            let allowed = from == *folder || (from == "commands" && *library == "tokio::");
            if text.contains(library) && !allowed {
                wrong.push(format!("{} names {library}, which only {folder} may", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_are_short_and_say_what_they_are_for() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let lines = text.lines().count();
        if lines > LONGEST_FILE {
            wrong.push(format!("{} has {lines} lines", path.display()));
        }
        if !is_test(&path) && !text.starts_with("//!") {
            wrong.push(format!("{} does not open with what it is for", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_architecture_page_names_every_folder() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/architecture.md"))
        .expect("the page");
    let missing: Vec<_> =
        MAY_USE.iter().map(|(name, _)| *name).filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/architecture.md does not mention {missing:?}");
}
