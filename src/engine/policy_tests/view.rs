//! The fleet with its decisions, before or after a change, and the values that rules see of it: the fleet,
//! a workload and a cluster as CEL records.
//!
//! docs/policy-tests.md lists the fields. Equal parts are shared, so a large fleet needs no more memory
//! than its decisions.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use berth_base::model::selector::Labels;
use berth_base::model::{Action, Cluster, Decision, Fleet, Key, Map, Pick, Taint, Verb, Workload};
use berth_cel::{Field, MapKey, Record, Value, Variable};

pub(super) const AFTER: Variable<'static> = Variable { name: "after", record: Some(&FLEET_RECORD) };
pub(super) const BEFORE: Variable<'static> = Variable { name: "before", record: Some(&FLEET_RECORD) };
pub(super) const WORKLOAD: Variable<'static> = Variable { name: "workload", record: Some(&WORKLOAD_RECORD) };
pub(super) const OLD_WORKLOAD: Variable<'static> =
    Variable { name: "oldWorkload", record: Some(&WORKLOAD_RECORD) };
pub(super) const CLUSTER: Variable<'static> = Variable { name: "cluster", record: Some(&CLUSTER_RECORD) };
pub(super) const OLD_CLUSTER: Variable<'static> =
    Variable { name: "oldCluster", record: Some(&CLUSTER_RECORD) };

static FLEET_RECORD: Record = Record {
    name: "fleet",
    fields: &[("clusters", Field::ListOf(&CLUSTER_RECORD)), ("workloads", Field::ListOf(&WORKLOAD_RECORD))],
};

static WORKLOAD_RECORD: Record = Record {
    name: "workload",
    fields: &[
        ("kind", Field::Text),
        ("group", Field::Text),
        ("namespace", Field::Text),
        ("name", Field::Text),
        ("labels", Field::Texts),
        ("objects", Field::ListOf(&OBJECT_RECORD)),
        ("clusters", Field::ListOf(&PLACE_RECORD)),
        ("replicas", Field::Int),
    ],
};

static OBJECT_RECORD: Record = Record {
    name: "object",
    fields: &[
        ("kind", Field::Text),
        ("group", Field::Text),
        ("namespace", Field::Text),
        ("name", Field::Text),
        ("labels", Field::Texts),
    ],
};

static PLACE_RECORD: Record = Record {
    name: "workload's cluster",
    fields: &[
        ("name", Field::Text),
        ("labels", Field::Texts),
        ("claims", Field::Texts),
        ("properties", Field::Texts),
        ("taints", Field::ListOf(&TAINT_RECORD)),
        ("replicas", Field::Int),
    ],
};

static CLUSTER_RECORD: Record = Record {
    name: "cluster",
    fields: &[
        ("name", Field::Text),
        ("labels", Field::Texts),
        ("claims", Field::Texts),
        ("properties", Field::Texts),
        ("taints", Field::ListOf(&TAINT_RECORD)),
        ("workloads", Field::ListOf(&GUEST_RECORD)),
    ],
};

static GUEST_RECORD: Record = Record {
    name: "cluster's workload",
    fields: &[
        ("kind", Field::Text),
        ("group", Field::Text),
        ("namespace", Field::Text),
        ("name", Field::Text),
        ("labels", Field::Texts),
        ("replicas", Field::Int),
    ],
};

static TAINT_RECORD: Record = Record {
    name: "taint",
    fields: &[("key", Field::Text), ("value", Field::Text), ("effect", Field::Text)],
};

/// One side of a change as rules see it. Values are made at first use, and cached.
pub(super) struct View<'a> {
    side: &'a Side<'a>,
    /// The entries of workloads' clusters, by name and replicas.
    places: BTreeMap<(&'a str, i64), Value>,
    guests: Option<BTreeMap<&'a str, Vec<Value>>>,
    fleet: Option<Value>,
}

