//! Decisions → PlacementDecisions, of SIG Multicluster (KEP-5313) and of Open Cluster Management.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::naming::{
    PLACEMENT, annotation, is_own, label, label_value, marked, name, namespace, object_name, own_label,
    placement_text,
};
use super::slices::{Slice, assign, order};
use super::{HubContent, HubPlaces, Planned};
use crate::dialects::DIALECTS;
use berth_base::model::{Decision, Key, ObjectWrite, WriteChain};

/// The API whose objects are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DecisionApi {
    Sig,
    Ocm,
}

pub const KIND: &str = "PlacementDecision";
pub const PLURAL: &str = "placementdecisions";
/// OCM's group of Placements and their decisions.
pub const OCM_GROUP: &str = "cluster.open-cluster-management.io";
/// The annotation by which a Placement disables OCM's scheduler.
const NOT_SCHEDULED: &str = "cluster.open-cluster-management.io/experimental-scheduling-disable";
/// The annotation with the index of the decision group whose clusters an object names.
const GROUP: &str = "berth.dev/decision-group";
/// The name of the scheduler.
const SCHEDULER: &str = "berth";

impl DecisionApi {
    pub fn group(self) -> &'static str {
        match self {
            DecisionApi::Sig => crate::dialects::inventory::GROUP,
            DecisionApi::Ocm => OCM_GROUP,
        }
    }

    pub fn version(self) -> &'static str {
        match self {
            DecisionApi::Sig => crate::dialects::inventory::VERSION,
            DecisionApi::Ocm => "v1beta1",
        }
    }

    /// Returns the text between a placement's name and a slice's number.
    fn joint(self) -> &'static str {
        if self == DecisionApi::Sig { "-" } else { "-decision-" }
    }

    /// Returns the number of the first slice.
    fn first(self) -> usize {
        if self == DecisionApi::Sig { 0 } else { 1 }
    }
}

/// The objects in a hub.
#[derive(Clone, Copy, Debug, Default)]
pub struct LiveDecisions<'l> {
    /// The decisions of the form, in all namespaces.
    pub decisions: &'l [Json],
    /// OCM's Placements, if the hub has any.
    pub placements: &'l [Json],
}

/// The place of a placement's objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Home {
    namespace: String,
    /// The value of the label by which consumers find the objects.
    key: String,
}

/// Plans the writes that bring the decisions to a hub.
pub fn plan(form: DecisionApi, shown: &HubContent, live: LiveDecisions<'_>, place: &HubPlaces) -> Planned {
    let mut planned = Planned::default();
    let mut own: BTreeMap<&str, Vec<&Json>> = BTreeMap::new();
    for object in live.decisions.iter().filter(|object| is_own(object, place)) {
        own.entry(annotation(object, PLACEMENT).unwrap_or_default()).or_default().push(object);
    }
    let foreign: BTreeSet<(&str, &str)> = live
        .decisions
        .iter()
        .filter(|object| !is_own(object, place))
        .map(|object| (namespace(object), name(object)))
        .collect();
    let scheduled: BTreeSet<(&str, &str)> = live
        .placements
        .iter()
        .filter(|placement| annotation(placement, NOT_SCHEDULED) != Some("true"))
        .map(|placement| (namespace(placement), name(placement)))
        .collect();
    let homes = homes(shown, &own, place, form, &mut planned);
    let mut kept: BTreeSet<String> = BTreeSet::new();
    for (home, decision) in homes {
        let text = placement_text(&decision.key);
        let objects = own.get(text.as_str()).map(Vec::as_slice).unwrap_or_default();
        if form == DecisionApi::Ocm && scheduled.contains(&(home.namespace.as_str(), home.key.as_str())) {
            planned.note(format!(
                "{}: the hub has a Placement `{}/{}` of its own, whose decisions Open Cluster Management makes",
                decision.key, home.namespace, home.key
            ));
            kept.insert(text);
            continue;
        }
        planned.chain(
            PlacementObjects { form, place, home: &home, text: &text, foreign: &foreign }
                .writes(decision, objects),
        );
        kept.insert(text);
    }
    for (text, objects) in own {
        if !kept.contains(text) {
            planned.chain(objects.into_iter().cloned().map(ObjectWrite::Delete).collect());
        }
    }
    planned
}

/// Returns the place of each placement's objects. If several placements have the same place, the first that
/// already has objects there keeps it.
fn homes<'s>(
    shown: &'s HubContent,
    own: &BTreeMap<&str, Vec<&Json>>,
    place: &HubPlaces,
    form: DecisionApi,
    planned: &mut Planned,
) -> BTreeMap<Home, &'s Decision> {
    let mut homes: BTreeMap<Home, &Decision> = BTreeMap::new();
    let is_placement = |key: &Key| DIALECTS.iter().any(|dialect| (dialect.is_placement)(key));
    for decision in shown.decisions.values().filter(|decision| is_placement(&decision.key)) {
        let home = Home::of(&decision.key, place);
        let is_there = |decision: &Decision| {
            let mut objects = own.get(placement_text(&decision.key).as_str()).into_iter().flatten();
            objects.any(|object| {
                namespace(object) == home.namespace && label(object, form.key_label()) == Some(&home.key)
            })
        };
        let loser = match homes.get(&home) {
            None => None,
            Some(other) if is_there(decision) && !is_there(other) => Some(*other),
            Some(_) => Some(decision),
        };
        if let Some(loser) = loser {
            planned.note(format!(
                "{}: another placement's decisions have the name `{}` in the namespace `{}`; rename one of the two",
                loser.key, home.key, home.namespace
            ));
        }
        if loser.is_none_or(|loser| loser.key != decision.key) {
            homes.insert(home, decision);
        }
    }
    homes
}

