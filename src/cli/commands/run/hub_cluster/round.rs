//! One round with a hub cluster: list, compare, write.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use berth_base::backoff::pace::paced;
use berth_base::model::{ObjectWrite, Timestamp};
use berth_engine::dialects::inventory;
use berth_engine::hub_objects::decisions::{self, Form, OCM_GROUP};
use berth_engine::hub_objects::{Place, Planned, Shown, profiles};
use berth_member::cluster_objects;
use berth_member::live::{Access, Cluster, Host, LiveError, Query, Resource};

/// The manager of the written fields.
const MANAGER: &str = "berth-run";
/// The least time between two statuses of a ClusterProfile, as its API demands.
pub const STATUS_PAUSE: Duration = Duration::from_secs(30);
/// The number of refusals in one message.
const MOST_TOLD: usize = 3;

/// A hub cluster, and the objects to write to it.
#[derive(Debug)]
pub struct Hub {
    pub access: Access,
    pub place: Place,
    pub forms: Vec<Form>,
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

impl Hub {
    /// Makes the hub show a state. Correct objects are not written.
    pub fn round(&mut self, shown: &Shown) -> Result<Done, String> {
        let cluster = Cluster::connect_pod(&self.access).map_err(|error| told(&error))?;
        let mut done = Done::default();
        if self.profiles {
            self.write_profiles(shown, &cluster, &mut done)?;
        }
        if !self.forms.is_empty() {
            self.write_decisions(shown, &cluster, &mut done)?;
        }
        Ok(done)
    }

    fn write_profiles(&mut self, shown: &Shown, cluster: &Cluster, done: &mut Done) -> Result<(), String> {
        let namespace = Resource::new("", "v1", "namespaces", "Namespace", false);
        let queries = [profile_query(), Query::all(namespace).named(&self.place.profiles)];
        let [listed, namespaces] = lists(cluster, queries);
        let (listed, namespaces) =
            (listed.map_err(|error| told(&error))?, namespaces.map_err(|error| told(&error))?);
        let live = profiles::Live { profiles: &listed, namespace: namespaces.first() };
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

    fn write_decisions(&self, shown: &Shown, cluster: &Cluster, done: &mut Done) -> Result<(), String> {
        let mut served = 0;
        for form in &self.forms {
            let resource =
                Resource::new(form.group(), form.version(), decisions::PLURAL, decisions::KIND, true);
            let placements = Resource::new(OCM_GROUP, "v1beta1", "placements", "Placement", true);
            let beside = match form {
                Form::Sig => profile_query(),
                Form::Ocm => Query::all(placements),
            };
            let [listed, beside] = lists(cluster, [Query::all(resource), beside]);
            let listed = match listed {
                Err(LiveError::NotServed { .. }) if self.takes_served_forms => continue,
                listed => listed.map_err(|error| told(&error))?,
            };
            served += 1;
            let mut live = decisions::Live { decisions: &listed, ..decisions::Live::default() };
            match (form, &beside) {
                (Form::Ocm, Ok(placements)) => live.placements = placements,
                (Form::Ocm, Err(LiveError::NotServed { .. })) => {}
                // Without its Placements, it is unknown which of them the hub schedules itself.
                (Form::Ocm, Err(error)) => return Err(told(error)),
                (Form::Sig, Ok(profiles)) if !self.profiles => {
                    done.notes.extend(profiles::missing(shown, profiles, &self.place));
                }
                (Form::Sig, _) => {}
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
    for result in cluster_objects::perform(cluster, MANAGER, &planned.chains) {
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

fn told(error: &LiveError) -> String {
    match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}
