//! A remote repository, its local copy, and the known state of its refs.
//!
//! The local repository is a cache. The next fetch overwrites everything in it that the remote lacks, so a failed
//! push is simply repeated. Local refs move only from fetched values.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tracing::{debug, warn};

use super::error::PassError;
use super::previews;
use super::settings::Settings;
use berth_base::diag::{Diagnostic, Pos, did_you_mean};
use berth_git::transport::{RefPush, Transport, TransportError, Want, WorkingCopy, upkeep};
use berth_git::{CommitId, GitError, Repo, is_valid_ref};

const BRANCHES: &str = "refs/heads/";

/// The newest rendered commit seen at the remote. This ref is never pushed.
const NEWEST: &str = "refs/berth-local/rendered";

/// The interval at which refs that only berth writes are also fetched.
const CHECK_ALL: Duration = Duration::from_secs(600);

/// The shortest time between two checks of the local repository, each of which reads all of it.
const EXAMINE: Duration = Duration::from_secs(3600);

/// A remote, its local copy, and the known state of its refs.
#[derive(Debug)]
pub struct Mirror {
    transport: Box<dyn Transport>,
    copy: WorkingCopy,
    /// The remote of the source, if it is another one.
    source_remote: Option<Box<dyn Transport>>,
    /// The remote of the members' statuses, if it is another one.
    reports: Option<Box<dyn Transport>>,
    /// The reason why the newest statuses could not be fetched.
    reports_error: Option<TransportError>,
    /// Set while statuses sent by POST cannot be stored.
    refuses_posts: Arc<AtomicBool>,
    /// The source's full name, once known.
    source: Option<String>,
    /// The remote's refs, as far as known.
    there: BTreeMap<String, CommitId>,
    /// The time of the last fetch of all refs, including those that only berth writes.
    checked: Option<Instant>,
    /// The time of the last check of the local repository for damage.
    examined: Option<Instant>,
}

impl Mirror {
    pub fn new(transport: Box<dyn Transport>, copy: WorkingCopy) -> Mirror {
        Mirror {
            transport,
            copy,
            source_remote: None,
            reports: None,
            reports_error: None,
            refuses_posts: Arc::default(),
            source: None,
            there: BTreeMap::new(),
            checked: None,
            examined: None,
        }
    }

    /// Reads the source from another remote, if there is one.
    #[must_use]
    pub fn reading_from(self, source_remote: Option<Box<dyn Transport>>) -> Mirror {
        Mirror { source_remote, ..self }
    }

    /// The remote of the source.
    fn of_source(&self) -> &dyn Transport {
        self.source_remote.as_deref().unwrap_or(&*self.transport)
    }

    /// Reads members' statuses from another remote, if there is one.
    #[must_use]
    pub fn hearing_from(self, reports: Option<Box<dyn Transport>>) -> Mirror {
        Mirror { reports, ..self }
    }

    /// Reports whether the newest statuses are known, so that a missing one means a silent member.
    pub(super) fn hears(&self) -> bool {
        self.reports_error.is_none() && !self.refuses_posts.load(Ordering::SeqCst)
    }

    /// Sets the flag that is true while statuses sent by POST cannot be stored.
    pub(super) fn listen_to(&mut self, refuses_posts: Arc<AtomicBool>) {
        self.refuses_posts = refuses_posts;
    }

    /// Returns the path of the local repository.
    pub fn path(&self) -> &std::path::Path {
        self.copy.path()
    }

    /// Returns the remote as messages may show it.
    pub fn shown(&self) -> &str {
        self.transport.shown()
    }

    /// Fetches the remote's refs into the local repository.
    pub fn fetch(&mut self, settings: &Settings) -> Result<(), PassError> {
        settings.progress.begin("fetching");
        let refs = &settings.refs;
        let source = self.source_name(settings)?;
        let mut edited = vec![Want::same(&source)];
        let mut wants: Vec<Want> = [&refs.rendered, &refs.processed].map(|prefix| Want::all(prefix)).into();
        let of_members = [&refs.status, &refs.statuses].map(|prefix| Want::all(prefix));
        if self.reports.is_none() {
            wants.extend(of_members.clone());
        }
        let all = self.checked.is_none_or(|at| at.elapsed() > CHECK_ALL);
        if all {
            wants.extend(
                [&refs.clusters, &refs.cluster_branches, &refs.report].map(|prefix| Want::all(prefix)),
            );
        }
        if !settings.previews.is_off() {
            let reviewed = settings.previews.prefixes();
            let here =
                |there: &&str| Want::All { there: (*there).to_owned(), here: previews::copy_of(there) };
            edited.extend(reviewed.iter().map(here));
            wants.push(Want::all(&refs.preview));
        }
        if self.source_remote.is_some() {
            // The state must be fetched before the source: a source fetched earlier could be older than the state's
            // own.
            self.transport.fetch(self.copy.path(), &wants, None)?;
        } else {
            edited.extend(wants);
        }
        match self.of_source().fetch(self.copy.path(), &edited, None) {
            Err(TransportError::NoSuchRef { name, .. }) if name == source => {
                // HEAD may name another branch now.
                self.source = None;
                return Err(self.no_source(&name));
            }
            done => done?,
        }
        // If new statuses cannot be fetched, the last ones count, and edits are still published.
        let reports = self.reports.as_ref();
        let heard = reports.map(|reports| reports.fetch(self.copy.path(), &of_members, None));
        self.reports_error = heard.and_then(Result::err);
        let repo = Repo::open(self.copy.path())?;
        let known = [&refs.rendered, &refs.processed, &refs.preview];
        for prefix in known
            .into_iter()
            .chain([&refs.clusters, &refs.cluster_branches, &refs.report].into_iter().filter(|_| all))
        {
            self.there.retain(|name, _| !name.starts_with(prefix.as_str()));
            self.there.extend(repo.list_refs(prefix)?);
        }
        if all {
            self.checked = Some(Instant::now());
        }
        self.refuse_older(&repo, settings)
    }

