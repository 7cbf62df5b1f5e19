//! A fleet's files on a random walk, and the edits that people make by day and by night.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use berth_base::model::Timestamp;

use super::grammar::{Slot, slots};
use crate::archive::{Archive, archives};
use crate::support::fixtures;
use crate::support::random::Random;

pub type Files = BTreeMap<String, String>;

/// The cases of other tests, whose files are put into the fleet as they are.
const CASES: [&str; 8] = [
    "kubefed",
    "kubefed-render",
    "kubefleet",
    "kubefleet-render",
    "kubefleet-staged",
    "ocm",
    "ocm-render",
    "ocm-rollout",
];

/// The text that stands for a symbolic link.
pub const LINK: &str = "a symbolic link";

/// The text that stands for a submodule.
pub const SUBMODULE: &str = "a submodule";

/// The folder of the one case that is in the fleet.
const GUEST: &str = "guest/";

#[derive(Debug)]
pub struct Fleet {
    pub files: Files,
    slots: Vec<Slot>,
    cases: Vec<PathBuf>,
    /// The files as earlier steps had them.
    earlier: Vec<Files>,
    /// The files that no longer have one of their forms.
    spoilt: BTreeSet<String>,
}

impl Fleet {
    pub fn new(now: Timestamp, random: &mut Random) -> Fleet {
        let slots = slots();
        let files = slots.iter().filter_map(|slot| Some((slot.path.clone(), slot.text(0, now, random)?)));
        let files = files.collect();
        let cases = CASES.iter().flat_map(|name| archives(&fixtures(name))).collect();
        Fleet { files, slots, cases, earlier: Vec::new(), spoilt: BTreeSet::new() }
    }

    /// Makes one edit, and says which.
    pub fn edit(&mut self, now: Timestamp, random: &mut Random) -> String {
        match random.below(100) {
            0..56 => self.form(now, random),
            56..70 => self.mend(now, random),
            70..84 => self.spoil(random),
            84..88 => self.rename(random),
            88..90 => self.swap_folders(random),
            90..95 => self.invite(random),
            _ => self.revert(random),
        }
    }

    /// Takes files away, and puts another one in the place of whatever stands in its way.
    pub fn replace(&mut self, gone: &[String], path: &str, text: String) {
        gone.iter().for_each(|path| drop(self.files.remove(path)));
        self.spoilt.extend(gone.iter().cloned());
        self.spoilt.insert(path.to_owned());
        self.insert(path.to_owned(), text);
    }

    /// Nothing is both a file and a folder.
    fn insert(&mut self, path: String, text: String) {
        let is_below =
            |one: &str, other: &str| one.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'));
        self.files.retain(|other, _| !is_below(other, &path) && !is_below(&path, other));
        self.files.insert(path, text);
    }

    /// Keeps the files for a later revert.
    pub fn remember(&mut self) {
        self.earlier.push(self.files.clone());
    }

    fn form(&mut self, now: Timestamp, random: &mut Random) -> String {
        let slot = self.slots[index(random, self.slots.len())].clone();
        let form = index(random, slot.forms.len());
        let text = slot.text(form, now, random);
        self.put(&slot.path, text);
        self.spoilt.remove(&slot.path);
        format!("{} takes form {form}", slot.path)
    }

    /// Gives a spoilt file its first form again, or takes it away where it has none.
    fn mend(&mut self, now: Timestamp, random: &mut Random) -> String {
        let Some(path) = any(random, &self.spoilt).cloned() else {
            return self.form(now, random);
        };
        self.spoilt.remove(&path);
        let slot = self.slots.iter().find(|slot| slot.path == path).cloned();
        self.put(&path, slot.and_then(|slot| slot.text(0, now, random)));
        format!("{path} is mended")
    }

