//! What the fuzz targets do, over the fixtures and over damaged copies of them, so that the targets do
//! not rot between two fuzzings. `BERTH_FUZZ_ROUNDS` sets how many copies.

use crate::archive::Archive;
use crate::support::fixtures;
use crate::support::random::{Random, rounds};

#[path = "../../fuzz/bodies/cel.rs"]
mod cel;
#[path = "../../fuzz/bodies/load.rs"]
mod load;
#[path = "../../fuzz/bodies/stored.rs"]
mod stored;
#[path = "../../fuzz/bodies/yaml.rs"]
mod yaml;

const TARGETS: [fn(&[u8]); 4] = [cel::run, load::run, stored::run, yaml::run];

/// What is put into copies: signs of the syntax, and the byte at which `load` cuts its files.
const SIGNS: &[u8] = b"\xFF\xFF:-?#&*!|>'\"%@`[]{},~ \t\r\n0";

fn seeds() -> Vec<Vec<u8>> {
    let mut folders = vec![fixtures("")];
    let mut paths = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let list = if path.is_dir() { &mut folders } else { &mut paths };
            list.push(path);
        }
    }
    paths.sort();
    let (archives, others): (Vec<_>, Vec<_>) =
        paths.iter().partition(|path| path.extension().is_some_and(|extension| extension == "txtar"));
    let packed = archives.into_iter().flat_map(|path| Archive::read(path).files);
    let packed = packed.map(|(_, text)| text.into_bytes());
    packed.chain(others.into_iter().map(|path| std::fs::read(path).expect("a file"))).collect()
}

/// A copy with something cut out, put in or turned round; `load` gets it as a last good form and as files.
fn damaged(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut below = |end: usize| usize::try_from(random.below(end.max(1) as u64)).expect("an index");
    let mut bytes = seeds[below(seeds.len())].clone();
    for _ in 0..below(6) {
        let (from, length) = (below(bytes.len()), below(20));
        let to = (from + length).min(bytes.len());
        match below(4) {
            0 => drop(bytes.drain(from..to)),
            1 => bytes.insert(from, SIGNS[below(SIGNS.len())]),
            2 => {
                let copied = bytes[from..to].to_vec();
                let at = below(bytes.len());
                bytes.splice(at..at, copied);
            }
            _ => bytes[from..to].reverse(),
        }
    }
    let other = &seeds[below(seeds.len())];
    [&bytes[..], &b"\xFF"[..], &other[..], &b"\xFF"[..], &bytes[..]].concat()
}

#[test]
fn fixtures_and_damaged_copies_of_them_are_read_or_refused() {
    let seeds = seeds();
    assert!(seeds.len() > 100, "the fixtures are there");
    for bytes in &seeds {
        TARGETS.iter().for_each(|run| run(bytes));
    }
    let mut random = Random::new(1);
    for _ in 0..rounds("BERTH_FUZZ_ROUNDS", 300) {
        let bytes = damaged(&mut random, &seeds);
        TARGETS.iter().for_each(|run| run(&bytes));
        let alone = bytes.split(|byte| *byte == 0xFF).next().unwrap_or_default();
        TARGETS.iter().for_each(|run| run(alone));
    }
}

/// What expressions are made of: names, functions and literals, signs, and pieces of both.
const PIECES: [&str; 62] = [
    "managedCluster",
    ".metadata",
    ".labels",
    "[\"env\"]",
    ".spec",
    ".status",
    ".allocatable",
    ".taints",
    ".clusterClaims",
    ".scores(\"default\")",
    ".?version",
    ".orValue(\"\")",
    "[?0]",
    "[",
    "]",
    "(",
    ")",
    "{",
    "}",
    ",",
    ":",
    "?",
    ".",
    " && ",
    " || ",
    " == ",
    " != ",
    " < ",
    " >= ",
    " in ",
    "!",
    "-",
    " + ",
    " * ",
    " / ",
    " % ",
    "1",
    "-9223372036854775808",
    "18446744073709551615u",
    "0.5",
    "1e400",
    "\"a\"",
    "b\"\\xff\"",
    "r'\\d+'",
    "null",
    "true",
    ".exists(x, x",
    ".all(x, x",
    ".map(x, x",
    ".filter(x, x",
    ".size()",
    ".matches(\"(a|b)*$\")",
    ".split(\",\")",
    "quantity(\"1Gi\")",
    "semver(\"1.2.3\")",
    "duration(\"1h\")",
    "timestamp(\"2026-01-01T00:00:00Z\")",
    ".isGreaterThan(",
    ".parseJSON()",
    "has(",
    "url(\"https://a\")",
    "\n// x\n",
];

/// The expressions of the fixtures, which the others are made from as well.
fn expressions() -> Vec<String> {
    let mut found = Vec::new();
    for seed in seeds() {
        let Ok(text) = String::from_utf8(seed) else { continue };
        let lines = text.lines().filter(|line| line.contains("managedCluster."));
        found.extend(
            lines.map(|line| line.trim().trim_start_matches("- ").trim_matches(['\'', '[', ']']).to_owned()),
        );
    }
    found
}

#[test]
fn expressions_made_of_anything_are_refused_or_end() {
    let known = expressions();
    assert!(known.len() >= 5, "the fixtures have expressions: {known:?}");
    known.iter().for_each(|text| cel::run(text.as_bytes()));
    let mut random = Random::new(7);
    for round in 0..20 * rounds("BERTH_FUZZ_ROUNDS", 300) {
        let mut text = if round % 3 == 0 {
            String::new()
        } else {
            random.pick(&known.iter().map(String::as_str).collect::<Vec<_>>()).to_owned()
        };
        for _ in 0..=random.below(12) {
            let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            let at = random.pick(&ends);
            text.insert_str(at, random.pick(&PIECES));
        }
        cel::run(text.as_bytes());
    }
}
