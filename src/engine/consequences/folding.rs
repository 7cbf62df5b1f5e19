//! Folds a plan: finds the changes that are equal, and the edits that they come from.
//!
//! Pure. Contents are read through a function, each pair of them once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value as Json;

use super::field_changes::{FieldChange, field_changes};
use super::folded::{Cause, Consequence, FoldedPlan, Move, ObjectDetail, ReplicaMove, Section};
use super::risks::{self, Risk};
use crate::causes::{Causes, Effect, How, InputKind};
use crate::plan::{Change, Counts, ObjectChange, Plan};
use crate::state::State;
use berth_base::model::{ContentId, Decision, Fleet, Key, ObjectId};

/// Pairs of contents that are compared field by field. Further changes are told without their fields.
const MOST_COMPARED: usize = 5_000;

/// The inputs of a folded plan.
#[allow(missing_debug_implementations, reason = "holds functions")]
pub struct ToFold<'a> {
    /// Everything that the edit would change, held or not.
    pub wanted: &'a Plan,
    pub before: &'a State,
    pub after: &'a State,
    pub fleet: &'a Fleet,
    pub causes: &'a Causes,
    /// Reads an object by its content's id.
    pub read: &'a mut dyn FnMut(ContentId) -> Option<Json>,
    /// The workloads that stay as they are until somebody approves.
    pub held: &'a BTreeSet<Key>,
    /// The reason why a placement gets or loses a cluster.
    pub reasons: &'a dyn Fn(&Key, &str) -> Option<&'a str>,
}

/// What equal changes share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Likeness {
    causes: CausesOfSection,
    move_: Move,
    is_held: bool,
    objects: Arc<[ObjectDetail]>,
}

type CausesOfSection = Option<(How, BTreeSet<(InputKind, String)>)>;

/// The changes of one workload in one cluster.
#[derive(Debug, Default)]
struct Local<'a> {
    objects: Vec<&'a ObjectChange>,
}

/// Folds a plan.
pub fn fold(given: ToFold<'_>) -> FoldedPlan {
    let mut folder = Folder { compared: BTreeMap::new(), given };
    folder.fold()
}

struct Folder<'a> {
    given: ToFold<'a>,
    compared: BTreeMap<(ContentId, ContentId), Arc<[FieldChange]>>,
}

#[derive(Default)]
struct Gathered<'a> {
    /// Of one likeness: the clusters of each workload.
    places: BTreeMap<&'a Key, BTreeSet<&'a str>>,
    copies: [usize; 3],
    /// An object with exactly these changes, and whether others have them as well.
    objects: BTreeSet<&'a ObjectId>,
}

impl<'a> Folder<'a> {
    fn fold(&mut self) -> FoldedPlan {
        let mut alike: BTreeMap<Likeness, Gathered<'a>> = BTreeMap::new();
        let mut sections: BTreeMap<CausesOfSection, Section> = BTreeMap::new();
        for (key, locals) in self.locals() {
            let moved = self.replicas_moved(key);
            for (cluster, local) in &locals {
                let causes = self.causes_of(key, cluster, &mut sections);
                let section = sections.entry(causes.clone()).or_default();
                let move_ = self.move_of(key, cluster, local);
                section.risks.extend(self.risks_of(key, move_, local));
                let objects = match move_ {
                    Move::Changes => self.details(local, moved.as_ref(), &mut section.risks),
                    Move::Leaves | Move::Joins => Arc::default(),
                };
                if move_ == Move::Changes && objects.is_empty() {
                    continue;
                }
                let is_held = self.given.held.contains(key);
                let likeness = Likeness { causes, move_, is_held, objects };
                let gathered = alike.entry(likeness).or_default();
                gathered.places.entry(key).or_default().insert(cluster);
                for change in &local.objects {
                    gathered.copies[change.change as usize] += 1;
                    gathered.objects.extend(&change.object);
                }
            }
            if let Some(moved) = moved {
                let cluster = moved.clusters.first().map_or("", |(cluster, ..)| cluster.as_str());
                let causes = self.causes_of(key, cluster, &mut sections);
                sections.entry(causes).or_default().replicas.push(moved);
            }
        }
        for (likeness, gathered) in alike {
            let consequence = self.consequence(&likeness, &gathered);
            if let Some(section) = sections.get_mut(&likeness.causes) {
                section.consequences.push(consequence);
            }
        }
        let mut sections: Vec<Section> =
            sections.into_values().filter(|section| !section.is_empty()).collect();
        sections.iter_mut().for_each(|section| self.finish(section));
        sections.sort_by_cached_key(|section| std::cmp::Reverse(section.weight()));
        FoldedPlan { sections }
    }

