//! Previews: for each branch under review, a branch that shows what merging it would publish.
//!
//! - [`rule`]: the refs that get one. [`draft`]: one preview.
//!
//! A preview follows its branch and the source. It is made after a pass and never in its place, so that a fault of a
//! preview costs no publication.

mod draft;
mod rule;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::error::PassError;
use super::remote::Mirror;
use super::settings::Settings;
use super::source_branch::find_source;
use crate::publish;
use berth_base::model::{Map, Timestamp};
use berth_git::{CommitId, GitError, Repo, is_valid_ref};
use draft::{Base, Named, draft};

pub use rule::PreviewRule;

/// The place of a remote's branches under review in its local copy.
pub(super) const COPIES: &str = "refs/berth-local/reviewed/";

/// The time after which further previews wait for the next look, so that passes need not.
const LONGEST: Duration = Duration::from_secs(10);

/// The previews that this process made. One that it did not make is made again: anybody who may push branches could
/// have written it.
#[derive(Debug, Default)]
pub struct Previews {
    made: BTreeMap<String, Made>,
}

#[derive(Debug)]
struct Made {
    head: CommitId,
    onto: CommitId,
    commit: CommitId,
}

/// A change of the previews.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreviewChange {
    Made {
        of: String,
        on: String,
        commit: CommitId,
    },
    Removed {
        on: String,
    },
    /// There is none, or an old one, for this reason.
    Failed {
        of: String,
        why: String,
    },
}

/// A branch under review.
struct Reviewed {
    /// The ref's name at the remote.
    name: String,
    head: CommitId,
    seconds: i64,
}

impl Previews {
    /// Brings the previews up to date with the branches, right after a fetch where there is a remote. `all` takes the
    /// time for all of them.
    pub fn follow(
        &mut self,
        settings: &Settings,
        clock: Timestamp,
        mirror: Option<&mut Mirror>,
        all: bool,
    ) -> Result<Vec<PreviewChange>, PassError> {
        if settings.previews.is_off() {
            return Ok(Vec::new());
        }
        let changes = self.refresh(settings, clock, all)?;
        if let Some(mirror) = mirror {
            mirror.push_previews(settings)?;
        }
        Ok(changes)
    }

    /// Brings the previews up to date here.
    fn refresh(
        &mut self,
        settings: &Settings,
        clock: Timestamp,
        all: bool,
    ) -> Result<Vec<PreviewChange>, PassError> {
        let begun = Instant::now();
        let repo = Repo::open(&settings.repo)?;
        let (source, onto) = find_source(&repo, settings)?;
        let onto = Named { name: source.strip_prefix("refs/heads/").unwrap_or(&source), commit: onto };
        let wanted = reviewed(&repo, settings, (&source, onto.commit))?;
        let there = repo.list_refs(&settings.refs.preview)?;
        self.made.retain(|name, _| wanted.contains_key(name));
        let mut changes = Vec::new();
        // Those of branches that are gone first: their names may be in the way.
        for (on, old) in &there {
            let name = on.strip_prefix(&settings.refs.preview).unwrap_or_default();
            if !wanted.contains_key(name) {
                repo.delete_ref(on, *old)?;
                changes.push(PreviewChange::Removed { on: on.clone() });
            }
        }
        let mut base = None;
        for (name, reviewed) in &wanted {
            let failed = |error: PassError| PreviewChange::Failed {
                of: reviewed.name.clone(),
                why: error.to_string(),
            };
            let on = format!("{}{name}", settings.refs.preview);
            let known = self.made.get(name);
            let known = known.filter(|made| (made.head, made.onto) == (reviewed.head, onto.commit));
            let commit = match known.filter(|made| repo.has_commit(made.commit)) {
                Some(made) => made.commit,
                None if !all && begun.elapsed() > LONGEST => continue,
                None => {
                    let head = Named { name, commit: reviewed.head };
                    let base = match &mut base {
                        Some(base) => base,
                        empty => empty.insert(Base {
                            current: publish::read_current(&repo, &settings.refs.rendered)?,
                            processed: publish::read_processed(&repo, &settings.refs)?,
                        }),
                    };
                    match draft(&repo, settings, base, (&head, &onto), clock) {
                        Ok(commit) => commit,
                        Err(error) => {
                            changes.push(failed(error));
                            continue;
                        }
                    }
                }
            };
            self.made.insert(name.clone(), Made { head: reviewed.head, onto: onto.commit, commit });
            let old = there.get(&on).copied();
            if old != Some(commit) {
                changes.push(match repo.move_ref(&on, old, commit) {
                    Ok(()) => PreviewChange::Made { of: reviewed.name.clone(), on, commit },
                    Err(error) => failed(error.into()),
                });
            }
        }
        Ok(changes)
    }
}

/// Finds the branches under review, by the names of their previews: the newest that are not merged.
fn reviewed(
    repo: &Repo,
    settings: &Settings,
    (source, onto): (&str, CommitId),
) -> Result<BTreeMap<String, Reviewed>, PassError> {
    let rule = &settings.previews;
    let mut newest = Vec::new();
    for prefix in rule.prefixes() {
        for (name, head) in heads(repo, settings, prefix)? {
            let own = [source, &settings.refs.rendered];
            let preview = rule.name(&name).filter(|_| !own.contains(&name.as_str()));
            let preview =
                preview.filter(|preview| is_valid_ref(&format!("{}{preview}", settings.refs.preview)));
            if let Some(preview) = preview.map(str::to_owned) {
                let seconds = repo.commit(head)?.seconds;
                newest.push((preview, Reviewed { name, head, seconds }));
            }
        }
    }
    // A branch comes before another ref whose preview would have the same name.
    newest.sort_by(|(a, one), (b, other)| (a, &one.name).cmp(&(b, &other.name)));
    newest.dedup_by(|(later, _), (earlier, _)| later == earlier);
    newest.sort_by_key(|(_, one)| std::cmp::Reverse(one.seconds));
    newest.truncate(rule.most());
    let mut found = BTreeMap::new();
    for (preview, one) in newest {
        if !repo.is_same_or_after(onto, one.head)? {
            found.insert(preview, one);
        }
    }
    Ok(found)
}

/// Lists the heads whose names begin so, by their names at the remote.
fn heads(repo: &Repo, settings: &Settings, prefix: &str) -> Result<Map<String, CommitId>, GitError> {
    if !settings.is_copy {
        return repo.list_refs(prefix);
    }
    let copies = repo.list_refs(&copy_of(prefix))?;
    Ok(copies.into_iter().map(|(name, head)| (format!("refs/{}", &name[COPIES.len()..]), head)).collect())
}

/// The name of a remote's ref in its local copy.
pub(super) fn copy_of(name: &str) -> String {
    format!("{COPIES}{}", name.strip_prefix("refs/").unwrap_or(name))
}
