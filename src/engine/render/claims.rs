//! The objects of all workloads: one claim per template, grouped by path.
//!
//! Paths that differ only by case form one group, because many file systems treat them as one file.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::inputs::RenderInputs;
use berth_base::model::{
    Decision, Fleet, Key, ObjectId, Override, Pick, PickCursor, Shared, Template, Workload, object, path,
};

/// One template of one workload, for the clusters in which it becomes the same object.
#[derive(Debug)]
pub(super) struct Claim<'a> {
    pub(super) workload: &'a Workload,
    pub(super) template: &'a Template,
    /// The object of the copies: the template's, unless an override moves it to another API group.
    pub(super) id: Cow<'a, ObjectId>,
    pub(super) path: Arc<str>,
    picks: Shared<Vec<Pick>>,
}

impl<'a> Claim<'a> {
    /// Returns the clusters, ascending.
    pub(super) fn clusters(&self) -> impl Iterator<Item = &str> {
        self.picks.iter().map(|pick| &*pick.cluster)
    }

    /// Returns the picks, in the order of the clusters.
    pub(super) fn picks(&self) -> &[Pick] {
        &self.picks
    }

    pub(super) fn pick(&self, cluster: &str) -> Option<&Pick> {
        let index = self.picks.binary_search_by(|pick| (*pick.cluster).cmp(cluster)).ok()?;
        self.picks.get(index)
    }

    /// Reports whether both claims give equal copies to their common clusters, if the clusters are unchanged.
    /// False for frozen workloads, which have more inputs.
    pub(super) fn makes_as(&self, other: &Claim<'_>) -> bool {
        !self.workload.frozen
            && !other.workload.frozen
            && self.path == other.path
            && self.workload.key == other.workload.key
            && (std::ptr::eq(self.workload, other.workload) && std::ptr::eq(self.template, other.template)
                || self.says_as(other))
    }

    /// Reports whether both claims have the same clusters, each with the same number of replicas.
    pub(super) fn picks_as(&self, other: &Claim<'_>) -> bool {
        self.picks.is_same(&other.picks) || self.numbers().eq(other.numbers())
    }

    /// Returns the claim for the clusters that `other` lacks, or has with another number of replicas.
    pub(super) fn without(&self, other: &Claim<'_>) -> Claim<'a> {
        let mut others = PickCursor::of(&other.picks);
        let is_other =
            |pick: &&Pick| others.pick(&pick.cluster).is_none_or(|one| one.replicas != pick.replicas);
        Claim {
            id: self.id.clone(),
            path: self.path.clone(),
            picks: self.picks.iter().filter(is_other).cloned().collect(),
            ..*self
        }
    }

    fn says_as(&self, other: &Claim<'_>) -> bool {
        self.workload.replicas == other.workload.replicas
            && self.workload.overrides == other.workload.overrides
            && self.template == other.template
    }

    /// Returns the clusters of the copies, each with its number of replicas.
    pub(super) fn numbers(&self) -> impl ExactSizeIterator<Item = (&str, Option<i64>)> {
        self.picks.iter().map(|pick| (&*pick.cluster, pick.replicas))
    }
}

/// Claims by path in lower case, each group in the order of the workloads' keys.
pub(super) type Groups<'a> = BTreeMap<String, Vec<Claim<'a>>>;

/// Groups the claims of these workloads, whose keys ascend.
pub(super) fn group<'a, 'k>(inputs: &'a RenderInputs, keys: impl IntoIterator<Item = &'k Key>) -> Groups<'a> {
    let mut groups = Groups::new();
    for claim in keys.into_iter().flat_map(|key| inputs.claims(key)) {
        groups.entry(claim.path.to_lowercase()).or_default().push(claim);
    }
    groups
}

/// Returns the picks that get copies now, without the pending ones.
pub(super) fn served(decision: &Decision) -> Shared<Vec<Pick>> {
    match decision.picks.iter().any(|pick| pick.pending) {
        true => decision.picks.iter().filter(|pick| !pick.pending).cloned().collect(),
        false => decision.picks.clone(),
    }
}

/// Returns the claims of one workload on its picked clusters.
pub(super) fn of_workload<'a>(
    fleet: &Fleet,
    workload: &'a Workload,
    picks: &Shared<Vec<Pick>>,
) -> Vec<Claim<'a>> {
    let mut all = Vec::new();
    for template in &workload.templates {
        let own = Cow::Borrowed(&template.object.id);
        let mut claims = vec![(own, picks.clone())];
        if workload.moves_group() {
            claims = by_group(fleet, workload, template, picks);
        }
        for (id, picks) in claims {
            let path = path::of_object(&id).into();
            all.push(Claim { workload, template, id, path, picks });
        }
    }
    all
}

/// Groups the picks by the object that the template becomes; the last override that sets an API group wins.
fn by_group<'a>(
    fleet: &Fleet,
    workload: &Workload,
    template: &'a Template,
    picks: &[Pick],
) -> Vec<(Cow<'a, ObjectId>, Shared<Vec<Pick>>)> {
    let own = &template.object.id;
    let mut by_group: BTreeMap<&str, Vec<Pick>> = BTreeMap::new();
    for pick in picks {
        let applies = |one: &&Override| {
            one.concerns(own)
                && one.clusters.include(&pick.cluster, fleet.clusters.get(&*pick.cluster).map(|one| &**one))
        };
        let set = workload.overrides.iter().rev().filter(applies).find_map(Override::api_version);
        let group = set.map_or(&*own.group, object::group_of);
        by_group.entry(group).or_default().push(pick.clone());
    }
    let of = |(group, picks): (&str, Vec<Pick>)| {
        let id = match *group == *own.group {
            true => Cow::Borrowed(own),
            false => Cow::Owned(own.in_group(group)),
        };
        (id, picks.into())
    };
    by_group.into_iter().map(of).collect()
}
