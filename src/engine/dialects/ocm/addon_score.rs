//! AddOnPlacementScore → the scores of the cluster of its namespace.

use berth_base::model::{Map, Shared};
use std::collections::BTreeSet;

use super::fields::{moment, open_namespaced};
use crate::dialects::Document;
use berth_base::model::ClusterStatus;
use berth_base::model::cluster::AddOnScore;
use berth_base::yaml::Scope;

pub(super) fn read(scope: &Scope, document: &Document, statuses: &mut Map<String, Shared<ClusterStatus>>) {
    let root = document.open();
    let Some((mut fields, metadata)) = open_namespaced(scope, &root) else { return };
    let status = statuses.or_default(&metadata.namespace);
    let mut met = BTreeSet::new();
    if let Some(mut fields) = fields.fields("status") {
        let valid_until = moment(&mut fields, "validUntil");
        for (index, mut score) in fields.each("scores").into_iter().enumerate() {
            let name = score.required_str("name");
            if let Some(name) = name.filter(|name| !met.insert(*name)) {
                score.error_at("name", format!("{} repeats `{name}`", score.path_of("name")));
            }
            score.require("value");
            let value = score.int_in("value", -100..=100);
            score.finish();
            if let (Some(name), Some(value)) = (name, value) {
                let named = (metadata.name.clone(), name.to_owned());
                status.scores.insert(named, AddOnScore { value, index, valid_until });
            }
        }
        fields.accept(&["conditions"]);
        fields.finish();
    }
    if met.is_empty() {
        status.scores.insert((metadata.name, String::new()), AddOnScore::default());
    }
    fields.finish();
}
