//! Previews: for each branch under review, a branch that shows what merging it would publish.
//!
//! - [`PreviewRule`]: the refs that get a preview, and its name. [`draft`]: one preview, and the thread that makes it.
//!
//! A preview follows its branch and the source. It is made after a pass and never instead of one, so that its fault
//! costs no publication. A slow preview continues during later passes, and is collected after one of them.

mod draft;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::branches::find_source;
use super::error::PassError;
use super::remote::Mirror;
use super::settings::Settings;
use crate::publish;
use berth_base::model::{Map, Timestamp};
use berth_base::text::fits;
use berth_git::{CommitId, GitError, Repo, is_valid_ref};
use draft::{Base, Drafting, LONGEST, Named, Progress, draft};

/// The local refs into which a remote's branches under review are fetched.
const COPIES: &str = "refs/berth-local/reviewed/";

/// The time for previews after each pass. Remaining previews are made later, so that passes need not wait.
const PATIENCE: Duration = Duration::from_secs(5);

/// The previews made by this process. Others are made again: anyone who may push branches could have written them.
#[derive(Debug, Default)]
pub struct Previews {
    made: BTreeMap<String, MadePreview>,
    /// The preview in progress; there is one at a time.
    under_way: Option<Drafting<(String, Merge), Result<CommitId, PassError>>>,
}

/// A merge of a branch into the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Merge {
    head: CommitId,
    onto: CommitId,
}

#[derive(Debug)]
struct MadePreview {
    merge: Merge,
    /// `None` if making it took too long.
    commit: Option<CommitId>,
}

/// A change to a preview.
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
    /// The preview is missing or outdated, for this reason.
    Failed {
        of: String,
        why: String,
    },
}

/// The branches under review, by the names of their previews.
type Wanted = BTreeMap<String, Reviewed>;

/// A branch under review.
struct Reviewed {
    /// The ref's name at the remote.
    name: String,
    head: CommitId,
    seconds: i64,
}

/// One update of all previews.
struct Round<'a> {
    repo: &'a Repo,
    settings: &'a Settings,
    clock: Timestamp,
    all: bool,
    begun: Instant,
    onto: &'a Named,
    wanted: &'a Wanted,
    /// The state on which all previews of an update are based, once it was read.
    base: Option<Arc<Base>>,
}

impl Round<'_> {
    fn base(&mut self) -> Result<Arc<Base>, PassError> {
        if let Some(base) = &self.base {
            return Ok(base.clone());
        }
        Ok(self.base.insert(Arc::new(Base::read(self.repo, self.settings)?)).clone())
    }
}

impl Previews {
    /// Updates the previews after a fetch, if there is a remote. `all` waits until all of them are made.
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

    /// Updates the local previews.
    fn refresh(
        &mut self,
        settings: &Settings,
        clock: Timestamp,
        all: bool,
    ) -> Result<Vec<PreviewChange>, PassError> {
        let begun = Instant::now();
        let repo = Repo::open(&settings.repo)?;
        let (source, onto) = find_source(&repo, settings)?;
        let name = source.strip_prefix("refs/heads/").unwrap_or(&source).to_owned();
        let onto = Named { name, commit: onto };
        let wanted = reviewed(&repo, settings, (&source, onto.commit))?;
        let there = repo.list_refs(&settings.refs.preview)?;
        self.made.retain(|name, _| wanted.contains_key(name));
        let mut changes = Vec::new();
        // Removes the previews of deleted branches first, because their names may block new ones.
        for (on, old) in &there {
            let name = on.strip_prefix(&settings.refs.preview).unwrap_or_default();
            if !wanted.contains_key(name) {
                repo.delete_ref(on, *old)?;
                changes.push(PreviewChange::Removed { on: on.clone() });
            }
        }
        let mut round =
            Round { repo: &repo, settings, clock, all, begun, onto: &onto, wanted: &wanted, base: None };
        for (name, reviewed) in &wanted {
            let failed = |why: String| PreviewChange::Failed { of: reviewed.name.clone(), why };
            let on = format!("{}{name}", settings.refs.preview);
            let merge = Merge { head: reviewed.head, onto: onto.commit };
            let commit = match self.drafted(&mut round, name, merge)? {
                Some(Ok(commit)) => commit,
                Some(Err(why)) => {
                    changes.push(failed(why));
                    continue;
                }
                None => continue,
            };
            self.made.insert(name.clone(), MadePreview { merge, commit: Some(commit) });
            let old = there.get(&on).copied();
            if old != Some(commit) {
                changes.push(match repo.move_ref(&on, old, commit) {
                    Ok(()) => PreviewChange::Made { of: reviewed.name.clone(), on, commit },
                    Err(error) => failed(error.to_string()),
                });
            }
        }
        Ok(changes)
    }