    /// Changes a file's text as slips of the hand and half-written files do.
    fn spoil(&mut self, random: &mut Random) -> String {
        let Some(path) = any(random, self.files.keys()).cloned() else {
            return "nothing".to_owned();
        };
        let other = any(random, self.files.values()).cloned().unwrap_or_default();
        let text = self.files[&path].clone();
        let mut lines: Vec<&str> = text.lines().collect();
        let (way, line) = (random.below(8), index(random, lines.len().max(1)));
        let spoilt = match way {
            0 => text.chars().take(index(random, text.len() + 1)).collect(),
            1 if !lines.is_empty() => {
                lines.remove(line);
                lines.join("\n")
            }
            2 if !lines.is_empty() => {
                lines.insert(line, lines[line]);
                lines.join("\n")
            }
            // The same objects twice.
            3 => format!("{text}---\n{other}"),
            4 => format!("{text}---\nkind: [\n"),
            5 => other,
            6 => text.replacen("name: ", "nmae: ", 1),
            _ => {
                let digits: Vec<usize> =
                    text.match_indices(|c: char| c.is_ascii_digit()).map(|at| at.0).collect();
                let mut bytes = text.into_bytes();
                if let Some(at) = any(random, &digits) {
                    bytes[*at] = b'0' + u8::try_from(random.below(10)).expect("a digit");
                }
                String::from_utf8(bytes).expect("text")
            }
        };
        self.insert(path.clone(), spoilt);
        self.spoilt.insert(path.clone());
        format!("{path} is spoilt, way {way}")
    }

    fn rename(&mut self, random: &mut Random) -> String {
        let Some(path) = any(random, self.files.keys()).cloned() else {
            return "nothing".to_owned();
        };
        let text = self.files.remove(&path).expect("a file");
        let file = path.rsplit('/').next().expect("a name");
        let to = format!("{}{file}", random.pick(&["moved/", "apps/", "inventory/", "lists/deep/", ""]));
        self.insert(to.clone(), text);
        self.spoilt.extend([path.clone(), to.clone()]);
        format!("{path} moves to {to}")
    }

    fn swap_folders(&mut self, random: &mut Random) -> String {
        let folders = ["inventory/", "apps/fed/", "apps/fleet/", "policies/", "rollouts/"];
        let (a, b) = (random.pick(&folders), random.pick(&folders));
        let files = std::mem::take(&mut self.files);
        for (path, text) in files {
            let other = match (path.strip_prefix(a), path.strip_prefix(b)) {
                (Some(rest), _) => format!("{b}{rest}"),
                (_, Some(rest)) => format!("{a}{rest}"),
                _ => path.clone(),
            };
            if other != path {
                self.spoilt.extend([path, other.clone()]);
            }
            self.insert(other, text);
        }
        format!("{a} and {b} change places")
    }

    /// Puts another test's case in the place of the last one.
    fn invite(&mut self, random: &mut Random) -> String {
        self.files.retain(|path, _| !path.starts_with(GUEST));
        if random.below(3) == 0 {
            return "the guest leaves".to_owned();
        }
        let case = self.cases[index(random, self.cases.len())].clone();
        for (path, text) in Archive::read(&case).below("fleet") {
            self.insert(format!("{GUEST}{path}"), text.to_owned());
        }
        let [name, folder] =
            [Some(case.as_path()), case.parent()].map(|path| path.and_then(|path| path.file_stem()));
        format!("the guest is {folder:?}/{name:?}")
    }

    fn revert(&mut self, random: &mut Random) -> String {
        let Some(earlier) = any(random, &self.earlier).cloned() else {
            return "nothing".to_owned();
        };
        self.files = earlier;
        let known = self.slots.iter().map(|slot| &slot.path);
        self.spoilt.extend(known.cloned().chain(self.files.keys().cloned()).filter(|_| random.below(6) == 0));
        "an earlier step's files".to_owned()
    }

    fn put(&mut self, path: &str, text: Option<String>) {
        match text {
            Some(text) => self.insert(path.to_owned(), text),
            None => drop(self.files.remove(path)),
        }
    }
}

pub fn index(random: &mut Random, end: usize) -> usize {
    usize::try_from(random.below(end as u64)).expect("an index")
}

/// One of some values.
pub fn any<T>(random: &mut Random, from: impl IntoIterator<Item = T, IntoIter: Clone>) -> Option<T> {
    let mut from = from.into_iter();
    match from.clone().count() {
        0 => None,
        count => from.nth(index(random, count)),
    }
}
