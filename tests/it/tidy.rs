//! Holds the structure: which folder may use which, what pure folders may not name, how long a file
//! may be. docs/architecture.md shows the same table; a new arrow is a reviewed change here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use berth_engine::dialects::{DIALECTS, Dialect};

/// The modules of a crate, and the others that each may name.
type Modules = &'static [(&'static str, &'static [&'static str])];

/// Modules of each crate, and the others of their crate they may name. Cargo.toml says which crates a crate may
/// use, so the compiler holds those arrows.
const MAY_USE: &[(&str, Modules)] = &[
    (
        "base",
        &[
            ("diag", &[]),
            ("backoff", &[]),
            ("cache", &[]),
            ("packed", &[]),
            ("parallel", &[]),
            ("progress", &[]),
            ("text", &[]),
            ("model", &["diag", "packed", "text"]),
            ("yaml", &["diag", "packed", "text"]),
            ("edit", &["yaml"]),
            ("source", &["diag", "model", "parallel", "yaml"]),
            ("meta", &["diag", "model", "yaml"]),
            ("patch", &["diag", "model", "yaml"]),
            ("status", &["diag", "model", "yaml"]),
        ],
    ),
    (
        "engine",
        &[
            ("dialects", &[]),
            ("access", &["dialects"]),
            ("policy_tests", &[]),
            ("load", &["access", "dialects", "policy_tests"]),
            ("state", &[]),
            ("decide", &["state"]),
            ("render", &["state"]),
            ("report", &["dialects", "state"]),
            ("release", &["decide", "render", "state"]),
            ("plan", &["state"]),
            ("causes", &["load", "plan", "state"]),
            ("consequences", &["causes", "plan", "state"]),
            ("gate", &["release", "state"]),
            ("hub_objects", &["dialects"]),
            ("pipeline", &["decide", "load", "policy_tests", "release", "render", "state"]),
            ("rollouts", &["dialects", "pipeline", "release", "state"]),
            ("hypothetical", &["gate", "load", "pipeline", "state"]),
        ],
    ),
    (
        "git",
        &[
            ("signature", &[]),
            ("deploy_key", &["signature"]),
            ("objects", &["signature"]),
            ("transport", &["objects"]),
            ("shared_refs", &["objects", "signature"]),
            ("external_signer", &["signature", "transport"]),
        ],
    ),
    ("lease", &[("turn", &[]), ("fence", &[]), ("holder", &[]), ("keeper", &["fence", "holder", "turn"])]),
    (
        "sources",
        &[
            ("program", &[]),
            ("protocol", &[]),
            ("process", &[]),
            ("client", &["process", "program", "protocol"]),
        ],
    ),
    (
        "hub",
        &[
            ("publish", &[]),
            ("inputs", &["publish"]),
            ("next_commit", &["inputs", "publish"]),
            ("verify", &["inputs", "next_commit", "publish"]),
            ("history", &["inputs", "publish"]),
            ("attestation", &["publish", "verify"]),
            ("daemon", &["history", "inputs", "next_commit", "publish", "verify"]),
        ],
    ),
    ("forge", &[("token", &[]), ("ci_run", &["token"]), ("client", &["ci_run", "token"])]),
    (
        "registry",
        &[
            ("error", &[]),
            ("address", &["error"]),
            ("credentials", &["error"]),
            ("client", &["address", "credentials", "error"]),
            ("artifact", &["client", "error"]),
            ("pointer", &["client"]),
            ("reference", &["address", "client", "error", "pointer"]),
            ("signing", &["client", "error"]),
            ("publish", &["artifact", "client", "error", "pointer"]),
            ("transport", &["artifact", "client", "error", "pointer"]),
        ],
    ),
    (
        "member",
        &[
            ("live", &[]),
            ("installer", &["live"]),
            ("cluster_events", &["live"]),
            ("cluster_lease", &["live"]),
            ("cluster_writes", &["live"]),
            ("sync", &["cluster_lease", "live"]),
        ],
    ),
    (
        "cli",
        &[
            ("appliers", &[]),
            ("import", &[]),
            ("install", &["appliers"]),
            ("schema", &[]),
            ("slips", &[]),
            ("process", &[]),
            ("output", &["process"]),
            ("flags", &["appliers", "output", "process"]),
            ("planning", &["flags", "output", "process", "slips"]),
            ("editing", &["flags", "output", "planning", "process"]),
            (
                "commands",
                &[
                    "appliers", "editing", "flags", "import", "install", "output", "planning", "process",
                    "schema",
                ],
            ),
        ],
    ),
];

