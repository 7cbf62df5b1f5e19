//! Tests of the pure gate: held workloads, published states, and the reasons.

mod apart;
mod ledger;
mod limit_checks;
mod properties;
mod window;

use std::collections::BTreeSet;

use super::*;
use crate::state::{Comparison, State};
use crate::testing::past_state;
use berth_base::model::{ContentId, Decision, Fleet, Folder, Map, ObjectId, Pick, Timestamp, path};

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

/// Returns a state of these workloads over an inventory.
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

/// The inputs of a verdict, with defaults. Each [`publish`](Case::publish) is a publication after the one before it.
#[derive(Clone, Debug)]
struct Case {
    previous: State,
    /// The desired state.
    next: State,
    /// The first step towards it, if it is another state.
    step: Option<State>,
    limits: Limits,
    limits_stay: bool,
    is_edited: bool,
    edit_alone: Vec<Map<Key, Decision>>,
    is_rollback: bool,
    outlook: Outlook,
    approvals: BTreeSet<Digest>,
    fleet: Fleet,
    failing: BTreeMap<Key, BTreeMap<String, String>>,
    now: Timestamp,
    /// The states that were published before, by number.
    history: Vec<State>,
}

impl Case {
    fn of(previous: State, next: State) -> Case {
        Case {
            previous,
            next,
            step: None,
            limits: Limits::default(),
            limits_stay: true,
            is_edited: true,
            edit_alone: Vec::new(),
            is_rollback: false,
            outlook: Outlook::default(),
            approvals: BTreeSet::new(),
            fleet: Fleet::default(),
            failing: BTreeMap::new(),
            now: Timestamp::UNIX_EPOCH,
            history: Vec::new(),
        }
    }

    fn judge(&self) -> Verdict {
        let question = Question {
            states: &Comparison::of(&self.previous, &self.next),
            step: self.step.as_ref().unwrap_or(&self.next),
            now: self.now,
            before: &self.history.len().to_string(),
            seq: 1 + self.history.len() as u64,
            source: "the commit",
            is_edited: self.is_edited,
            limits: &self.limits,
            limits_stay: self.limits_stay,
            failing: &self.failing,
            outlook: &self.outlook,
            in_files: &self.approvals,
            in_messages: &BTreeMap::new(),
            fleet: &self.fleet,
        };
        judge(&question, self).unwrap_or_else(|never| match never {})
    }

    /// Publishes the gate's result. The desired state does not change.
    fn publish(&mut self) -> Verdict {
        let verdict = self.judge();
        self.history.push(std::mem::replace(&mut self.previous, verdict.state.clone()));
        verdict
    }

    /// Returns the published state, without its ledger.
    fn published(&self) -> State {
        State { ledger: self.previous.ledger.clone(), ..self.judge().state }
    }

    /// Returns the held workloads, each with its first reason.
    fn held(&self) -> Vec<(String, Why)> {
        self.judge().held.into_iter().map(|held| (held.key.name.to_string(), held.why[0].clone())).collect()
    }
}

impl Lookup for &Case {
    type Error = std::convert::Infallible;

    fn edit_alone(&mut self) -> Result<Vec<Map<Key, Decision>>, Self::Error> {
        Ok(self.edit_alone.clone())
    }

    fn state_before(&mut self, number: &str, wanted: &Wanted<'_>) -> Result<Option<PastState>, Self::Error> {
        let seq: u64 = number.parse().expect("a number");
        Ok(Some(past_state(&self.history[seq as usize], seq, wanted)))
    }

    fn is_rollback(&mut self) -> Result<bool, Self::Error> {
        Ok(self.is_rollback)
    }
}

const FOUR: [&str; 4] = ["a", "b", "c", "d"];
const MAP: &[(&str, u8)] = &[("ConfigMap web", 1)];
