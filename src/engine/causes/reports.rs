//! The words for a change in a member's report.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use berth_base::diag::harmless_line;
use berth_base::model::ClusterStatus;
use berth_base::text::some_of;

/// The maximal number of differences to name.
const MOST_NAMED: usize = 3;

/// Describes the change in a member's report, as far as decisions read it.
pub fn words(cluster: &str, was: &ClusterStatus, is: &ClusterStatus) -> String {
    let mut found = Vec::new();
    add(&mut found, "label", &was.labels, &is.labels);
    add(&mut found, "claim", &was.claims, &is.claims);
    add(&mut found, "property", &was.properties, &is.properties);
    let [old, new] = [was, is].map(|status| {
        let scores = status.scores.iter();
        scores.map(|((resource, name), score)| (format!("{resource} {name}"), score.value)).collect()
    });
    add(&mut found, "score", &old, &new);
    let [old, new] = [was, is].map(|status| {
        let room = status.workloads.iter().filter_map(|(name, report)| Some((name, report.capacity?)));
        room.map(|(of, room)| (format!("{} {}/{}", of.kind, of.namespace, of.name), room)).collect()
    });
    add(&mut found, "room for", &old, &new);
    found.extend(match (was.silent, is.silent) {
        (None, Some(since)) => Some(format!("silent since {since}")),
        (Some(_), None) => Some("no longer silent".to_owned()),
        _ if was.frozen != is.frozen => Some(if is.frozen.is_some() {
            "its silence has no further effect while much of the fleet is silent".to_owned()
        } else {
            "its silence counts again".to_owned()
        }),
        _ => None,
    });
    found.extend(match (was.heard, is.heard) {
        (false, true) => Some("newer than the status in its file".to_owned()),
        (true, false) => Some("no longer newer than the status in its file".to_owned()),
        _ => None,
    });
    format!("report of {}: {}", harmless_line(cluster), some_of(found, MOST_NAMED))
}

fn add<V: Display + PartialEq>(
    found: &mut Vec<String>,
    noun: &str,
    was: &BTreeMap<String, V>,
    is: &BTreeMap<String, V>,
) {
    let names: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
    for name in names {
        let shown = |value: &V| harmless_line(&value.to_string()).into_owned();
        let named = harmless_line(name);
        match (was.get(name), is.get(name)) {
            (Some(was), Some(is)) if was != is => {
                found.push(format!("{noun} {named}: {} → {}", shown(was), shown(is)));
            }
            (None, Some(is)) => found.push(format!("{noun} {named}: {}, not reported before", shown(is))),
            (Some(was), None) => {
                found.push(format!("{noun} {named}: no longer reported, was {}", shown(was)));
            }
            _ => {}
        }
    }
}