    /// Refuses a rendered branch that moved back, which is a mistake or an attack.
    fn refuse_older(&self, repo: &Repo, settings: &Settings) -> Result<(), PassError> {
        let name = &settings.refs.rendered;
        let last = repo.read_ref(NEWEST)?;
        let Some(now) = self.there.get(name).copied() else { return Ok(()) };
        if let Some(last) = last.filter(|last| *last != now && repo.has_commit(*last))
            && !settings.allow_rewind
            && !repo.is_same_or_after(now, last)?
        {
            return Err(PassError::RenderedRewound { name: name.clone(), now, last });
        }
        Ok(())
    }

    /// Stores the rendered commit at the remote after a pass that used or made it.
    fn note_newest(&self, repo: &Repo, settings: &Settings) -> Result<(), PassError> {
        let last = repo.read_ref(NEWEST)?;
        match self.there.get(&settings.refs.rendered) {
            Some(now) if last != Some(*now) => Ok(repo.move_ref(NEWEST, last, *now)?),
            _ => Ok(()),
        }
    }

    /// Returns the full name of the source; by default the branch that the remote's HEAD names.
    fn source_name(&mut self, settings: &Settings) -> Result<String, PassError> {
        if let Some(name) = &self.source {
            return Ok(name.clone());
        }
        let name = match settings.source.as_deref() {
            None | Some("HEAD") => match self.of_source().list(BRANCHES)?.head {
                Some(head) => head,
                None => return Err(PassError::NoSource("HEAD".to_owned())),
            },
            Some(name) if name.starts_with("refs/") => name.to_owned(),
            Some(name) => format!("{BRANCHES}{name}"),
        };
        if !is_valid_ref(&name) || name.contains('*') {
            return Err(self.no_source(&name));
        }
        if name == settings.refs.rendered {
            return Err(PassError::SourceIsRendered(name));
        }
        Repo::open(self.copy.path())?.set_head(&name)?;
        self.source = Some(name.clone());
        Ok(name)
    }

    /// Warns if the newest statuses could not be fetched.
    pub(super) fn missing_reports(&self) -> Option<Diagnostic> {
        let (reports, problem) = (self.reports.as_ref()?, self.reports_error.as_ref()?);
        let message = format!("the members' reports could not be fetched, so the last ones count: {problem}");
        Some(Diagnostic::warning(Pos::file(reports.shown()), message).maybe_hint(problem.hint()))
    }

    fn no_source(&self, name: &str) -> PassError {
        let listing = match self.of_source().list(BRANCHES) {
            Ok(listing) => listing,
            Err(error) => return error.into(),
        };
        let short = name.strip_prefix(BRANCHES).unwrap_or(name);
        if listing.refs.is_empty() {
            return PassError::NoSource(short.to_owned());
        }
        let branches = listing.refs.keys().filter_map(|name| name.strip_prefix(BRANCHES));
        let hint = did_you_mean(short, branches).unwrap_or_else(|| {
            "name a branch of the remote, or a ref in full as `refs/heads/main`".to_owned()
        });
        PassError::NoSuchSource { name: short.to_owned(), hint }
    }

    /// Pushes the result of the pass: the state first, then the refs derived from it.
    pub(super) fn push(&mut self, settings: &Settings) -> Result<(), PassError> {
        settings.progress.begin("pushing");
        let refs = &settings.refs;
        let repo = Repo::open(self.copy.path())?;
        let prefixes =
            [&refs.rendered, &refs.processed, &refs.report, &refs.clusters, &refs.cluster_branches];
        let moves = self.moves(&repo, settings, &prefixes)?;
        refuse_backwards(&repo, &refs.rendered, &moves)?;
        self.push_in_order(moves)?;
        self.note_newest(&repo, settings)
    }

