//! The record of the command lines that tests ran, which the book is held against. `BERTH_TEST_RECORD` names its folder,
//! which `tests/tools/record` makes.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write;
use std::path::PathBuf;

/// The exit codes of a command that did its work, even if it found errors, held something, or saw something unhealthy.
const DONE: [i32; 5] = [0, 1, 3, 5, 7];

fn folder() -> Option<PathBuf> {
    std::env::var_os("BERTH_TEST_RECORD").map(PathBuf::from)
}

/// Returns the program that records its arguments and then becomes berth, if tests are recorded.
pub fn recording() -> Option<String> {
    Some(folder()?.join("berth").to_str().expect("a text path").to_owned())
}

/// Returns the line of the record for these arguments.
fn line<'a>(arguments: impl Iterator<Item = &'a OsStr>) -> String {
    let words = arguments.map(|word| word.to_string_lossy().replace('\n', " "));
    ["berth".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

fn add(line: &str) {
    let Some(folder) = folder() else { return };
    let mut file = std::fs::File::options().append(true).open(folder.join("commands")).expect("the record");
    file.write_all(format!("{line}\n").as_bytes()).expect("written");
}

/// Records a run in the process of the tests.
pub fn ran_here(arguments: &[&str], code: i32) {
    if DONE.contains(&code) {
        add(&line(arguments.iter().map(OsStr::new)));
    }
}

/// Withdraws a recorded run that failed.
pub fn ended<'a>(program: &OsStr, arguments: impl Iterator<Item = &'a OsStr>, code: i32) {
    let is_recorded = recording().is_some_and(|recording| OsStr::new(&recording) == program);
    if is_recorded && !DONE.contains(&code) {
        add(&format!("failed: {}", line(arguments)));
    }
}

/// Returns the recorded command lines, without those that failed. `None` where tests are not recorded.
pub fn lines() -> Option<Vec<String>> {
    let text = std::fs::read_to_string(folder()?.join("commands")).expect("the record");
    let mut counts: BTreeMap<&str, isize> = BTreeMap::new();
    for line in text.lines().map(str::trim_end) {
        match line.strip_prefix("failed: ") {
            Some(failed) => *counts.entry(failed.trim_end()).or_default() -= 1,
            None => *counts.entry(line).or_default() += 1,
        }
    }
    Some(counts.into_iter().filter(|(_, count)| *count > 0).map(|(line, _)| line.to_owned()).collect())
}
