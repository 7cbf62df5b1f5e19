//! `PickFixed`: the named clusters, whatever their labels and taints.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::{LIMITS, base, condition, plain};
use berth_base::meta::names::is_dns_subdomain;
use berth_base::model::Policy;
use berth_base::model::placement::{Blocked, Rule, Selection};
use berth_base::yaml::fields::Fields;

const MOST_NAMES: usize = 100;

/// Reads `clusterNames`.
pub fn names(fields: &mut Fields<'_>) -> BTreeSet<String> {
    let items = fields.list("clusterNames").unwrap_or_default();
    if items.len() > MOST_NAMES {
        let message =
            format!("{} must not have more than {MOST_NAMES} entries", fields.path_of("clusterNames"));
        fields.error_at("clusterNames", message);
    }
    // Reports items that are no strings.
    fields.strings("clusterNames");
    let mut names = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let Some(name) = item.as_str() else { continue };
        let path = format!("{}[{index}]", fields.path_of("clusterNames"));
        if name.len() > 63 || !is_dns_subdomain(name) {
            fields.scope().error(item.at, format!("{path}: `{name}` cannot be the name of a cluster"));
        }
        if !names.insert(name.to_owned()) {
            fields.scope().error(item.at, format!("{path} names `{name}` twice"));
        }
    }
    names
}

/// Only eligibility counts for named clusters. Without any name KubeFleet's scheduler does nothing
/// at all, so that what was placed earlier stays.
pub fn policy(names: BTreeSet<String>, text: Json) -> Policy {
    let nothing = names.is_empty().then(condition::no_names);
    Policy {
        filters: vec![plain(Rule::Eligible(LIMITS))],
        selection: Selection::Exactly(names),
        condition: condition::PICK_FIXED,
        blocked: nothing.map(|condition| Blocked { condition, keep_earlier: true }),
        ..base(text)
    }
}
