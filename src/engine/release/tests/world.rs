//! A fleet in memory, with members that apply their folders and report, and its own clock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use berth_base::diag::Pos;
use berth_base::model::cluster::WorkloadName;
use berth_base::model::release::{CopyReport, Health, Releases};
use berth_base::model::rollout::Strategy;
use berth_base::model::rollout_policy::RolloutPolicy;
use berth_base::model::{
    Cluster, ClusterStatus, ContentId, Decision, Digest, Fleet, Group, Key, Map, Object, ObjectId, Pick,
    Shared, Template, Timestamp, Workload,
};
use serde_json::json;

use crate::release::stages::ClusterLabels;
use crate::release::{self, ReleaseInputs, copies};
use crate::render::{self, MemoryContents, Previous};
use crate::state::{State, releases_file};
use berth_base::packed::Packed;

pub(super) struct World {
    pub(super) fleet: Fleet,
    pub(super) state: State,
    contents: MemoryContents,
    pub(super) now: i64,
    /// The reports that the hub has, by cluster.
    pub(super) statuses: Map<String, Shared<ClusterStatus>>,
    pub(super) warnings: Vec<String>,
    /// The reasons why clusters wait.
    pub(super) waits: BTreeMap<Key, BTreeMap<String, Arc<str>>>,
    /// The next moment at which the state changes by itself.
    pub(super) next_change: Option<Timestamp>,
    /// The decision groups by cluster.
    pub(super) groups: BTreeMap<String, usize>,
    /// The clusters of the fleet that are not picked.
    pub(super) unpicked: BTreeSet<String>,
    /// The workloads that pick no cluster.
    pub(super) placed_nowhere: BTreeSet<Key>,
}

pub(super) fn key() -> Key {
    Key::new("", "Workload", "shop", "web")
}

/// Returns the key of a second workload.
pub(super) fn other_key() -> Key {
    Key::new("", "Workload", "shop", "api")
}

/// Returns a policy of this name, for all workloads unless `change` narrows it.
pub(super) fn policy(name: &str, change: impl FnOnce(&mut RolloutPolicy)) -> RolloutPolicy {
    let mut policy = RolloutPolicy {
        key: Key::new("berth.dev", "RolloutPolicy", "", name),
        origin: Pos::file("rollouts/orders.yaml"),
        workloads: None,
        strategy: None,
        on_failure: None,
        freezes: Vec::new(),
        paused: None,
        pins: Vec::new(),
        after: Vec::new(),
        together: false,
        approved: Vec::new(),
        aborted: Vec::new(),
        restarted: Vec::new(),
    };
    change(&mut policy);
    policy
}

pub(super) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).expect("a moment")
}

impl World {
    pub(super) fn new(strategy: Strategy, clusters: &[&str]) -> World {
        let mut world = World {
            fleet: Fleet::default(),
            state: State::default(),
            contents: MemoryContents::default(),
            now: 0,
            statuses: Map::new(),
            warnings: Vec::new(),
            waits: BTreeMap::new(),
            next_change: None,
            groups: BTreeMap::new(),
            unpicked: BTreeSet::new(),
            placed_nowhere: BTreeSet::new(),
        };
        world.add(key(), strategy);
        clusters.iter().for_each(|name| world.join(name));
        world
    }

    /// Adds a workload without objects.
    pub(super) fn add(&mut self, key: Key, strategy: Strategy) {
        let workload = Workload { strategy, ..Workload::new(key.clone(), Pos::file("web.yaml"), Vec::new()) };
        self.fleet.workloads.insert(key, workload.into());
    }

    /// Sets the workload's strategy.
    pub(super) fn go_by(&mut self, strategy: Strategy) {
        let before = self.fleet.workloads[&key()].clone();
        self.fleet.workloads.insert(key(), Workload { strategy, ..(*before).clone() }.into());
    }

    /// Returns three clusters on version 1, proven.
    pub(super) fn proven(strategy: Strategy) -> World {
        let mut world = World::new(strategy, &["a", "b", "c"]);
        world.edit("1");
        for _ in 0..4 {
            world.settle();
            world.now += 100;
            world.report_all(Health::Succeeded);
        }
        world.settle();
        assert_eq!(world.shown(), "a=1 b=1 c=1");
        assert!(world.releases().is_proven(), "{:?}", world.releases());
        assert_eq!(world.version_by_record("a", &key()).as_deref(), Some("1"));
        world
    }

