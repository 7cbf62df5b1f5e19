//! Clusters and their members' statuses → ClusterProfiles, and the cluster set of their namespace.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json, json};

use super::naming::{is_own, label, marked, name, namespace, object_name, own_label};
use super::{HubContent, HubPlaces, Planned};
use crate::dialects::inventory::{GROUP, KIND, VERSION};
use berth_base::model::cluster::Readiness;
use berth_base::model::{Cluster, ClusterStatus, ObjectWrite, Timestamp, WriteChain};

pub const PLURAL: &str = "clusterprofiles";

/// The name of berth as a manager.
const MANAGER: &str = "berth";
/// The label of the manager, which must equal the name in the spec.
const MANAGER_LABEL: &str = "x-k8s.io/cluster-manager";
/// The label of a namespace whose profiles are one cluster set.
const SET_LABEL: &str = "multicluster.x-k8s.io/clusterset";
/// The longest name and value of a property.
const LONGEST_PROPERTY: usize = 253;
const LONGEST_VALUE: usize = 1024;
/// The longest message of a condition.
const LONGEST_MESSAGE: usize = 1000;

/// The objects in a hub.
#[derive(Clone, Copy, Debug, Default)]
pub struct LiveProfiles<'l> {
    /// The profiles in all namespaces.
    pub profiles: &'l [Json],
    /// The namespace of the profiles, if it exists.
    pub namespace: Option<&'l Json>,
}

/// Plans the write that creates the profiles' namespace, or labels it.
pub fn plan_namespace(live: LiveProfiles<'_>, place: &HubPlaces) -> Planned {
    let labels: Vec<(String, String)> =
        place.cluster_set.iter().map(|set| (SET_LABEL.to_owned(), set.clone())).collect();
    let mut planned = Planned::default();
    match live.namespace {
        None => {
            let metadata = json!({"name": place.profiles});
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
            planned.chain(vec![ObjectWrite::Create(marked(&object, &labels, &[]))]);
        }
        Some(object) if labels.iter().any(|(key, value)| label(object, key) != Some(value)) => {
            planned.chain(vec![ObjectWrite::Replace(marked(object, &labels, &[]))]);
        }
        Some(_) => {}
    }
    planned
}

/// Plans the writes that bring the profiles to a hub. It does not change the statuses of the clusters in
/// `waiting`, which were just written.
pub fn plan(
    shown: &HubContent,
    live: LiveProfiles<'_>,
    place: &HubPlaces,
    waiting: &BTreeSet<String>,
    now: Timestamp,
) -> Planned {
    let mut planned = Planned::default();
    let mut here: BTreeMap<&str, &Json> = BTreeMap::new();
    let mut elsewhere: Vec<&Json> = Vec::new();
    for object in live.profiles {
        if namespace(object) == place.profiles {
            here.insert(name(object), object);
        } else if is_own(object, place) {
            elsewhere.push(object);
        }
    }
    let mut wanted: BTreeSet<String> = BTreeSet::new();
    for (cluster_name, cluster) in &shown.clusters {
        let name = object_name(cluster_name);
        let before = here.get(name.as_str()).copied();
        wanted.insert(name.clone());
        if before.is_some_and(|object| !is_own(object, place) || manager(object) != Some(MANAGER)) {
            planned.note(format!(
                "cluster `{cluster_name}`: the hub has a ClusterProfile `{}/{name}` of another manager, which stays",
                place.profiles
            ));
            continue;
        }
        let status = shown.statuses.get(cluster_name).map(|status| &**status);
        let one = ProfileObject { cluster, status, before, now };
        let chain = one.writes(place, &name, waiting.contains(cluster_name), &mut planned);
        planned.chain(chain);
    }
    let gone = here.into_iter().filter(|(name, object)| !wanted.contains(*name) && is_own(object, place));
    let gone = gone.map(|(_, object)| object).chain(elsewhere);
    planned.chains.extend(gone.map(|object| vec![ObjectWrite::Delete(object.clone())]));
    planned
}

fn manager(object: &Json) -> Option<&str> {
    object.pointer("/spec/clusterManager/name").and_then(Json::as_str)
}

/// One cluster, and its profile if it has one.
struct ProfileObject<'o> {
    cluster: &'o Cluster,
    status: Option<&'o ClusterStatus>,
    before: Option<&'o Json>,
    now: Timestamp,
}

