//! Tests of the pure gate: what is held, what is published, and why.

mod apart;
mod deadlines;
mod limit_checks;
mod properties;
mod window;

use std::collections::BTreeSet;

use super::*;
use crate::state::State;
use berth_base::model::{ContentId, Decision, Folder, ObjectId, Pick, Timestamp, path};

/// A workload: its name, its objects as `Kind name` with their content, its clusters.
type Given<'a> = (&'a str, &'a [(&'a str, u8)], &'a [&'a str]);

fn key(name: &str) -> Key {
    Key::new("example.org", "Placement", "shop", name)
}

fn object(text: &str) -> ObjectId {
    let (kind, name) = text.split_once(' ').expect("a kind and a name");
    let group = if kind == "CustomResourceDefinition" { "apiextensions.k8s.io" } else { "" };
    let namespace = if ["Namespace", "CustomResourceDefinition"].contains(&kind) { "" } else { "shop" };
    ObjectId::new(group, kind, namespace, name)
}

/// A state of these workloads over an inventory.
fn state(inventory: &[&str], workloads: &[Given<'_>]) -> State {
    let mut state = State::default();
    for cluster in inventory {
        state.folders.insert((*cluster).to_owned(), Folder::new());
    }
    for (name, objects, clusters) in workloads {
        for cluster in *clusters {
            let folder = state.folders.or_default(*cluster);
            for (text, content) in *objects {
                folder.put((path::of_object(&object(text)).into(), ContentId([*content; 20])).into());
            }
        }
        let pick = |cluster: &&str| Pick::of(*cluster);
        let mut picks: Vec<Pick> = clusters.iter().map(pick).collect();
        picks.sort_by(|a, b| a.cluster.cmp(&b.cluster));
        let mut objects: Vec<ObjectId> = objects.iter().map(|(text, _)| object(text)).collect();
        objects.sort();
        let decision =
            Decision { picks: picks.into(), objects, ..Decision::new(key(name), format!("{name}.yaml")) };
        state.decisions.insert(decision.key.clone(), decision);
    }
    state
}

/// The inputs of a verdict, with defaults.
#[derive(Debug)]
struct Case {
    previous: State,
    next: State,
    limits: Limits,
    source_changed: bool,
    edit_alone: EditAlone,
    outlook: Outlook,
    foreseen: Vec<Deadline>,
    pasts: Vec<PastPublication>,
    retried: Vec<HeldRecord>,
    approvals: BTreeSet<Digest>,
    used: BTreeSet<Digest>,
}

impl Case {
    fn of(previous: State, next: State) -> Case {
        Case {
            previous,
            next,
            limits: Limits::default(),
            source_changed: true,
            edit_alone: Vec::new(),
            outlook: Outlook::default(),
            foreseen: Vec::new(),
            pasts: Vec::new(),
            retried: Vec::new(),
            approvals: BTreeSet::new(),
            used: BTreeSet::new(),
        }
    }

    fn judge(&self) -> Verdict {
        judge(&Question {
            failing: &BTreeMap::new(),
            states: &Comparison::of(&self.previous, &self.next),
            limits: &self.limits,
            source_changed: self.source_changed,
            edit_alone: &self.edit_alone,
            outlook: &self.outlook,
            foreseen: &self.foreseen,
            pasts: &self.pasts,
            retried: &self.retried,
            approvals: &self.approvals,
            used: &self.used,
        })
    }

    fn published(&self) -> State {
        self.judge().state.unwrap_or_else(|| self.next.clone())
    }

    /// Returns the held workloads, each with its first reason.
    fn held(&self) -> Vec<(String, Why)> {
        self.judge().held.into_iter().map(|held| (held.key.name.to_string(), held.why[0].clone())).collect()
    }
}

const FOUR: [&str; 4] = ["a", "b", "c", "d"];
const MAP: &[(&str, u8)] = &[("ConfigMap web", 1)];
