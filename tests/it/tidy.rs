//! Holds the structure: which folder may use which, what pure folders may not name, how long a file
//! may be. docs/architecture.md shows the same table; a new arrow is a reviewed change here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Folder (or file) of `src/`, and the others it may name.
const MAY_USE: &[(&str, &[&str])] = &[
    ("diag", &[]),
    ("codec", &[]),
    ("metrics", &[]),
    ("progress", &[]),
    ("model", &["diag"]),
    ("yaml", &["diag"]),
    ("cel", &["diag", "model"]),
    ("meta", &["diag", "model", "yaml"]),
    ("edit", &["yaml"]),
    ("source", &["diag", "yaml"]),
    ("patch", &["diag", "model", "yaml"]),
    ("report", &["diag", "model", "yaml"]),
    ("schema", &["diag"]),
    ("dialects", &["cel", "diag", "meta", "model", "patch", "yaml"]),
    ("access", &["diag", "dialects", "meta", "model", "yaml"]),
    ("load", &["access", "codec", "diag", "dialects", "meta", "model", "report", "source", "yaml"]),
    ("decide", &["cel", "diag", "model"]),
    ("release", &["diag", "model"]),
    ("render", &["codec", "diag", "model", "patch", "yaml"]),
    ("state", &["codec", "diag", "model", "report", "yaml"]),
    ("plan", &["diag", "model", "state"]),
    ("gate", &["diag", "model", "state"]),
    ("pipeline", &["decide", "diag", "load", "model", "release", "render", "source", "state"]),
    ("signature", &["model"]),
    ("git", &["diag", "model", "progress", "signature", "source", "yaml"]),
    ("transport", &["git"]),
    ("publish", &["codec", "diag", "git", "model", "plan", "report", "signature", "state", "yaml"]),
    (
        "reading",
        &[
            "decide", "diag", "dialects", "gate", "git", "load", "model", "pipeline", "publish", "render",
            "source", "state", "yaml",
        ],
    ),
    ("live", &["diag", "meta", "progress"]),
    ("install", &[]),
    ("import", &["decide", "diag", "live", "model", "render", "state", "yaml"]),
    ("advance", &["diag", "gate", "git", "model", "pipeline", "plan", "publish", "reading", "state"]),
    ("verify", &["advance", "gate", "git", "model", "publish", "reading", "signature", "state"]),
    (
        "daemon",
        &[
            "advance",
            "codec",
            "diag",
            "gate",
            "git",
            "load",
            "model",
            "pipeline",
            "plan",
            "progress",
            "publish",
            "reading",
            "render",
            "report",
            "transport",
            "verify",
        ],
    ),
    (
        "sync",
        &[
            "cel",
            "diag",
            "git",
            "live",
            "meta",
            "metrics",
            "model",
            "patch",
            "progress",
            "publish",
            "report",
            "signature",
            "state",
            "transport",
            "yaml",
        ],
    ),
];

/// Folders whose result is a function of their arguments.
const PURE: &[&str] = &[
    "diag",
    "model",
    "yaml",
    "cel",
    "meta",
    "patch",
    "report",
    "schema",
    "dialects",
    "load",
    "decide",
    "release",
    "render",
    "state",
    "plan",
    "gate",
    "pipeline",
    "edit",
    "install",
    "access",
    "signature",
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
    ("kube::", "live"),
    ("k8s_openapi", "live"),
    ("clap", "commands"),
    ("indicatif", "commands"),
    ("regex::", "cel"),
    ("similar::", "commands"),
    ("tracing_subscriber", "commands"),
    ("rustix::", "transport"),
    ("ring::", "signature"),
];

/// Besides `live`, which reads, the one place that writes to clusters.
const KUBE_TARGET: &str = "sync/target/kube";

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

/// A file without comments and without what is only compiled for tests.
fn code(text: &str) -> String {
    let mut rest = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .map(|line| format!("{line}\n"))
        .collect::<String>();
    let mut kept = String::new();
    while let Some((before, after)) = rest.split_once("#[cfg(test)]") {
        kept.push_str(before);
        rest = after_item(after).to_owned();
    }
    kept + &rest
}

/// What follows the item a text begins with: up to its `;`, or the brace that closes its body. As rustfmt
/// writes it, the body of an item closes at the depth of indentation at which the item stands.
fn after_item(text: &str) -> &str {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut lines = text.split_inclusive('\n').scan(0, |end, line| {
        *end += line.len();
        Some((line.trim_end(), *end))
    });
    let starts = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with("#[");
    let Some((first, end)) = lines.find(|(line, _)| starts(line)) else { return "" };
    if first.ends_with(';') || first.ends_with('}') {
        return &text[end..];
    }
    let closes =
        |line: &str| indent(line) == indent(first) && ["}", "};", "];", ");"].contains(&line.trim_start());
    lines.find(|(line, _)| closes(line)).map_or("", |(_, end)| &text[end..])
}

/// The folders that a text names after `crate::`, those in nested lists too.
fn uses(text: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    for (index, prefix) in text.match_indices("crate::") {
        // `$crate::` and `some_crate::` are other things.
        if text[..index].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &text[index + prefix.len()..];
        match rest.strip_prefix('{') {
            Some(list) => found.extend(parts(list).into_iter().map(first_name)),
            None => {
                found.insert(first_name(rest));
            }
        }
    }
    found.remove("");
    found
}

