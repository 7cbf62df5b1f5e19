//! Rare events, together with all the rest: reports on folders that nobody has, late ones and ones that are
//! withdrawn; files in the place of folders and the other way about; links, submodules and names that differ by case.

use berth_base::model::Timestamp;
use berth_git::TreeId;

use super::edits::{Fleet, LINK, SUBMODULE, any};
use super::members::report;
use super::sides::Sides;
use crate::support::random::Random;

/// The reports of a walk that may come once more.
const MOST: usize = 200;

/// Events with chances of their own: without them, a walk goes another way.
#[derive(Debug)]
pub struct Strange {
    random: Random,
    /// Folders that clusters had.
    folders: Vec<TreeId>,
    /// Reports by cluster, as they were sent.
    sent: Vec<(String, String)>,
    /// The numbers of folders that nobody has yet.
    absent: Vec<u64>,
}

impl Strange {
    pub fn new(seed: u64) -> Strange {
        Strange {
            random: Random::new(seed.rotate_left(32) ^ 0x5eed),
            folders: Vec::new(),
            sent: Vec::new(),
            absent: Vec::new(),
        }
    }

    /// Puts something else in the place of a file or folder, and says what.
    pub fn edit(&mut self, fleet: &mut Fleet) -> Option<String> {
        let random = &mut self.random;
        if random.below(4) > 0 {
            return None;
        }
        let nested = fleet.files.keys().filter(|path| path.contains(".yaml/"));
        let nested = any(random, nested).cloned().filter(|_| random.below(2) == 0);
        let path = nested.or_else(|| any(random, fleet.files.keys()).cloned())?;
        let other = any(random, fleet.files.values()).cloned()?;
        let text = fleet.files[&path].clone();
        let text = random.pick(&[&*text, &*text, "kind: [\n", "kind: [\n", &*other]).to_owned();
        let (above, name) = path.rsplit_once('/').unwrap_or(("", &path));
        let is_of_name = above.ends_with(".yaml");
        let (place, text) = match random.below(16) {
            0..3 if is_of_name => (above.to_owned(), text),
            0..5 => (format!("{path}/{name}"), text),
            5 => (format!("{path}/{}/{name}", random.pick(&["deep", "deep.yaml"])), text),
            6 => (path.clone(), LINK.to_owned()),
            7 => (path.clone(), SUBMODULE.to_owned()),
            8 if !above.is_empty() => (above.to_owned(), LINK.to_owned()),
            9 if !above.is_empty() => (above.to_owned(), SUBMODULE.to_owned()),
            10 if !above.is_empty() => (above.to_owned(), text),
            11 => (path.to_uppercase().replace(".YAML", ".yaml"), text),
            12 => (format!("{above}/{}", name.to_uppercase()), text),
            13 => (format!("{path}\u{200b}.yaml"), text),
            // The file and another one beside it.
            14 => {
                let both = format!("{above}/{}", name.replace(".yaml", ".YAML.yaml"));
                fleet.replace(&[], &both, text.clone());
                (path.to_uppercase().replace(".YAML", ".yaml"), text)
            }
            _ => (path.replace(".yaml", ".yml"), text),
        };
        let place = place.trim_start_matches('/').to_owned();
        let gone = if random.below(4) == 0 { Vec::new() } else { vec![path.clone()] };
        fleet.replace(&gone, &place, text);
        Some(format!("{place} takes the place of {path}"))
    }

    /// Sends reports that nobody waits for, and says which.
    pub fn report(&mut self, sides: &Sides, now: Timestamp) -> Vec<String> {
        let mut said = Vec::new();
        for (cluster, folder) in sides.folders() {
            self.folders.push(folder);
            let random = &mut self.random;
            let (tree, words) = match random.below(24) {
                0 | 1 => {
                    let number = random.below(1 << 40);
                    self.absent.push(number);
                    (Sides::absent_folder(number), "a folder that nobody has")
                }
                2 => (any(random, &self.folders).copied().unwrap_or(folder), "a folder of somebody's"),
                3 => (folder, "its folder, at another time"),
                4 | 5 => {
                    sides.report(&cluster, None);
                    said.push(format!("{cluster} withdraws its report"));
                    continue;
                }
                6 => {
                    let Some((cluster, text)) = any(random, &self.sent).cloned() else { continue };
                    said.push(format!("an earlier report of {cluster} comes again"));
                    sides.report(&cluster, Some(text));
                    continue;
                }
                7 => {
                    sides.post(&cluster, None);
                    said.push(format!("{cluster} is no longer among the reports that were sent by POST"));
                    continue;
                }
                _ => continue,
            };
            let seconds = random.pick(&[0, 0, 0, -20, -1_800, 300, 4_000]);
            let at = Timestamp::from_second(now.as_second() + seconds).expect("a moment");
            let text = report(&cluster, tree, at, random);
            said.push(format!("{cluster} reports {words}, of {at}"));
            self.sent.push((cluster.clone(), text.clone()));
            if self.sent.len() > MOST {
                self.sent.remove(0);
            }
            match random.below(4) {
                0 => sides.post(&cluster, Some(text)),
                _ => sides.report(&cluster, Some(text)),
            }
        }
        if self.random.below(6) == 0
            && let Some(number) = self.absent.pop()
        {
            sides.arrive(number);
            said.push(format!("folder {} arrives", Sides::absent_folder(number)));
        }
        said
    }

    /// Reports whether a daemon ends and another one begins.
    pub fn restarts(&mut self) -> bool {
        self.random.below(12) == 0
    }
}