impl<'a> View<'a> {
    pub(super) fn of(side: &'a Side<'a>) -> View<'a> {
        View { side, places: BTreeMap::new(), guests: None, fleet: None }
    }

    pub(super) fn fleet(&mut self) -> Value {
        if let Some(fleet) = &self.fleet {
            return fleet.clone();
        }
        let side = self.side;
        let clusters = side.clusters.iter().map(|cluster| self.cluster(&cluster.name, cluster)).collect();
        let workloads = side.fleet.workloads.iter();
        let workloads = workloads.map(|(key, workload)| self.workload(key, side, workload)).collect();
        let fleet = record([("clusters", Value::list(clusters)), ("workloads", Value::list(workloads))]);
        self.fleet.insert(fleet).clone()
    }

    /// Returns a workload, described by the side `described`. A workload that this side lacks is in no
    /// cluster.
    pub(super) fn workload(&mut self, key: &Key, described: &Side<'_>, workload: &Workload) -> Value {
        let placed = if self.side.workload(key).is_some() { self.side.places(key) } else { Vec::new() };
        let replicas = placed.iter().fold(0_i64, |sum, (_, replicas)| sum.saturating_add(*replicas));
        let clusters = placed.into_iter().map(|(name, replicas)| self.place(name, replicas)).collect();
        let objects = workload.templates.iter().map(|template| {
            let (id, content) = (&template.object.id, &template.object.content);
            let labels = content.pointer("/metadata/labels").map(|labels| Value::from(&labels.to_json()));
            record([
                ("kind", Value::text(&id.kind)),
                ("group", Value::text(&id.group)),
                ("namespace", Value::text(&id.namespace)),
                ("name", Value::text(&id.name)),
                ("labels", labels.unwrap_or_else(|| texts(&Labels::new()))),
            ])
        });
        let of_workload = [
            ("objects", Value::list(objects.collect())),
            ("clusters", Value::list(clusters)),
            ("replicas", Value::Int(replicas)),
        ];
        record(identity(key, described.labels(key)).into_iter().chain(of_workload))
    }

    /// Returns a cluster with these facts. A cluster that this side lacks has no workloads.
    pub(super) fn cluster(&mut self, name: &str, described: &Cluster) -> Value {
        let workloads = self.guests().get(name).cloned().unwrap_or_default();
        record(facts(name, Some(described)).into_iter().chain([("workloads", Value::list(workloads))]))
    }

    fn place(&mut self, name: &'a str, replicas: i64) -> Value {
        let side = self.side;
        let make = || {
            record(facts(name, side.cluster(name)).into_iter().chain([("replicas", Value::Int(replicas))]))
        };
        self.places.entry((name, replicas)).or_insert_with(make).clone()
    }

    /// Returns the workloads of each cluster.
    fn guests(&mut self) -> &BTreeMap<&'a str, Vec<Value>> {
        let side = self.side;
        self.guests.get_or_insert_with(|| {
            let mut guests: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
            for key in side.fleet.workloads.keys() {
                let mut made: BTreeMap<i64, Value> = BTreeMap::new();
                for (cluster, replicas) in side.places(key) {
                    let make = || {
                        let number = [("replicas", Value::Int(replicas))];
                        record(identity(key, side.labels(key)).into_iter().chain(number))
                    };
                    let guest = made.entry(replicas).or_insert_with(make).clone();
                    guests.entry(cluster).or_default().push(guest);
                }
            }
            guests
        })
    }
}

