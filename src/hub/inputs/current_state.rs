//! Finds the current state: the rendered branch, wherever this clone has it.
//!
//! A clone as CI makes it has the branch as a remote-tracking ref, or not at all. Everything that goes on from
//! the current state finds it here, so that a state that was not fetched never passes for an empty one.

use berth_git::shared_refs::Refs;
use std::sync::Arc;

use super::error::InputError;
use super::silence::Hearing;
use crate::publish::{self, CurrentState, Processed, PublishError};
use berth_base::diag::{Diagnostic, Diagnostics};
use berth_base::model::{ClusterStatus, LabelKeys, Map, Shared};
use berth_git::shared_refs::{Statuses, read_statuses};
use berth_git::{CommitId, GitError, Repo};

const BRANCHES: &str = "refs/heads/";
/// The prefix of refs for states fetched from an address that the user gave.
pub const GIVEN: &str = "refs/berth-local/given/";
const TRACKING: &str = "refs/remotes/";

/// The place to look for the current state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// The rendered branch to go on from, in place of the one that is found.
    pub rendered: Option<String>,
    /// The refs beside it, in place of this clone's own.
    pub refs: Option<Refs>,
    /// Lets a missing state count as none at all.
    pub first: bool,
}

impl Search {
    /// Returns a search for callers that need no state: a missing one counts as none at all.
    pub fn leniently() -> Search {
        Search { first: true, ..Search::default() }
    }
}

/// The current state, and where it was found.
#[derive(Clone, Debug)]
pub struct LocatedState {
    /// The refs as this clone has them.
    pub refs: Refs,
    pub current: Option<CurrentState>,
    pub processed: Option<Processed>,
    /// The remote that the state was fetched from.
    pub remote: Option<String>,
}

/// The members' reports, as decisions read them.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    pub statuses: Map<String, Shared<ClusterStatus>>,
    /// Faults of the reports. They are shown but not published: nobody could repeat them later.
    pub odd: Diagnostics,
    /// The memory of a daemon that hears the members. Without it, the silences of the current state stay.
    pub(crate) hearing: Option<Arc<Hearing>>,
}

impl Reports {
    /// Reads what members report: the `labels` given and no others. Where a member has a status that cannot be
    /// read, the facts of the current state stand for it, within the same labels: nobody is evicted for that.
    pub fn read(
        repo: &Repo,
        refs: &Refs,
        labels: &LabelKeys,
        current: Option<&CurrentState>,
    ) -> Result<Reports, InputError> {
        Ok(Reports::of(repo, read_statuses(repo, refs)?, refs, labels, current)?)
    }

    /// Makes reports of statuses that were read.
    pub(crate) fn of(
        repo: &Repo,
        read: Statuses,
        refs: &Refs,
        labels: &LabelKeys,
        current: Option<&CurrentState>,
    ) -> Result<Reports, GitError> {
        let mut statuses = read.by_cluster.clone();
        for (cluster, fact) in current.iter().flat_map(|current| &current.state.facts) {
            if !statuses.contains_key(cluster) && read.may_hide(repo, refs, cluster)? {
                statuses.insert(cluster.clone(), fact.clone());
            }
        }
        let mut facts = current.map(|current| current.state.facts.cursor());
        statuses.update(|cluster, status| {
            let standing = match facts.as_mut().and_then(|facts| facts.get(cluster)) {
                // Of a status that cannot be read, what was read of it before still holds.
                Some(fact) => (fact.silent, fact.frozen, fact.heard && status.reported.is_none()),
                None => (None, None, false),
            };
            let is_as_it_should_be = status.taints.is_empty()
                && status.labels.keys().all(|key| labels.allow(key))
                && (status.silent, status.frozen, status.heard) == standing;
            if is_as_it_should_be {
                return None;
            }
            let mut status = status.clone();
            status.taints.clear();
            status.labels.retain(|key, _| labels.allow(key));
            (status.silent, status.frozen, status.heard) = standing;
            Some(status)
        });
        Ok(Reports { statuses, odd: read.diagnostics, hearing: None })
    }
}

/// The rendered branch's place in a clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub refs: Refs,
    pub commit: Option<CommitId>,
    pub remote: Option<String>,
}

