//! The next step of every workload on given facts, for people and programs.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use super::strategies;
use super::turn::{Has, Step, Turn};
use super::works::Works;
use berth_base::model::rollout::Strategy;
use berth_base::model::{Decision, Fleet, Key, Timestamp, Workload};

/// A workload's clusters, and its strategy's answer.
#[derive(Debug)]
pub struct NextStep<'a> {
    pub workload: &'a Workload,
    /// Ascending by name.
    pub turns: Vec<Turn<'a>>,
    pub step: Step<'a>,
}

/// Asks the strategy of each workload.
pub fn next_steps<'a>(
    fleet: &'a Fleet,
    decisions: &'a BTreeMap<Key, Decision>,
    works: &'a Works,
    now: Timestamp,
) -> Vec<NextStep<'a>> {
    let of = |workload: &'a Workload| {
        let copies = works.get(&workload.key).into_iter().flatten();
        let copies = copies.map(|(cluster, copy)| copy.turn(cluster));
        let turns = strategies::turns(decisions.get(&workload.key), copies);
        let followed = strategies::followed(fleet, decisions, workload);
        let step = strategies::step(&workload.strategy, &turns, &followed, now);
        NextStep { workload, turns, step }
    };
    fleet.workloads.values().map(|workload| of(workload)).collect()
}

impl NextStep<'_> {
    /// The answer for programs.
    pub fn to_json(&self) -> Json {
        let (key, step) = (&self.workload.key, &self.step);
        let those = |is_meant: &dyn Fn(&Turn<'_>) -> bool| {
            let clusters = self.turns.iter().filter(|turn| turn.picked && is_meant(turn));
            clusters.map(|turn| turn.cluster).collect::<Vec<_>>()
        };
        let mut form = Map::new();
        let mut put = |name: &str, value: Json| form.insert(name.to_owned(), value);
        put("kind", json!(&*key.kind));
        put("namespace", json!(&*key.namespace));
        put("name", json!(&*key.name));
        put("give", json!(step.give));
        put("has", json!(those(&|turn| turn.has == Has::New)));
        put("wait", json!(those(&|turn| turn.wants() && !step.give.contains(turn.cluster))));
        match self.workload.strategy {
            Strategy::Progressive(_) => {
                put("timedOut", json!(step.timed_out));
                put("halted", json!(step.halted.is_some()));
            }
            Strategy::Rolling(_) => drop(put("remove", json!(step.remove))),
            Strategy::AtOnce | Strategy::Stages(_) | Strategy::Runs => {}
        }
        put("reasons", json!(step.waits));
        if let Some(halted) = &step.halted {
            put("failures", json!(halted.words()));
        }
        if let Some(next) = step.next {
            put("next", json!(next.to_string()));
        }
        form.into()
    }
}
