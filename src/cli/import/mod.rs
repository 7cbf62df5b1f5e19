//! Imports from a live hub: the files that describe the same fleet, and the present state of its members.
//!
//! - One folder or file for each system, such as [`kubefed`]: queries its hub and interprets the answers.
//! - [`objects`]: restores an object as its author wrote it, chooses paths and writes text.
//! - [`first_state`]: adopts the hub's decisions, and makes the first state of a rendered branch.
//!
//! Reads the hub through [`live::Host`](berth_member::live::Host), and never changes it.

pub mod first_state;
mod inventory;
mod kubefed;
mod kubefleet;
pub mod objects;
mod ocm;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use berth_base::diag::{Diagnostic, Diagnostics, Severity};
use berth_base::model::{Fleet, Group, Key, ObjectId};
use berth_member::live::{Host, LiveError};

/// All importers: each is a subcommand of `berth import`.
pub(crate) const IMPORTERS: &[&Importer] =
    &[&kubefed::IMPORTER, &kubefleet::IMPORTER, &ocm::IMPORTER, &inventory::IMPORTER];

/// A system that berth can import from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Importer {
    /// The name of the subcommand.
    pub name: &'static str,
    /// The help: one line, a paragraph, and examples.
    pub about: &'static str,
    pub details: &'static str,
    pub examples: &'static str,
    /// The default namespace of the hub's own objects, if users may choose another.
    pub namespace: Option<&'static str>,
    /// Reads everything from the hub.
    pub gather: fn(&dyn Host, &Options) -> Result<Gathered, LiveError>,
    /// Removes the parts that the hub's controllers wrote into objects and that berth computes itself. Called once
    /// berth's result is known.
    pub settle: fn(&mut Gathered, &Fleet),
}

/// The request to a hub.
#[derive(Clone, Debug)]
pub struct Options {
    /// The namespace of the hub's own objects.
    pub namespace: String,
    /// True if the data of Secrets is imported.
    pub secrets: bool,
}

/// The objects of a hub.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gathered {
    pub objects: BTreeMap<Key, Json>,
    /// The current clusters of each placed object.
    pub placed: BTreeMap<Key, Placed>,
    /// The number of objects with data of Secrets.
    pub secrets: usize,
    /// The kinds that could not be read.
    pub missing: Vec<LiveError>,
    pub diagnostics: Diagnostics,
}

/// The present clusters of one placed object, by the hub's records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    pub clusters: BTreeMap<String, Standing>,
    /// The replicas that the hub assigned to each cluster.
    pub replicas: BTreeMap<String, i64>,
    /// The scores of picked clusters, if the hub stores them.
    pub scores: BTreeMap<String, BTreeMap<String, i64>>,
    /// Picked clusters that the rollout has not reached.
    pub pending: BTreeSet<String>,
    /// The group of each cluster.
    pub groups: BTreeMap<String, Group>,
}

/// The hub's record of an object in one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// True if the member has the object, as far as the hub knows.
    pub there: bool,
    /// True if the member may have another form of the object than the hub, or none.
    pub doubtful: bool,
    /// The hub's word for the state; empty if there is no problem.
    pub word: String,
}

impl Gathered {
    pub fn warn(&mut self, message: impl Into<String>, hint: Option<&str>) {
        let hint = hint.map(str::to_owned);
        let (severity, message) = (Severity::Warning, message.into());
        self.diagnostics.push(Diagnostic { at: None, severity, message, hint });
    }

    /// Returns the number of objects of each kind.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for key in self.objects.keys() {
            *counts.entry(key.kind_and_group()).or_default() += 1;
        }
        counts
    }
}

fn key_of(object: &Json) -> Option<Key> {
    let id = ObjectId::of(object)?;
    Some(Key::new(&id.group, &id.kind, &id.namespace, &id.name))
}

/// Takes an object as its author wrote it, unless it is being deleted. Returns true if it was taken.
fn take(gathered: &mut Gathered, mut object: Json, clean: fn(&mut Json)) -> bool {
    let Some(key) = key_of(&object) else { return false };
    if objects::is_deleting(&object) {
        let message = format!("{key} is being deleted on the host, so it was not imported");
        gathered.warn(message, Some("its copies in members stay there, unmanaged"));
        return false;
    }
    clean(&mut object);
    gathered.objects.insert(key, object).is_none()
}

/// Lists names as `a`, `a and b`, or `a, b and 3 more`.
pub(crate) fn some_of<T: ToString>(names: impl IntoIterator<Item = T>) -> String {
    const SHOWN: usize = 5;
    let all: Vec<String> = names.into_iter().map(|name| name.to_string()).collect();
    match all.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] if all.len() <= SHOWN => format!("{} and {last}", first.join(", ")),
        all => berth_base::text::some_of(all, SHOWN),
    }
}
