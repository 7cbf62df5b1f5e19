//! Evictions and disruption budgets: checked as the hub would; berth does not act on them.
//!
//! An eviction is a single request to a running hub, and a budget limits only evictions. In a repository,
//! taint the cluster or remove it from the placement.

use berth_base::diag::Diagnostic;
use berth_base::meta;
use berth_base::model::Key;
use berth_base::model::rollout::Amount;
use berth_base::yaml::fields::{Fields, Scope};
use berth_base::yaml::node::Node;
use berth_base::yaml::{Form, Value};

const LONGEST_NAME: usize = 255;

/// Checks a `ClusterResourcePlacementEviction`, which has no effect without a hub.
pub(crate) fn eviction(scope: &Scope, root: &Node, key: &Key) {
    let Some((mut fields, _)) = meta::open(scope, root) else { return };
    if let Some(mut spec) = fields.required_fields("spec") {
        let placement = spec.required_str("placementName").unwrap_or_default();
        let cluster = spec.required_str("clusterName").unwrap_or_default();
        for name in ["placementName", "clusterName"] {
            if spec.str(name).is_some_and(|text| text.len() > LONGEST_NAME) {
                let message =
                    format!("{} must not be longer than {LONGEST_NAME} characters", spec.path_of(name));
                spec.error_at(name, message);
            }
        }
        let message = format!(
            "{key} has no effect: an eviction is an event, and a repository holds no \
                               events"
        );
        let hint = format!(
            "to take {placement} off {cluster}, taint the cluster and change the placement's policy, or leave \
             the cluster out of it"
        );
        scope.report(Diagnostic::warning(scope.pos(root.at), message).hint(hint));
        spec.finish();
    }
    fields.finish();
}

/// Checks a `ClusterResourcePlacementDisruptionBudget`, which only limits evictions.
pub fn budget(scope: &Scope, root: &Node, key: &Key) {
    let Some((mut fields, _)) = meta::open(scope, root) else { return };
    if let Some(mut spec) = fields.required_fields("spec") {
        let bounds = ["maxUnavailable", "minAvailable"];
        let given = bounds.iter().filter(|bound| spec.node(bound).is_some()).count();
        if given != 1 {
            let message = format!("{} must have exactly one of maxUnavailable and minAvailable", spec.path());
            scope.error(spec.at(), message);
        }
        for bound in bounds {
            count_or_share(&mut spec, bound);
        }
        spec.finish();
        let message = format!("{key} has no effect: it limits evictions, and berth evicts nothing");
        let hint = "remove it: the gate limits removals (`--max-removed-clusters`)";
        scope.report(Diagnostic::warning(scope.pos(root.at), message).hint(hint));
    }
    fields.finish();
}

/// Reads a count, or a share such as `25%`.
pub(crate) fn count_or_share(fields: &mut Fields<'_>, key: &'static str) -> Option<Amount> {
    fields.takes(key, Form::CountOrShare);
    let node = fields.node(key)?;
    let amount = match &node.value {
        Value::Number(number) => number
            .as_i64()
            .filter(|count| (0..=i64::from(i32::MAX)).contains(count))
            .and_then(|count| usize::try_from(count).ok())
            .map(Amount::Count),
        Value::String(text) => text
            .strip_suffix('%')
            .filter(|share| !share.is_empty() && share.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|share| share.parse::<u32>().ok())
            .filter(|share| *share <= 100)
            .map(Amount::Percent),
        _ => None,
    };
    if amount.is_none() {
        let message = format!("{} must be a count from 0 or a share from 0% to 100%", fields.path_of(key));
        fields.error_at(key, message);
    }
    amount
}
