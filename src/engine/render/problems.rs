//! Faults of copies → a failure in each decision, and one message for an equal fault in many clusters.

use std::collections::BTreeMap;

use super::claims::Claim;
use super::copies::Fault;
use berth_base::diag::{Diagnostic, Diagnostics, Pos};
use berth_base::model::{Decision, Failure, Key, Map};
use berth_base::text::some_quoted;

/// The maximal number of clusters that a message names; the decision names all.
const CLUSTERS_NAMED: usize = 10;

#[derive(Debug, Default)]
pub(super) struct Problems {
    failures: BTreeMap<Key, Vec<Failure>>,
    /// By place, workload and message.
    messages: BTreeMap<(Pos, Key, String), Told>,
}

#[derive(Debug)]
struct Told {
    hint: Option<String>,
    clusters: Vec<String>,
}

impl Problems {
    pub(super) fn add(&mut self, claim: &Claim<'_>, cluster: &str, fault: Fault) {
        let (key, object) = (&claim.workload.key, &*claim.id);
        let failure = Failure {
            cluster: cluster.to_owned(),
            object: object.clone(),
            of_override: fault.of_override,
            reason: fault.message.clone(),
        };
        self.failures.entry(key.clone()).or_default().push(failure);
        let about = if claim.workload.templates.len() > 1 { format!("{object}: ") } else { String::new() };
        let message = format!("{about}{}", fault.message);
        let told = self.messages.entry((fault.at, key.clone(), message));
        told.or_insert_with(|| Told { hint: fault.hint, clusters: Vec::new() })
            .clusters
            .push(cluster.to_owned());
    }

    /// Returns the number of copies that have failed so far.
    pub(super) fn count(&self) -> usize {
        self.failures.values().map(Vec::len).sum()
    }

    pub(super) fn report(self, decisions: &mut Map<Key, Decision>, found: &mut Diagnostics) {
        for (key, mut failures) in self.failures {
            if let Some(decision) = decisions.get_mut(&key) {
                failures.sort();
                decision.failures = failures;
            }
        }
        for ((at, key, message), told) in self.messages {
            let message = format!("{key} cannot be rendered for {}: {message}", named(&told.clusters));
            found.push(Diagnostic::error(at, message).maybe_hint(told.hint));
        }
    }
}

fn named(clusters: &[String]) -> String {
    let word = if clusters.len() == 1 { "cluster" } else { "clusters" };
    format!("{word} {}", some_quoted(clusters, CLUSTERS_NAMED))
}