impl Place {
    /// A branch that need not exist here.
    pub fn named(name: &str) -> Place {
        let refs = Refs { rendered: name.to_owned(), ..Refs::default() };
        Place { refs, commit: None, remote: None }
    }

    /// The branch as the daemon calls it: its name can stand in what it publishes.
    pub fn own_name(&self) -> String {
        match self.refs.rendered.strip_prefix(TRACKING).and_then(|rest| rest.split_once('/')) {
            Some((_, short)) => format!("{BRANCHES}{short}"),
            None if self.refs.rendered.starts_with(GIVEN) => Refs::default().rendered,
            None => self.refs.rendered.clone(),
        }
    }
}

impl LocatedState {
    pub fn find(repo: &Repo, search: &Search) -> Result<LocatedState, InputError> {
        let Place { refs, commit, remote } = locate(repo, search)?;
        let current = match commit {
            Some(commit) => Some(publish::read_current_at(repo, &refs.rendered, commit)?),
            None => None,
        };
        let unsure = current.as_ref().filter(|current| current.trailers.digest.is_none());
        if let Some(unsure) = unsure
            && repo.is_cut_between(None, unsure.commit)?
        {
            return Err(cut_off(repo, remote.as_deref(), &refs.rendered)?);
        }
        let processed = publish::read_processed(repo, &refs)?;
        let newer = processed.as_ref().and_then(|processed| processed.rendered);
        if let (Some(remote), Some(newer), Some(commit)) = (&remote, newer, commit)
            && newer != commit
            && (!repo.has_commit(newer) || repo.is_same_or_after(newer, commit)?)
        {
            let fetch = fetch_line(repo, remote, &Refs::default().rendered)?;
            return Err(InputError::Outdated { name: short(&refs.rendered).to_owned(), fetch });
        }
        Ok(LocatedState { refs, current, processed, remote })
    }

    /// The members' reports. A clone that has the state of a remote and no reports goes by those in the state.
    pub fn reports(&self, repo: &Repo, labels: &LabelKeys) -> Result<Reports, InputError> {
        let Reports { mut statuses, mut odd, hearing } =
            Reports::read(repo, &self.refs, labels, self.current.as_ref())?;
        let facts = self.current.as_ref().map(|current| &current.state.facts);
        if let (Some(remote), Some(facts)) = (&self.remote, facts)
            && statuses.is_empty()
            && !facts.is_empty()
        {
            statuses.clone_from(facts);
            statuses.values_mut().for_each(|status| status.labels.retain(|key, _| labels.allow(key)));
            let message = "the members' statuses are not in this clone; the facts in the current state \
                           are used";
            let hint = format!("fetch them: git fetch {remote} '+refs/berth/*:refs/berth/*'");
            odd.push(Diagnostic::note(message).hint(hint));
        }
        Ok(Reports { statuses, odd, hearing })
    }

    /// The state in a few words.
    pub fn words(&self) -> String {
        let Some(current) = &self.current else { return "nothing published yet".to_owned() };
        let (seq, commit) = (current.trailers.seq, current.commit.short());
        format!("the state {} number {seq} ({commit})", short(&self.refs.rendered))
    }

    /// The source commit that was seen last.
    pub fn last_source(&self) -> Option<CommitId> {
        let current = self.current.as_ref()?;
        let processed = self.processed.as_ref().filter(|seen| seen.rendered == Some(current.commit));
        processed.map(|seen| seen.source).or(current.trailers.source)
    }
}

/// A ref as people call it.
pub fn short(name: &str) -> &str {
    if name.starts_with(GIVEN) {
        return "at the address given";
    }
    let prefixes = [BRANCHES, TRACKING];
    prefixes.into_iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name)
}

