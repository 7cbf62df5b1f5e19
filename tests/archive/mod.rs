//! Text archives: a case of several files in one file, which a reader sees whole.
//!
//! The text above the first `-- PATH --` line is about the case. Each such line names a file, and the file's bytes
//! follow up to the next one. Files end with a line break and have no line of that form.

#![allow(dead_code, reason = "not every test target needs all of it")]

use std::path::{Path, PathBuf};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Archive {
    pub about: String,
    /// Paths and texts, in the order of the file.
    pub files: Vec<(String, String)>,
}

impl Archive {
    pub fn parse(text: &str) -> Archive {
        let mut archive = Archive::default();
        for line in text.split_inclusive('\n') {
            if let Some(path) = marked(line) {
                archive.files.push((path.to_owned(), String::new()));
            } else {
                archive.files.last_mut().map_or(&mut archive.about, |(_, text)| text).push_str(line);
            }
        }
        archive
    }

    pub fn read(path: &Path) -> Archive {
        Archive::parse(
            &std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())),
        )
    }

    pub fn text(&self) -> String {
        let file = |(path, text): &(String, String)| format!("-- {path} --\n{text}");
        self.about.clone() + &self.files.iter().map(file).collect::<String>()
    }

    pub fn file(&self, path: &str) -> Option<&str> {
        self.files.iter().find(|(name, _)| name == path).map(|(_, text)| text.as_str())
    }

    /// The files below a folder, by their paths in it.
    pub fn below<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let inside = move |path: &'a str| path.strip_prefix(folder)?.strip_prefix('/');
        self.files.iter().filter_map(move |(path, text)| Some((inside(path)?, text.as_str())))
    }

    /// The value of a `KEY: VALUE` line of the text above the files.
    pub fn says(&self, key: &str) -> Option<&str> {
        let value = self.about.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        Some(value.trim().trim_matches(['\'', '"']))
    }

    /// Writes the files into a folder.
    pub fn unpack(&self, folder: &Path) {
        for (path, text) in &self.files {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        }
    }
}

/// The archives of a folder, by path.
pub fn archives(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txtar"));
    paths.sort_by_key(|path| path.file_stem().map(ToOwned::to_owned));
    paths
}

fn marked(line: &str) -> Option<&str> {
    line.trim_end_matches('\n').strip_prefix("-- ")?.strip_suffix(" --")
}
