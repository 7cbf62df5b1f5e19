//! The next step of every workload on given facts, for commands and tools.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::policy::{Closed, Orders};
use super::strategies;
use super::turn::{Step, Turn, Version};
use super::works::Works;
use berth_base::model::rollout::Strategy;
use berth_base::model::{Decision, Fleet, Key, Map, Timestamp, Workload};

/// A workload's clusters, and its strategy's answer.
#[derive(Debug)]
pub struct NextStep<'a> {
    pub workload: &'a Workload,
    /// The workload's own strategy, or the one of the policy that applies.
    pub strategy: Cow<'a, Strategy>,
    /// Ascending by name.
    pub turns: Vec<Turn<'a>>,
    pub step: Step<'a>,
}

/// Asks the strategy of each workload.
pub fn next_steps<'a>(
    fleet: &'a Fleet,
    decisions: &'a Map<Key, Decision>,
    works: &'a Works,
    now: Timestamp,
) -> Vec<NextStep<'a>> {
    let of = |workload: &'a Workload| {
        let copies = works.get(&workload.key).into_iter().flatten();
        let copies = copies.map(|(cluster, copy)| copy.turn(cluster));
        let turns = strategies::turns(decisions.get(&workload.key), copies);
        let orders = Orders::of(fleet, &workload.key);
        let strategy = orders.strategy();
        let followed = strategies::followed(fleet, decisions, &workload.key, &strategy);
        let step = strategies::step(&strategy, &turns, &followed, now);
        let step = match orders.closed(now) {
            Some(closed) => step.closed(&turns, &closed),
            None => step,
        };
        NextStep { workload, strategy, turns, step }
    };
    fleet.workloads.values().map(|workload| of(workload)).collect()
}

impl<'a> Step<'a> {
    /// Returns the same step while an order stops the rollout.
    fn closed(self, turns: &[Turn<'a>], closed: &Closed) -> Step<'a> {
        let next = self.next.into_iter().chain(closed.until).min();
        let waits = Step::all_wait(turns, &closed.reason).waits;
        Step { give: BTreeSet::new(), remove: BTreeSet::new(), waits, next, ..self }
    }
}

impl NextStep<'_> {
    /// Returns the answer as JSON.
    pub fn to_json(&self) -> Json {
        let (key, step) = (&self.workload.key, &self.step);
        let those = |is_meant: &dyn Fn(&Turn<'_>) -> bool| {
            let clusters = self.turns.iter().filter(|turn| turn.picked && is_meant(turn));
            clusters.map(|turn| turn.cluster).collect::<Vec<_>>()
        };
        let mut form = serde_json::Map::new();
        let mut put = |name: &str, value: Json| form.insert(name.to_owned(), value);
        put("kind", json!(&*key.kind));
        put("namespace", json!(&*key.namespace));
        put("name", json!(&*key.name));
        put("give", json!(step.give));
        put("has", json!(those(&|turn| turn.has == Version::New)));
        put("wait", json!(those(&|turn| turn.wants() && !step.give.contains(turn.cluster))));
        match *self.strategy {
            Strategy::Progressive(_) => {
                put("timedOut", json!(step.timed_out));
                put("halted", json!(step.halted.is_some()));
            }
            Strategy::Rolling(_) => drop(put("remove", json!(step.remove))),
            Strategy::AtOnce | Strategy::Stages(_) | Strategy::Runs => {}
        }
        let reasons: BTreeMap<&str, &str> =
            step.waits.iter().map(|(cluster, why)| (*cluster, &**why)).collect();
        put("reasons", json!(reasons));
        if let Some(halted) = &step.halted {
            put("failures", json!(halted.words()));
        }
        if let Some(next) = step.next {
            put("next", json!(next.to_string()));
        }
        form.into()
    }
}
