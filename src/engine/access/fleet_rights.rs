//! Access checks that need the whole fleet: the clusters that placements reach, and the objects of workloads.
//!
//! A workload with an object that its folder may not place is frozen with its placement: both keep their last
//! good form. A placement's new picks are limited to clusters that its folder may reach.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::document_rights::{MissingRight, folder_of, no_namespace, object};
use super::facts::object_role;
use super::rule::Rules;
use super::{Facts, World};
use crate::dialects::AccessRole;
use berth_base::diag::{Diagnostic, Diagnostics};
use berth_base::model::object::group_of;
use berth_base::model::placement::{Blocked, Filter, Policy, Reach, Rule, Selection, Source};
use berth_base::model::{Cluster, Condition, Fleet, Key, ObjectId, Override, Shared, Template, Workload};

/// The maximal number of missing rights that are reported for one workload.
const MOST_TOLD: usize = 5;

/// Freezes workloads and narrows placements that exceed their rights. `now` are the facts of this commit.
pub fn hold(world: &World, now: &Facts, fleet: &mut Fleet) -> Diagnostics {
    let mut found = Diagnostics::new();
    if world.is_free() {
        return found;
    }
    let mut held: BTreeSet<Key> = BTreeSet::new();
    for workload in fleet.workloads.values() {
        if report_missing_rights(world, workload, &mut found) {
            held.insert(workload.key.clone());
        }
    }
    let sets = sets_of_clusters(now, fleet);
    let (mut reaches, mut later) = (Reaches::new(&world.rules, &sets), Reaches::new(&world.next, &sets));
    let mut narrowed: BTreeMap<Key, Reach> = BTreeMap::new();
    for (key, placement) in &fleet.placements {
        if is_bound(fleet, &placement.source) {
            continue;
        }
        let path = &*placement.origin.file;
        let folder = folder_of(path);
        let clusters = reaches.of(path);
        if clusters.len() == fleet.clusters.len() {
            continue;
        }
        let mut is_next =
            |may: &dyn Fn(&BTreeSet<String>) -> bool| world.next.enforced && may(&later.of(path));
        for cluster in named(&placement.source).iter().filter(|name| fleet.clusters.contains_key(*name)) {
            if !clusters.contains(cluster) {
                let words = no_cluster(cluster);
                let is_next = is_next(&|next| next.contains(cluster));
                found.push(words.error(&world.rules, placement.origin.clone(), is_next));
                held.insert(key.clone());
            }
        }
        if clusters.is_empty() {
            let words = MissingRight::new("place into any cluster", "clusterSets: {bind: [SET]}");
            let is_next = is_next(&|next| !next.is_empty());
            found.push(words.error(&world.rules, placement.origin.clone(), is_next));
            held.insert(key.clone());
        }
        narrowed.insert(key.clone(), Reach { folder, clusters });
    }
    for (key, reach) in narrowed {
        let filter = Filter { rule: Rule::Reachable(reach), by: None };
        match fleet.placements.get_mut(&key).map(|placement| &mut placement.source) {
            Some(Source::Own(policy)) => policy.candidates.push(filter),
            Some(Source::Follows(follow)) => follow.filters.push(filter),
            None => {}
        }
    }
    for key in held {
        freeze(fleet, &key);
    }
    found
}

/// Reports the rights that a workload lacks; returns whether it lacks any.
fn report_missing_rights(world: &World, workload: &Workload, found: &mut Diagnostics) -> bool {
    let lacking = carries(&world.rules, workload);
    if lacking.is_empty() {
        return false;
    }
    let at = || workload.origin.clone();
    if let Some(more) = lacking.len().checked_sub(MOST_TOLD).filter(|more| *more > 0) {
        let message = format!("{} lacks {more} more rights for its objects", workload.key);
        found.push(Diagnostic::error(at(), message));
    }
    let allowed_next = world.next.enforced && carries(&world.next, workload).is_empty();
    let error = |words: MissingRight| words.error(&world.rules, at(), allowed_next);
    found.extend(lacking.into_iter().take(MOST_TOLD).map(error));
    true
}

/// Returns the rights that a workload lacks for its objects. An object from another folder was checked there
/// for its kind; selecting it requires the right to its namespace.
fn carries(rules: &Rules, workload: &Workload) -> Vec<MissingRight> {
    let path = &*workload.origin.file;
    let selects = object_role(rules.dialects, &workload.key) == AccessRole::Selector;
    let mut asked = BTreeSet::new();
    let moves: Vec<&Override> = workload.overrides.iter().filter(|one| one.api_version().is_some()).collect();
    // An override that moves an object to another API group also needs the right on that kind.
    let ids = |template: &Template| {
        let own = template.object.id.clone();
        let moved = moves.iter().filter(|one| one.concerns(&own)).filter_map(|one| one.api_version());
        let moved = moved.map(|version| own.in_group(group_of(version)));
        let mut ids: Vec<ObjectId> = moved.collect();
        ids.insert(0, own);
        ids
    };
    let lack = |id: ObjectId| {
        let what = rules.what(Some(&id.group), &id.kind, &id.namespace, &id.name);
        let home = what.home().to_owned();
        // Each question is asked once.
        let kind = (!selects || what.is_of_the_cluster()).then(|| (id.group.clone(), id.kind.clone()));
        if !asked.insert((home.clone(), kind)) {
            return None;
        }
        if !selects || home.is_empty() {
            return object(rules, path, what);
        }
        let may = rules.may_use(path, &home)
            || (what.is_of_the_cluster() && rules.may_place_cluster_kind(path, Some(&id.group), &id.kind));
        (!may).then(|| no_namespace(&home))
    };
    workload.templates.iter().flat_map(ids).filter_map(lack).collect()
}

