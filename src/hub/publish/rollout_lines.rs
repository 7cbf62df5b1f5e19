//! Two states' releases → lines for the commit message: who was told what, what halted, what is proven.

use std::collections::BTreeMap;

use berth_base::model::Key;
use berth_base::model::release::Releases;
use berth_base::text::some_of;

/// The most clusters that a line names.
const SHOWN: usize = 5;

/// Returns a line for each workload whose releases changed.
pub(super) fn lines(before: &BTreeMap<Key, Releases>, after: &BTreeMap<Key, Releases>) -> Vec<String> {
    let changed = after.iter().filter(|(key, releases)| before.get(*key) != Some(*releases));
    changed.filter_map(|(key, releases)| line(key, before.get(key), releases)).collect()
}

fn line(key: &Key, before: Option<&Releases>, after: &Releases) -> Option<String> {
    let number = after.current.number;
    let (mut parts, mut others) = (Vec::new(), Vec::new());
    if before.is_some_and(|before| before.current.number != number) {
        parts.push("begins".to_owned());
    }
    let was_told = |cluster: &String| before.and_then(|before| before.told.get(cluster));
    let mut told: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    for (cluster, one) in after.told.iter().filter(|(cluster, one)| was_told(cluster) != Some(*one)) {
        told.entry(one.release).or_default().push(cluster);
    }
    for (release, clusters) in told {
        let told = format!("told to {}", some_of(clusters, SHOWN));
        if release == number { parts.push(told) } else { others.push(format!("release {release} {told}")) }
    }
    if after.taken_back && before.is_none_or(|before| !before.taken_back) {
        parts.push(format!("taken back to release {}", after.good.unwrap_or_default()));
    }
    match (before.and_then(|before| before.halted.as_ref()), &after.halted) {
        (None, Some(halt)) => parts.push(format!("halted: {}", halt.reason)),
        (Some(_), None) if before.is_some_and(|before| before.current == after.current) => {
            parts.push("goes on".to_owned());
        }
        _ => {}
    }
    if after.is_proven() && before.is_some_and(|before| before.good != after.good) {
        parts.push("proven".to_owned());
    }
    let own = (!parts.is_empty()).then(|| format!("release {number} {}", parts.join("; ")));
    let told: Vec<String> = own.into_iter().chain(others).collect();
    (!told.is_empty()).then(|| format!("{key}: {}", told.join("; ")))
}
