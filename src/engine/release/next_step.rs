//! The next step of every workload on given facts, for commands and tools.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Serialize, Serializer};

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

impl Serialize for NextStep<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (key, step) = (&self.workload.key, &self.step);
        let clusters = |is_meant: &dyn Fn(&Turn<'_>) -> bool| {
            let clusters = self.turns.iter().filter(|turn| turn.picked && is_meant(turn));
            clusters.map(|turn| turn.cluster).collect()
        };
        let is_progressive = matches!(*self.strategy, Strategy::Progressive(_));
        let form = NextStepForm {
            kind: &key.kind,
            namespace: &key.namespace,
            name: &key.name,
            give: &step.give,
            has: clusters(&|turn| turn.has == Version::New),
            wait: clusters(&|turn| turn.wants() && !step.give.contains(turn.cluster)),
            timed_out: is_progressive.then_some(&step.timed_out),
            halted: is_progressive.then_some(step.halted.is_some()),
            remove: matches!(*self.strategy, Strategy::Rolling(_)).then_some(&step.remove),
            reasons: step.waits.iter().map(|(cluster, why)| (*cluster, &**why)).collect(),
            failures: step.halted.as_ref().map(|halted| halted.words()),
            next: step.next,
        };
        form.serialize(serializer)
    }
}

/// The step of a workload, for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NextStepForm<'a> {
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
    give: &'a BTreeSet<&'a str>,
    has: Vec<&'a str>,
    wait: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timed_out: Option<&'a BTreeSet<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    halted: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remove: Option<&'a BTreeSet<&'a str>>,
    reasons: BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failures: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Timestamp>,
}
