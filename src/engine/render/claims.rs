//! The objects of all workloads: one claim per template, grouped by path.
//!
//! Paths that differ only by case form one group, because many file systems treat them as one file.
//!
//! If several workloads claim one object, equal copies are shared, and of different ones one wins: the
//! published copy; without one, the lowest kind, namespace and name. The owner of a copy is the lowest of
//! all workloads with an equal one. The other copies fail, with an error that names both workloads.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use super::Rendering;
use super::copies::{Copies, CopyFault, CopyResult, Draft};
use super::inputs::RenderInputs;
use berth_base::model::{
    ContentError, ContentId, Decision, Fleet, Key, ObjectId, Override, Pick, PickCursor, Shared, Template,
    Workload, object, path,
};

/// One template of one workload, for the clusters in which it becomes the same object.
#[derive(Debug)]
pub(super) struct TemplateClaim<'a> {
    pub(super) workload: &'a Workload,
    pub(super) template: &'a Template,
    /// The object of the copies: the template's, unless an override moves it to another API group.
    pub(super) id: Cow<'a, ObjectId>,
    pub(super) path: Arc<str>,
    picks: Shared<Vec<Pick>>,
}

impl<'a> TemplateClaim<'a> {
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
    pub(super) fn makes_as(&self, other: &TemplateClaim<'_>) -> bool {
        !self.workload.frozen
            && !other.workload.frozen
            && self.path == other.path
            && self.workload.key == other.workload.key
            && (std::ptr::eq(self.workload, other.workload) && std::ptr::eq(self.template, other.template)
                || self.has_same_copies_as(other))
    }

    /// Reports whether both claims have the same clusters, each with the same number of replicas.
    pub(super) fn picks_as(&self, other: &TemplateClaim<'_>) -> bool {
        self.picks.is_same(&other.picks) || self.numbers().eq(other.numbers())
    }

    /// Returns the claim for the clusters that `other` lacks, or has with another number of replicas.
    pub(super) fn without(&self, other: &TemplateClaim<'_>) -> TemplateClaim<'a> {
        let mut others = PickCursor::of(&other.picks);
        let is_other =
            |pick: &&Pick| others.pick(&pick.cluster).is_none_or(|one| one.replicas != pick.replicas);
        TemplateClaim {
            id: self.id.clone(),
            path: self.path.clone(),
            picks: self.picks.iter().filter(is_other).cloned().collect(),
            ..*self
        }
    }

    fn has_same_copies_as(&self, other: &TemplateClaim<'_>) -> bool {
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
pub(super) type Groups<'a> = BTreeMap<String, Vec<TemplateClaim<'a>>>;

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
) -> Vec<TemplateClaim<'a>> {
    let mut all = Vec::new();
    for template in &workload.templates {
        let own = Cow::Borrowed(&template.object.id);
        let mut claims = vec![(own, picks.clone())];
        if workload.moves_group() {
            claims = by_group(fleet, workload, template, picks);
        }
        for (id, picks) in claims {
            let path = path::of_object(&id).into();
            all.push(TemplateClaim { workload, template, id, path, picks });
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

/// The copy that one claim has for a cluster.
enum Offer {
    Good(Rc<Draft>),
    /// The last good form, because a new copy cannot or must not be made.
    Kept(ContentId),
}

/// Returns a claim's copy for a cluster: the new one, or the last good one if there cannot be a new one.
fn offer(
    rendering: &mut Rendering<'_, '_>,
    claim: &TemplateClaim<'_>,
    copies: &mut Copies<'_>,
    cluster: &str,
) -> Option<Offer> {
    match copies.make(claim.pick(cluster)?, &mut rendering.diagnostics) {
        CopyResult::Copy(draft) => return Some(Offer::Good(draft)),
        CopyResult::Deleted => return None,
        CopyResult::Frozen => {}
        CopyResult::Failed(fault) => rendering.problems.add(claim, cluster, fault),
    }
    rendering.history.last_good(claim, cluster).map(Offer::Kept)
}

/// Makes an object that several workloads place.
pub(super) fn make_contested<'c>(
    rendering: &mut Rendering<'_, 'c>,
    claims: &'c [TemplateClaim<'_>],
) -> Result<(), ContentError> {
    let fleet = rendering.fleet;
    let mut copies: Vec<Copies<'_>> = claims.iter().map(|claim| Copies::new(fleet, claim)).collect();
    let clusters: BTreeSet<&str> = claims.iter().flat_map(TemplateClaim::clusters).collect();
    for cluster in clusters {
        let mut offers: Vec<(&TemplateClaim<'_>, Offer)> = Vec::new();
        for (claim, copies) in claims.iter().zip(&mut copies) {
            offers.extend(offer(rendering, claim, copies, cluster).map(|offer| (claim, offer)));
        }
        // Offers in order of preference; equal ones in the order of their keys.
        let winner = offers.iter().enumerate().min_by_key(|(index, (claim, offer))| {
            let rank = match offer {
                Offer::Good(_) if rendering.history.is_incumbent(claim, cluster) => 0,
                Offer::Kept(_) => 1,
                Offer::Good(_) => 2,
            };
            (rank, *index)
        });
        let Some((_, (winner, offer))) = winner else { continue };
        let equals = |other: &(&TemplateClaim<'_>, Offer)| match (offer, &other.1) {
            (Offer::Good(won), Offer::Good(draft)) => {
                winner.path == other.0.path && (Rc::ptr_eq(won, draft) || won.is_as(draft))
            }
            // A failed copy has been reported already.
            (_, Offer::Kept(_)) => true,
            (Offer::Kept(_), Offer::Good(_)) => false,
        };
        for (loser, _) in offers.iter().filter(|other| !equals(other)) {
            rendering.problems.add(loser, cluster, conflict(winner, loser));
        }
        let content = match offer {
            Offer::Kept(id) => *id,
            Offer::Good(won) => {
                // Of equal copies the first is used, whichever was published.
                let first = offers.iter().filter(|other| equals(other)).find_map(|(_, offer)| match offer {
                    Offer::Good(draft) => Some(draft),
                    Offer::Kept(_) => None,
                });
                first.unwrap_or(won).id(&mut rendering.store)?
            }
        };
        rendering.place(winner, cluster, Some(content));
    }
    Ok(())
}

fn conflict(winner: &TemplateClaim<'_>, loser: &TemplateClaim<'_>) -> CopyFault {
    let (other, at) = (&winner.workload.key, &winner.template.object.origin);
    let message = if winner.path == loser.path {
        format!("{other} ({at}) places a different {} there, which stays", winner.id)
    } else {
        format!("{other} ({at}) places {} there, whose name differs only by case", winner.id)
    };
    let hint = Some("place the object from only one of them, or make both equal".to_owned());
    CopyFault { at: loser.template.object.origin.clone(), message, hint, of_override: false }
}