impl Home {
    fn of(key: &Key, place: &HubPlaces) -> Home {
        let (own, name) = (&*key.namespace, &*key.name);
        let (namespace, key) = match &place.decisions {
            Some(namespace) if own.is_empty() => (namespace.as_str(), name.to_owned()),
            Some(namespace) => (namespace.as_str(), format!("{own}.{name}")),
            None if own.is_empty() => (place.profiles.as_str(), name.to_owned()),
            None => (own, name.to_owned()),
        };
        Home { namespace: namespace.to_owned(), key: label_value(&key) }
    }
}

impl DecisionApi {
    /// Returns the label by which consumers find a placement's objects.
    fn key_label(self) -> &'static str {
        match self {
            DecisionApi::Sig => "multicluster.x-k8s.io/decision-key",
            DecisionApi::Ocm => "cluster.open-cluster-management.io/placement",
        }
    }

    fn index_label(self) -> &'static str {
        match self {
            DecisionApi::Sig => "multicluster.x-k8s.io/decision-index",
            DecisionApi::Ocm => "cluster.open-cluster-management.io/decision-group-index",
        }
    }
}

/// The objects of one placement.
struct PlacementObjects<'p> {
    form: DecisionApi,
    place: &'p HubPlaces,
    home: &'p Home,
    text: &'p str,
    foreign: &'p BTreeSet<(&'p str, &'p str)>,
}