/// Crates and modules whose result is a function of their arguments.
const PURE: &[&str] = &[
    "base/cache",
    "base/diag",
    "base/edit",
    "base/meta",
    "base/model",
    "base/patch",
    "base/status",
    "base/text",
    "base/yaml",
    "cel",
    "cli/appliers",
    "cli/install",
    "cli/schema",
    "cli/slips",
    "engine",
    "forge/ci_run",
    "forge/token",
    "git/signature",
    "registry/error",
    "registry/pointer",
    "site",
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

/// A library, and the places that may name it.
const CONFINED: &[(&str, &[&str])] = &[
    ("git2::", &["git/objects"]),
    ("flate2::", &["git/objects", "registry/artifact", "site/block", "cli/commands/bundle"]),
    ("sha1::", &["git/objects"]),
    ("base64::engine", &["base/text"]),
    ("saphyr_parser", &["base/yaml"]),
    ("json_patch", &["base/patch"]),
    ("notify::", &["hub/daemon"]),
    ("tokio::", &["http/listener", "hub/daemon", "member/live", "member/sync/backends/kube", "cli/commands"]),
    ("tar::", &["registry/artifact", "cli/commands/bundle"]),
    ("hyper::", &["http/listener"]),
    ("prometheus_client", &["telemetry"]),
    (
        "kube::",
        &[
            "member/installer",
            "member/cluster_events",
            "member/cluster_lease",
            "member/cluster_writes",
            "member/live",
            "member/sync/backends/kube",
        ],
    ),
    ("k8s_openapi", &["member/cluster_events", "member/live", "member/sync/backends/kube", "cli/slips"]),
    ("rustix::", &["git/transport", "lease"]),
    ("landlock::", &["git/transport"]),
    ("libc::", &["git/transport"]),
    ("seccompiler::", &["git/transport"]),
    ("ring::", &["git/deploy_key", "git/signature", "hub/daemon"]),
    ("rustls::", &["http/client", "http/secret"]),
    ("ureq::", &["http/client"]),
];

const LONGEST_FILE: usize = 600;

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

/// The crate and the module of a path below `src/`; no module for a crate's own lib.rs.
fn home(path: &Path) -> (String, Option<String>) {
    let mut parts = path.iter().map(|part| part.to_string_lossy().trim_end_matches(".rs").to_owned());
    let name = parts.next().expect("a crate");
    (name, parts.next().filter(|module| module != "lib" && module != "testing"))
}

/// Reports whether a path below `src/` is in one of these places.
fn is_in(path: &Path, places: &[&str]) -> bool {
    places.iter().any(|place| path.starts_with(place) || path == Path::new(&format!("{place}.rs")))
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

/// The modules of its own crate that a file names and may not.
fn forbidden_arrows(path: &Path, text: &str) -> Vec<String> {
    let (name, Some(from)) = home(path) else { return Vec::new() };
    let Some((_, modules)) = MAY_USE.iter().find(|(listed, _)| *listed == name) else { return Vec::new() };
    // A build script is a program of its own.
    if is_test(path) || path.ends_with("build.rs") {
        return Vec::new();
    }
    let Some((_, allowed)) = modules.iter().find(|(module, _)| *module == from) else {
        return vec![format!("{name}/{from} is not in the table")];
    };
    let text = code(text);
    let known = |used: &&str| modules.iter().any(|(module, _)| module == used);
    let wrong = uses(&text).into_iter().filter(known).filter(|used| *used != from && !allowed.contains(used));
    wrong.map(|used| format!("{} uses {used}, which {name}/{from} may not", path.display())).collect()
}

#[test]
fn modules_use_only_what_the_table_allows() {
    let wrong: Vec<_> = sources().iter().flat_map(|(path, text)| forbidden_arrows(path, text)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_forbidden_arrow_is_found_wherever_it_hides() {
    let found = |text: &str| forbidden_arrows(Path::new("engine/decide/mod.rs"), text);
    for bad in [
        "use crate::gate::Held;",
        "use crate::{decide::{Key, Pick}, gate};",
        "use crate::{\n    decide::{self, path::{encode}},\n    gate::Held,\n};",
        "#[cfg(test)]\nmod tests;\n\nuse crate::gate::Held;",
        "#[cfg(test)]\nuse crate::load::x;\nfn f() -> crate::gate::Held {}",
        "#[cfg(test)]\nmod tests {\n    fn f() {}\n}\nfn f(_: crate::gate::Held) {}",
    ] {
        assert_eq!(found(bad), ["engine/decide/mod.rs uses gate, which engine/decide may not"], "{bad}");
    }
    for good in ["use crate::{decide::{Key}};", "#[cfg(test)]\nmod tests {\n    use crate::gate;\n}\n"] {
        assert_eq!(found(good), Vec::<String>::new(), "{good}");
    }
}

#[test]
fn the_table_has_no_circle() {
    // Rows are listed so that each uses only rows above it.
    for (name, modules) in MAY_USE {
        let mut above = BTreeSet::new();
        for (module, uses) in *modules {
            for used in *uses {
                assert!(above.contains(used), "{name}/{module} uses {used}, which is not above it");
            }
            above.insert(*module);
        }
    }
}

#[test]
fn pure_modules_name_nothing_of_the_outside() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        if is_in(&path, PURE) && !is_test(&path) {
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
fn each_library_stays_in_its_place() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let text = code(&text);
        for (library, places) in CONFINED {
            if names(&text, library) && !is_in(&path, places) && !is_test(&path) {
                wrong.push(format!(
                    "{} names {library}, which only {} may",
                    path.display(),
                    places.join(", ")
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The places outside of the dialects that name a system or a group of one, and why a new dialect does not
/// touch them.
const NAME_A_SYSTEM: &[(&str, &[&str])] = &[
    (
        "a command of KubeFed's own, or a part of one",
        &[
            "cli/commands/disable.rs",
            "cli/commands/enable.rs",
            "cli/commands/federate/mod.rs",
            "cli/commands/federate/from_cluster.rs",
            "cli/commands/install/member.rs",
            "cli/commands/orphan.rs",
            "cli/editing/working_tree.rs",
        ],
    ),
    (
        "cluster sets are OCM's, for the clusters of all dialects",
        &["engine/access/facts.rs", "engine/access/roles.rs"],
    ),
    ("an output for OCM's consumers", &["cli/appliers/argocd.rs", "engine/state/placement_decision.rs"]),
    (
        "objects of a hub cluster, for the decisions and clusters of all dialects",
        &[
            "cli/commands/run/hub_cluster/worker.rs",
            "engine/hub_objects/decisions.rs",
            "engine/hub_objects/mod.rs",
            "engine/hub_objects/profiles.rs",
        ],
    ),
    ("marks that a hub's agent left on objects", &["member/sync/strategy.rs"]),
];

#[test]
fn what_is_known_of_a_system_is_in_its_dialect() {
    let words: Vec<String> = DIALECTS
        .iter()
        .flat_map(|one| {
            one.groups.iter().map(|group| (*group).to_owned()).chain([format!("dialects::{}", one.name)])
        })
        .collect();
    let is_home = |path: &Path| {
        let import = |one: &&&Dialect| path.starts_with(format!("cli/import/{}", one.name));
        path.starts_with("engine/dialects") || DIALECTS.iter().any(|one| import(&one))
    };
    let naming = sources().into_iter().filter(|(path, text)| {
        let text = code(text);
        !is_home(path) && !is_test(path) && words.iter().any(|word| text.contains(word))
    });
    let naming: BTreeSet<PathBuf> = naming.map(|(path, _)| path).collect();
    let known = NAME_A_SYSTEM.iter().flat_map(|(_, places)| *places).map(PathBuf::from).collect();
    assert_eq!(naming, known, "ask the dialects instead, see `Dialect`");
}

/// The crates of berth that a crate may use, as its Cargo.toml lists them.
fn crates_below(name: &str) -> Vec<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(name).join("Cargo.toml");
    let text = std::fs::read_to_string(file).expect("a Cargo.toml");
    let own = text.split("[dependencies]").nth(1).expect("dependencies");
    let own = own.split("\n[").next().unwrap_or_default();
    own.lines()
        .filter_map(|line| line.strip_prefix("berth-")?.split_once('.').map(|(name, _)| name.to_owned()))
        .collect()
}

/// The engine stays a function of its arguments: no network, no Git library, no cryptography below it.
#[test]
fn nothing_of_the_outside_is_below_the_engine() {
    let mut command = std::process::Command::new(env!("CARGO"));
    let output = command
        .args(["tree", "--offline", "--package", "berth-engine", "--edges", "normal", "--prefix", "none"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let tree = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success() && tree.contains("berth-base"), "{tree}");
    let found: Vec<&str> = tree
        .lines()
        .filter_map(|line| line.split(' ').next())
        .filter(|name| {
            ["kube", "kube-client", "git2", "libgit2-sys", "ring", "tokio", "hyper"].contains(name)
        })
        .collect();
    assert!(found.is_empty(), "below the engine: {found:?}");
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

/// The rows of the page's map, in order: a crate, or a crate's module, and the cell of what it may use.
fn rows_of_the_page(page: &str) -> Vec<(String, String)> {
    let map = page.lines().skip_while(|line| !line.starts_with("| place ")).skip(2);
    map.take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let last = cells.last().copied().unwrap_or_default();
            (cells[0].trim_matches(['`', '*']).to_owned(), last.to_owned())
        })
        .collect()
}

#[test]
fn the_walks_of_the_architecture_page_name_files_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/architecture.md")).expect("the page");
    let (_, walks) = page.split_once("\n## Five walks\n").expect("the walks");
    let (walks, _) = walks.split_once("\n## ").expect("an end");
    let stops: Vec<&str> = walks.split('`').filter(|word| word.ends_with(".rs")).collect();
    assert!(stops.len() > 20, "{stops:?}");
    let exists = |stop: &str| root.join("src").join(stop).exists() || root.join(stop).exists();
    let missing: Vec<&&str> = stops.iter().filter(|stop| !exists(stop)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_architecture_page_shows_the_table() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/architecture.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let cell = |uses: &[&str]| if uses.is_empty() { "nothing".to_owned() } else { uses.join(", ") };
    let mut expected = BTreeMap::new();
    let crates = "base cel engine git http registry lease telemetry sources vendor hub forge member site cli";
    for name in crates.split(' ') {
        let below = crates_below(name);
        let below: Vec<&str> = below.iter().map(String::as_str).collect();
        expected.insert(name.to_owned(), cell(&below));
    }
    for (name, modules) in MAY_USE {
        expected.extend(modules.iter().map(|(module, uses)| (format!("{name}/{module}"), cell(uses))));
    }
    let shown: BTreeMap<String, String> = rows_of_the_page(&page).into_iter().collect();
    for (name, uses) in &expected {
        assert_eq!(shown.get(name), Some(uses), "the row of `{name}` in docs/architecture.md");
    }
    assert_eq!(shown.len(), expected.len(), "docs/architecture.md has rows for {:?}", shown.keys());
}

#[test]
fn tests_wait_by_one_helper() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("support/wait.rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let sleep = concat!("sle", "ep(");
                assert!(!text.contains(sleep), "{} sleeps: wait by `support/wait.rs`", path.display());
            }
        }
    }
}
