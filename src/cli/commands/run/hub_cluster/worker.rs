//! A thread that keeps a hub cluster up to date, so that no pass waits for its API server; and one round with a hub
//! cluster: list, compare, write.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use tracing::{info, warn};

use berth_base::backoff::pace::paced;
use berth_base::backoff::{self, Backoff};
use berth_base::diag::harmless_line;
use berth_base::model::{ObjectWrite, Timestamp};
use berth_engine::dialects::inventory;
use berth_engine::hub_objects::decisions::{self, DecisionApi, OCM_GROUP};
use berth_engine::hub_objects::{HubContent, HubPlaces, Planned, profiles};
use berth_hub::daemon::pass_metrics::HubCounts;
use berth_hub::daemon::{PassEnd, PassResult};
use berth_member::cluster_writes;
use berth_member::live::{Access, Cluster, Host, LiveError, Query, Resource};

/// Pauses after rounds that fail.
const PAUSES: Backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(120));
/// The time that an ending process leaves for a round.
const LAST_CHANCE: Duration = Duration::from_secs(5);

/// The state to show. A newer one replaces it.
#[derive(Debug, Default)]
struct WantedState {
    shown: Option<HubContent>,
    /// True if it arrived after the last round began.
    is_new: bool,
    is_over: bool,
}

#[derive(Debug, Default)]
struct Slot {
    wanted: Mutex<WantedState>,
    changed: Condvar,
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, WantedState> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a hub up to date until it is dropped.
#[derive(Debug)]
pub(crate) struct HubWorker {
    slot: Arc<Slot>,
    ended: Receiver<()>,
}

impl HubWorker {
    pub(super) fn start(hub: HubCluster, interval: Duration, counts: HubCounts) -> io::Result<HubWorker> {
        let slot = Arc::new(Slot::default());
        let (ends, ended) = channel::<()>();
        let mut worker =
            Worker { hub, interval, counts, last: None, failures: 0, logged_notes: BTreeSet::new() };
        let shared = slot.clone();
        std::thread::Builder::new().name("hub-cluster".to_owned()).spawn(move || {
            let _ends = ends;
            worker.work(&shared);
        })?;
        Ok(HubWorker { slot, ended })
    }

    /// Handles the end of a pass.
    pub(crate) fn ended(&self, end: PassEnd<'_>) {
        match end {
            PassEnd::Done(PassResult { shown, .. }) => self.show(Some(shown.clone())),
            // Another daemon writes.
            PassEnd::StoodBy => self.show(None),
            PassEnd::Spared | PassEnd::Failed(_) | PassEnd::Crashed => {}
        }
    }

    fn show(&self, shown: Option<HubContent>) {
        let mut wanted = self.slot.lock();
        (wanted.shown, wanted.is_new) = (shown, true);
        self.slot.changed.notify_all();
    }
}

impl Drop for HubWorker {
    fn drop(&mut self) {
        self.slot.lock().is_over = true;
        self.slot.changed.notify_all();
        if self.ended.recv_timeout(LAST_CHANCE) == Err(RecvTimeoutError::Timeout) {
            warn!("stopped while updating the hub cluster; the next start completes it");
        }
    }
}

/// The writing thread.
struct Worker {
    hub: HubCluster,
    interval: Duration,
    counts: HubCounts,
    /// The state that the hub shows, and the moment of its last write.
    last: Option<(HubContent, Instant)>,
    failures: u32,
    /// The notes already logged.
    logged_notes: BTreeSet<String>,
}

impl Worker {
    fn work(&mut self, slot: &Slot) {
        let mut due = Instant::now();
        loop {
            let Some((shown, is_new)) = next(slot, due) else { return };
            let Some(shown) = shown else {
                (self.last, due) = (None, Instant::now() + self.interval);
                continue;
            };
            let at = if is_new && self.failures == 0 { self.due(&shown) } else { due };
            if at > Instant::now() {
                due = due.min(at);
                continue;
            }
            due = Instant::now() + self.make(shown);
        }
    }