impl PlacementObjects<'_> {
    fn writes(&self, decision: &Decision, own: &[&Json]) -> WriteChain {
        let (here, elsewhere): (Vec<&Json>, Vec<&Json>) = own.iter().partition(|object| {
            self.number(name(object)).is_some() && namespace(object) == self.home.namespace
        });
        let live: Vec<Slice> = here.iter().filter_map(|object| self.read(object)).collect();
        let mut groups: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
        let mut names: BTreeMap<usize, &str> = BTreeMap::new();
        // A leaving cluster whose removal is held still has its copy, so consumers keep theirs.
        for pick in decision.picks.iter() {
            let (index, name) = pick.group.as_ref().map_or((0, ""), |group| (group.index, &group.name));
            groups.entry(index).or_default().insert(self.entry_name(&pick.cluster));
            names.insert(index, name);
        }
        let is_grouped = decision.picks.iter().any(|pick| pick.group.is_some());
        let taken = self.foreign.iter().filter(|(namespace, _)| *namespace == self.home.namespace);
        let taken = taken.filter_map(|(_, name)| self.number(name)).collect();
        let wanted = assign(&groups, &live, &taken, self.form.first());
        let labels = |slice: &Slice| {
            let name = names.get(&slice.group).copied().unwrap_or_default();
            self.labels(slice, is_grouped, name)
        };
        let find = |number: usize| here.iter().find(|object| self.number(name(object)) == Some(number));
        let mut steps = order(&live, &wanted);
        // An object with the right clusters may have lost a label or an annotation.
        let is_marred = |slice: &&Slice| {
            steps.iter().all(|step| step.number != slice.number)
                && find(slice.number).is_some_and(|object| {
                    !self.is_marked(object, slice, &labels(slice))
                        || self.list(object) != Some(&self.decisions(&slice.clusters))
                })
        };
        let marred: Vec<Slice> = wanted.iter().filter(is_marred).cloned().collect();
        steps.extend(marred);
        let mut writes = WriteChain::new();
        let mut latest: BTreeMap<usize, Json> = BTreeMap::new();
        for step in steps {
            let before = latest.get(&step.number).or_else(|| find(step.number).copied()).cloned();
            let after = self.write(before.as_ref(), &step, &labels(&step), &mut writes);
            latest.insert(step.number, after);
        }
        let is_left = |object: &&&Json| {
            let number = self.number(name(object));
            wanted.iter().all(|slice| Some(slice.number) != number)
        };
        let left = here.iter().filter(is_left).chain(&elsewhere);
        writes.extend(left.map(|object| ObjectWrite::Delete((*object).clone())));
        writes
    }

    /// Adds the writes of one slice. Returns the resulting object.
    fn write(
        &self,
        before: Option<&Json>,
        slice: &Slice,
        labels: &[(String, String)],
        writes: &mut WriteChain,
    ) -> Json {
        let notes = self.annotations(slice);
        let decisions = self.decisions(&slice.clusters);
        let blank = || {
            json!({
                "apiVersion": format!("{}/{}", self.form.group(), self.form.version()),
                "kind": KIND,
                "metadata": {"name": self.name_of(slice.number), "namespace": self.home.namespace},
            })
        };
        let base = before.cloned().unwrap_or_else(blank);
        let mut after = marked(&base, labels, &notes);
        if self.form == DecisionApi::Sig {
            after["schedulerName"] = json!(SCHEDULER);
            after["decisions"] = decisions;
            writes.push(if before.is_some() {
                ObjectWrite::Replace(after.clone())
            } else {
                ObjectWrite::Create(after.clone())
            });
            return after;
        }
        after["status"]["decisions"] = decisions;
        if before.is_none() {
            // Readers find the object by a label, which it gets once its status is complete.
            let key = self.form.key_label();
            let hidden: Vec<_> = labels.iter().filter(|(label, _)| label != key).cloned().collect();
            writes.push(ObjectWrite::Create(marked(&base, &hidden, &notes)));
        }
        if before.is_none_or(|before| self.list(before) != self.list(&after)) {
            writes.push(ObjectWrite::ReplaceStatus(after.clone()));
        }
        if before.is_none_or(|before| !self.is_marked(before, slice, labels)) {
            writes.push(ObjectWrite::Replace(after.clone()));
        }
        after
    }

    fn name_of(&self, number: usize) -> String {
        format!("{}{}{number}", object_name(&self.home.key.to_ascii_lowercase()), self.form.joint())
    }

    /// Returns the number of a slice of this placement, from the slice's name.
    fn number(&self, name: &str) -> Option<usize> {
        let rest = name.strip_prefix(&*object_name(&self.home.key.to_ascii_lowercase()))?;
        let number = rest.strip_prefix(self.form.joint())?.parse().ok()?;
        (self.name_of(number) == name).then_some(number)
    }

    fn labels(&self, slice: &Slice, is_grouped: bool, group: &str) -> Vec<(String, String)> {
        let index = if is_grouped || self.form == DecisionApi::Ocm { slice.group } else { slice.number };
        let pair = |key: &str, value: String| (key.to_owned(), value);
        let mut labels = vec![
            own_label(self.place),
            pair(self.form.key_label(), self.home.key.clone()),
            pair(self.form.index_label(), index.to_string()),
        ];
        match self.form {
            DecisionApi::Sig => {
                labels.push(pair("multicluster.x-k8s.io/placement-key", self.home.key.clone()));
                labels.push(pair("x-k8s.io/cluster-manager", SCHEDULER.to_owned()));
            }
            DecisionApi::Ocm => {
                let key = "cluster.open-cluster-management.io/decision-group-name";
                labels.push(pair(key, label_value(group)));
            }
        }
        labels
    }

    fn annotations(&self, slice: &Slice) -> [(String, String); 2] {
        let pair = |key: &str, value: String| (key.to_owned(), value);
        [pair(PLACEMENT, self.text.to_owned()), pair(GROUP, slice.group.to_string())]
    }

    /// Returns the name of a cluster in a decision.
    fn entry_name(&self, cluster: &str) -> String {
        match self.form {
            DecisionApi::Sig => object_name(cluster),
            DecisionApi::Ocm => cluster.to_owned(),
        }
    }

    fn decisions(&self, clusters: &BTreeSet<String>) -> Json {
        let profiles = &self.place.profiles;
        let entry = |cluster: &String| match self.form {
            DecisionApi::Sig => json!({"clusterProfileRef": {"name": cluster, "namespace": profiles}}),
            DecisionApi::Ocm => json!({"clusterName": cluster, "reason": ""}),
        };
        clusters.iter().map(entry).collect()
    }

    /// Returns the list of clusters in an object.
    fn list<'o>(&self, object: &'o Json) -> Option<&'o Json> {
        match self.form {
            DecisionApi::Sig => object.get("decisions"),
            DecisionApi::Ocm => object.pointer("/status/decisions"),
        }
    }

    /// Reads an object as a slice.
    fn read(&self, object: &Json) -> Option<Slice> {
        let entries = self.list(object).and_then(Json::as_array).into_iter().flatten();
        let cluster = |entry: &Json| {
            let name = match self.form {
                DecisionApi::Sig => entry.pointer("/clusterProfileRef/name"),
                DecisionApi::Ocm => entry.get("clusterName"),
            };
            name.and_then(Json::as_str).map(str::to_owned)
        };
        let group = annotation(object, GROUP).and_then(|group| group.parse().ok()).unwrap_or_default();
        let number = self.number(name(object))?;
        Some(Slice { number, group, clusters: entries.filter_map(cluster).collect() })
    }

    /// Reports whether an object has the labels and everything else that berth sets beside the list.
    fn is_marked(&self, object: &Json, slice: &Slice, labels: &[(String, String)]) -> bool {
        labels.iter().all(|(key, value)| label(object, key) == Some(value))
            && self.annotations(slice).iter().all(|(key, value)| annotation(object, key) == Some(value))
            && (self.form == DecisionApi::Ocm || object["schedulerName"] == SCHEDULER)
    }
}
