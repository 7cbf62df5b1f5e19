//! A preference and its workload → a division: the clusters that take part, and the namespace's limits.
//!
//! Ready clusters take part. As in KubeFed, the placements of the workload and of its namespace are ignored,
//! unless `intersectWithClusterSelector` is set; then only their selectors apply.

use super::Context;
use super::federated_object::FederatedObject;
use super::placement::{self, Wanted};
use super::preference::Preference;
use berth_base::diag::Diagnostic;
use berth_base::meta::Metadata;
use berth_base::model::cluster::WorkloadName;
use berth_base::model::placement::{Division, Filter, Rule};
use berth_base::model::{Key, Override, Selector, Verb};
use berth_base::yaml::Scope;

/// The field with the number of replicas in Deployments and ReplicaSets.
pub(super) const REPLICAS: [&str; 2] = ["spec", "replicas"];

/// Returns the division for a preference. `None`, with a warning, if the preference has no effect.
pub(super) fn of(object: FederatedObject<'_>, wanted: &Wanted, narrowing: &[Filter]) -> Option<Division> {
    let FederatedObject { scope, document, metadata, context } = object;
    let preference = context.preferences.find(&document.key.kind, &metadata.namespace, &metadata.name)?;
    let say = |message: String, hint: &str| {
        scope.report(Diagnostic::warning(preference.origin.clone(), message).hint(hint));
    };
    let (key, by) = (&document.key, &preference.key);
    if let Wanted::Follow(_) = wanted {
        let message = format!("{by} has no effect: {key} follows another placement");
        say(message, "remove `placementRef` or the preference");
        return None;
    }
    if !context.planes.divides(&metadata.namespace) {
        let message = format!("{by} has no effect: a KubeFedConfig turns off the gate SchedulerPreferences");
        say(message, "enable the gate, or remove the preference");
        return None;
    }
    let division = |among| Division {
        by: by.clone(),
        origin: preference.origin.clone(),
        workload: WorkloadName::of(key),
        total: preference.total,
        shares: preference.shares.clone(),
        others: preference.others,
        rebalance: preference.rebalance,
        hash_key: by.full_name(),
        among,
        then: narrowing.to_vec(),
    };
    let ready = Filter { rule: Rule::Ready, by: None };
    let mut among = vec![ready];
    let named = document.root.get("spec").and_then(|spec| spec.get("placement")?.get("clusters"));
    let named = named.is_some_and(|clusters| !clusters.is_null());
    let own = placement::selector_of(&document.open());
    if preference.intersect {
        let (namespace, of_namespace) = match selectors(context, metadata, own.as_ref(), key) {
            Ok(found) => found,
            // The list of names is the author's explicit choice, so it decides.
            Err(why) if named => {
                let message = format!("{by} divides no replicas, and {key} keeps its own replicas: {why}");
                say(message, NAMES);
                return None;
            }
            // The last division stays in effect; without one, the object stays as written.
            Err(why) => {
                let message =
                    format!("{by} divides no replicas: {why}; the numbers that it set earlier stay");
                say(message, NAMES);
                return Some(division(vec![Filter { rule: Rule::Nowhere(why), by: None }]));
            }
        };
        if named {
            let message = format!("{by} reads only the selector of {key}, and not its list of clusters");
            say(message, "leave `spec.placement.clusters` out");
        }
        among.push(Filter { rule: Rule::Labels(own.unwrap_or_default()), by: None });
        among.push(Filter { rule: Rule::Labels(of_namespace.clone()), by: Some(namespace.clone()) });
    } else {
        if named || own.as_ref().is_some_and(|selector| !selector.requirements.is_empty()) {
            let message =
                format!("the placement of {key} has no effect: {by} divides among all ready clusters");
            say(
                message,
                "set `intersectWithClusterSelector: true` to use only clusters that its selector \
                          matches",
            );
        }
    }
    Some(division(among))
}

const NAMES: &str = "use a selector: `intersectWithClusterSelector` does not read lists of names";

fn selectors<'c>(
    context: &'c Context,
    metadata: &Metadata,
    own: Option<&Selector>,
    key: &Key,
) -> Result<(&'c Key, &'c Selector), String> {
    let namespace = &metadata.namespace;
    let Some((federated, selector)) = context.namespaces.selector(namespace) else {
        return Err(format!("there is no FederatedNamespace `{namespace}/{namespace}`"));
    };
    let selector = selector.ok_or_else(|| format!("{federated} has no clusterSelector"))?;
    own.ok_or_else(|| format!("{key} has no clusterSelector"))?;
    Ok((federated, selector))
}

/// Warns of other settings of the replicas that a preference divides.
pub(super) fn warn_of_rivals(
    scope: &Scope,
    preference: &Preference,
    key: &Key,
    overrides: &[Override],
    retains_replicas: bool,
) {
    let by = &preference.key;
    if retains_replicas {
        let message =
            format!("retainReplicas of {key} has no effect: {by} sets the replicas of every cluster");
        let hint = "an autoscaler in a member and a preference fight over one number: keep one of them";
        scope.report(Diagnostic::warning(preference.origin.clone(), message).hint(hint));
    }
    for one in overrides {
        let berth_base::model::Action::Patch(operations) = &one.action else { continue };
        for operation in
            operations.iter().filter(|one| one.path.parts() == REPLICAS && one.verb == Verb::Remove)
        {
            let message = format!("this removes the replicas that {by} sets, so members fall back to 1");
            let hint = "remove the operation; the preference needs none";
            scope.report(Diagnostic::warning(operation.at.clone(), message).hint(hint));
        }
    }
}
