//! A ReplicaSchedulingPreference and the workload of the same name → a division: the total, the clusters that take
//! part, each with its weight and limits, and the limits of the namespace.
//!
//! Ready clusters take part. The placements of the workload and of its namespace are ignored, unless
//! `intersectWithClusterSelector` is set; then only their selectors apply.
//!
//! A preference is read exactly as KubeFed reads it, surprises included. A preference with a surprise gets a warning
//! with its effect and a way to avoid it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value as Json;

use super::FederatedContext;
use super::federated::FederatedObject;
use super::placement::{self, SelectedClusters};
use crate::dialects::Document;
use berth_base::diag::{Diagnostic, Diagnostics, Pos};
use berth_base::meta::{Metadata, open};
use berth_base::model::cluster::WorkloadName;
use berth_base::model::placement::{Division, Filter, Rule, Share};
use berth_base::model::{Key, Override, Selector, Verb};
use berth_base::packed::View;
use berth_base::yaml::{Fields, Scope};

const REPLICAS_RANGE: std::ops::RangeInclusive<i64> = i32::MIN as i64..=i32::MAX as i64;

/// The kinds that can be divided.
pub(super) const DIVIDED: [&str; 2] = ["FederatedDeployment", "FederatedReplicaSet"];

/// Represents every cluster without its own entry.
const OTHERS: &str = "*";

/// A preference as written.
#[derive(Debug)]
pub(super) struct Preference {
    pub(super) key: Key,
    pub(super) origin: Pos,
    target: String,
    target_at: Pos,
    pub(super) total: i32,
    pub(super) rebalance: bool,
    pub(super) intersect: bool,
    pub(super) shares: BTreeMap<String, (Share, Pos)>,
    pub(super) others: Option<Share>,
    /// The spec's text.
    pub(super) text: Json,
    /// The preference's workload exists.
    met: AtomicBool,
}

impl Preference {
    /// Divides the replicas of a workload among the clusters that pass these filters.
    fn division(&self, workload: &Key, among: Vec<Filter>, then: &[Filter]) -> Division {
        Division {
            by: self.key.clone(),
            origin: self.origin.clone(),
            workload: WorkloadName::of(workload),
            total: self.total,
            shares: self.shares.clone(),
            others: self.others,
            rebalance: self.rebalance,
            hash_key: self.key.full_name(),
            among,
            then: then.to_vec(),
        }
    }
}

/// The preferences by namespace and name.
#[derive(Debug, Default)]
pub(super) struct Preferences(BTreeMap<(String, String), Preference>);

impl Preferences {
    /// Returns the preference for a Federated object.
    pub(super) fn find(&self, kind: &str, namespace: &str, name: &str) -> Option<&Preference> {
        let found = self.0.get(&(namespace.to_owned(), name.to_owned()))?;
        (found.target == kind).then(|| {
            found.met.store(true, Ordering::Relaxed);
            found
        })
    }

    /// Reports whether a preference of this name exists, for any kind.
    pub(super) fn has(&self, namespace: &str, name: &str) -> bool {
        !self.0.is_empty() && self.0.contains_key(&(namespace.to_owned(), name.to_owned()))
    }

    /// Warns of preferences without a workload.
    pub(super) fn report_unmet(&self, found: &mut Diagnostics) {
        for one in self.0.values().filter(|one| !one.met.load(Ordering::Relaxed)) {
            let wanted = format!("{} {}", one.target, one.key.full_name());
            let message = format!("there is no {wanted} to divide the replicas of");
            let hint =
                "give the preference the namespace and name of the object, and its kind in `targetKind`";
            found.push(Diagnostic::warning(one.target_at.clone(), message).hint(hint));
        }
    }
}

pub(super) fn read(scope: &Scope, document: &Document, preferences: &mut Preferences) {
    let root = document.open();
    let Some((mut fields, metadata)) = open(scope, &root) else { return };
    if metadata.namespace.is_empty() {
        scope.error(metadata.at, "metadata.namespace is required");
    }
    let text = document.root.get("spec").map_or(Json::Null, View::to_json);
    let spec = fields.required_fields("spec");
    fields.finish();
    let Some(mut spec) = spec else { return };
    let target = spec.required_str("targetKind");
    let target_at = scope.pos(spec.place_of("targetKind"));
    spec.require("totalReplicas");
    let total = spec.int_in("totalReplicas", REPLICAS_RANGE);
    let rebalance = spec.bool("rebalance").unwrap_or(false);
    let intersect = spec.bool("intersectWithClusterSelector").unwrap_or(false);
    let mut clusters = spec.fields("clusters").map(read_clusters).unwrap_or_default();
    spec.finish();
    let (Some(target), Some(total)) = (target, total.and_then(|total| i32::try_from(total).ok())) else {
        return;
    };
    if scope.has_errors() {
        return;
    }
    if !DIVIDED.contains(&target) {
        let message = format!("replicas of a {target} cannot be divided, so the preference has no effect");
        let hint = format!("spec.targetKind is one of {}", DIVIDED.join(", "));
        return scope.report(Diagnostic::warning(target_at, message).hint(hint));
    }
    if clusters.is_empty() {
        clusters.insert(OTHERS.to_owned(), (Share { weight: 1, ..Share::default() }, scope.pos(root.at)));
    }
    let others = clusters.remove(OTHERS).map(|(share, _)| share);
    let preference = Preference {
        key: document.key.clone(),
        origin: document.at.clone(),
        target: target.to_owned(),
        target_at,
        total,
        rebalance,
        intersect,
        shares: clusters,
        others,
        text,
        met: AtomicBool::new(false),
    };
    warn_of_floors(scope, &preference);
    preferences.0.insert((metadata.namespace, metadata.name), preference);
}

