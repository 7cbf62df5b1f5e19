//! The inputs of all copies: the fleet, replacements for its frozen workloads, and the picks.

use std::collections::{BTreeMap, BTreeSet};

use super::claims::{self, TemplateClaim};
use super::copies::varies;
use super::{Previous, current_copies};
use berth_base::model::{AnyPicked, Applies, Decision, Fleet, Key, Map, Shared, Workload};

#[derive(Clone, Debug, Default)]
pub(super) struct RenderInputs {
    pub(super) fleet: Shared<Fleet>,
    /// The replacements for the fleet's frozen workloads.
    frozen: BTreeMap<Key, Workload>,
    pub(super) decisions: Map<Key, Decision>,
}

impl RenderInputs {
    /// Collects the inputs. `earlier` inputs show which workloads need a look.
    pub(super) fn of(
        fleet: &Shared<Fleet>,
        decisions: &Map<Key, Decision>,
        previous: Previous<'_>,
        earlier: Option<&RenderInputs>,
    ) -> RenderInputs {
        let nothing = RenderInputs::default();
        let earlier = earlier.unwrap_or(&nothing);
        let changed = earlier.fleet.workloads.changes_by(&fleet.workloads, Shared::is_same);
        let were_frozen = earlier.frozen.keys().filter_map(|key| fleet.workloads.get(key));
        let may_be = changed.filter_map(|one| one.after).chain(were_frozen);
        let frozen = may_be.filter(|workload| workload.frozen);
        let frozen = frozen
            .map(|workload| (workload.key.clone(), current_copies::with_frozen_objects(workload, previous)));
        RenderInputs { fleet: fleet.clone(), frozen: frozen.collect(), decisions: decisions.clone() }
    }

    /// Returns the claims of a workload; none for a workload without a decision.
    pub(super) fn claims(&self, key: &Key) -> Vec<TemplateClaim<'_>> {
        let workload = self.frozen.get(key).or_else(|| self.fleet.workloads.get(key).map(|one| &**one));
        let claims =
            |(workload, decision)| claims::of_workload(&self.fleet, workload, &claims::served(decision));
        workload.zip(self.decisions.get(key)).map(claims).unwrap_or_default()
    }

    /// Groups the claims of all workloads.
    pub(super) fn groups(&self) -> claims::Groups<'_> {
        claims::group(self, self.fleet.workloads.keys())
    }

    /// Reports whether later inputs differ only in single workloads and clusters.
    pub(super) fn is_comparable(&self, later: &RenderInputs) -> bool {
        self.fleet.list_kinds == later.fleet.list_kinds
    }

    /// Returns the workloads and placements that differ in later inputs, or whose decisions do.
    pub(super) fn changes(&self, later: &RenderInputs) -> BTreeSet<Key> {
        let mut keys: BTreeSet<Key> = self.frozen.keys().chain(later.frozen.keys()).cloned().collect();
        let workloads = self.fleet.workloads.changes_by(&later.fleet.workloads, Shared::is_same);
        keys.extend(workloads.map(|one| one.key.clone()));
        let placements = self.fleet.placements.changes_by(&later.fleet.placements, Shared::is_same);
        keys.extend(placements.map(|one| one.key.clone()));
        keys.extend(self.decisions.changes(&later.decisions).map(|one| one.key.clone()));
        keys
    }

    /// Returns the workloads whose copies may change because a cluster does.
    pub(super) fn moved_by_clusters(&self, later: &RenderInputs) -> BTreeSet<Key> {
        let (mut clusters, mut with_another_applier) = (BTreeSet::new(), BTreeSet::new());
        for one in self.fleet.clusters.changes(&later.fleet.clusters) {
            clusters.insert(one.key.as_str());
            let [before, after] = [one.before, one.after].map(|known| known.and_then(|known| known.applier));
            if before != after {
                with_another_applier.insert(one.key.as_str());
            }
        }
        if clusters.is_empty() {
            return BTreeSet::new();
        }
        let [mut in_any, mut in_another] = [&clusters, &with_another_applier].map(AnyPicked::of);
        let mut decisions = later.decisions.cursor();
        let mut moved = BTreeSet::new();
        for workload in later.fleet.workloads.values() {
            let Some(decision) = decisions.get(&workload.key) else { continue };
            if in_any.by(decision) && (looks_at_clusters(workload) || in_another.by(decision)) {
                moved.insert(workload.key.clone());
            }
        }
        moved
    }
}

/// Reports whether a copy may depend on more of its cluster than the name.
fn looks_at_clusters(workload: &Workload) -> bool {
    workload.overrides.iter().any(|one| !matches!(one.clusters, Applies::To(_)) || varies(one))
}