/// Finds the rendered branch: this clone's own, else the remote's as last fetched.
pub fn locate(repo: &Repo, search: &Search) -> Result<Place, InputError> {
    let refs = search.refs.clone().unwrap_or_default();
    if let Some(wanted) = &search.rendered {
        return named(repo, wanted, refs);
    }
    let own = repo.read_ref(&refs.rendered)?;
    let remote = repo.remote_for(repo.head_branch()?.as_deref())?;
    let tracking = match &remote {
        Some(remote) => {
            Some(repo.tracking_ref(remote, &refs.rendered)?).filter(|name| *name != refs.rendered)
        }
        None => None,
    };
    let fetched = match &tracking {
        Some(name) => repo.read_ref(name)?,
        None => None,
    };
    match (own, fetched) {
        // An own branch that the remote's has left behind was only looked at once.
        (Some(own), Some(fetched)) if own != fetched && repo.is_same_or_after(fetched, own)? => {}
        (Some(_), _) => return Ok(Place { refs, commit: own, remote: None }),
        (None, Some(_)) => {}
        (None, None) if search.first => return Ok(Place { refs, commit: None, remote: None }),
        (None, None) => {
            refuse_missing(repo, &refs)?;
            return Ok(Place { refs, commit: None, remote: None });
        }
    }
    let rendered = tracking.unwrap_or_else(|| refs.rendered.clone());
    Ok(Place { refs: Refs { rendered, ..refs }, commit: fetched, remote })
}

/// The branch that somebody named, by its full name or without the folder it is in.
fn named(repo: &Repo, wanted: &str, refs: Refs) -> Result<Place, InputError> {
    for folder in ["", "refs/", BRANCHES, TRACKING] {
        let name = format!("{folder}{wanted}");
        if name.starts_with("refs/")
            && let Some(commit) = repo.read_ref(&name)?
        {
            let kept = name.strip_prefix(TRACKING).and_then(|rest| rest.split_once('/'));
            let remote = kept.map(|(remote, _)| remote.to_owned());
            return Ok(Place { refs: Refs { rendered: name, ..refs }, commit: Some(commit), remote });
        }
    }
    Err(InputError::NoSuchState { wanted: wanted.to_owned() })
}

/// Refuses to take a missing state for none at all, where there are signs of one.
fn refuse_missing(repo: &Repo, refs: &Refs) -> Result<(), InputError> {
    refuse_unfetched(repo, refs)?;
    publish::refuse_gone(repo, refs).map_err(InputError::Gone)
}

/// Refuses to go on without a state where a remote may have one that was not fetched.
pub(crate) fn refuse_unfetched(repo: &Repo, refs: &Refs) -> Result<(), InputError> {
    let remotes = repo.remotes()?;
    let Some(remote) = repo.remote_for(repo.head_branch()?.as_deref())? else {
        return if remotes.is_empty() { Ok(()) } else { Err(InputError::NoRemote { remotes }) };
    };
    // A bare clone or a mirror has all branches of its remote.
    if repo.tracking_ref(&remote, &refs.rendered)? == refs.rendered && !repo.is_shallow() {
        return Ok(());
    }
    let fetch = fetch_line(repo, &remote, &refs.rendered)?;
    Err(InputError::NoState { remote, fetch })
}

/// Refuses to begin a second history where a remote has one.
pub fn refuse_second(repo: &Repo, refs: &Refs) -> Result<(), InputError> {
    for remote in repo.remotes()? {
        let tracking = repo.tracking_ref(&remote, &refs.rendered)?;
        if tracking != refs.rendered && repo.read_ref(&tracking)?.is_some() {
            let name = refs.rendered.clone();
            return Err(PublishError::Second { name, tracking, remote }.into());
        }
    }
    Ok(())
}

/// The error for a history that is needed and was not fetched.
pub fn cut_off(repo: &Repo, remote: Option<&str>, name: &str) -> Result<InputError, InputError> {
    let known = repo.remote_for(repo.head_branch()?.as_deref())?;
    let fetch = match remote.or(known.as_deref()) {
        Some(remote) => fetch_line(repo, remote, &Refs::default().rendered)?,
        None => "git fetch --unshallow".to_owned(),
    };
    Ok(InputError::CutOff { what: short(name).to_owned(), fetch })
}

/// The command that brings everything that a plan needs into this clone.
fn fetch_line(repo: &Repo, remote: &str, rendered: &str) -> Result<String, InputError> {
    let to = repo.tracking_ref(remote, rendered)?;
    let usual = to == format!("{TRACKING}{remote}/{}", short(rendered));
    let depth = if repo.is_shallow() { " --unshallow" } else { "" };
    // The source branch may be missing too.
    let branches = match usual {
        true => format!("'+{BRANCHES}*:{TRACKING}{remote}/*'"),
        false => format!("+{rendered}:{to}"),
    };
    Ok(format!("git fetch{depth} {remote} {branches} '+refs/berth/*:refs/berth/*'"))
}
