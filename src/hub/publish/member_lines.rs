//! Lines for the commit message about members: which became silent or returned, and which of their facts changed.

use berth_base::model::{Map, Shared};
use std::collections::{BTreeMap, BTreeSet};

use berth_base::model::ClusterStatus;
use berth_base::model::cluster::WorkloadName;
use berth_base::text::some_of;

/// The number of clusters that a line names.
const SHOWN: usize = 5;

/// A change of one cluster's facts, in the order of the lines.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change<'f> {
    Silent,
    NoLongerSilent,
    Frozen,
    NoLongerFrozen,
    /// A new verdict on the copies.
    Verdict(&'f WorkloadName, &'static str),
    /// A changed value, such as `label zone`.
    Fact(String),
}

/// Returns a line for each change, with its clusters.
pub(super) fn lines(
    before: &Map<String, Shared<ClusterStatus>>,
    after: &Map<String, Shared<ClusterStatus>>,
) -> Vec<String> {
    let nothing = ClusterStatus::default();
    let mut clusters: BTreeMap<Change<'_>, Vec<&str>> = BTreeMap::new();
    for one in before.changes(after) {
        let [before, after] = [one.before, one.after].map(|fact| fact.map_or(&nothing, |fact| &**fact));
        for change in changes(before, after) {
            clusters.entry(change).or_default().push(one.key);
        }
    }
    clusters.iter().map(|(change, clusters)| change.line(&some_of(clusters, SHOWN))).collect()
}

fn changes<'f>(before: &'f ClusterStatus, after: &'f ClusterStatus) -> BTreeSet<Change<'f>> {
    let turns = [
        (Change::Silent, before.silent.is_none() && after.silent.is_some()),
        (Change::NoLongerSilent, before.silent.is_some() && after.silent.is_none()),
        (Change::Frozen, before.frozen.is_none() && after.frozen.is_some()),
        (Change::NoLongerFrozen, before.frozen.is_some() && after.frozen.is_none() && after.silent.is_some()),
    ];
    let turns = turns.into_iter().filter(|(_, is_so)| *is_so).map(|(change, _)| change);
    let mut found: BTreeSet<Change<'f>> = turns.collect();
    let verdict =
        |status: &ClusterStatus, name| status.copies.get(name).map(|report| (report.digest, report.health));
    let said = after.copies.iter().filter(|(name, _)| verdict(before, name) != verdict(after, name));
    found.extend(said.map(|(name, report)| Change::Verdict(name, report.health.word())));
    let mut fact = |words: String| found.extend([Change::Fact(words)]);
    differing(&before.labels, &after.labels, |key| fact(format!("label {key}")));
    differing(&before.claims, &after.claims, |key| fact(format!("claim {key}")));
    differing(&before.properties, &after.properties, |key| fact(format!("property {key}")));
    differing(&before.scores, &after.scores, |(resource, _)| fact(format!("scores {resource}")));
    differing(&before.workloads, &after.workloads, |name| fact(format!("room for {}", words(name))));
    differing(&before.taints, &after.taints, |taint| fact(format!("taint {}", taint.key)));
    if after.heard != before.heard {
        fact("reports in place of its file".to_owned());
    }
    found
}

/// Returns the keys whose values differ.
fn differing<'f, K: Ord, V: PartialEq>(
    before: &'f BTreeMap<K, V>,
    after: &'f BTreeMap<K, V>,
    mut tell: impl FnMut(&'f K),
) {
    before.keys().filter(|key| !after.contains_key(*key)).for_each(&mut tell);
    after.iter().filter(|(key, value)| before.get(*key) != Some(*value)).for_each(|(key, _)| tell(key));
}

impl Change<'_> {
    fn line(&self, clusters: &str) -> String {
        match self {
            Change::Silent => format!("fell silent: {clusters}"),
            // The policies that consider silence may be gone, too, so it is unknown whether the member reports again.
            Change::NoLongerSilent => format!("no longer counts as silent: {clusters}"),
            Change::Frozen => format!("nothing moves away for now: {clusters}"),
            Change::NoLongerFrozen => format!("workloads may move away again: {clusters}"),
            Change::Verdict(name, health) => format!("{} reported {health}: {clusters}", words(name)),
            Change::Fact(words) => format!("facts changed ({words}): {clusters}"),
        }
    }
}

/// Names a workload, as `ConfigMap shop/web`.
fn words(WorkloadName { kind, namespace, name }: &WorkloadName) -> String {
    if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_base::model::Timestamp;

    fn facts(of: &[(&str, ClusterStatus)]) -> Map<String, Shared<ClusterStatus>> {
        of.iter().map(|(name, status)| ((*name).to_owned(), status.clone().into())).collect()
    }

    fn silent(frozen: Option<Timestamp>) -> ClusterStatus {
        ClusterStatus { silent: Some(Timestamp::UNIX_EPOCH), frozen, ..ClusterStatus::default() }
    }

    #[test]
    fn a_change_that_many_clusters_share_is_one_line() {
        let labelled = |zone: &str| ClusterStatus {
            labels: [("zone".to_owned(), zone.to_owned())].into(),
            ..ClusterStatus::default()
        };
        let names = ["a", "b", "c", "d", "e", "f", "g"];
        let all = |status: &ClusterStatus| facts(&names.map(|name| (name, status.clone())));
        let (before, after) = (all(&labelled("1")), all(&labelled("2")));
        assert_eq!(lines(&before, &after), ["facts changed (label zone): a, b, c, d, e and 2 more"]);
        assert_eq!(lines(&before, &before), [""; 0]);
        let gone = lines(&before, &facts(&[("h", silent(None))]));
        assert_eq!(gone, ["fell silent: h", "facts changed (label zone): a, b, c, d, e and 2 more"]);
    }

    #[test]
    fn a_silence_that_ends_ends_its_freeze_without_a_word() {
        let [free, frozen] = [None, Some(Timestamp::UNIX_EPOCH)].map(|at| facts(&[("a", silent(at))]));
        assert_eq!(lines(&free, &frozen), ["nothing moves away for now: a"]);
        assert_eq!(lines(&frozen, &free), ["workloads may move away again: a"]);
        assert_eq!(lines(&frozen, &facts(&[])), ["no longer counts as silent: a"]);
    }
}