/// The parts of a list in braces, whose opening brace is passed: up to the one that closes it.
fn parts(list: &str) -> Vec<&str> {
    let (mut found, mut depth, mut start) = (Vec::new(), 0, 0);
    for (index, character) in list.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                found.push(&list[start..index]);
                start = index + 1;
                if character == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    found
}

fn first_name(path: &str) -> &str {
    path.trim_start().split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

#[test]
fn the_reader_of_code_sees_past_test_items_and_into_nested_lists() {
    let text = "\
#[cfg(test)]
mod tests;

#[cfg(test)]
pub use files::hash_of;
use crate::{git::{self, Repo}, model, plan as other};
    #[cfg(test)]
    #[allow(unused)]
    mod inline {
        fn x() {
            crate::sync::y();
        }
    }
fn f() -> crate::state::State {
    some_crate::daemon::x()
}
// crate::reading
#[cfg(test)]
mod last {
    use crate::commands;
}
fn g() { std::fs::read(\"x\") }
";
    assert_eq!(uses(&code(text)), ["git", "model", "plan", "state"].into());
    assert!(code(text).contains("std::fs") && !code(text).contains("hash_of"));
    assert_eq!(uses("use crate::{\n    a::{b, c::{d}},\n    e::f,\n};"), ["a", "e"].into());
}

fn is_test(path: &Path) -> bool {
    path.iter().any(|part| part == "tests" || part == "tests.rs")
}

/// What a file uses that its folder may not.
fn forbidden_arrows(path: &Path, text: &str) -> Vec<String> {
    let from = home(path);
    if ["lib", "main", "commands"].contains(&from.as_str()) || is_test(path) {
        return Vec::new();
    }
    let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| *name == from) else {
        return vec![format!("{from} is not in the table")];
    };
    let text = code(text);
    let wrong = uses(&text).into_iter().filter(|name| *name != from && !allowed.contains(name));
    wrong.map(|name| format!("{} uses {name}, which {from} may not", path.display())).collect()
}

#[test]
fn folders_use_only_what_the_table_allows() {
    let wrong: Vec<_> = sources().iter().flat_map(|(path, text)| forbidden_arrows(path, text)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_forbidden_arrow_is_found_wherever_it_hides() {
    let found = |text: &str| forbidden_arrows(Path::new("decide/mod.rs"), text);
    for bad in [
        "use crate::git::Repo;",
        "use crate::{model::{Key, Pick}, git};",
        "use crate::{\n    model::{self, path::{encode}},\n    git::Repo,\n};",
        "#[cfg(test)]\nmod tests;\n\nuse crate::git::Repo;",
        "#[cfg(test)]\nuse crate::sync::x;\nfn f() -> crate::git::Repo {}",
        "#[cfg(test)]\nmod tests {\n    fn f() {}\n}\nfn f(_: crate::git::Repo) {}",
    ] {
        assert_eq!(found(bad), ["decide/mod.rs uses git, which decide may not"], "{bad}");
    }
    for good in ["use crate::{model::{Key}, diag};", "#[cfg(test)]\nmod tests {\n    use crate::git;\n}\n"] {
        assert_eq!(found(good), Vec::<String>::new(), "{good}");
    }
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

/// Whether a text names a library, and not a module of berth's own that is called like it.
fn names(text: &str, library: &str) -> bool {
    let mut before = text.match_indices(library).map(|(at, _)| &text[..at]);
    before.any(|before| {
        !before.ends_with("::") && !before.ends_with(|last: char| last.is_alphanumeric() || last == '_')
    })
}

#[test]
fn a_library_is_told_from_a_module_of_its_name() {
    for text in ["use kube::Api;", "fn f(_: kube::Client) {}"] {
        assert!(names(text, "kube::"), "{text}");
    }
    for text in ["pub use self::kube::KubeTarget;", "use crate::sync::target::kube::Settings;", "mykube::x"] {
        assert!(!names(text, "kube::"), "{text}");
    }
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
            let allowed = from == *folder
                || (["commands", "live"].contains(&from.as_str()) && *library == "tokio::")
                || (path.starts_with(KUBE_TARGET) && ["kube::", "k8s_openapi", "tokio::"].contains(library))
                || (from == "schema" && *library == "k8s_openapi");
            if names(&text, library) && !allowed {
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

/// The rows of the page's map: folder, and its cell of what it may use.
fn rows_of_the_page(page: &str) -> BTreeMap<String, String> {
    let map = page.lines().skip_while(|line| !line.starts_with("| folder ")).skip(2);
    map.take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let last = cells.last().copied().unwrap_or_default();
            (cells[0].trim_matches('`').to_owned(), last.to_owned())
        })
        .collect()
}

#[test]
fn the_architecture_page_shows_the_table() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/architecture.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let cell = |uses: &[&str]| if uses.is_empty() { "nothing".to_owned() } else { uses.join(", ") };
    let mut expected: BTreeMap<_, _> =
        MAY_USE.iter().map(|(name, uses)| ((*name).to_owned(), cell(uses))).collect();
    expected.insert("commands".to_owned(), "all".to_owned());
    let shown = rows_of_the_page(&page);
    for (name, uses) in &expected {
        assert_eq!(shown.get(name), Some(uses), "the row of `{name}` in docs/architecture.md");
    }
    assert_eq!(shown.len(), expected.len(), "docs/architecture.md has rows for {:?}", shown.keys());
}
