//! A live hub → the files that describe the same fleet, and the state that its members are in now.
//!
//! - One folder or file for each system, such as [`kubefed`]: what to ask its hub for, and what the answers say.
//! - [`clean`]: an object as its author wrote it. [`files`]: objects → paths and text.
//! - [`adopt`]: which of the hub's decisions stand, and from what they were made.
//! - [`first`]: the fleet of those files and the live placement → the first state of a rendered branch.
//!
//! The hub is asked through [`live::Host`](berth_member::live::Host), and never changed.

pub mod adopt;
pub mod clean;
pub mod files;
pub mod first;
pub mod kubefed;
pub mod kubefleet;
pub mod ocm;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use berth_base::diag::{Diagnostic, Diagnostics, Severity};
use berth_base::model::{Fleet, Group, Key, ObjectId};
use berth_member::live::{Host, LiveError};

/// A system that berth can import from.
#[derive(Clone, Copy, Debug)]
pub struct Importer {
    /// Its name on the command line.
    pub name: &'static str,
    /// Reads everything of the hub.
    pub gather: fn(&dyn Host, &Options) -> Result<Gathered, LiveError>,
    /// Takes out of the objects what the hub's controllers had written there and berth works out by itself,
    /// now that it is known what berth makes of them.
    pub settle: fn(&mut Gathered, &Fleet),
}

/// What of a hub is wanted.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the hub keeps its own objects.
    pub namespace: String,
    /// Whether the data of Secrets is imported.
    pub secrets: bool,
}

/// What a hub gave.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    pub objects: BTreeMap<Key, Json>,
    /// Where each placed object is now.
    pub placed: BTreeMap<Key, Placed>,
    /// How many objects hold the data of Secrets.
    pub secrets: usize,
    /// What could not be read, so that the picture is not whole.
    pub missing: Vec<LiveError>,
    pub diagnostics: Diagnostics,
}

/// Where one placed object is now, by the hub's own account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    pub clusters: BTreeMap<String, Standing>,
    /// How many replicas the hub gave to each cluster.
    pub replicas: BTreeMap<String, i64>,
    /// The scores that a cluster was picked with, where the hub keeps them.
    pub scores: BTreeMap<String, BTreeMap<String, i64>>,
    /// Clusters that are picked, and where nothing was rolled out yet.
    pub pending: BTreeSet<String>,
    /// The group each cluster was put into.
    pub groups: BTreeMap<String, Group>,
}

/// What a hub says of an object in one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Whether the member has the object, so far as the hub knows.
    pub there: bool,
    /// Whether the member may have another form of it, or none, than the hub's.
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

    /// How many objects there are of each kind.
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
        let message = format!("{key} is being deleted on the host, so it was left out");
        gathered.warn(message, Some("what is left of it in members stays there, unmanaged"));
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
