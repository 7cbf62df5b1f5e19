//! Removes old tags of sequences, and the manifests that only they reach, with their signatures.
//!
//! Registries free the bytes by their own garbage collection. A registry without deletion keeps everything.

use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tracing::debug;

use super::Publisher;
use crate::client::{Digest, Repository};
use crate::error::RegistryError;
use crate::pointer::SEQUENCE;
use berth_base::model::Timestamp;
use berth_git::Repo;
use berth_git::shared_refs::Refs;
use berth_git::shared_refs::trailers::{SEQ, paragraph};

/// The tag endings of a manifest's signatures and attestations, and of the index of its referrers.
const SIGNATURES: [&str; 3] = ["", ".sig", ".att"];

/// The sequences of each cluster to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The newest ones, up to this number.
    Newest(usize),
    /// Those that were current at some moment within this time.
    Within(Duration),
}

impl FromStr for Keep {
    type Err = String;

    fn from_str(text: &str) -> Result<Keep, String> {
        let wrong = || "write it as a number of publications, or as a time such as `30d` or `12h`".to_owned();
        if let Ok(number) = text.parse::<usize>() {
            return if number > 0 { Ok(Keep::Newest(number)) } else { Err("keep at least 1".to_owned()) };
        }
        let (number, seconds) = match text.char_indices().last() {
            Some((at, 'd')) => (text.get(..at), 86_400),
            Some((at, 'h')) => (text.get(..at), 3_600),
            _ => return Err(wrong()),
        };
        let number: u64 =
            number.and_then(|number| number.parse().ok()).filter(|number| *number > 0).ok_or_else(wrong)?;
        number
            .checked_mul(seconds)
            .map(|seconds| Keep::Within(Duration::from_secs(seconds)))
            .ok_or_else(wrong)
    }
}

impl Publisher {
    /// Removes old manifests from one repository. A failure is harmless: the next publication tries again.
    pub(super) fn collect(&self, repository: &Repository, current: Digest, old_pointer: Option<Digest>) {
        let Some(keep) = self.keep.filter(|_| !self.deletes_nothing.load(Ordering::Relaxed)) else { return };
        match self.try_collect(repository, keep, current, old_pointer) {
            Ok(true) => {}
            Ok(false) => self.deletes_nothing.store(true, Ordering::Relaxed),
            Err(error) => debug!(%error, repository = repository.name(), "old tags could not be removed"),
        }
    }

    /// Returns false if the registry supports no deletion.
    fn try_collect(
        &self,
        repository: &Repository,
        keep: Keep,
        current: Digest,
        old_pointer: Option<Digest>,
    ) -> Result<bool, RegistryError> {
        if let Some(old) = old_pointer
            && !repository.delete_manifest(&old.to_string())?
        {
            return Ok(false);
        }
        let tags = repository.tags()?;
        let mut sequences: Vec<u64> =
            tags.iter().filter_map(|tag| tag.strip_prefix(SEQUENCE)?.parse().ok()).collect();
        sequences.sort_unstable_by(|one, other| other.cmp(one));
        let kept = match keep {
            Keep::Newest(number) => number,
            Keep::Within(_) => {
                let oldest = self.oldest.load(Ordering::Relaxed);
                // The preceding sequence was current when the time began.
                sequences.iter().filter(|sequence| **sequence >= oldest).count() + 1
            }
        };
        let (kept, old) = sequences.split_at(kept.min(sequences.len()));
        if old.is_empty() {
            return Ok(true);
        }
        let digest = |sequence: &u64| repository.manifest_digest(&format!("{SEQUENCE}{sequence}"));
        let mut needed = BTreeSet::from([current]);
        for sequence in kept {
            needed.extend(digest(sequence)?);
        }
        for sequence in old {
            let Some(digest) = digest(sequence)? else { continue };
            let can_untag = repository.delete_manifest(&format!("{SEQUENCE}{sequence}"))?;
            if needed.contains(&digest) {
                continue;
            }
            for referrer in repository.referrers(digest)?.iter().filter_map(|referrer| referrer.digest()) {
                repository.delete_manifest(&referrer.to_string())?;
            }
            for ending in SIGNATURES {
                let tag = format!("{}{ending}", digest.tag());
                if tags.contains(&tag)
                    && let Some(of_tag) = repository.manifest_digest(&tag)?
                {
                    repository.delete_manifest(&of_tag.to_string())?;
                }
            }
            let deleted = repository.delete_manifest(&digest.to_string())?;
            if !deleted && !can_untag {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Finds the oldest sequence published within the time to keep.
    pub(super) fn look_back(&self, repo: &Repo) {
        let Some(Keep::Within(time)) = self.keep else { return };
        let since =
            Timestamp::now().as_second().saturating_sub(i64::try_from(time.as_secs()).unwrap_or(i64::MAX));
        let Ok(Some(tip)) = repo.read_ref(&Refs::default().rendered) else { return };
        let young = repo.first_parents(tip).take_while(|commit| commit.seconds >= since);
        let sequence =
            |message: &str| paragraph(message).find(|(name, _)| *name == SEQ)?.1.parse::<u64>().ok();
        // Without a publication within the time, only the newest one was current.
        let oldest = young.filter_map(|commit| sequence(&commit.message)).last().unwrap_or(u64::MAX);
        self.oldest.store(oldest, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_a_number_or_a_time() {
        assert_eq!("10".parse(), Ok(Keep::Newest(10)));
        assert_eq!("30d".parse(), Ok(Keep::Within(Duration::from_secs(30 * 86_400))));
        assert_eq!("12h".parse(), Ok(Keep::Within(Duration::from_secs(12 * 3_600))));
        for wrong in ["", "0", "-1", "0d", "d", "1m", "1.5d", "99999999999999999999d", "1é"] {
            assert!(wrong.parse::<Keep>().is_err(), "{wrong}");
        }
    }
}
