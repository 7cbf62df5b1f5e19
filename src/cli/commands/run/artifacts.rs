//! Publishes the clusters' folders to a container registry, after the Git publication and alongside the passes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing::{info, warn};

use crate::flags::registry::RegistryArgs;
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit};
use berth_base::backoff::{Backoff, chance};
use berth_base::model::Timestamp;
use berth_base::progress::Progress;
use berth_base::text::counted;
use berth_git::CommitId;
use berth_git::signature::AllowedSigners;
use berth_hub::daemon::pass_metrics::PassMeter;
use berth_hub::daemon::{PassEnd, RegistryNumbers, Settings};
use berth_registry::Registry;
use berth_registry::publish::{Attach, Keep, Publisher, Round, wanted};

/// The pauses after rounds that failed.
const PAUSES: Backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(300));
/// The interval of checking the whole registry, because others may move tags.
const LOOK: Duration = Duration::from_secs(3_600);

/// The slot through which a running publisher gets new keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct Successors(Arc<Mutex<Option<Successor>>>);

/// The keys to trust from now on, and the attachments of artifacts.
#[derive(Clone, Debug)]
struct Successor {
    keys: Option<AllowedSigners>,
    attach: Option<Arc<dyn Attach>>,
}

impl Successors {
    /// Makes the next round use the keys of these settings.
    pub(crate) fn set(&self, settings: &Settings, attach: Option<Arc<dyn Attach>>) {
        let successor = Successor { keys: settings.anchors.keys.clone(), attach };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(successor);
    }

    fn take(&self) -> Option<Successor> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A registry for the clusters' folders
#[derive(Debug, clap::Args)]
pub(crate) struct PublishArgs {
    /// Publish each cluster's folder to this container registry as well: `oci://registry.example.com/fleet`
    #[arg(long, value_name = "URL", env = "BERTH_PUBLISH", help_heading = "Registry")]
    publish: Option<String>,
    /// Remove old tags from the registry, but so many of each cluster, or those of a time such as `30d`; default: none
    #[arg(
        long,
        value_name = "POLICY",
        env = "BERTH_PUBLISH_KEEP",
        requires = "publish",
        help_heading = "Registry"
    )]
    publish_keep: Option<Keep>,
    #[command(flatten)]
    registry: RegistryArgs,
}

impl PublishArgs {
    /// Returns the registry set by the flag, if any. Connects to nothing yet.
    pub(crate) fn named(&self) -> Result<Option<Registry>, CommandError> {
        self.publish.as_deref().map(|url| self.registry_at(url)).transpose()
    }

    /// Returns the registry at an address, with the access from these flags.
    pub(crate) fn registry_at(&self, url: &str) -> Result<Registry, CommandError> {
        self.registry.registry(url)
    }

    /// Reports whether a registry is set.
    pub(crate) fn is_wanted(&self) -> bool {
        self.publish.is_some()
    }

    fn publisher(
        &self,
        settings: &Settings,
        attach: Option<Arc<dyn Attach>>,
    ) -> Result<Option<Publisher>, CommandError> {
        let Some(url) = &self.publish else { return Ok(None) };
        let publisher = Publisher::new(self.registry.registry(url)?)
            .believing(settings.anchors.keys.clone())
            .keeping(self.publish_keep)
            .going_back(settings.allow_rewritten);
        Ok(Some(match attach {
            Some(attach) => publisher.attaching(attach),
            None => publisher,
        }))
    }

    /// Starts to publish alongside the passes, if a registry is set.
    pub(crate) fn start(
        &self,
        settings: &Settings,
        attach: Option<Arc<dyn Attach>>,
        successors: Successors,
        meter: Option<&PassMeter>,
    ) -> Result<Option<Publishing>, CommandError> {
        let Some(publisher) = self.publisher(settings, attach)? else { return Ok(None) };
        let numbers = meter.map(PassMeter::artifacts).unwrap_or_default();
        numbers.begin();
        let (snapshots, heard) = sync_channel(1);
        let publishing = Publishing {
            leads: publisher.leads(),
            repo: settings.repo.clone(),
            refs: settings.refs.clone(),
            waiting: None,
            snapshots,
        };
        let worker = PublishWorker {
            repo: settings.repo.clone(),
            publisher,
            successors,
            numbers,
            wanted: BTreeMap::new(),
            done: BTreeMap::new(),
            looked: None,
            failures: 0,
            logged: None,
        };
        let thread = std::thread::Builder::new().name("publish".into());
        thread
            .spawn(move || worker.work(&heard))
            .map_err(|error| CommandError::io("starting to publish to the registry", &error))?;
        Ok(Some(publishing))
    }

