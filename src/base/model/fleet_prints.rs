//! The fingerprints of a fleet, by which a process finds what is not the same as in the fleet of an earlier one.

use std::hash::Hash;
use std::sync::Arc;

use super::applier::Applier;
use super::cluster::Cluster;
use super::encoding::{key, put_key};
use super::fingerprint::Fingerprint;
use super::fleet::Fleet;
use super::key::Key;
use super::map::Map;
use super::object::{Object, ObjectId};
use super::placement::{Placement, Policy, Source};
use super::shared::Shared;
use super::workload::{Template, Workload};
use crate::codec::{Decoder, Encoder};
use crate::diag::Pos;
use crate::packed::Packed;

/// A fleet without its values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FleetPrints {
    clusters: Map<String, Fingerprint>,
    /// The names of the clusters' appliers, where they have one.
    appliers: Map<String, String>,
    placements: Map<Key, Fingerprint>,
    workloads: Map<Key, Fingerprint>,
    list_kinds: Vec<(String, String)>,
}

/// The fleet of an earlier process, as far as it can be told.
#[derive(Debug)]
pub struct EarlierFleet {
    /// Holds the very values of the later fleet where both are the same, and values without content where not.
    pub fleet: Fleet,
    /// All clusters are the same.
    pub has_same_clusters: bool,
}

impl FleetPrints {
    pub fn of(fleet: &Fleet) -> FleetPrints {
        FleetPrints {
            clusters: prints(&fleet.clusters),
            appliers: appliers(fleet),
            placements: prints(&fleet.placements),
            workloads: prints(&fleet.workloads),
            list_kinds: fleet.list_kinds.iter().cloned().collect(),
        }
    }

    /// Returns the fingerprints of a later fleet; these are those of the `earlier` one.
    pub fn of_later(&self, earlier: &Fleet, later: &Fleet) -> FleetPrints {
        FleetPrints {
            clusters: changed(&self.clusters, &earlier.clusters, &later.clusters),
            appliers: appliers(later),
            placements: changed(&self.placements, &earlier.placements, &later.placements),
            workloads: changed(&self.workloads, &earlier.workloads, &later.workloads),
            list_kinds: later.list_kinds.iter().cloned().collect(),
        }
    }

    /// Goes back from a later fleet to this one. `objects` names the objects that a workload had in clusters: one whose
    /// content is not the same is told to have had these, without a content.
    pub fn restore(&self, later: &Fleet, objects: impl Fn(&Key) -> Vec<ObjectId>) -> EarlierFleet {
        let clusters = same(&self.clusters, &later.clusters);
        let has_same_clusters =
            later.clusters.len() == clusters.len() && clusters.iter().all(|one| one.1.is_some());
        let cluster = |(name, same): (String, Option<Shared<Cluster>>)| {
            let applier = self.appliers.get(&name).and_then(|applier| Applier::named(applier));
            let cluster = same.unwrap_or_else(|| Cluster { applier, ..Cluster::default() }.into());
            (name, cluster)
        };
        let is_as_before = |workload: &Workload| has_same_clusters || !workload.moves_group();
        let workload = |(key, same): (Key, Option<Shared<Workload>>)| {
            let same = same.filter(|workload| is_as_before(workload));
            let other = || Workload::new(key.clone(), Pos::file(""), templates(objects(&key))).into();
            let workload = same.unwrap_or_else(other);
            (key, workload)
        };
        let placement = |(key, same): (Key, Option<Shared<Placement>>)| {
            let source = || Source::Own(Box::new(Policy::BLANK));
            let other = || Placement { key: key.clone(), origin: Pos::file(""), source: source() }.into();
            let placement = same.unwrap_or_else(other);
            (key, placement)
        };
        let fleet = Fleet {
            clusters: clusters.into_iter().map(cluster).collect(),
            placements: same(&self.placements, &later.placements).into_iter().map(placement).collect(),
            workloads: same(&self.workloads, &later.workloads).into_iter().map(workload).collect(),
            list_kinds: self.list_kinds.iter().cloned().collect(),
            ..Fleet::default()
        };
        EarlierFleet { fleet, has_same_clusters }
    }