    /// Pushes the previews. They may move from any value.
    pub(super) fn push_previews(&mut self, settings: &Settings) -> Result<(), PassError> {
        let repo = Repo::open(self.copy.path())?;
        let moves = self.moves(&repo, settings, &[&settings.refs.preview])?;
        self.push_in_order(moves)
    }

    /// Returns the moves that make the remote's refs equal to the local ones.
    fn moves(
        &self,
        repo: &Repo,
        settings: &Settings,
        prefixes: &[&String],
    ) -> Result<Vec<RefPush>, PassError> {
        let mut moves = Vec::new();
        for prefix in prefixes {
            // Some are full names, not prefixes. Refs below the branch's name belong to people.
            let is_branch = **prefix == settings.refs.rendered;
            let own =
                |name: &str| prefix.ends_with('/') || name == *prefix || !is_branch && is_below(name, prefix);
            let here = repo.list_refs(prefix)?;
            let there = self.there.iter().filter(|(name, _)| name.starts_with(prefix.as_str()));
            let gone = there.filter(|(name, _)| !here.contains_key(*name));
            let gone = gone.map(|(name, old)| RefPush { name: name.clone(), old: Some(*old), new: None });
            let came = here.iter().filter(|(name, new)| self.there.get(*name) != Some(*new));
            let came = came.map(|(name, new)| RefPush {
                name: name.clone(),
                old: self.there.get(name).copied(),
                new: Some(*new),
            });
            moves.extend(came.chain(gone).filter(|change| own(&change.name)));
        }
        Ok(moves)
    }

    /// Pushes deletions of blocking refs first: a server refuses a ref whose name conflicts with another, even if the
    /// same push deletes the other.
    fn push_in_order(&mut self, moves: Vec<RefPush>) -> Result<(), PassError> {
        let made: Vec<String> =
            moves.iter().filter(|change| change.old.is_none()).map(|change| change.name.clone()).collect();
        let blocks = |change: &RefPush| {
            let name = &change.name;
            change.new.is_none() && made.iter().any(|made| is_below(name, made) || is_below(made, name))
        };
        let (blocking, moves): (Vec<RefPush>, Vec<RefPush>) = moves.into_iter().partition(blocks);
        for moves in [blocking, moves].into_iter().filter(|moves| !moves.is_empty()) {
            self.push_all(moves)?;
        }
        Ok(())
    }

    fn push_all(&mut self, moves: Vec<RefPush>) -> Result<(), PassError> {
        debug!(refs = moves.len(), "pushing");
        let pushed = self.transport.push(self.copy.path(), &moves, true);
        if pushed.is_err() {
            // Some refs may have moved even so, with only the answer lost.
            self.doubt_all();
            return Ok(pushed?);
        }
        for RefPush { name, new, .. } in moves {
            match new {
                Some(new) => self.there.insert(name, new),
                None => self.there.remove(&name),
            };
        }
        Ok(())
    }

    /// Makes the next fetch include the refs that only berth writes, because another daemon may have moved them.
    pub(super) fn doubt_all(&mut self) {
        self.checked = None;
    }

    /// Recreates the local repository if it is damaged, so that the next fetch clones it. Returns true if it did.
    pub(super) fn mend(&mut self) -> bool {
        if self.examined.is_some_and(|at| at.elapsed() < EXAMINE) {
            return false;
        }
        self.examined = Some(Instant::now());
        // Keeps the repository if the check itself fails.
        if self.transport.is_sound(self.copy.path()).unwrap_or(true) {
            return false;
        }
        warn!("the working copy is damaged; cloning it again");
        (self.source, self.checked) = (None, None);
        self.there.clear();
        self.copy.renew().inspect_err(|error| warn!(%error, "the working copy cannot be recreated")).is_ok()
    }

    /// Returns the stale locks removed at the remote since the last call.
    pub(super) fn cleared_locks(&self) -> Vec<String> {
        self.transport.cleared_locks()
    }

    /// Repacks the local repository if it has become slow. Failures are harmless.
    pub(super) fn tidy(&self) {
        if let Some(step) = upkeep::due(self.copy.path())
            && let Err(error) = self.transport.tidy(self.copy.path(), step)
        {
            debug!(%error, "the local repository could not be packed");
        }
    }
}

/// Reports whether a ref's name is below another, as a file is below a folder.
pub(super) fn is_below(name: &str, other: &str) -> bool {
    name.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'))
}

/// Refuses a push that moves the state back. A lease alone does not prevent one.
pub(super) fn refuse_backwards(repo: &Repo, rendered: &str, moves: &[RefPush]) -> Result<(), PassError> {
    for RefPush { name, old, new } in moves.iter().filter(|change| change.name == rendered) {
        let Some(old) = *old else { continue };
        let forward = match new {
            Some(new) => repo.is_same_or_after(*new, old)?,
            None => false,
        };
        if !forward {
            return Err(GitError::Raced { name: name.clone() }.into());
        }
    }
    Ok(())
}
