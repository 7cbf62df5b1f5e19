//! What shows only in the fleet as a whole: whom placements reach, and which objects they carry.
//!
//! A workload that carries what its folder may not place keeps what was last rendered of it, and its placement
//! what it had. Which clusters a placement may newly pick is narrowed to those that its folder may reach.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::check::{Words, folder_of, no_namespace, object};
use super::rule::{Rules, What};
use super::{Facts, World};
use crate::diag::{Diagnostic, Diagnostics};
use crate::model::placement::{Blocked, Filter, Policy, Reach, Rule, Selection, Source};
use crate::model::{Condition, Fleet, Key, Template, Workload};

/// How many lacks of one workload are told one by one.
const MOST_TOLD: usize = 5;

/// Holds back what the rules do not allow. `now` are the facts of what counts today.
pub fn hold(world: &World, now: &Facts, fleet: &mut Fleet) -> Diagnostics {
    let mut found = Diagnostics::new();
    if world.is_free() {
        return found;
    }
    let mut held: BTreeSet<Key> = BTreeSet::new();
    for workload in fleet.workloads.values() {
        if tell(world, workload, &mut found) {
            held.insert(workload.key.clone());
        }
    }
    let mut reaches: BTreeMap<String, Arc<BTreeSet<String>>> = BTreeMap::new();
    let mut narrowed: BTreeMap<Key, Reach> = BTreeMap::new();
    for (key, placement) in &fleet.placements {
        // Those that pick from sets have them by a binding, which was asked for.
        let Source::Own(policy) = &placement.source else { continue };
        if policy.candidates.iter().any(|filter| matches!(filter.rule, Rule::InSets(_))) {
            continue;
        }
        let path = &*placement.origin.file;
        let folder = folder_of(path);
        let reach = |rules: &Rules| reach(rules, now, fleet, path);
        let clusters =
            reaches.entry(path.to_owned()).or_insert_with(|| Arc::new(reach(&world.rules))).clone();
        if clusters.len() == fleet.clusters.len() {
            continue;
        }
        let next = if world.next.enforced { reach(&world.next) } else { BTreeSet::new() };
        for cluster in named(policy).filter(|name| fleet.clusters.contains_key(*name)) {
            if !clusters.contains(cluster) {
                let words = no_cluster(cluster);
                found.push(words.error(&world.rules, placement.origin.clone(), next.contains(cluster)));
                held.insert(key.clone());
            }
        }
        if clusters.is_empty() {
            let words = Words::new("place into any cluster", "clusterSets: {bind: [SET]}");
            found.push(words.error(&world.rules, placement.origin.clone(), !next.is_empty()));
            held.insert(key.clone());
        }
        narrowed.insert(key.clone(), Reach { folder, clusters });
    }
    for (key, reach) in narrowed {
        if let Some(placement) = fleet.placements.get_mut(&key)
            && let Source::Own(policy) = &mut placement.source
        {
            policy.candidates.push(Filter { rule: Rule::Reachable(reach), by: None });
        }
    }
    for key in held {
        freeze(fleet, &key);
    }
    found
}

/// Says what a workload lacks; true where that is anything.
fn tell(world: &World, workload: &Workload, found: &mut Diagnostics) -> bool {
    let lacking = carries(&world.rules, workload);
    if lacking.is_empty() {
        return false;
    }
    let at = || workload.origin.clone();
    if let Some(more) = lacking.len().checked_sub(MOST_TOLD).filter(|more| *more > 0) {
        let message = format!("{} lacks {more} more rights for what it carries", workload.key);
        found.push(Diagnostic::error(at(), message));
    }
    let allowed_next = world.next.enforced && carries(&world.next, workload).is_empty();
    let error = |words: Words| words.error(&world.rules, at(), allowed_next);
    found.extend(lacking.into_iter().take(MOST_TOLD).map(error));
    true
}

/// What a workload carries and its folder may not place. Of an object that stands elsewhere its own folder was
/// asked for the kind; who selects it needs its namespace.
fn carries(rules: &Rules, workload: &Workload) -> Vec<Words> {
    let path = &*workload.origin.file;
    let selects = workload.key.kind.ends_with("ResourcePlacement");
    let mut asked = BTreeSet::new();
    let lack = |template: &Template| {
        let id = &template.object.id;
        let what = What { group: Some(&id.group), kind: &id.kind, namespace: &id.namespace, name: &id.name };
        let home = what.home().to_owned();
        // The same question once.
        let kind = (!selects || id.namespace.is_empty()).then(|| (id.group.clone(), id.kind.clone()));
        if !asked.insert((home.clone(), kind)) {
            return None;
        }
        if !selects || home.is_empty() {
            return object(rules, path, what);
        }
        let may = rules.may_use(path, &home)
            || (id.namespace.is_empty() && rules.may_place_cluster_kind(path, Some(&id.group), &id.kind));
        (!may).then(|| no_namespace(&home))
    };
    workload.templates.iter().filter_map(lack).collect()
}

fn no_cluster(cluster: &str) -> Words {
    Words::new(format!("place into the cluster `{cluster}`"), format!("clusters: {{place: [{cluster}]}}"))
}

/// The clusters that a folder may place into.
fn reach(rules: &Rules, now: &Facts, fleet: &Fleet, path: &str) -> BTreeSet<String> {
    let may = |name: &String| {
        let Some(cluster) = fleet.clusters.get(name) else { return false };
        rules.may_reach(path, name, &now.sets_of(&cluster.labels))
    };
    fleet.clusters.keys().filter(|name| may(name)).cloned().collect()
}

/// The clusters that a policy names itself.
fn named(policy: &Policy) -> impl Iterator<Item = &String> {
    let exactly = match &policy.selection {
        Selection::Exactly(names) => Some(names),
        Selection::All | Selection::First(_) => None,
    };
    let listed = policy.filters.iter().filter(|filter| filter.by.is_none());
    let listed = listed.filter_map(|filter| match &filter.rule {
        Rule::Named(names) => Some(names),
        _ => None,
    });
    exactly.into_iter().chain(listed).flatten()
}

fn freeze(fleet: &mut Fleet, key: &Key) {
    if let Some(workload) = fleet.workloads.get_mut(key) {
        workload.frozen = true;
    }
    if let Some(placement) = fleet.placements.get_mut(key)
        && let Source::Own(policy) = &mut placement.source
        && policy.blocked.is_none()
    {
        let condition = Condition {
            kind: "Allowed".to_owned(),
            status: false,
            reason: "AccessDenied".to_owned(),
            message: "its folder lacks a right, so that it stays as it is".to_owned(),
        };
        policy.blocked = Some(Blocked { condition, keep_earlier: true });
    }
}