    pub fn encode(&self, encoder: &mut Encoder) {
        let FleetPrints { clusters, appliers, placements, workloads, list_kinds } = self;
        put(encoder, clusters, |encoder, name| encoder.text(name));
        put_texts(encoder, appliers.iter());
        put(encoder, placements, put_key);
        put(encoder, workloads, put_key);
        put_texts(encoder, list_kinds.iter().map(|(group, kind)| (group, kind)));
    }

    pub fn decode(decoder: &mut Decoder<'_>) -> Option<FleetPrints> {
        Some(FleetPrints {
            clusters: get(decoder, Decoder::string)?,
            appliers: decoder.list(|decoder| Some((decoder.string()?, decoder.string()?)))?,
            placements: get(decoder, key)?,
            workloads: get(decoder, key)?,
            list_kinds: decoder.list(|decoder| Some((decoder.string()?, decoder.string()?)))?,
        })
    }
}

fn appliers(fleet: &Fleet) -> Map<String, String> {
    let applier =
        |(name, cluster): (&String, &Shared<Cluster>)| Some((name.clone(), cluster.applier?.name.to_owned()));
    fleet.clusters.iter().filter_map(applier).collect()
}

fn put_texts<'t>(encoder: &mut Encoder, pairs: impl ExactSizeIterator<Item = (&'t String, &'t String)>) {
    encoder.list(pairs, |encoder, (one, other)| {
        encoder.text(one);
        encoder.text(other);
    });
}

fn prints<K: Ord + Clone, V: Hash>(all: &Map<K, Shared<V>>) -> Map<K, Fingerprint> {
    all.iter().map(|(key, value)| (key.clone(), Fingerprint::of(&**value))).collect()
}

fn changed<K: Ord + Clone, V: Hash>(
    prints: &Map<K, Fingerprint>,
    earlier: &Map<K, Shared<V>>,
    later: &Map<K, Shared<V>>,
) -> Map<K, Fingerprint> {
    let mut prints = prints.clone();
    for one in earlier.changes_by(later, Shared::is_same) {
        match one.after {
            Some(value) => drop(prints.insert(one.key.clone(), Fingerprint::of(&**value))),
            None => drop(prints.remove(one.key)),
        }
    }
    prints
}

/// Returns the later values of these keys, where they have these fingerprints.
fn same<K: Ord + Clone, V: Hash>(
    prints: &Map<K, Fingerprint>,
    later: &Map<K, Shared<V>>,
) -> Vec<(K, Option<Shared<V>>)> {
    let mut later = later.cursor();
    let one = |(key, print): (&K, &Fingerprint)| {
        let value = later.get(key).filter(|value| Fingerprint::of(&***value) == *print);
        (key.clone(), value.cloned())
    };
    prints.iter().map(one).collect()
}

fn templates(objects: Vec<ObjectId>) -> Vec<Template> {
    let template = |id: ObjectId| {
        let object = Object { id, origin: Pos::file(""), content: Packed::NULL };
        let (final_labels, sync_annotations) = Default::default();
        Template { object: Arc::new(object), final_labels, sync_annotations, retained: Vec::new() }
    };
    objects.into_iter().map(template).collect()
}

fn put<K>(encoder: &mut Encoder, prints: &Map<K, Fingerprint>, key: impl Fn(&mut Encoder, &K)) {
    encoder.list(prints.iter(), |encoder, (name, print)| {
        key(encoder, name);
        encoder.raw(&print.0);
    });
}

fn get<'f, K: Ord + Clone>(
    decoder: &mut Decoder<'f>,
    key: impl Fn(&mut Decoder<'f>) -> Option<K>,
) -> Option<Map<K, Fingerprint>> {
    decoder.list(|decoder| Some((key(decoder)?, Fingerprint(decoder.raw()?))))
}
