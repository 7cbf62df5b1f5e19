//! Packing a repository anew, so that it stays small and quick after any number of small publications.
//!
//! Git's own tools do it, where there is a `git`. There are two steps, so that the work follows what was added:
//! small packs and loose objects are merged often, and everything is packed anew when the rest holds half as many
//! objects as the largest pack. So each object is packed about as often as the repository has doubled.
//!
//! Merging drops nothing. Packing everything drops what no ref has led to for a while, see [`Grace`].

use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use super::process::{self, Cancel, ProcessEnd};
use super::{Limits, TransportError, environment};

/// A step of packing anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Loose objects and small packs become one pack.
    Merge,
    /// Everything becomes one pack, without what nobody needs.
    Whole,
}

/// The time for which an object stays that no ref leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grace {
    /// No time: nobody else writes here.
    Nothing,
    /// Far longer than any writer takes from its first object to its ref.
    Hour,
    /// The time that the repository's settings or Git itself choose.
    OfGit,
}

/// As many loose objects as `git gc --auto` lets be.
const MOST_LOOSE: u64 = 6_700;
/// A look-up of a new object asks all packs.
const MOST_PACKS: usize = 40;

/// Packing a repository of any size takes less.
const LONGEST: Duration = Duration::from_secs(6 * 3_600);

/// Held by whoever packs, so that several processes do not do it at once.
const LOCK: &str = "berth/upkeep";

/// The bytes of a pack's index beside those of its objects, and those of each object.
const INDEX: u64 = 1_072;
const INDEXED: u64 = 28;

/// Returns the step that pays, by a look at three folders.
pub fn due(repository: &Path) -> Option<Step> {
    let objects = repository.join("objects");
    // One of 256 folders stands for all.
    let loose = fs::read_dir(objects.join("17")).map_or(0, Iterator::count) as u64 * 256;
    let mut packs = Vec::new();
    for entry in fs::read_dir(objects.join("pack")).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "idx") {
            continue;
        }
        // Objects kept for a while, or for ever, are packed already.
        if !["mtimes", "keep", "promisor"].iter().any(|also| path.with_extension(also).exists()) {
            let length = entry.metadata().map_or(0, |about| about.len());
            packs.push(length.saturating_sub(INDEX) / INDEXED);
        }
    }
    step(loose, &packs)
}

fn step(loose: u64, packs: &[u64]) -> Option<Step> {
    if loose <= MOST_LOOSE && packs.len() <= MOST_PACKS {
        return None;
    }
    let largest = packs.iter().copied().max().unwrap_or_default();
    let rest = loose + packs.iter().sum::<u64>() - largest;
    Some(if rest >= largest / 2 { Step::Whole } else { Step::Merge })
}

impl Step {
    /// The arguments of each `git` that the step takes.
    pub(super) fn commands(self, grace: Grace) -> Vec<Vec<String>> {
        let prune = match grace {
            Grace::Nothing => Some("--prune=now"),
            Grace::Hour => Some("--prune=1.hour.ago"),
            Grace::OfGit => None,
        };
        let commands = match self {
            Step::Merge => {
                vec![vec!["repack", "-d", "-l", "-q", "--geometric=2"], vec!["pack-refs", "--all"]]
            }
            Step::Whole => vec![["gc", "--quiet"].into_iter().chain(prune).collect()],
        };
        commands.into_iter().map(|args| args.into_iter().map(str::to_owned).collect()).collect()
    }
}

/// Takes a step in a repository of this machine, by its shared folder, beside whoever else works there. Does nothing
/// where another process is at it.
pub fn run(
    repository: &Path,
    step: Step,
    grace: Grace,
    limits: Limits,
    cancel: &Cancel,
) -> Result<(), TransportError> {
    let failed =
        |message: String| TransportError::Failed { remote: repository.display().to_string(), message };
    let unusable = |error: std::io::Error| failed(error.to_string());
    let repository = std::path::absolute(repository).map_err(unusable)?;
    fs::create_dir_all(repository.join("berth")).map_err(unusable)?;
    let lock = File::create(repository.join(LOCK)).map_err(unusable)?;
    if lock.try_lock().is_err() {
        return Ok(());
    }
    for args in step.commands(grace) {
        let (mut command, bounds) = environment::local(&repository, limits, LONGEST);
        command.args(args).stdin(std::process::Stdio::null());
        let ended = process::run_within(command, &bounds, cancel)?;
        match ended {
            ProcessEnd::Done { status, .. } if status.success() => {}
            ProcessEnd::Done { err, .. } => {
                return Err(failed(String::from_utf8_lossy(&err).trim().to_owned()));
            }
            ProcessEnd::Cancelled => return Ok(()),
            ProcessEnd::TimedOut | ProcessEnd::TooMuch => return Err(failed("it did not end".to_owned())),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_packs_are_merged_and_all_is_packed_when_they_add_up() {
        assert_eq!(step(6_700, &[1; 40]), None);
        assert_eq!(step(6_701, &[20_000]), Some(Step::Merge));
        assert_eq!(step(6_701, &[]), Some(Step::Whole));
        let packs = |small: u64| std::iter::repeat_n(small, 40).chain([10_000]).collect::<Vec<u64>>();
        assert_eq!(step(0, &packs(100)), Some(Step::Merge));
        assert_eq!(step(0, &packs(125)), Some(Step::Whole));
    }
}
