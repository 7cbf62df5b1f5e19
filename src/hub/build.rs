//! Names this build by a digest of the sources that a pass depends on. A process ignores cache files of other builds.

#![allow(clippy::print_stdout)]

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

fn main() {
    let workspace = Path::new("../..");
    let mut files = vec![workspace.join("Cargo.lock"), workspace.join("Cargo.toml")];
    for part in ["base", "cel", "engine", "git", "hub"] {
        let folder = workspace.join("src").join(part);
        println!("cargo:rerun-if-changed={}", folder.display());
        collect(&folder, &mut files);
    }
    files.sort();
    // Two halves with different seeds: 64 bits are too few for a name.
    let half = |beginning: u8| {
        let mut hasher = DefaultHasher::new();
        beginning.hash(&mut hasher);
        for file in &files {
            file.hash(&mut hasher);
            fs::read(file).unwrap_or_default().hash(&mut hasher);
        }
        hasher.finish()
    };
    println!("cargo:rerun-if-changed=../../Cargo.lock");
    println!("cargo:rerun-if-changed=../../Cargo.toml");
    println!("cargo:rustc-env=BERTH_SOURCES={:016x}{:016x}", half(0), half(1));
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}
