//! The cases of `fixtures/<system>/`, each a test of its own: the decisions and objects for a given input.
//!
//! `cargo test kubefleet::policy_unchanged` runs those whose names hold the words; `BERTH_UPDATE=1` writes what a
//! case got into its file.

#![allow(clippy::panic, clippy::unwrap_used, clippy::print_stderr, reason = "a test that cannot go on fails")]

#[path = "../archive/mod.rs"]
mod archive;
mod decisions;
mod objects;
mod rollouts;
mod run;
mod stages;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use archive::{Archive, archives};
use libtest_mimic::{Arguments, Trial};

const SYSTEMS: [&str; 10] = [
    "kubefed",
    "kubefed-render",
    "kubefleet",
    "kubefleet-render",
    "kubefleet-rollout",
    "kubefleet-staged",
    "ocm",
    "ocm-render",
    "ocm-rollout",
    "rfc6902",
];

fn main() -> ExitCode {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let trials = SYSTEMS.iter().flat_map(|system| {
        let cases = archives(&fixtures.join(system));
        assert!(!cases.is_empty(), "no cases for {system}");
        cases.into_iter().map(|path| Trial::test(name(system, &path), move || Ok(check(&path)?)))
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

fn name(system: &str, path: &Path) -> String {
    let case = path.file_stem().expect("a name").to_string_lossy();
    format!("{system}::{case}").replace('-', "_")
}

/// Compares a case's files with what its fleet gives, and writes them anew where that is asked for.
fn check(path: &Path) -> Result<(), String> {
    let mut case = Archive::read(path);
    let rendered = case.files.iter().any(|(path, _)| path.starts_with("expected/"));
    let found = match () {
        () if rendered => objects::check(&mut case),
        () if case.file("works.json").is_some() => rollouts::check(&mut case),
        () if stages::is_one(&case) => stages::check(&mut case),
        () => decisions::check(&mut case),
    };
    if found.is_err() && std::env::var_os("BERTH_UPDATE").is_some() {
        return std::fs::write(path, case.text()).map_err(|error| error.to_string());
    }
    let file = path.components().rev().take(3).collect::<Vec<_>>();
    let file: PathBuf = file.into_iter().rev().collect();
    found.map_err(|differences| format!("{}:\n{differences}", file.display()))
}