type NamedValue = (&'static str, Value);

fn identity(key: &Key, labels: Option<&Labels>) -> Vec<NamedValue> {
    vec![
        ("kind", Value::text(&key.kind)),
        ("group", Value::text(&key.group)),
        ("namespace", Value::text(&key.namespace)),
        ("name", Value::text(&key.name)),
        ("labels", texts(labels.unwrap_or(&Labels::new()))),
    ]
}

/// Returns the fields of a cluster. A cluster that no document describes has only a name.
fn facts(name: &str, cluster: Option<&Cluster>) -> Vec<NamedValue> {
    let empty = Cluster::default();
    let cluster = cluster.unwrap_or(&empty);
    let taint = |taint: &Taint| {
        record([
            ("key", Value::text(&taint.key)),
            ("value", Value::text(&taint.value)),
            ("effect", Value::text(&taint.effect_word)),
        ])
    };
    vec![
        ("name", Value::text(name)),
        ("labels", texts(&cluster.labels)),
        ("claims", texts(&cluster.claims)),
        ("properties", texts(&cluster.properties)),
        ("taints", Value::list(cluster.taints.iter().map(taint).collect())),
    ]
}

fn texts(texts: &Labels) -> Value {
    let entry = |(key, value): (&String, &String)| (MapKey::Text(key.as_str().into()), Value::text(value));
    Value::Map(Arc::new(texts.iter().map(entry).collect()))
}

fn record(fields: impl IntoIterator<Item = NamedValue>) -> Value {
    let entry = |(name, value): NamedValue| (MapKey::Text(name.into()), value);
    Value::Map(Arc::new(fields.into_iter().map(entry).collect()))
}

/// A fleet and its decisions.
#[derive(Debug)]
pub struct Side<'a> {
    /// The clusters with their members' reported values, by name ascending.
    pub(super) clusters: Vec<Cow<'a, Cluster>>,
    pub(super) fleet: &'a Fleet,
    pub(super) decisions: &'a Map<Key, Decision>,
}

impl<'a> Side<'a> {
    pub fn new(
        clusters: Vec<Cow<'a, Cluster>>,
        fleet: &'a Fleet,
        decisions: &'a Map<Key, Decision>,
    ) -> Side<'a> {
        Side { clusters, fleet, decisions }
    }

    pub(super) fn cluster(&self, name: &str) -> Option<&Cluster> {
        let found = self.clusters.binary_search_by(|cluster| (*cluster.name).cmp(name)).ok()?;
        Some(&self.clusters[found])
    }

    pub(super) fn workload(&self, key: &Key) -> Option<&'a Workload> {
        self.fleet.workloads.get(key).map(|workload| &**workload)
    }

    /// Returns the labels of a workload's document.
    pub(super) fn labels(&self, key: &Key) -> Option<&'a Labels> {
        self.fleet.labels.get(key)
    }

    /// Returns the clusters that pick a workload, rolled out or not, each with its replicas.
    pub(super) fn places(&self, key: &Key) -> Vec<(&'a str, i64)> {
        let picked = self.decisions.get(key).into_iter().flat_map(Decision::picked);
        let own = self.workload(key).map(OwnReplicas::of);
        let replicas = |pick: &Pick| {
            let own =
                || own.as_ref().map_or(0, |own| own.in_cluster(&pick.cluster, self.cluster(&pick.cluster)));
            pick.replicas.unwrap_or_else(own)
        };
        picked.map(|pick| (&*pick.cluster, replicas(pick))).collect()
    }
}

/// The replicas in a workload's own objects, for workloads without divided replicas.
struct OwnReplicas<'a> {
    workload: &'a Workload,
    /// The number of each object with replicas, with its index.
    asked: Vec<(usize, i64)>,
}

impl<'a> OwnReplicas<'a> {
    fn of(workload: &'a Workload) -> OwnReplicas<'a> {
        let number = |(index, template): (usize, &berth_base::model::Template)| {
            Some((index, template.object.content.pointer("/spec/replicas")?.as_i64()?))
        };
        OwnReplicas { workload, asked: workload.templates.iter().enumerate().filter_map(number).collect() }
    }

    fn in_cluster(&self, name: &str, cluster: Option<&Cluster>) -> i64 {
        let all = self.asked.iter().map(|(index, own)| {
            let id = &self.workload.templates[*index].object.id;
            let overrides = self.workload.overrides.iter().rev();
            let mut mine = overrides.filter(|one| one.concerns(id) && one.clusters.include(name, cluster));
            mine.find_map(|one| replicas_in(&one.action)).unwrap_or(*own)
        });
        all.fold(0, i64::saturating_add)
    }
}

/// Returns the number of replicas that an override sets.
fn replicas_in(action: &Action) -> Option<i64> {
    let operations = match action {
        Action::Delete => return Some(0),
        Action::Patch(operations) => operations,
    };
    let set = operations.iter().rev().find(|operation| {
        operation.path.parts() == ["spec", "replicas"] && matches!(operation.verb, Verb::Add | Verb::Replace)
    })?;
    set.value.as_ref()?.as_i64()
}
