//! The book under `docs/`: its table of contents, links, commands and size.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use crate::support::programs::{made, skipped};
use crate::support::{Ran, hermetic, record};

/// The most words of all pages that people write.
const MOST_WORDS: usize = 40_000;
/// The most lines of the map of the code.
const MOST_LINES_OF_ARCHITECTURE: usize = 200;
/// Generated from `--help`, so its words do not count.
const GENERATED: &str = "cli.md";
/// Run as it stands, by a test of its own.
const FOLLOWED: &str = "tutorial.md";
/// Titles of the other pages, whose words do not count twice.
const CONTENTS: &str = "SUMMARY.md";
/// The flags of other programs that the pages name without their program.
const FLAGS_OF_OTHERS: [&str; 2] = ["--kubefed-namespace", "--prune"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The pages of the book by file name, with the table of contents.
fn pages() -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(root().join("docs")).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let markdown = paths.filter(|path| path.extension().is_some_and(|end| end == "md"));
    markdown
        .map(|path| (path.file_name().expect("a name").to_string_lossy().into_owned(), read(&path)))
        .collect()
}

/// A page without its blocks of code.
fn prose(page: &str) -> String {
    page.split("```").step_by(2).collect::<Vec<_>>().join("\n")
}

/// The destinations of a page's links within the repository.
fn links(page: &str) -> Vec<String> {
    let text: String = prose(page).split('`').step_by(2).collect();
    let ends = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    ends.map(|(link, _)| link.to_owned()).filter(|link| !link.contains("://")).collect()
}

/// The anchors of a page: those of its headings, as forges and mdBook make them, and its own.
fn anchors(page: &str) -> BTreeSet<String> {
    let text = prose(page);
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = BTreeSet::new();
    for line in text.lines().filter(|line| line.starts_with('#')) {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let count = seen.entry(anchor.clone()).or_default();
        found.insert(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
        *count += 1;
    }
    let own = text.split("<a id=\"").skip(1).filter_map(|rest| rest.split_once('"'));
    found.extend(own.map(|(name, _)| name.to_owned()));
    found
}

/// The path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// Says what is wrong with a link of a file.
fn fault(file: &Path, link: &str) -> Option<String> {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let folder = file.parent().expect("a folder");
    let target = if path.is_empty() { file.to_owned() } else { plain(&folder.join(path)) };
    let wrong = |what: &str| Some(format!("{}: {link}: {what}", file.display()));
    if !target.exists() {
        return wrong("no such file");
    }
    let is_page = target.extension().is_some_and(|end| end == "md");
    if !anchor.is_empty() && is_page && !anchors(&read(&target)).contains(anchor) {
        return wrong("no such heading");
    }
    None
}

#[test]
fn the_table_of_contents_has_every_page_and_every_link_leads_somewhere() {
    let pages = pages();
    let listed: BTreeSet<String> = links(&pages["SUMMARY.md"]).into_iter().collect();
    let existing = pages.keys().filter(|name| *name != "SUMMARY.md").cloned().collect();
    assert_eq!(listed, existing);
    let of_the_book = pages.keys().map(|name| root().join("docs").join(name));
    let others = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "deploy/README.md"];
    let files = of_the_book.chain(others.iter().map(|name| root().join(name)));
    let faults: Vec<String> = files
        .flat_map(|file| links(&read(&file)).into_iter().filter_map(move |link| fault(&file, &link)))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
#[ignore = "needs mdBook"]
fn mdbook_builds_the_book_without_a_warning() {
    let program = match made(&["ready", "mdbook"], "mdbook") {
        Ok(program) => program,
        Err(why) => return skipped("mdBook", &why),
    };
    let folder = tempfile::tempdir().expect("a folder");
    let mut build = hermetic(program.to_str().expect("a path"));
    build.args(["build", "--dest-dir"]).arg(folder.path()).arg(root().join("docs"));
    let ran = Ran::of(&mut build).expect(0);
    assert!(!ran.err.contains("WARN") && !ran.err.contains("ERROR"), "{}", ran.err);
    for page in pages().into_keys().filter(|page| page != CONTENTS) {
        let built = folder.path().join(page.replace(".md", ".html"));
        assert!(built.is_file(), "{}", built.display());
    }
}

#[test]
fn the_book_stays_short() {
    let pages = pages();
    let words = pages.iter().filter(|(name, _)| *name != GENERATED && *name != CONTENTS);
    let words: usize = words.map(|(_, page)| page.split_whitespace().count()).sum();
    assert!(words <= MOST_WORDS, "{words} words");
    let lines = pages["architecture.md"].lines().count();
    assert!(lines <= MOST_LINES_OF_ARCHITECTURE, "architecture.md has {lines} lines");
}

/// The flags in a text.
fn flags(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_lowercase() && !c.is_ascii_digit() && c != '-');
    words.filter(|word| word.len() > 2 && word.starts_with("--") && !word.starts_with("---")).collect()
}