    /// The changes by workload and cluster. Files that no decision accounts for are not among them.
    fn locals(&self) -> BTreeMap<&'a Key, BTreeMap<&'a str, Local<'a>>> {
        let wanted = self.given.wanted;
        let mut found: BTreeMap<&Key, BTreeMap<&str, Local<'_>>> = BTreeMap::new();
        for (key, changes) in &wanted.workloads {
            let clusters = found.entry(key).or_default();
            for change in changes {
                clusters.entry(&change.cluster).or_default().objects.push(change);
            }
        }
        for (key, change) in &wanted.placements {
            let clusters = found.entry(key).or_default();
            for cluster in change.lost.iter().chain(&change.gained) {
                clusters.entry(cluster).or_default();
            }
        }
        found
    }

    fn causes_of(
        &self,
        key: &Key,
        cluster: &str,
        sections: &mut BTreeMap<CausesOfSection, Section>,
    ) -> CausesOfSection {
        let effect = Effect { key: key.clone(), cluster: cluster.to_owned() };
        let blame = self.given.causes.by_effect.get(&effect)?;
        let inputs: Vec<_> =
            blame.changes.iter().filter_map(|index| self.given.causes.inputs.get(*index)).collect();
        let words = inputs.iter().map(|input| (input.kind.clone(), input.words.clone())).collect();
        let causes = Some((blame.how, words));
        let section = sections.entry(causes.clone()).or_default();
        section.how = Some(blame.how);
        for input in inputs {
            let place =
                section.causes.iter().position(|one| one.words == input.words && one.kind == input.kind);
            let place = place.unwrap_or_else(|| {
                let cause =
                    Cause { words: input.words.clone(), kind: input.kind.clone(), places: Vec::new() };
                section.causes.push(cause);
                section.causes.len() - 1
            });
            let places = &mut section.causes[place].places;
            // An edit with many effects is met again and again.
            if let Some(at) = &input.at
                && places.last() != Some(at)
            {
                places.push(at.clone());
            }
        }
        causes
    }

    fn move_of(&self, key: &Key, cluster: &str, local: &Local<'_>) -> Move {
        let has = |state: &State| state.decisions.get(key).is_some_and(|decision| decision.has(cluster));
        match (has(self.given.before), has(self.given.after)) {
            (true, false) => Move::Leaves,
            (false, true) => Move::Joins,
            _ if local.objects.iter().all(|one| one.change == Change::Removed) => Move::Leaves,
            _ => Move::Changes,
        }
    }

    fn risks_of(&self, key: &Key, move_: Move, local: &Local<'_>) -> Vec<Risk> {
        let removed = local.objects.iter().filter(|one| one.change == Change::Removed);
        let removed: BTreeSet<&ObjectId> = removed.filter_map(|one| one.object.as_ref()).collect();
        let mut found = risks::of_leaving(key, &removed);
        let picks = |state: &State| state.decisions.get(key).map_or(0, |decision| decision.picks.len());
        if move_ == Move::Leaves && picks(self.given.before) > 0 && picks(self.given.after) == 0 {
            found.push(Risk::LastCopy { key: key.clone() });
        }
        found
    }

    /// The changes of one workload's objects in one cluster, without the replicas that moved.
    fn details(
        &mut self,
        local: &Local<'_>,
        moved: Option<&ReplicaMove>,
        risks: &mut BTreeSet<Risk>,
    ) -> Arc<[ObjectDetail]> {
        let mut details = Vec::new();
        for change in &local.objects {
            let kind =
                change.object.as_ref().map_or_else(|| change.path.clone(), |object| object.kind.clone());
            let mut fields = self.fields(change);
            if let (Some(object), Some(fields)) = (&change.object, &fields) {
                risks.extend(risks::of_fields(object, fields));
            }
            if moved.is_some()
                && let Some(list) = &fields
                && list.iter().any(|one| one.path == "spec.replicas")
            {
                let rest: Vec<FieldChange> =
                    list.iter().filter(|one| one.path != "spec.replicas").cloned().collect();
                if rest.is_empty() {
                    continue;
                }
                fields = Some(rest.into());
            }
            details.push(ObjectDetail { change: change.change, kind, object: None, fields });
        }
        details.sort();
        details.into()
    }

    fn fields(&mut self, change: &ObjectChange) -> Option<Arc<[FieldChange]>> {
        let (Some(before), Some(after)) = (change.before, change.after) else { return Some(Arc::default()) };
        if let Some(known) = self.compared.get(&(before, after)) {
            return Some(known.clone());
        }
        if self.compared.len() >= MOST_COMPARED {
            return None;
        }
        let (old, new) = ((self.given.read)(before)?, (self.given.read)(after)?);
        let is_secret = change.object.as_ref().is_none_or(ObjectId::is_secret);
        let fields: Arc<[FieldChange]> = field_changes(&old, &new, is_secret).into();
        self.compared.insert((before, after), fields.clone());
        Some(fields)
    }

    fn replicas_moved(&self, key: &Key) -> Option<ReplicaMove> {
        let decision = |state: &'a State| state.decisions.get(key);
        let numbers = |decision: Option<&'a Decision>| -> BTreeMap<&'a str, i64> {
            let picks = decision.into_iter().flat_map(|decision| decision.picks.iter());
            picks.filter_map(|pick| Some((pick.cluster.as_str(), pick.replicas?))).collect()
        };
        let (before, after) = (numbers(decision(self.given.before)), numbers(decision(self.given.after)));
        if before.is_empty() || after.is_empty() || before == after {
            return None;
        }
        let names: BTreeSet<&str> = before.keys().chain(after.keys()).copied().collect();
        let clusters =
            names.into_iter().map(|name| (name, before.get(name).copied(), after.get(name).copied()));
        let clusters = clusters.filter(|(_, before, after)| before != after);
        Some(ReplicaMove {
            key: key.clone(),
            is_held: self.given.held.contains(key),
            before: before.values().sum(),
            after: after.values().sum(),
            clusters: clusters.map(|(name, before, after)| (name.to_owned(), before, after)).collect(),
        })
    }

    fn consequence(&self, likeness: &Likeness, gathered: &Gathered<'a>) -> Consequence {
        let mut by_clusters: BTreeMap<&BTreeSet<&str>, Vec<&Key>> = BTreeMap::new();
        for (key, clusters) in &gathered.places {
            by_clusters.entry(clusters).or_default().push(key);
        }
        let owned = |names: &BTreeSet<&str>| names.iter().map(|name| (*name).to_owned()).collect();
        let places = by_clusters.into_iter();
        let places = places.map(|(clusters, keys)| (keys.into_iter().cloned().collect(), owned(clusters)));
        let mut places: Vec<(Vec<Key>, Vec<String>)> = places.collect();
        places.sort_by_cached_key(|(keys, clusters)| {
            std::cmp::Reverse((keys.len() * clusters.len(), keys.len()))
        });
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        let pairs = || {
            gathered.places.iter().flat_map(|(key, clusters)| clusters.iter().map(move |one| (*key, *one)))
        };
        if likeness.move_ != Move::Changes {
            for reason in pairs().filter_map(|(key, cluster)| (self.given.reasons)(key, cluster)) {
                *reasons.entry(reason).or_default() += 1;
            }
        }
        let mut reasons: Vec<(String, usize)> =
            reasons.into_iter().map(|(reason, count)| (reason.to_owned(), count)).collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let clusters: BTreeSet<&str> = pairs().map(|(_, cluster)| cluster).collect();
        let [removed, changed, added] = gathered.copies;
        let mut objects = likeness.objects.to_vec();
        if let ([detail], Some(only)) = (objects.as_mut_slice(), gathered.objects.first())
            && gathered.objects.len() == 1
        {
            detail.object = Some((*only).clone());
        }
        Consequence {
            move_: likeness.move_,
            is_held: likeness.is_held,
            places,
            reasons,
            copies: Counts { removed, changed, added, clusters: clusters.len() },
            objects: objects.into(),
        }
    }

    /// Adds the risks that only the whole section has, and puts removals first.
    fn finish(&self, section: &mut Section) {
        let clusters = section.clusters();
        let wanted = self.given.wanted;
        let emptied = wanted.clusters.lost.iter().filter(|name| clusters.contains(name.as_str()));
        let emptied: BTreeSet<String> = emptied.cloned().collect();
        let share = risks::of_share(clusters.len(), self.given.fleet.clusters.len());
        if !emptied.is_empty() {
            section.risks.insert(Risk::Emptied { clusters: emptied });
        }
        section.risks.extend(share);
        section.causes.iter_mut().for_each(|cause| {
            cause.places.sort();
            cause.places.dedup();
        });
        section.causes.sort();
    }
}