fn read_clusters(clusters: Fields<'_>) -> BTreeMap<String, (Share, Pos)> {
    let scope = clusters.scope();
    let entry = |entry: &berth_base::yaml::node::Entry| {
        let path = clusters.path_of(&entry.key);
        let share = read_share(scope.fields(&entry.value, &path)?, &path);
        Some((entry.key.clone(), (share, scope.pos(entry.at))))
    };
    clusters.entries().iter().filter_map(entry).collect()
}

fn read_share(mut fields: Fields<'_>, path: &str) -> Share {
    let scope = fields.scope();
    let mut number = |key| fields.int_in(key, i64::MIN..=i64::MAX);
    let (ceiling, floor, weight) = (number("maxReplicas"), number("minReplicas"), number("weight"));
    let at = scope.pos(fields.at());
    let share = Share { floor: floor.unwrap_or(0), ceiling, weight: weight.unwrap_or(0) };
    fields.finish();
    let say = |message: String, hint: &str| {
        scope.report(Diagnostic::warning(at.clone(), message).hint(hint));
    };
    if share.floor < 0 || share.weight < 0 || ceiling.is_some_and(|ceiling| ceiling < 0) {
        let message = format!("{path} is negative, so members may get negative replicas");
        say(message, "write 0 or more: members refuse negative replicas");
    } else if share.floor == 0 && weight.is_none() && ceiling != Some(0) {
        let message = format!("{path} has neither a weight nor minReplicas, so it gets no replicas at all");
        say(message, "an absent weight is 0: write `weight: 1`");
    }
    if let Some(ceiling) = ceiling.filter(|ceiling| share.floor > *ceiling) {
        let message = format!(
            "{path}: minReplicas {} is above maxReplicas {ceiling}, which may or may not cut it back: {} stay \
             where the floors use up the total",
            share.floor, share.floor
        );
        say(message, "make minReplicas at most maxReplicas");
    }
    share
}

/// Warns of floors: they are added to weights, so the last cluster gets less than its floor.
fn warn_of_floors(scope: &Scope, preference: &Preference) {
    let shares = || preference.shares.values().map(|(share, _)| *share).chain(preference.others);
    let say = |message: String, hint: &str| {
        scope.report(Diagnostic::warning(preference.origin.clone(), message).hint(hint));
    };
    if preference.total < 0 {
        let message = "spec.totalReplicas is negative, so a cluster gets a negative number of replicas";
        say(message.to_owned(), "write 0 or more: members refuse negative replicas");
        return;
    }
    let floors = preference.shares.values().fold(0, |sum: i64, (share, _)| sum.saturating_add(share.floor));
    let total = i64::from(preference.total);
    if floors > total {
        let message = format!("the minReplicas add up to {floors}, more than the total of {total}");
        say(
            message,
            "raise totalReplicas or lower minReplicas: otherwise the clusters with the lowest weights get \
             less than their minimum",
        );
        return;
    }
    let unlike = |a: Share, b: Share| {
        i128::from(a.floor) * i128::from(b.weight) != i128::from(b.floor) * i128::from(a.weight)
    };
    let weighted: Vec<Share> = shares().filter(|share| share.weight > 0).collect();
    if let [first, rest @ ..] = weighted.as_slice()
        && rest.iter().any(|share| unlike(*first, *share))
        && weighted.iter().any(|share| share.floor > 0)
    {
        let message = "the weights divide only the replicas above minReplicas, so the totals are not in proportion \
             to the weights";
        say(message.to_owned(), "remove minReplicas to divide by the weights alone");
    }
}

/// The field with the number of replicas in Deployments and ReplicaSets.
pub(super) const REPLICAS: [&str; 2] = ["spec", "replicas"];

/// Returns the division for a preference. `None`, with a warning, if the preference has no effect.
pub(super) fn division_of(
    object: FederatedObject<'_>,
    wanted: &SelectedClusters,
    narrowing: &[Filter],
) -> Option<Division> {
    let FederatedObject { scope, document, root, metadata, context } = object;
    let preference = context.preferences.find(&document.key.kind, &metadata.namespace, &metadata.name)?;
    let say = |message: String, hint: &str| {
        scope.report(Diagnostic::warning(preference.origin.clone(), message).hint(hint));
    };
    let (key, by) = (&document.key, &preference.key);
    if let SelectedClusters::Follow(_) = wanted {
        let message = format!("{by} has no effect: {key} follows another placement");
        say(message, "remove `placementRef` or the preference");
        return None;
    }
    if !context.planes.divides(&metadata.namespace) {
        let message = format!("{by} has no effect: a KubeFedConfig turns off the gate SchedulerPreferences");
        say(message, "enable the gate, or remove the preference");
        return None;
    }
    let division = |among| preference.division(key, among, narrowing);
    let ready = Filter { rule: Rule::Ready, by: None };
    let mut among = vec![ready];
    let named = document.root.get("spec").and_then(|spec| spec.get("placement")?.get("clusters"));
    let named = named.is_some_and(|clusters| !clusters.is_null());
    let own = placement::selector_of(root);
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
    } else if named || own.as_ref().is_some_and(|selector| !selector.requirements.is_empty()) {
        let message = format!("the placement of {key} has no effect: {by} divides among all ready clusters");
        say(
            message,
            "set `intersectWithClusterSelector: true` to use only clusters that its selector matches",
        );
    }
    Some(division(among))
}

const NAMES: &str = "use a selector: `intersectWithClusterSelector` does not read lists of names";

fn selectors<'c>(
    context: &'c FederatedContext,
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
