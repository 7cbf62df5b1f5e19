//! Collects waiting statuses in one commit and pushes it. A member gets its answer only after the push, so that a
//! crash of the daemon loses nothing.
//!
//! The gatherer has its own working copy, so that no pass waits for it. The ref moves only from its known value: of
//! two daemons that gather, the slower one first reads the other's commit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::Sender;
use tracing::{debug, info, warn};

use super::{Message, Offer, StatusOutcome};
use berth_base::backoff::pace::paced;
use berth_base::model::{ClusterStatus, ContentId, Timestamp};
use berth_base::status::read_status;
use berth_git::shared_refs::statuses;
use berth_git::transport::{RefPush, Transport, TransportError, Want, WorkingCopy, upkeep};
use berth_git::{CommitId, EntryKind, GitError, Identity, Repo, TreeId, Writer};

/// The time that the first status waits for others.
const WINDOW: Duration = Duration::from_secs(1);

/// The pause between two pushes: for each, the server lists all its refs.
const PAUSE: Duration = Duration::from_secs(3);

/// The number of attempts before a lost race counts as a failure.
const ATTEMPTS: u32 = 3;

/// The longest history of the ref. Only differences are sent for a commit with a parent. Nobody reads earlier
/// commits.
const LONGEST: usize = 256;

const MESSAGE: &str = "berth: statuses of members\n";

const NOT_KEPT: StatusOutcome = StatusOutcome::Unavailable("the status cannot be stored now");

/// Stores statuses at a remote.
#[derive(Debug)]
pub struct Gatherer {
    transport: Box<dyn Transport>,
    copy: WorkingCopy,
    name: String,
    identity: Identity,
    /// The paths of the fleet's clusters.
    fleet: Option<BTreeSet<String>>,
    /// The statuses at the remote. `None` at first, and after a failed push.
    there: Option<Gathered>,
}

/// The commit at the remote.
#[derive(Debug)]
struct Gathered {
    commit: Option<CommitId>,
    /// The length of the history up to it.
    length: usize,
    tree: TreeId,
    /// By path.
    statuses: BTreeMap<String, Known>,
}

/// A status: its content, and its time by the member's clock if it is readable.
#[derive(Clone, Copy, Debug)]
struct Known {
    content: ContentId,
    reported: Option<Timestamp>,
}