impl ProfileObject<'_> {
    fn writes(&self, place: &HubPlaces, name: &str, waits: bool, planned: &mut Planned) -> WriteChain {
        let labels = [own_label(place), (MANAGER_LABEL.to_owned(), MANAGER.to_owned())];
        let blank = || {
            json!({
                "apiVersion": format!("{GROUP}/{VERSION}"),
                "kind": KIND,
                "metadata": {"name": name, "namespace": place.profiles},
            })
        };
        let base = self.before.cloned().unwrap_or_else(blank);
        let mut after = marked(&base, &labels, &[]);
        after["spec"]["clusterManager"]["name"] = json!(MANAGER);
        after["spec"]["displayName"] = json!(self.cluster.name);
        let mut writes = WriteChain::new();
        match self.before {
            None => writes.push(ObjectWrite::Create(after.clone())),
            Some(before) => {
                let is_whole = labels.iter().all(|(key, value)| label(before, key) == Some(value))
                    && before["spec"] == after["spec"];
                if !is_whole {
                    writes.push(ObjectWrite::Replace(after.clone()));
                }
            }
        }
        let status = self.status(planned);
        if self.before.is_none_or(|before| before.get("status") != Some(&status)) && !waits {
            after["status"] = status;
            writes.push(ObjectWrite::ReplaceStatus(after));
        }
        writes
    }

    fn status(&self, planned: &mut Planned) -> Json {
        let mut status = Map::new();
        // Other writers set the access providers.
        for kept in ["accessProviders", "credentialProviders"] {
            if let Some(value) = self.before.and_then(|before| before.pointer(&format!("/status/{kept}"))) {
                status.insert(kept.to_owned(), value.clone());
            }
        }
        let version =
            self.cluster.details.get("status.version").and_then(|version| version.get("kubernetes"));
        let claim = |claims: &BTreeMap<String, String>| claims.get(VERSION_CLAIM).cloned();
        let reported =
            self.status.and_then(|status| claim(&status.claims)).or_else(|| claim(&self.cluster.claims));
        if let Some(version) = reported.map(Json::from).or_else(|| version.cloned()) {
            status.insert("version".to_owned(), json!({"kubernetes": version}));
        }
        status.insert("conditions".to_owned(), self.conditions());
        let properties = self.properties(planned);
        if properties.as_array().is_some_and(|list| !list.is_empty()) {
            status.insert("properties".to_owned(), properties);
        }
        Json::Object(status)
    }

    /// Returns the claims of the inventory, overridden by the member's newer reports.
    fn properties(&self, planned: &mut Planned) -> Json {
        let mut claims = self.cluster.claims.clone();
        claims.extend(self.status.map(|status| status.claims.clone()).unwrap_or_default());
        let before =
            self.before.and_then(|before| before.pointer("/status/properties")).and_then(Json::as_array);
        let mut list = Vec::new();
        for (name, value) in claims {
            if name.chars().count() > LONGEST_PROPERTY || value.chars().count() > LONGEST_VALUE {
                planned.note(format!(
                    "cluster `{}`: the property `{}` is longer than a ClusterProfile may hold, and is left out",
                    self.cluster.name,
                    berth_base::text::cut(&name, 100)
                ));
                continue;
            }
            if name.is_empty() || value.is_empty() {
                continue;
            }
            let same = |one: &&Json| one["name"] == name.as_str() && one["value"] == value.as_str();
            let one = before.into_iter().flatten().find(same).cloned();
            let seconds = self.moment();
            list.push(
                one.unwrap_or_else(|| json!({"name": name, "value": value, "lastObservedTime": seconds})),
            );
        }
        Json::Array(list)
    }

    fn conditions(&self) -> Json {
        let [healthy, joined] = self.standing();
        Json::Array(vec![self.condition("ControlPlaneHealthy", healthy), self.condition("Joined", joined)])
    }

    /// Judges the control plane and the membership by the member's report, or else by the inventory.
    fn standing(&self) -> [(&'static str, &'static str, String); 2] {
        let Some(status) = self.status.filter(|status| status.reported.is_some()) else {
            let none = || "no member has reported yet".to_owned();
            let joined = ("False", "NoReport", none());
            return match &self.cluster.standing {
                Readiness::Reported(report) => {
                    let said = "as the inventory says".to_owned();
                    let healthy = match report.ready {
                        Some(true) => ("True", "InventoryReady", said),
                        Some(false) => ("False", "InventoryNotReady", said),
                        None => ("Unknown", "NoReport", none()),
                    };
                    [healthy, joined]
                }
                Readiness::Assumed => [("Unknown", "NoReport", none()), joined],
            };
        };
        if let Some(silence) = status.silence() {
            let message = format!("the member is silent since {}", silence.since);
            return [("Unknown", "MemberSilent", message.clone()), ("False", "MemberSilent", message)];
        }
        let joined = ("True", "MemberReports", String::new());
        match status.applied.as_ref().and_then(|applied| applied.failing.as_ref()) {
            Some(failing) => [("Unknown", "SyncFails", failing.to_string()), joined],
            None => [("True", "MemberReports", String::new()), joined],
        }
    }

    fn condition(&self, kind: &str, (status, reason, message): (&str, &str, String)) -> Json {
        let message = berth_base::text::cut(&message, LONGEST_MESSAGE);
        let before =
            self.before.and_then(|before| before.pointer("/status/conditions")).and_then(Json::as_array);
        let same = |one: &&Json| one["type"] == kind && one["status"] == status;
        let since =
            before.into_iter().flatten().find(same).and_then(|one| one["lastTransitionTime"].as_str());
        let since = since.map_or_else(|| self.moment(), str::to_owned);
        json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since})
    }

    fn moment(&self) -> String {
        let seconds = Timestamp::from_second(self.now.as_second());
        seconds.unwrap_or(self.now).to_string()
    }
}

/// The claim with a cluster's version of Kubernetes, as Open Cluster Management names it.
const VERSION_CLAIM: &str = "kubeversion.open-cluster-management.io";

/// Returns a note on the clusters without a profile, for a hub whose profiles another manager writes.
pub fn missing(shown: &HubContent, profiles: &[Json], place: &HubPlaces) -> Option<String> {
    let here: BTreeSet<&str> =
        profiles.iter().filter(|one| namespace(one) == place.profiles).map(name).collect();
    let picked: BTreeSet<&str> =
        shown.decisions.values().flat_map(|one| one.picks.iter().map(|pick| &*pick.cluster)).collect();
    let missing: Vec<&str> =
        picked.into_iter().filter(|cluster| !here.contains(object_name(cluster).as_str())).collect();
    if missing.is_empty() {
        return None;
    }
    Some(format!(
        "decisions name {} without a ClusterProfile in the namespace `{}`: {}",
        berth_base::text::counted(missing.len(), "cluster"),
        place.profiles,
        berth_base::text::some_of(&missing, 5)
    ))
}