    /// Returns the moment for a round with a new state: now if decisions or clusters differ. Changes of members'
    /// statuses are frequent, and wait.
    fn due(&self, shown: &HubContent) -> Instant {
        let Some((last, at)) = &self.last else { return Instant::now() };
        let decided = self.hub.forms.is_empty() || last.decisions == shown.decisions;
        let described = last.clusters == shown.clusters;
        let reported = !self.hub.profiles || last.statuses == shown.statuses;
        match (decided && described, reported) {
            (false, _) => Instant::now(),
            (true, false) => *at + paced(STATUS_PAUSE),
            (true, true) => *at + self.interval,
        }
    }

    /// Runs a round. Returns the pause before the next one.
    fn make(&mut self, shown: HubContent) -> Duration {
        let number = shown.sequence;
        match self.hub.round(&shown) {
            Ok(Done { writes, notes, waits }) => {
                self.counts.written(writes);
                if std::mem::take(&mut self.failures) > 0 {
                    info!("the hub cluster can be written again");
                }
                if writes > 0 {
                    info!(writes, number, "the hub cluster shows the publication");
                }
                for note in notes.difference(&self.logged_notes) {
                    warn!("{}", harmless_line(note));
                }
                self.logged_notes = notes;
                self.last = Some((shown, Instant::now()));
                if waits { self.interval.min(paced(STATUS_PAUSE)) } else { self.interval }
            }
            Err(why) => {
                self.counts.failed();
                if self.failures == 0 {
                    warn!(error = %harmless_line(&why), number, "the hub cluster does not show the publication; retrying");
                }
                self.failures = self.failures.saturating_add(1);
                PAUSES.jittered(self.failures, backoff::chance())
            }
        }
    }
}

/// Waits for a new state, or until `due`. Returns `None` if the process ends and no new state is left.
fn next(slot: &Slot, due: Instant) -> Option<(Option<HubContent>, bool)> {
    let mut wanted = slot.lock();
    loop {
        let is_new = std::mem::take(&mut wanted.is_new);
        let left = due.saturating_duration_since(Instant::now());
        if is_new || (left.is_zero() && !wanted.is_over) {
            return Some((wanted.shown.clone(), is_new));
        }
        if wanted.is_over {
            return None;
        }
        let waited = slot.changed.wait_timeout(wanted, left).unwrap_or_else(PoisonError::into_inner);
        wanted = waited.0;
    }
}

/// The manager of the written fields.
const MANAGER: &str = "berth-run";
/// The least time between two statuses of a ClusterProfile, as its API demands.
pub const STATUS_PAUSE: Duration = Duration::from_secs(30);
/// The number of refusals in one message.
const MOST_TOLD: usize = 3;

/// A hub cluster, and the objects to write to it.
#[derive(Debug)]
pub struct HubCluster {
    pub access: Access,
    pub place: HubPlaces,
    pub forms: Vec<DecisionApi>,
    /// Omits forms that the hub does not serve, as long as it serves one.
    pub takes_served_forms: bool,
    pub profiles: bool,
    /// The moments of the last writes of profiles' statuses.
    pub statuses: BTreeMap<String, Instant>,
}

/// The result of a round.
#[derive(Debug, Default)]
pub struct Done {
    pub writes: usize,
    pub notes: BTreeSet<String>,
    /// True if statuses of profiles wait, because they were written a moment ago.
    pub waits: bool,
}

impl HubCluster {
    /// Makes the hub show a state. Correct objects are not written.
    pub fn round(&mut self, shown: &HubContent) -> Result<Done, String> {
        let cluster = Cluster::connect_pod(&self.access).map_err(|error| with_hint(&error))?;
        let mut done = Done::default();
        if self.profiles {
            self.write_profiles(shown, &cluster, &mut done)?;
        }
        if !self.forms.is_empty() {
            self.write_decisions(shown, &cluster, &mut done)?;
        }
        Ok(done)
    }

