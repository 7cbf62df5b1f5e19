//! The tutorial, run as it stands on its page: every command, and every output that it shows.

use std::path::Path;

use similar::TextDiff;

use crate::support::{Ran, berth, hermetic};

/// The text without what differs from run to run: the ids of commits, and times.
fn settled(text: &str) -> String {
    let is_id =
        |word: &str| [10, 12, 40].contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut settled = String::new();
    for line in text.lines() {
        let timed = line.strip_suffix(" ago").and_then(|line| line.rsplit_once("  "));
        let line = timed.map_or(line, |(before, _)| before);
        for part in line.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
            let word = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            settled.push_str(if is_id(word) { "ID" } else { part });
        }
        settled.push('\n');
    }
    settled
}

/// `BERTH_UPDATE=1` writes the outputs into the page.
#[test]
fn every_command_of_the_tutorial_does_what_the_page_shows() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tutorial.md");
    let page = std::fs::read_to_string(&place).expect("the page");
    let parts: Vec<&str> = page.split("```").collect();
    let outputs = tempfile::tempdir().expect("a folder");
    let output = |index: usize| outputs.path().join(index.to_string());

    let mut script = String::new();
    for (index, part) in parts.iter().enumerate() {
        if let Some(commands) = part.strip_prefix("sh\n") {
            script.push_str(&format!("exec > '{}' 2>&1\n{commands}", output(index).display()));
        }
    }
    let empty = tempfile::tempdir().expect("a folder");
    let binary = Path::new(berth().get_program()).parent().expect("its folder").display().to_string();
    let path = format!("{binary}:{}", std::env::var("PATH").expect("a path"));
    let mut bash = hermetic("bash");
    let ran = Ran::of(bash.current_dir(empty.path()).env("PATH", path).args(["-e", "-c", &script]));

    let mut printed = String::new();
    let mut told = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        if part.starts_with("sh\n") {
            printed = std::fs::read_to_string(output(index)).unwrap_or_else(|_| "not run\n".to_owned());
        }
        told.push(if part.starts_with("text\n") { format!("text\n{printed}") } else { (*part).to_owned() });
    }
    let told = told.join("```");
    if std::env::var_os("BERTH_UPDATE").is_some() {
        std::fs::write(&place, &told).expect("the page");
        return;
    }
    let (page, told) = (settled(&page), settled(&told));
    assert!(page == told, "{}", TextDiff::from_lines(&page, &told).unified_diff());
    assert_eq!(ran.code, 0, "a command failed");
}
