//! Repacks a repository, so that it stays small and fast after any number of small publications.
//!
//! `git` itself does the work, if it is installed. Two steps keep the work proportional to the additions: small packs
//! and loose objects are merged often; everything is repacked when the rest has half as many objects as the largest
//! pack. So an object is repacked about once each time the repository doubles.
//!
//! Merging removes nothing. Repacking everything removes objects that have been unreachable for a while, see
//! [`Grace`].

use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use super::process::{self, Cancel, ProcessEnd};
use super::{Limits, TransportError, environment};

/// A step of repacking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Loose objects and small packs become one pack.
    Merge,
    /// Everything becomes one pack, without expired unreachable objects.
    Whole,
}

/// The time for which an unreachable object is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grace {
    /// No time: no other process writes here.
    Nothing,
    /// Far longer than any writer needs between its first object and its ref.
    Hour,
    /// The time in the repository's settings, or Git's default.
    OfGit,
}

/// The number of loose objects that `git gc --auto` tolerates.
const MOST_LOOSE: u64 = 6_700;
/// The number of packs, limited since the look-up of a new object searches all of them.
const MOST_PACKS: usize = 40;

/// Longer than repacking any repository takes.
const LONGEST: Duration = Duration::from_secs(6 * 3_600);

/// The lock of the process that repacks.
const LOCK: &str = "berth/upkeep";

/// The bytes of an index without its objects, and per object.
const INDEX: u64 = 1_072;
const INDEXED: u64 = 28;

/// Returns the step that is worthwhile, after listing two folders.
pub fn due(repository: &Path) -> Option<Step> {
    let objects = repository.join("objects");
    // A sample: one of 256 folders.
    let loose = fs::read_dir(objects.join("17")).map_or(0, Iterator::count) as u64 * 256;
    let mut packs = Vec::new();
    for entry in fs::read_dir(objects.join("pack")).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "idx") {
            continue;
        }
        // Packs of unreachable or protected objects do not count.
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
    /// Returns the arguments of each `git` that the step runs.
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

/// Runs a step in a repository on this machine, by its shared folder, while others may use it. Does nothing if
/// another process is repacking it.
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