    fn write_profiles(
        &mut self,
        shown: &HubContent,
        cluster: &Cluster,
        done: &mut Done,
    ) -> Result<(), String> {
        let namespace = Resource::new("", "v1", "namespaces", "Namespace", false);
        let queries = [profile_query(), Query::all(namespace).named(&self.place.profiles)];
        let [listed, namespaces] = lists(cluster, queries);
        let (listed, namespaces) =
            (listed.map_err(|error| with_hint(&error))?, namespaces.map_err(|error| with_hint(&error))?);
        let live = profiles::LiveProfiles { profiles: &listed, namespace: namespaces.first() };
        perform(cluster, profiles::plan_namespace(live, &self.place), done)?;
        let now = Instant::now();
        self.statuses.retain(|_, at| now.saturating_duration_since(*at) < paced(STATUS_PAUSE));
        let waiting: BTreeSet<String> = self.statuses.keys().cloned().collect();
        done.waits = !waiting.is_empty();
        let planned = profiles::plan(shown, live, &self.place, &waiting, Timestamp::now());
        let display = |write: &ObjectWrite| match write {
            ObjectWrite::ReplaceStatus(object) => object["spec"]["displayName"].as_str().map(str::to_owned),
            _ => None,
        };
        self.statuses.extend(planned.chains.iter().flatten().filter_map(display).map(|name| (name, now)));
        perform(cluster, planned, done)
    }

    fn write_decisions(&self, shown: &HubContent, cluster: &Cluster, done: &mut Done) -> Result<(), String> {
        let mut served = 0;
        for form in &self.forms {
            let resource =
                Resource::new(form.group(), form.version(), decisions::PLURAL, decisions::KIND, true);
            let placements = Resource::new(OCM_GROUP, "v1beta1", "placements", "Placement", true);
            let beside = match form {
                DecisionApi::Sig => profile_query(),
                DecisionApi::Ocm => Query::all(placements),
            };
            let [listed, beside] = lists(cluster, [Query::all(resource), beside]);
            let listed = match listed {
                Err(LiveError::NotServed { .. }) if self.takes_served_forms => continue,
                listed => listed.map_err(|error| with_hint(&error))?,
            };
            served += 1;
            let mut live =
                decisions::LiveDecisions { decisions: &listed, ..decisions::LiveDecisions::default() };
            match (form, &beside) {
                (DecisionApi::Ocm, Ok(placements)) => live.placements = placements,
                (DecisionApi::Ocm, Err(LiveError::NotServed { .. })) => {}
                // Without its Placements, it is unknown which of them the hub schedules itself.
                (DecisionApi::Ocm, Err(error)) => return Err(with_hint(error)),
                (DecisionApi::Sig, Ok(profiles)) if !self.profiles => {
                    done.notes.extend(profiles::missing(shown, profiles, &self.place));
                }
                (DecisionApi::Sig, _) => {}
            }
            perform(cluster, decisions::plan(*form, shown, live, &self.place), done)?;
        }
        if served == 0 {
            return Err(
                "the hub serves no PlacementDecisions, neither of SIG Multicluster nor of Open Cluster \
                        Management; install the CRDs of one"
                    .to_owned(),
            );
        }
        Ok(())
    }
}

fn profile_query() -> Query {
    let (group, version) = (inventory::GROUP, inventory::VERSION);
    Query::all(Resource::new(group, version, profiles::PLURAL, inventory::KIND, true))
}

fn lists(cluster: &Cluster, queries: [Query; 2]) -> [Result<Vec<Json>, LiveError>; 2] {
    let mut found = cluster.list(&queries).into_iter();
    let mut next = || found.next().unwrap_or_else(|| Ok(Vec::new()));
    [next(), next()]
}

/// Performs all chains. A failed chain does not stop the others.
fn perform(cluster: &Cluster, planned: Planned, done: &mut Done) -> Result<(), String> {
    done.notes.extend(planned.notes);
    let mut refused = Vec::new();
    for result in cluster_writes::perform(cluster, MANAGER, &planned.chains) {
        match result {
            Ok(writes) => done.writes += writes,
            Err(error) => refused.push(error.to_string()),
        }
    }
    if refused.is_empty() {
        return Ok(());
    }
    let more = refused.len().saturating_sub(MOST_TOLD);
    refused.truncate(MOST_TOLD);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    Err(format!("{}{more}", refused.join("; ")))
}

fn with_hint(error: &LiveError) -> String {
    match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}