    /// Returns the commit of a preview, or the reason why it failed. `None` if it is made later, or was given up.
    fn drafted(
        &mut self,
        round: &mut Round<'_>,
        name: &str,
        merge: Merge,
    ) -> Result<Option<Result<CommitId, String>>, PassError> {
        let known = self.made.get(name).filter(|made| made.merge == merge);
        match known.filter(|made| made.commit.is_none_or(|commit| round.repo.has_commit(commit))) {
            Some(MadePreview { commit: None, .. }) => return Ok(None),
            Some(MadePreview { commit: Some(commit), .. }) => return Ok(Some(Ok(*commit))),
            None => {}
        }
        let patience = if round.all { LONGEST } else { PATIENCE.saturating_sub(round.begun.elapsed()) };
        if !self.is_free((name, merge), patience, round.wanted) {
            return Ok(None);
        }
        if self.under_way.is_none() {
            let head = Named { name: name.to_owned(), commit: merge.head };
            self.start(round.settings, round.base()?, (head, round.onto.clone()), round.clock)?;
        }
        let Some(drafting) = &mut self.under_way else { return Ok(None) };
        let outcome = drafting.wait(patience, LONGEST);
        // A process that ends soon abandons a preview that takes too long.
        if round.all || !matches!(outcome, Progress::UnderWay | Progress::GivenUp) {
            self.under_way = None;
        }
        Ok(match outcome {
            Progress::Done(Ok(commit)) => Some(Ok(commit)),
            Progress::Done(Err(error)) => Some(Err(error.to_string())),
            Progress::UnderWay => None,
            Progress::Gone => Some(Err("berth crashed while making it, a bug".to_owned())),
            Progress::GivenUp => {
                self.made.insert(name.to_owned(), MadePreview { merge, commit: None });
                Some(Err(format!("it takes more than {} seconds", LONGEST.as_secs())))
            }
        })
    }

    /// Reports whether this preview may be made now, because no other one is in progress.
    fn is_free(&mut self, subject: (&str, Merge), patience: Duration, wanted: &Wanted) -> bool {
        let Some(drafting) = &mut self.under_way else { return !patience.is_zero() };
        let (name, Merge { head, .. }) = &drafting.subject;
        if subject == (name, drafting.subject.1) {
            return true;
        }
        let has_turn = wanted.get(name).is_some_and(|reviewed| reviewed.head == *head)
            && drafting.subject.1.onto == subject.1.onto;
        // A preview in progress continues while it is wanted. An unwanted one is dropped as soon as it ends.
        if has_turn
            || matches!(drafting.wait(Duration::ZERO, LONGEST), Progress::UnderWay | Progress::GivenUp)
        {
            return false;
        }
        self.under_way = None;
        !patience.is_zero()
    }

    fn start(
        &mut self,
        settings: &Settings,
        base: Arc<Base>,
        (head, onto): (Named, Named),
        clock: Timestamp,
    ) -> Result<(), PassError> {
        let subject = (head.name.clone(), Merge { head: head.commit, onto: onto.commit });
        let settings = settings.clone();
        let work = move || {
            let repo = Repo::open(&settings.repo)?;
            draft(&repo, &settings, &base, (&head, &onto), clock)
        };
        self.under_way = Some(Drafting::start(subject, work).map_err(|error| GitError::Failed {
            doing: "starting a preview".to_owned(),
            message: error.to_string(),
        })?);
        Ok(())
    }
}

impl Base {
    fn read(repo: &Repo, settings: &Settings) -> Result<Base, PassError> {
        Ok(Base {
            current: publish::read_current(repo, &settings.refs.rendered)?,
            processed: publish::read_processed(repo, &settings.refs)?,
        })
    }
}

