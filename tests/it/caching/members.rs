//! The reports of members on a random walk.

use std::fmt::Write as _;

use berth_base::model::Timestamp;
use berth_git::TreeId;

use crate::support::random::Random;

/// The objects that members have trouble with.
const OBJECTS: [&str; 10] = [
    "ConfigMap, namespace: shop, name: w0",
    "ConfigMap, namespace: shop, name: w1",
    "ConfigMap, namespace: shop, name: w2",
    "ConfigMap, namespace: shop, name: la",
    "ConfigMap, namespace: shop, name: work0",
    "ConfigMap, namespace: shop, name: work1",
    "ConfigMap, namespace: shop, name: plain0",
    "ConfigMap, namespace: bank, name: till",
    "Deployment, group: apps, namespace: bank, name: desk",
    "Namespace, name: bank",
];

/// A report on this folder, or one that nobody can read.
pub fn report(cluster: &str, folder: TreeId, now: Timestamp, random: &mut Random) -> String {
    if random.below(30) == 0 {
        return "kind: [\n".to_owned();
    }
    let mut text = format!(
        "apiVersion: berth.dev/v1alpha1\nkind: ClusterStatus\nmetadata: {{name: {cluster}}}\nreported: \"{now}\"\n"
    );
    if random.below(6) == 0 {
        let next = Timestamp::from_second(now.as_second() + 60).expect("a moment");
        let _ = writeln!(text, "nextDue: \"{next}\"");
    }
    for (part, values) in [
        ("labels: {region: VALUE}", ["north", "south"]),
        ("claims: {tier: VALUE}", ["gold", "iron"]),
        ("properties: {kubernetes-fleet.io/node-count: \"VALUE\"}", ["3", "9"]),
        ("scores: [{resource: default, name: free, value: VALUE}]", ["15", "75"]),
        ("workloads: [{kind: Deployment, namespace: shop, name: d0, capacity: VALUE}]", ["1", "2"]),
    ] {
        if random.below(6) == 0 {
            let _ = writeln!(text, "{}", part.replace("VALUE", random.pick(&values)));
        }
    }
    if random.below(12) == 0 {
        return text;
    }
    let _ = writeln!(text, "applied:\n  sequence: 1\n  tree: {folder}\n  objects: 1");
    let object = random.pick(&OBJECTS);
    let more = match random.below(12) {
        0 | 1 => format!("  problems: [{{kind: {object}, message: broken}}]\n"),
        2 => format!("  progressing: true\n  waiting: [{{kind: {object}}}]\n"),
        3 => format!("  differences: [{{kind: {object}, message: differs}}]\n"),
        4 => format!("  failing: {{since: \"{now}\", message: no access}}\n"),
        5 => format!("  removing: [{{kind: {object}}}]\n"),
        _ => String::new(),
    };
    text + &more
}
