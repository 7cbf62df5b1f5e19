//! Findings → the workloads that `berth run` holds for them.

use std::collections::{BTreeMap, BTreeSet};

use super::judge::{Item, PolicyFinding};
use berth_base::model::{Decision, Key, Map};

/// The names of failed tests, with their messages.
pub type Failed = BTreeMap<String, String>;

/// Returns the workloads to hold, each with its failed tests: workloads of findings whose placement the
/// change affects. An unchanged placement does not make a test fail.
pub fn failing_workloads(
    findings: &[PolicyFinding],
    before: &Map<Key, Decision>,
    after: &Map<Key, Decision>,
) -> BTreeMap<Key, Failed> {
    let mut failing: BTreeMap<Key, Failed> = BTreeMap::new();
    let holding: Vec<&PolicyFinding> = findings.iter().filter(|finding| finding.holds).collect();
    if holding.is_empty() {
        return failing;
    }
    let keys: BTreeSet<&Key> = before.keys().chain(after.keys()).collect();
    let has_objects = |key: &Key| {
        [before, after].iter().any(|side| side.get(key).is_some_and(|decision| !decision.objects.is_empty()))
    };
    for key in keys {
        let [earlier, later] = [before, after].map(|side| places(side.get(key)));
        if earlier == later || !has_objects(key) {
            continue;
        }
        let concerns = |finding: &&&PolicyFinding| match &finding.item {
            Item::Workload(one) => one == key,
            Item::Cluster(name) => earlier.get(name.as_str()) != later.get(name.as_str()),
            Item::Fleet => true,
        };
        for finding in holding.iter().filter(concerns) {
            let failed = failing.entry(key.clone()).or_default();
            failed.entry(finding.test.clone()).or_insert_with(|| finding.message.clone());
        }
    }
    failing
}

fn places(decision: Option<&Decision>) -> BTreeMap<&str, Option<i64>> {
    let picked = decision.into_iter().flat_map(Decision::picked);
    picked.map(|pick| (&*pick.cluster, pick.replicas)).collect()
}
