//! A live hub → the files that describe the same fleet, and the state that its members are in now.
//!
//! - One folder or file for each system, such as [`kubefed`]: what to ask its hub for, and what the answers say.
//! - [`clean`]: an object as its author wrote it. [`layout`]: objects → paths and text.
//! - [`adopt`]: which of the hub's decisions stand, and from what they were made.
//! - [`first`]: the fleet of those files and the live placement → the first state of a rendered branch.
//!
//! The hub is asked through [`live::Host`](berth_member::live::Host), and never changed.

pub mod adopt;
pub mod clean;
pub mod first;
mod inventory;
mod kubefed;
mod kubefleet;
pub mod layout;
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
    /// The usual namespace of the hub's own objects, where people may choose another.
    pub namespace: Option<&'static str>,
    /// Reads everything of the hub.
    pub gather: fn(&dyn Host, &Options) -> Result<Gathered, LiveError>,
    /// Takes out of the objects what the hub's controllers had written there and berth works out by itself,
    /// now that it is known what berth makes of them.
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
    /// The number of objects that hold the data of Secrets.
    pub secrets: usize,
    /// The kinds that could not be read.
    pub missing: Vec<LiveError>,
    pub diagnostics: Diagnostics,
}

/// The current clusters of one placed object, by the hub's own records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    pub clusters: BTreeMap<String, Standing>,
    /// The replicas that the hub gave to each cluster.
    pub replicas: BTreeMap<String, i64>,
    /// The scores that a cluster was picked with, where the hub keeps them.
    pub scores: BTreeMap<String, BTreeMap<String, i64>>,
    /// Clusters that are picked, and where nothing was rolled out yet.
    pub pending: BTreeSet<String>,
    /// The group each cluster was put into.
    pub groups: BTreeMap<String, Group>,
}

/// The hub's record of an object in one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// True if the member has the object, as far as the hub knows.
    pub there: bool,
    /// True if the member may have another form of the object than the hub, or none.
    pub doubtful: bool,
    /// The hub's own word; empty for all well.
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

/// Takes an object as its author wrote it, unless somebody is deleting it. Says whether it was taken.
fn take(gathered: &mut Gathered, mut object: Json, clean: fn(&mut Json)) -> bool {
    let Some(key) = key_of(&object) else { return false };
    if clean::is_deleting(&object) {
        let message = format!("{key} is being deleted on the host, so it was not imported");
        gathered.warn(message, Some("its copies in members stay there, unmanaged"));
        return false;
    }
    clean(&mut object);
    gathered.objects.insert(key, object).is_none()
}

/// `a`, `a and b`, `a, b and 3 more`.
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