    /// Publishes what the registry lacks, and reports the result.
    pub(crate) fn once(
        &self,
        settings: &Settings,
        attach: Option<Arc<dyn Attach>>,
        ui: &Ui,
    ) -> PublishResult {
        let Some(publisher) = self.publisher(settings, attach)? else { return Ok(Exit::Done) };
        let wanted = wanted(&settings.repo, &settings.refs)?;
        let round = ui.watching("publishing to the registry", || {
            publisher.round(&settings.repo, &wanted, ui.progress())
        });
        let url = publisher.registry().url();
        let changed = round.changed();
        if changed > 0 {
            ui.out(&format!("published {} to {url}", counted(changed, "folder")));
        }
        if publisher.deletes_nothing() {
            ui.status(&format!("{url} deletes nothing; old tags stay"));
        }
        let missing = wanted.len() - round.published.len();
        let Some(error) = round.failures.into_values().next() else { return Ok(Exit::Done) };
        let error = CommandError::from(error);
        let of = counted(missing, "folder");
        ui.error(&CommandError { message: format!("{of} not in the registry: {}", error.message), ..error });
        Ok(Exit::Unreachable)
    }
}

type PublishResult = Result<Exit, CommandError>;
type Snapshot = BTreeMap<String, CommitId>;

/// The daemon's side: it passes on the results of passes, and never waits for the registry.
#[derive(Debug)]
pub(crate) struct Publishing {
    repo: PathBuf,
    refs: berth_git::shared_refs::Refs,
    leads: Arc<AtomicBool>,
    /// A snapshot that the busy worker has not taken yet.
    waiting: Option<Snapshot>,
    snapshots: SyncSender<Snapshot>,
}

impl Publishing {
    /// Sets whether this daemon, one of several, publishes.
    pub(crate) fn leads(&self, leads: bool) {
        self.leads.store(leads, Ordering::SeqCst);
    }

    /// Handles the end of a pass. Only then has Git's remote accepted the refs.
    pub(crate) fn hear(&mut self, end: PassEnd<'_>) {
        match end {
            PassEnd::Done(_) => match wanted(&self.repo, &self.refs) {
                Ok(snapshot) => self.waiting = Some(snapshot),
                Err(error) => warn!(%error, "the clusters' refs cannot be read for the registry"),
            },
            PassEnd::Spared => {}
            PassEnd::StoodBy | PassEnd::Failed(_) | PassEnd::Crashed => return,
        }
        if let Some(snapshot) = self.waiting.take()
            && let Err(TrySendError::Full(snapshot)) = self.snapshots.try_send(snapshot)
        {
            self.waiting = Some(snapshot);
        }
    }
}

/// The thread that communicates with the registry.
struct PublishWorker {
    repo: PathBuf,
    publisher: Publisher,
    successors: Successors,
    numbers: RegistryNumbers,
    wanted: Snapshot,
    /// The folders in the registry, as far as this process knows.
    done: Snapshot,
    /// The time of the last check of everything.
    looked: Option<Instant>,
    failures: u32,
    /// The last logged failure.
    logged: Option<String>,
}

impl PublishWorker {
    fn work(mut self, heard: &Receiver<Snapshot>) {
        loop {
            let pause = match self.failures {
                0 => LOOK.saturating_sub(self.looked.map_or(Duration::ZERO, |looked| looked.elapsed())),
                failures => PAUSES.jittered(failures, chance()),
            };
            match heard.recv_timeout(pause) {
                Ok(snapshot) => self.wanted = snapshot,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if let Some(Successor { keys, attach }) = self.successors.take() {
                self.publisher.renew(keys, attach);
                self.looked = None;
            }
            if self.looked.is_none_or(|looked| looked.elapsed() >= LOOK) {
                self.done.clear();
                self.looked = Some(Instant::now());
            }
            self.round();
        }
    }

    fn round(&mut self) {
        self.done.retain(|name, _| self.wanted.contains_key(name));
        let open = self.wanted.iter().filter(|(name, commit)| self.done.get(*name) != Some(commit));
        let open: Snapshot = open.map(|(name, commit)| (name.clone(), *commit)).collect();
        if open.is_empty() {
            self.failures = 0;
            return;
        }
        self.numbers.behind(open.len());
        let deleted_nothing = self.publisher.deletes_nothing();
        let round = self.publisher.round(&self.repo, &open, &Progress::default());
        if !deleted_nothing && self.publisher.deletes_nothing() {
            warn!(registry = %self.publisher.registry().url(), "the registry deletes nothing; old tags stay");
        }
        let changed = round.changed();
        if changed > 0 {
            info!(clusters = changed, registry = %self.publisher.registry().url(), "published to the registry");
        }
        self.done.extend(round.published.iter().map(|(name, (commit, _))| (name.clone(), *commit)));
        let behind = open.len() - round.published.len();
        let went_well = round.failures.is_empty();
        self.numbers.ended(behind, went_well, Timestamp::now());
        self.tell(&round, behind);
        self.failures = if went_well { 0 } else { self.failures.saturating_add(1) };
    }

    /// Logs the first failure of a round, unless it was logged last.
    fn tell(&mut self, round: &Round, behind: usize) {
        let Some(error) = round.failures.values().next() else {
            if self.logged.take().is_some() {
                info!(registry = %self.publisher.registry().url(), "the registry accepts folders again");
            }
            return;
        };
        let text = error.to_string();
        if self.logged.as_ref() != Some(&text) {
            warn!(
                error = text,
                hint = error.hint(),
                clusters = behind,
                "publishing folders to the registry failed; retrying"
            );
            self.logged = Some(text);
        }
    }
}