/// A failure to store statuses.
#[derive(Debug, thiserror::Error)]
enum GatherError {
    #[error(transparent)]
    Transport(#[from] TransportError),
    #[error(transparent)]
    Git(#[from] GitError),
}

impl GatherError {
    fn is_race(&self) -> bool {
        matches!(self, GatherError::Transport(error) if error.is_race())
    }
}

/// The decisions about the waiting statuses.
#[derive(Debug, Default)]
struct Draft {
    /// The new content of each path; `None` removes it.
    edits: BTreeMap<String, Option<Known>>,
    /// The outcome of each status, in order, once the edits are stored.
    fates: Vec<StatusOutcome>,
    /// True if a status differs from the last one.
    has_news: bool,
}

impl Gatherer {
    /// Makes a gatherer for the ref `name`. The working copy contains nothing else.
    pub fn new(transport: Box<dyn Transport>, copy: WorkingCopy, name: &str, identity: Identity) -> Gatherer {
        Gatherer { transport, copy, name: name.to_owned(), identity, fleet: None, there: None }
    }

    /// Stores statuses until all senders are gone.
    pub(super) fn run(mut self, inbox: &Receiver<Message>, refuses: &AtomicBool, wake: &Sender<()>) {
        let mut last: Option<Instant> = None;
        while let Ok(first) = inbox.recv() {
            let now = Instant::now();
            let due = last.map_or(now, |last| last + paced(PAUSE)).max(now + paced(WINDOW));
            let mut offers = Vec::new();
            self.take(first, &mut offers);
            while let Ok(next) = inbox.recv_timeout(due.saturating_duration_since(Instant::now())) {
                self.take(next, &mut offers);
            }
            let kept = self.keep(&mut offers);
            last = Some(Instant::now());
            match kept {
                Ok(has_news) => {
                    if refuses.swap(false, Ordering::SeqCst) {
                        info!("members' statuses are stored again");
                    }
                    if has_news {
                        // A full channel already contains a wake.
                        let _ = wake.try_send(());
                    }
                    // Repacking drops unreachable objects.
                    if let Some(step) = upkeep::due(self.copy.path()) {
                        let _ = self.transport.tidy(self.copy.path(), step);
                    }
                }
                Err(error) => {
                    let hint = match &error {
                        GatherError::Transport(error) => error.hint(),
                        GatherError::Git(error) => error.hint(),
                    };
                    if !refuses.swap(true, Ordering::SeqCst) {
                        warn!(%error, hint, "members' statuses cannot be stored; members are asked to retry");
                    }
                }
            }
        }
    }

    fn take(&mut self, message: Message, offers: &mut Vec<Offer>) {
        match message {
            Message::Offer(offer) => offers.push(*offer),
            Message::Fleet(clusters) => {
                self.fleet = Some(clusters.keys().map(|cluster| statuses::path_of(cluster)).collect());
            }
        }
    }

    /// Stores the new statuses and answers all of them. Returns true if any differs from the last one.
    fn keep(&mut self, offers: &mut Vec<Offer>) -> Result<bool, GatherError> {
        let mut attempt = 1;
        let drafted = loop {
            match self.try_to_keep(offers) {
                Err(error) if error.is_race() && attempt < ATTEMPTS => attempt += 1,
                done => break done,
            }
        };
        let (fates, drafted) = match drafted {
            Ok(Draft { fates, has_news, .. }) => (fates, Ok(has_news)),
            Err(error) => (vec![NOT_KEPT; offers.len()], Err(error)),
        };
        for (offer, fate) in offers.drain(..).zip(fates) {
            // A sender that has disconnected tries again.
            let _ = offer.answer.send(fate);
        }
        drafted
    }

    fn try_to_keep(&mut self, offers: &[Offer]) -> Result<Draft, GatherError> {
        let repo = Repo::open(self.copy.path())?;
        // After a failure, the remote's content is unknown.
        let there = match self.there.take() {
            Some(there) => there,
            None => self.fetch(&repo)?,
        };
        let mut writer = Writer::new(&repo)?;
        let draft = draft(&repo, &mut writer, &there, self.fleet.as_ref(), offers)?;
        if draft.edits.is_empty() {
            self.there = Some(there);
            return Ok(draft);
        }
        let edits = draft.edits.iter().map(|(path, known)| {
            let kind = known.map(|known| EntryKind::File(known.content));
            (path.as_str(), kind)
        });
        let tree = writer.edited(there.tree, edits)?;
        let now = Timestamp::now().as_second();
        let Gathered { commit: old, length, mut statuses, .. } = there;
        let parents: Vec<CommitId> = old.into_iter().filter(|_| length < LONGEST).collect();
        let commit = writer.commit(tree, &parents, MESSAGE, &self.identity, now)?;
        let length = if parents.is_empty() { 1 } else { length + 1 };
        let moves = [RefPush { name: self.name.clone(), old, new: Some(commit) }];
        self.transport.push(self.copy.path(), &moves, false)?;
        debug!(statuses = offers.len(), "kept members' statuses");
        repo.move_ref(&self.name, repo.read_ref(&self.name)?, commit)?;
        for (path, known) in &draft.edits {
            match known {
                Some(known) => drop(statuses.insert(path.clone(), *known)),
                None => drop(statuses.remove(path)),
            }
        }
        self.there = Some(Gathered { commit: Some(commit), length, tree, statuses });
        Ok(draft)
    }

    fn fetch(&self, repo: &Repo) -> Result<Gathered, GatherError> {
        self.transport.fetch(self.copy.path(), &[Want::all(&self.name)], None)?;
        let Some(commit) = repo.read_ref(&self.name)? else {
            return Ok(Gathered { commit: None, length: 0, tree: TreeId::EMPTY, statuses: BTreeMap::new() });
        };
        let mut statuses = BTreeMap::new();
        for (path, content) in statuses::list(repo, commit)? {
            let status = kept_status(repo, &path, content);
            statuses.insert(path, Known { content, reported: status.and_then(|status| status.reported) });
        }
        let (tree, length) = (repo.commit(commit)?.tree, length_to(repo, commit)?);
        Ok(Gathered { commit: Some(commit), length, tree, statuses })
    }
}

/// Counts the commits up to one, at most up to the limit.
fn length_to(repo: &Repo, commit: CommitId) -> Result<usize, GitError> {
    let (mut length, mut at) = (1, commit);
    while let Some(parent) = repo.commit(at)?.parents.first().copied().filter(|_| length < LONGEST) {
        (length, at) = (length + 1, parent);
    }
    Ok(length)
}

/// Reads a stored status, if it belongs to the cluster of its path.
fn kept_status(repo: &Repo, path: &str, content: ContentId) -> Option<ClusterStatus> {
    let status = read_status(&repo.blob(content).ok()?).ok()?;
    (statuses::path_of(&status.cluster) == path).then_some(status)
}

/// Decides about the waiting statuses: a newer one replaces its cluster's, and those of clusters outside of the fleet
/// are removed.
fn draft(
    repo: &Repo,
    writer: &mut Writer<'_>,
    there: &Gathered,
    fleet: Option<&BTreeSet<String>>,
    offers: &[Offer],
) -> Result<Draft, GitError> {
    let mut draft = Draft::default();
    for Offer { status, reported, bytes, .. } in offers {
        let path = statuses::path_of(&status.cluster);
        if fleet.is_some_and(|fleet| !fleet.contains(&path)) {
            let why = format!("the fleet has no cluster `{}`", status.cluster);
            draft.fates.push(StatusOutcome::Refused(why));
            continue;
        }
        let before = there.statuses.get(&path).copied();
        let last = draft.edits.get(&path).copied().flatten().or(before);
        let known = Known { content: writer.blob(bytes)?, reported: Some(*reported) };
        draft.fates.push(match last {
            Some(last) if last.content == known.content => StatusOutcome::Known,
            // With equal seconds, it is unknown which status is newer.
            Some(Known { reported: Some(last), .. }) if *reported <= last => StatusOutcome::Untimely(
                format!("a status from {last} is already known, and this one is of {reported}"),
            ),
            _ => {
                let earlier = before.and_then(|before| kept_status(repo, &path, before.content));
                draft.has_news |= earlier.is_none_or(|earlier| !earlier.says_the_same(status));
                draft.edits.insert(path, Some(known));
                StatusOutcome::Kept
            }
        });
    }
    if let Some(fleet) = fleet {
        let gone = there.statuses.keys().filter(|path| !fleet.contains(*path));
        draft.edits.extend(gone.map(|path| (path.clone(), None)));
    }
    Ok(draft)
}