    pub(super) fn join(&mut self, name: &str) {
        let cluster = Cluster { name: name.into(), ..Cluster::default() };
        self.fleet.clusters.insert(name.to_owned(), cluster.into());
    }

    pub(super) fn leave(&mut self, name: &str) {
        self.fleet.clusters.remove(name);
        self.statuses.remove(name);
    }

    /// Sets the wanted version of the workload.
    pub(super) fn edit(&mut self, version: &str) {
        self.edit_of(&key(), version);
    }

    pub(super) fn edit_of(&mut self, key: &Key, version: &str) {
        let content = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": &*key.name, "namespace": "shop" },
            "data": { "version": version },
        });
        let id = ObjectId::of(&content).expect("an object");
        let template = Template {
            object: Arc::new(Object { id, origin: Pos::file("web.yaml"), content: Packed::of(&content) }),
            final_labels: Arc::default(),
            sync_annotations: Arc::default(),
            retained: Vec::new(),
        };
        let before = self.fleet.workloads[key].clone();
        let workload = Workload { templates: vec![template], ..(*before).clone() };
        self.fleet.workloads.insert(key.clone(), workload.into());
    }

    /// Runs one pass of the hub; true if it changed the state.
    pub(super) fn pass(&mut self) -> bool {
        let next = self.next_state();
        let is_new = next != self.state;
        // A proof reads reports from the facts only. Any other change may cause a publication at any moment.
        let reports = std::mem::replace(&mut self.statuses, next.facts.clone());
        assert_eq!(self.next_state().releases, next.releases, "the records of a pass and of its proof");
        assert!(self.next_state() == next, "the state of a pass is not the one of its proof");
        self.statuses = reports;
        self.state = read_back(next);
        is_new
    }

    /// Returns the state that a pass would publish.
    pub(super) fn next_state(&mut self) -> State {
        let picks = self.fleet.clusters.keys().filter(|name| !self.unpicked.contains(*name));
        let group = |name| self.groups.get(name).map(|index| Group { index: *index, name: String::new() });
        let picks = picks.map(|name| Pick::of(name.as_str()).with(|details| details.group = group(name)));
        let picks: Vec<Pick> = picks.collect();
        let decision = |key: &Key| {
            let picks = if self.placed_nowhere.contains(key) { Vec::new() } else { picks.clone() };
            Decision { picks: picks.into(), ..Decision::new(key.clone(), "web.yaml") }
        };
        let decisions = self.fleet.workloads.keys().map(|key| (key.clone(), decision(key)));
        let mut decisions: Map<Key, Decision> = decisions.collect();
        let previous = Previous { decisions: &self.state.decisions, folders: &self.state.folders };
        let rendered = render::render(&self.fleet, &mut decisions, previous, &mut self.contents);
        let folders = rendered.expect("memory never fails").folders;
        let mut next = State { decisions, folders, ..State::default() };
        let labels = &ClusterLabels::of(&self.fleet, &Map::new());
        let (fleet, current, statuses) = (&self.fleet, &self.state, &self.statuses);
        let given = ReleaseInputs { fleet, labels, current, statuses, now: at(self.now) };
        let released = release::release(given, &mut next, &mut self.contents).expect("memory never fails");
        self.warnings = released.diagnostics.iter().map(ToString::to_string).collect();
        self.next_change = released.next_change;
        self.waits = released.traces.into_iter().map(|(key, trace)| (key, trace.waits)).collect();
        next
    }

    /// Passes until nothing changes; a second pass over the same inputs never does.
    pub(super) fn settle(&mut self) {
        self.pass();
        assert!(!self.pass(), "a second pass over the same inputs changed the state");
    }

    /// Lets a member report on the copies in its folder.
    pub(super) fn report(&mut self, cluster: &str, health: Health, message: &str) {
        let status = self.status(cluster, health, message);
        self.statuses.insert(cluster.to_owned(), status.into());
    }

    /// Returns the status of a member on the current copies in its folder.
    fn status(&self, cluster: &str, health: Health, message: &str) -> ClusterStatus {
        let healths = self.fleet.workloads.keys().map(|key| (key.clone(), health)).collect();
        self.status_of(cluster, &healths, message)
    }

    /// Returns a status on which the copies in a cluster's folder failed.
    pub(super) fn failure(&self, cluster: &str) -> ClusterStatus {
        self.status(cluster, Health::Failed, "no")
    }

    /// Returns the same status, with the health of each workload.
    pub(super) fn status_of(
        &self,
        cluster: &str,
        healths: &BTreeMap<Key, Health>,
        message: &str,
    ) -> ClusterStatus {
        let report = |(key, health): (&Key, &Health)| {
            let (digest, message) = (self.digest_of(cluster, key), message.to_owned());
            (WorkloadName::of(key), CopyReport { digest, health: *health, since: None, message })
        };
        ClusterStatus {
            cluster: cluster.to_owned(),
            reported: Some(at(self.now)),
            copies: healths.iter().map(report).collect(),
            ..ClusterStatus::default()
        }
    }

    /// Returns the last report from a cluster on a workload, with its moment.
    pub(super) fn report_of(&self, cluster: &str, key: &Key) -> Option<(Timestamp, &CopyReport)> {
        let status = self.statuses.get(cluster)?;
        Some((status.reported?, status.copies.get(&WorkloadName::of(key))?))
    }

    /// Returns the digest of the copies in a cluster's folder.
    pub(super) fn digest_of(&self, cluster: &str, key: &Key) -> Digest {
        let path = path_of(key);
        let copy = self.copy_of(cluster, key);
        copies::digest(copy.map(|id| (path.as_str(), id)))
    }

    fn copy_of(&self, cluster: &str, key: &Key) -> Option<ContentId> {
        self.state.folders.get(cluster)?.get(path_of(key).as_str()).copied()
    }

    pub(super) fn report_all(&mut self, health: Health) {
        let names: Vec<String> = self.fleet.clusters.keys().cloned().collect();
        names.iter().for_each(|name| self.report(name, health, ""));
    }

    /// Returns the versions that clusters have, such as `a=1 b=1 c=-`.
    pub(super) fn shown(&self) -> String {
        let names: BTreeSet<&String> = self.fleet.clusters.keys().chain(self.state.folders.keys()).collect();
        let one = |name: &String| format!("{name}={}", self.version(name).unwrap_or("-".to_owned()));
        names.into_iter().map(one).collect::<Vec<_>>().join(" ")
    }

    /// Returns the version in a cluster's folder.
    pub(super) fn version(&self, cluster: &str) -> Option<String> {
        self.version_of(cluster, &key())
    }

    pub(super) fn version_of(&self, cluster: &str, key: &Key) -> Option<String> {
        self.version_in(self.copy_of(cluster, key)?)
    }

    /// Returns the version of the release that the record gives a cluster, if its inputs are still kept.
    pub(super) fn version_by_record(&self, cluster: &str, key: &Key) -> Option<String> {
        let releases = self.releases_of(key)?;
        self.version_of_release(releases, releases.of_cluster(cluster)?)
    }

    pub(super) fn version_of_release(&self, releases: &Releases, number: u64) -> Option<String> {
        self.version_in(releases.get(number)?.inputs)
    }

    fn version_in(&self, content: ContentId) -> Option<String> {
        let text = String::from_utf8_lossy(self.contents.bytes(&content)?).into_owned();
        let line = text.lines().find_map(|line| line.trim().strip_prefix("version: "))?;
        Some(line.trim_matches('"').to_owned())
    }

    pub(super) fn releases(&self) -> &Releases {
        &self.state.releases[&key()]
    }

    /// Returns the clusters that have not reported on their copies yet.
    pub(super) fn awaited(&self) -> Vec<&str> {
        self.releases().awaited.keys().map(String::as_str).collect()
    }

    pub(super) fn releases_of(&self, key: &Key) -> Option<&Releases> {
        self.state.releases.get(key).map(|releases| &**releases)
    }
}

/// Returns the path of a workload's object.
fn path_of(key: &Key) -> String {
    format!("shop/ConfigMap_{}.yaml", key.name)
}

/// Returns a state with its releases as read from the branch.
fn read_back(mut state: State) -> State {
    for releases in state.releases.values_mut() {
        let inputs = releases.all().map(|release| (release.number, release.inputs)).collect();
        let text = releases_file::write(releases);
        *releases =
            releases_file::read(text.as_bytes(), &inputs).expect("what is written is read back").into();
    }
    state
}