/// The commands of a page, in its blocks for a shell and in its text, each on one line.
fn commands(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    for block in page.split("```").skip(1).step_by(2).filter_map(|block| block.strip_prefix("sh\n")) {
        found.extend(block.replace("\\\n", " ").lines().map(|line| line.trim().to_owned()));
    }
    let text = prose(page);
    let spans = text.split('`').skip(1).step_by(2);
    found.extend(spans.map(|span| span.split_whitespace().collect::<Vec<_>>().join(" ")));
    found.retain(|command| command.starts_with("berth "));
    found.into_iter().map(|command| command.split(" #").next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn the_pages_name_only_commands_and_flags_that_exist() {
    let pages = pages();
    let sections = pages[GENERATED].split("\n## ").skip(1).filter_map(|part| part.split_once('\n'));
    let sections: BTreeMap<&str, BTreeSet<&str>> = sections.map(|(name, help)| (name, flags(help))).collect();
    let all: BTreeSet<&str> = sections.values().flatten().copied().chain(FLAGS_OF_OTHERS).collect();
    let mut wrong = Vec::new();
    let mut checked = 0;
    let readme = read(&root().join("README.md"));
    let written = pages.iter().filter(|(name, _)| *name != GENERATED);
    let written = written.map(|(name, page)| (name.as_str(), page.as_str()));
    for (name, page) in written.chain([("README.md", readme.as_str())]) {
        for command in commands(page) {
            let words: Vec<&str> = command.split(' ').collect();
            let starts = (2..=words.len().min(3)).rev().map(|count| words[..count].join(" "));
            let Some(known) = starts.filter_map(|start| sections.get(start.as_str())).next() else {
                if words[1].starts_with(|c: char| c.is_ascii_lowercase()) {
                    wrong.push(format!("{name}: `{command}`: no such command"));
                }
                continue;
            };
            checked += 1;
            let unknown = flags(&command).into_iter().filter(|flag| !known.contains(flag));
            wrong.extend(unknown.map(|flag| format!("{name}: `{command}`: no such flag: {flag}")));
        }
        let text = prose(page);
        let spans = text.split('`').skip(1).step_by(2);
        let ours = spans.filter(|span| {
            let first = span.split_whitespace().next().unwrap_or_default();
            first.starts_with("--") || sections.contains_key(format!("berth {first}").as_str())
        });
        let unknown = ours.flat_map(flags).filter(|flag| !all.contains(flag));
        wrong.extend(unknown.map(|flag| format!("{name}: no command has {flag}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 250, "{checked} commands");
}

/// Reports whether one of these command lines is of a command, with all of its flags.
fn was_run(command: &str, record: &[String]) -> bool {
    let is_name = |word: &&str| word.starts_with(|first: char| first.is_ascii_lowercase());
    let words: Vec<&str> = command.split(' ').take_while(is_name).take(3).collect();
    // The third word may be an argument and not a part of the command.
    let starts = (2..=words.len()).rev().map(|count| format!("{} ", words[..count].join(" ")));
    let mut known = starts.map(|start| record.iter().filter(move |line| line.starts_with(&start)).collect());
    let lines: Vec<&String> = known.find(|lines: &Vec<_>| !lines.is_empty()).unwrap_or_default();
    lines.into_iter().any(|line| flags(line).is_superset(&flags(command)))
}

/// Each command of the book was run by a test, with all of its flags, and did its work.
#[test]
#[ignore = "needs the record of all tests"]
fn each_command_was_run_by_a_test() {
    let record = record::lines().expect("a record: `make test-all` makes it");
    let pages = pages();
    let written = pages.iter().filter(|(name, _)| ![GENERATED, FOLLOWED].contains(&name.as_str()));
    let all: Vec<(&String, String)> = written
        .flat_map(|(name, page)| commands(page).into_iter().map(move |command| (name, command)))
        .collect();
    let missing = all.iter().filter(|(_, command)| !was_run(command, &record));
    let missing: Vec<String> = missing.map(|(name, command)| format!("{name}: {command}")).collect();
    assert!(missing.is_empty(), "no test ran these:\n{}", missing.join("\n"));
    assert!(all.len() > 200, "{} commands", all.len());
}

/// The mentions of pages in the files below a folder, with their places.
fn mentions(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && path.file_name().is_none_or(|name| name != "tests") {
            mentions(&path, found);
        } else if let Ok(text) = std::fs::read_to_string(&path) {
            for rest in text.split("docs/").skip(1) {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"-.#".contains(c));
                let name = rest[..end.unwrap_or(rest.len())].trim_end_matches('.');
                if name.contains(".md") {
                    found.push((path.clone(), name.to_owned()));
                }
            }
        }
    }
}

#[test]
fn messages_and_files_name_pages_that_exist() {
    let mut found = Vec::new();
    for folder in ["src", "deploy"] {
        mentions(&root().join(folder), &mut found);
    }
    assert!(found.len() > 30, "{}", found.len());
    let place = root().join("docs/SUMMARY.md");
    let faults = found
        .iter()
        .filter_map(|(file, name)| fault(&place, name).map(|fault| format!("{}: {fault}", file.display())));
    let faults: Vec<String> = faults.collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
