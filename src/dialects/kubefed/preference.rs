//! ReplicaSchedulingPreference: checked, and not yet acted on.

use crate::dialects::Document;
use crate::meta::open;
use crate::yaml::{Fields, Scope};

const REPLICAS: std::ops::RangeInclusive<i64> = i32::MIN as i64..=i32::MAX as i64;

pub(super) fn read(scope: &Scope, document: &Document) {
    let Some((mut fields, metadata)) = open(scope, &document.root) else { return };
    let spec = fields.required_fields("spec");
    fields.finish();
    let Some(mut spec) = spec else { return };
    spec.required_str("targetKind");
    spec.require("totalReplicas");
    spec.int_in("totalReplicas", REPLICAS);
    spec.bool("rebalance");
    spec.bool("intersectWithClusterSelector");
    if let Some(clusters) = spec.fields("clusters") {
        for entry in clusters.entries() {
            if let Some(preference) = scope.fields(&entry.value, &clusters.path_of(&entry.key)) {
                check_cluster(preference);
            }
        }
    }
    spec.finish();
    if !scope.has_errors() {
        let message = format!(
            "berth does not divide replicas by this preference yet; the placement of `{}` itself stands",
            metadata.name
        );
        scope.warning(document.root.at, message);
    }
}

fn check_cluster(mut preference: Fields<'_>) {
    for key in ["maxReplicas", "minReplicas", "weight"] {
        preference.int_in(key, i64::MIN..=i64::MAX);
    }
    preference.finish();
}