fn no_cluster(cluster: &str) -> MissingRight {
    MissingRight::new(
        format!("place into the cluster `{cluster}`"),
        format!("clusters: {{place: [{cluster}]}}"),
    )
}

/// Returns each cluster with its sets.
fn sets_of_clusters(now: &Facts, fleet: &Fleet) -> BTreeMap<String, BTreeSet<String>> {
    let one = |(name, cluster): (&String, &Shared<Cluster>)| {
        // A status file may report labels that the cluster's document does not have.
        let mut labels = fleet.statuses.get(name).map(|status| status.labels.clone()).unwrap_or_default();
        labels.extend(cluster.labels.clone());
        (name.clone(), now.sets_of(&labels))
    };
    fleet.clusters.iter().map(one).collect()
}

/// The clusters that folders may place into, computed once for all files with the same rules.
struct Reaches<'a> {
    rules: &'a Rules,
    sets: &'a BTreeMap<String, BTreeSet<String>>,
    known: BTreeMap<Vec<usize>, Arc<BTreeSet<String>>>,
}

impl<'a> Reaches<'a> {
    fn new(rules: &'a Rules, sets: &'a BTreeMap<String, BTreeSet<String>>) -> Reaches<'a> {
        Reaches { rules, sets, known: BTreeMap::new() }
    }

    fn of(&mut self, path: &str) -> Arc<BTreeSet<String>> {
        let (rules, all) = (self.rules, self.sets);
        let may = |(name, sets): &(&String, &BTreeSet<String>)| rules.may_reach(path, name, *sets);
        let reach = || Arc::new(all.iter().filter(may).map(|(name, _)| name.clone()).collect());
        self.known.entry(rules.numbers_of(path)).or_insert_with(reach).clone()
    }
}

/// Reports whether a placement picks clusters from bound sets only. The bindings were already checked for the
/// right to use the sets.
fn is_bound(fleet: &Fleet, source: &Source) -> bool {
    let by_sets =
        |policy: &Policy| policy.candidates.iter().any(|filter| matches!(filter.rule, Rule::InSets(_)));
    match source {
        Source::Own(policy) => by_sets(policy),
        Source::Follows(follow) => follow.placements.iter().all(|wanted| {
            let followed = fleet.find(wanted).map(|placement| &placement.source);
            matches!(followed, Some(Source::Own(policy)) if by_sets(policy))
        }),
    }
}

/// Returns the clusters that a policy itself names.
fn named(source: &Source) -> BTreeSet<String> {
    let Source::Own(policy) = source else { return BTreeSet::new() };
    let exactly = match &policy.selection {
        Selection::Exactly(names) => Some(names),
        Selection::All | Selection::First(_) | Selection::InTurn(_) => None,
    };
    let listed = policy.filters.iter().filter(|filter| filter.by.is_none());
    let listed = listed.filter_map(|filter| match &filter.rule {
        Rule::Named(names) => Some(names),
        _ => None,
    });
    exactly.into_iter().chain(listed).flatten().cloned().collect()
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
            message: "its folder lacks a right; the placement stays unchanged".to_owned(),
        };
        policy.blocked = Some(Blocked { condition, keep_earlier: true });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::read_rule as read;
    use berth_base::diag::Severity;
    use berth_base::yaml::{self, Limits, Scope};

    #[test]
    fn files_under_the_same_rules_share_one_reach() {
        let text = "apiVersion: berth.dev/v1alpha1\nkind: AccessRule\nmetadata: {name: a}\n\
                    spec: {folders: [teams/a], clusterSets: {bind: [blue]}}\n";
        let document = yaml::read(text.as_bytes(), &Limits::default()).documents.remove(0);
        let rule =
            read(&Scope::new("access/a.yaml".into(), Severity::Error), &document.root).expect("a rule");
        let rules = Rules { enforced: true, rules: vec![rule], dialects: &[] };
        let set = |name: &str| BTreeSet::from([name.to_owned()]);
        let sets = BTreeMap::from([("oslo".to_owned(), set("blue")), ("turin".to_owned(), set("red"))]);
        let mut reaches = Reaches::new(&rules, &sets);
        let (one, other) = (reaches.of("teams/a/x.yaml"), reaches.of("teams/a/deeper/y.yaml"));
        assert_eq!(*one, set("oslo"));
        assert!(Arc::ptr_eq(&one, &other));
        assert!(reaches.of("teams/b/x.yaml").is_empty());
    }
}
