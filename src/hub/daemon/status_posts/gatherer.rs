//! Statuses that wait → one commit, pushed at once. Nobody is told that a status is kept before the remote has it, so
//! that nothing is lost with the daemon.
//!
//! Its working copy is its own, so that no pass waits for it. The ref moves only from where it was seen: two daemons that
//! gather lose nothing, for whoever comes second reads the other's commit first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::Sender;
use tracing::{debug, info, warn};

use super::fate::Fate;
use super::{Message, Offer};
use berth_base::backoff::pace::paced;
use berth_base::model::{ClusterStatus, ContentId, Timestamp};
use berth_base::status::read_status;
use berth_git::protocol::gathered;
use berth_git::transport::{RefPush, Transport, TransportError, Want, WorkingCopy, upkeep};
use berth_git::{CommitId, EntryKind, GitError, Identity, Repo, TreeId, Writer};

/// The time for which the first status waits for others.
const WINDOW: Duration = Duration::from_secs(1);

/// Between two pushes: each costs the server a list of all its refs.
const PAUSE: Duration = Duration::from_secs(3);

/// The number of attempts before a lost race counts as a failure.
const ATTEMPTS: u32 = 3;

/// The most commits of the ref. A commit with a parent is sent as what differs, one without as a whole; nobody reads
/// earlier ones.
const LONGEST: usize = 256;

const MESSAGE: &str = "berth: statuses of members\n";

const NOT_KEPT: Fate = Fate::Unavailable("the status cannot be kept now");

/// Keeps statuses at a remote.
#[derive(Debug)]
pub struct Gatherer {
    transport: Box<dyn Transport>,
    copy: WorkingCopy,
    name: String,
    identity: Identity,
    /// The paths of the fleet's clusters.
    fleet: Option<BTreeSet<String>>,
    /// The statuses that the remote has. Unknown at first, and after a push that failed.
    there: Option<Gathered>,
}

/// The commit at the remote.
#[derive(Debug)]
struct Gathered {
    commit: Option<CommitId>,
    /// The number of commits up to it.
    length: usize,
    tree: TreeId,
    /// By path.
    statuses: BTreeMap<String, Known>,
}

/// A status by its content, and the time by its member's clock where it can be read.
#[derive(Clone, Copy, Debug)]
struct Known {
    content: ContentId,
    reported: Option<Timestamp>,
}

/// A failure to keep statuses.
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

/// The decisions about the statuses that wait.
#[derive(Debug, Default)]
struct Draft {
    /// The new content of paths, or none.
    edits: BTreeMap<String, Option<Known>>,
    /// The fate of each offer, in order, once the edits are kept.
    fates: Vec<Fate>,
    /// Some status says something new.
    has_news: bool,
}

impl Gatherer {
    /// `name` is the ref. The working copy holds nothing else.
    pub fn new(transport: Box<dyn Transport>, copy: WorkingCopy, name: &str, identity: Identity) -> Gatherer {
        Gatherer { transport, copy, name: name.to_owned(), identity, fleet: None, there: None }
    }

    /// Keeps statuses until nobody can offer any more.
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
                        info!("members' statuses are kept again");
                    }
                    if has_news {
                        // A full channel already holds a wake.
                        let _ = wake.try_send(());
                    }
                    // Objects that no ref leads to are dropped.
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
                        warn!(%error, hint, "members' statuses cannot be kept; they are asked to try again");
                    }
                }
            }
        }
    }

    fn take(&mut self, message: Message, offers: &mut Vec<Offer>) {
        match message {
            Message::Offer(offer) => offers.push(*offer),
            Message::Fleet(clusters) => {
                self.fleet = Some(clusters.keys().map(|cluster| gathered::path_of(cluster)).collect());
            }
        }
    }

    /// Keeps what is new of the offers, and answers all of them. Returns true if something is new.
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
            // Whoever has gone asks again.
            let _ = offer.answer.send(fate);
        }
        drafted
    }

    fn try_to_keep(&mut self, offers: &[Offer]) -> Result<Draft, GatherError> {
        let repo = Repo::open(self.copy.path())?;
        // After a failure, what the remote has is not known.
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
        for (path, content) in gathered::list(repo, commit)? {
            let status = kept_status(repo, &path, content);
            statuses.insert(path, Known { content, reported: status.and_then(|status| status.reported) });
        }
        let (tree, length) = (repo.commit(commit)?.tree, length_to(repo, commit)?);
        Ok(Gathered { commit: Some(commit), length, tree, statuses })
    }
}

/// Counts the commits up to one, as far as it matters.
fn length_to(repo: &Repo, commit: CommitId) -> Result<usize, GitError> {
    let (mut length, mut at) = (1, commit);
    while let Some(parent) = repo.commit(at)?.parents.first().copied().filter(|_| length < LONGEST) {
        (length, at) = (length + 1, parent);
    }
    Ok(length)
}

/// Reads a kept status, if it is one of the cluster whose place it has.
fn kept_status(repo: &Repo, path: &str, content: ContentId) -> Option<ClusterStatus> {
    let status = read_status(&repo.blob(content).ok()?).ok()?;
    (gathered::path_of(&status.cluster) == path).then_some(status)
}

/// Decides about the offers, and which statuses go: a newer one takes the place of its cluster's, and those of clusters
/// that the fleet no longer has leave.
fn draft(
    repo: &Repo,
    writer: &mut Writer<'_>,
    there: &Gathered,
    fleet: Option<&BTreeSet<String>>,
    offers: &[Offer],
) -> Result<Draft, GitError> {
    let mut draft = Draft::default();
    for Offer { status, reported, bytes, .. } in offers {
        let path = gathered::path_of(&status.cluster);
        if fleet.is_some_and(|fleet| !fleet.contains(&path)) {
            let why = format!("the fleet has no cluster `{}`", status.cluster);
            draft.fates.push(Fate::Refused(why));
            continue;
        }
        let before = there.statuses.get(&path).copied();
        let last = draft.edits.get(&path).copied().flatten().or(before);
        let known = Known { content: writer.blob(bytes)?, reported: Some(*reported) };
        draft.fates.push(match last {
            Some(last) if last.content == known.content => Fate::Known,
            // The same second says nothing about which one is newer.
            Some(Known { reported: Some(last), .. }) if *reported <= last => {
                Fate::Untimely(format!("a status of {last} is known, and this one is of {reported}"))
            }
            _ => {
                let earlier = before.and_then(|before| kept_status(repo, &path, before.content));
                draft.has_news |= earlier.is_none_or(|earlier| !earlier.says_the_same(status));
                draft.edits.insert(path, Some(known));
                Fate::Kept
            }
        });
    }
    if let Some(fleet) = fleet {
        let gone = there.statuses.keys().filter(|path| !fleet.contains(*path));
        draft.edits.extend(gone.map(|path| (path.clone(), None)));
    }
    Ok(draft)
}