/// Finds the branches under review, by the names of their previews: the newest unmerged ones.
fn reviewed(repo: &Repo, settings: &Settings, (source, onto): (&str, CommitId)) -> Result<Wanted, PassError> {
    let rule = &settings.previews;
    let mut newest = Vec::new();
    for prefix in rule.prefixes() {
        for (name, head) in heads(repo, settings, prefix)? {
            let own = [Some(source), Some(&settings.refs.rendered), settings.page.as_deref()];
            let preview = rule.name(&name).filter(|_| !own.contains(&Some(name.as_str())));
            let preview =
                preview.filter(|preview| is_valid_ref(&format!("{}{preview}", settings.refs.preview)));
            if let Some(preview) = preview.map(str::to_owned) {
                let seconds = repo.commit(head)?.seconds;
                newest.push((preview, Reviewed { name, head, seconds }));
            }
        }
    }
    // If a branch and another ref have the same preview name, the branch wins.
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

/// Lists the heads with this prefix, by their names at the remote.
fn heads(repo: &Repo, settings: &Settings, prefix: &str) -> Result<Map<String, CommitId>, GitError> {
    if !settings.is_copy {
        return repo.list_refs(prefix);
    }
    let copies = repo.list_refs(&copy_of(prefix))?;
    Ok(copies.into_iter().map(|(name, head)| (format!("refs/{}", &name[COPIES.len()..]), head)).collect())
}

/// Returns the local ref for a remote's ref.
pub(super) fn copy_of(name: &str) -> String {
    format!("{COPIES}{}", name.strip_prefix("refs/").unwrap_or(name))
}

const REFS: &str = "refs/";
const BRANCHES: &str = "refs/heads/";
/// The branches that berth writes itself.
const OWN: &str = "refs/heads/berth/";

/// Selects the refs that get a preview. Set by flags and environment only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreviewRule {
    /// Full names of refs, in which `*` matches any text.
    patterns: Vec<String>,
    /// The maximum number of previews.
    most: usize,
}

impl PreviewRule {
    /// Reads patterns: short names for branches, full names for other refs.
    pub fn new(patterns: &[String], most: usize) -> PreviewRule {
        let full = |pattern: &String| match pattern.starts_with(REFS) {
            true => pattern.clone(),
            false => format!("{BRANCHES}{pattern}"),
        };
        PreviewRule { patterns: patterns.iter().map(full).collect(), most }
    }

    pub(crate) fn is_off(&self) -> bool {
        self.patterns.is_empty()
    }

    fn most(&self) -> usize {
        self.most
    }

    /// Returns the prefixes of all matching names. None of them is a prefix of another.
    pub(crate) fn prefixes(&self) -> Vec<&str> {
        let beginning = |pattern: &'_ str| pattern.find('*').map_or(pattern.len(), |star| star);
        let mut found: Vec<&str> = self.patterns.iter().map(|one| &one[..beginning(one)]).collect();
        found.sort_unstable();
        // In sorted order, names with a common prefix directly follow that prefix.
        found.dedup_by(|later, earlier| later.starts_with(*earlier));
        found
    }

    /// Returns the name of a ref's preview below the previews' prefix, if the ref gets one.
    fn name<'n>(&self, full: &'n str) -> Option<&'n str> {
        let is_wanted = self.patterns.iter().any(|pattern| fits(pattern, full));
        let is_own = full.starts_with(OWN) || format!("{full}/") == OWN;
        let short = full.strip_prefix(BRANCHES).or_else(|| full.strip_prefix(REFS));
        short.filter(|short| is_wanted && !is_own && !short.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_get_previews_by_pattern_and_other_refs_by_their_full_names_alone() {
        let rule = |patterns: &[&str]| {
            PreviewRule::new(&patterns.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>(), 9)
        };
        let all = rule(&["*"]);
        for (full, name) in [
            ("refs/heads/fix", Some("fix")),
            ("refs/heads/team/fix", Some("team/fix")),
            ("refs/heads/berth/rendered", None),
            ("refs/heads/berth/preview/fix", None),
            ("refs/heads/berth", None),
            ("refs/heads/berthing", Some("berthing")),
            ("refs/pull/7/head", None),
            ("refs/berth/clusters/oslo", None),
        ] {
            assert_eq!(all.name(full), name, "{full}");
        }
        let some = rule(&["team/*", "hotfix", "refs/pull/*/head"]);
        assert_eq!(some.name("refs/heads/team/fix"), Some("team/fix"));
        assert_eq!(some.name("refs/heads/hotfix"), Some("hotfix"));
        assert_eq!(some.name("refs/heads/hotfixes"), None);
        assert_eq!(some.name("refs/pull/7/head"), Some("pull/7/head"));
        assert_eq!(some.name("refs/pull/7/merge"), None);
        assert_eq!(some.prefixes(), ["refs/heads/hotfix", "refs/heads/team/", "refs/pull/"]);
        assert_eq!(rule(&["a*", "a*b", "*"]).prefixes(), ["refs/heads/"]);
        assert!(rule(&[]).is_off());
    }
}
