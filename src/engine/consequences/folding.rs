//! Folds a plan: finds equal changes, and the edits that cause them.
//!
//! Pure. A function reads contents, once for each pair.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value as Json;

use super::field_changes::{FieldChange, field_changes};
use super::folded::{Consequence, FoldedCause, FoldedPlan, Move, ObjectDetail, ReplicaMove, Section};
use super::risks::{self, Risk};
use crate::causes::{Blame, Causes, Effect, How, InputChange, InputKind};
use crate::plan::{Change, Counts, ObjectChange, Plan};
use crate::state::State;
use berth_base::diag::Pos;
use berth_base::model::annotation::ORPHAN;
use berth_base::model::{ContentId, Decision, Fleet, Key, ObjectId};

/// The maximal number of pairs of contents to compare field by field. Further changes are shown without their
/// fields.
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
    /// Reports whether the gate holds a workload's change in a cluster until an approval.
    pub held: &'a dyn Fn(&Key, &str) -> bool,
    /// The reason why a placement gets or loses a cluster.
    pub reasons: &'a dyn Fn(&Key, &str) -> Option<&'a str>,
}

/// The kind of an input change, and its words.
type CauseKey<'a> = (u8, &'a str);

/// The properties that equal changes share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ChangeKey {
    section: usize,
    move_: Move,
    is_held: bool,
    is_orphaning: bool,
    objects: Arc<[ObjectDetail]>,
}

/// The changes of one workload in one cluster.
#[derive(Debug, Default)]
struct Local<'a> {
    objects: Vec<&'a ObjectChange>,
}

/// Folds a plan.
pub fn fold(given: ToFold<'_>) -> FoldedPlan {
    let (compared, orphans, sections) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    PlanFolder { given, compared, orphans, sections, by_blame: BTreeMap::new(), by_causes: BTreeMap::new() }
        .fold()
}

struct PlanFolder<'a> {
    given: ToFold<'a>,
    compared: BTreeMap<(ContentId, ContentId), Arc<[FieldChange]>>,
    /// The objects checked so far for the annotation that lets members keep them.
    orphans: BTreeMap<ContentId, bool>,
    sections: Vec<Section>,
    /// The section of each blame so far, and of each set of equal causes.
    by_blame: BTreeMap<Option<&'a Blame>, usize>,
    by_causes: BTreeMap<(Option<How>, BTreeSet<CauseKey<'a>>), usize>,
}

#[derive(Default)]
struct Gathered<'a> {
    /// The clusters of each workload.
    places: BTreeMap<&'a Key, BTreeSet<&'a str>>,
    copies: [usize; 3],
    /// An object with exactly these changes, and whether other objects have them too.
    objects: BTreeSet<&'a ObjectId>,
}

impl<'a> PlanFolder<'a> {
    fn fold(mut self) -> FoldedPlan {
        let mut alike: BTreeMap<ChangeKey, Gathered<'a>> = BTreeMap::new();
        let mut held_in = BTreeSet::new();
        for (key, locals) in self.locals() {
            let moved = self.replicas_moved(key);
            for (cluster, local) in &locals {
                let section = self.section_of(key, cluster);
                let move_ = self.move_of(key, cluster, local);
                let is_orphaning = move_ == Move::Leaves && self.is_orphaning(local);
                // If clusters keep the objects, nothing is lost.
                let mut risks = if is_orphaning { Vec::new() } else { self.risks_of(key, move_, local) };
                let objects = match move_ {
                    Move::Changes => self.details(local, moved.as_ref(), &mut risks),
                    Move::Leaves | Move::Joins => Arc::default(),
                };
                self.sections[section].risks.extend(risks);
                if move_ == Move::Changes && objects.is_empty() {
                    continue;
                }
                let is_held = (self.given.held)(key, cluster);
                held_in.extend(is_held.then_some(*cluster));
                let likeness = ChangeKey { section, move_, is_held, is_orphaning, objects };
                let gathered = alike.entry(likeness).or_default();
                gathered.places.entry(key).or_default().insert(cluster);
                for change in &local.objects {
                    gathered.copies[change.change as usize] += 1;
                    gathered.objects.extend(change.object.as_deref());
                }
            }
            if let Some(moved) = moved {
                let cluster = moved.clusters.first().map_or("", |(cluster, ..)| cluster.as_str());
                let section = self.section_of(key, cluster);
                self.sections[section].replicas.push(moved);
            }
        }
        for (likeness, gathered) in alike {
            let consequence = self.consequence(&likeness, &gathered);
            self.sections[likeness.section].consequences.push(consequence);
        }
        let mut sections = std::mem::take(&mut self.sections);
        sections.retain(|section| !section.is_empty());
        sections.iter_mut().for_each(|section| self.finish(section, &held_in));
        sections.sort_by_cached_key(|section| std::cmp::Reverse(section.weight()));
        let told: BTreeSet<usize> = sections.iter().flat_map(|section| &section.inputs).copied().collect();
        let inputs = self.given.causes.inputs.iter().enumerate();
        let idle = inputs.filter(|(index, input)| input.kind == InputKind::Edit && !told.contains(index));
        let idle = self.causes(&idle.map(|(index, _)| index).collect());
        FoldedPlan { sections, idle }
    }

    /// Returns the changes by workload and cluster, without files that no decision accounts for.
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

    /// Returns the section for the causes of an effect.
    fn section_of(&mut self, key: &Key, cluster: &str) -> usize {
        let effect = Effect { key: key.clone(), cluster: cluster.to_owned() };
        let given = self.given.causes;
        let blame = given.by_effect.get(&effect);
        if let Some(known) = self.by_blame.get(&blame) {
            return *known;
        }
        let inputs = blame.into_iter().flat_map(|blame| &blame.changes);
        let alike = inputs.filter_map(|index| given.inputs.get(*index)).map(likeness).collect();
        let how = blame.map(|blame| blame.how).or(given.is_first.then_some(How::First));
        let next = self.sections.len();
        let section = *self.by_causes.entry((how, alike)).or_insert(next);
        if section == next {
            self.sections.push(Section { how, ..Section::default() });
        }
        self.sections[section].inputs.extend(blame.into_iter().flat_map(|blame| &blame.changes));
        self.by_blame.insert(blame, section);
        section
    }

    fn move_of(&self, key: &Key, cluster: &str, local: &Local<'_>) -> Move {
        let pick = |state: &'a State| state.decisions.get(key).and_then(|decision| decision.pick(cluster));
        let [before, after] = [self.given.before, self.given.after].map(pick);
        match (before.is_some(), after.is_some()) {
            (true, false) => Move::Leaves,
            (false, true) => Move::Joins,
            // It stays, whatever objects it loses.
            (true, true) if !local.objects.is_empty() && after.is_some_and(|pick| !pick.leaving) => {
                Move::Changes
            }
            _ if local.objects.iter().all(|one| one.change == Change::Removed) => Move::Leaves,
            _ => Move::Changes,
        }
    }

    /// Reports whether clusters keep all objects that a workload loses there.
    fn is_orphaning(&mut self, local: &Local<'_>) -> bool {
        !local.objects.is_empty()
            && local.objects.iter().all(|change| change.before.is_some_and(|id| self.is_orphan(id)))
    }

    /// Reports whether an object's annotation lets members keep it after its removal.
    fn is_orphan(&mut self, id: ContentId) -> bool {
        if let Some(known) = self.orphans.get(&id) {
            return *known;
        }
        if self.orphans.len() >= MOST_COMPARED {
            return false;
        }
        let object = (self.given.read)(id);
        let annotations = object.as_ref().map(|object| &object["metadata"]["annotations"]);
        let is_orphan = annotations.is_some_and(|annotations| annotations[ORPHAN] == "true");
        self.orphans.insert(id, is_orphan);
        is_orphan
    }

    fn risks_of(&self, key: &Key, move_: Move, local: &Local<'_>) -> Vec<Risk> {
        let removed = local.objects.iter().filter(|one| one.change == Change::Removed);
        let removed: BTreeSet<&ObjectId> = removed.filter_map(|one| one.object.as_deref()).collect();
        let mut found = risks::of_leaving(key, &removed);
        let picks = |state: &State| state.decisions.get(key).map_or(0, |decision| decision.picks.len());
        if move_ == Move::Leaves
            && !local.objects.is_empty()
            && picks(self.given.before) > 0
            && picks(self.given.after) == 0
        {
            found.push(Risk::LastCopy { key: key.clone() });
        }
        found
    }

    /// Returns the changes of one workload's objects in one cluster, without moved replicas.
    fn details(
        &mut self,
        local: &Local<'_>,
        moved: Option<&ReplicaMove>,
        risks: &mut Vec<Risk>,
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
        let is_secret = change.object.as_deref().is_none_or(ObjectId::is_secret);
        let fields: Arc<[FieldChange]> = field_changes(&old, &new, is_secret).into();
        self.compared.insert((before, after), fields.clone());
        Some(fields)
    }

    fn replicas_moved(&self, key: &Key) -> Option<ReplicaMove> {
        let decision = |state: &'a State| state.decisions.get(key);
        let numbers = |decision: Option<&'a Decision>| -> BTreeMap<&'a str, i64> {
            let picks = decision.into_iter().flat_map(|decision| decision.picks.iter());
            picks.filter_map(|pick| Some((&*pick.cluster, pick.replicas?))).collect()
        };
        let (before, after) = (numbers(decision(self.given.before)), numbers(decision(self.given.after)));
        if before.is_empty() || after.is_empty() {
            return None;
        }
        let names: BTreeSet<&str> = before.keys().chain(after.keys()).copied().collect();
        let clusters =
            names.into_iter().map(|name| (name, before.get(name).copied(), after.get(name).copied()));
        let clusters = clusters.filter(|(_, before, after)| before.unwrap_or(0) != after.unwrap_or(0));
        let clusters: Vec<_> =
            clusters.map(|(name, before, after)| (name.to_owned(), before, after)).collect();
        (!clusters.is_empty()).then(|| ReplicaMove {
            key: key.clone(),
            is_held: clusters.iter().any(|(cluster, ..)| (self.given.held)(key, cluster)),
            before: before.values().sum(),
            after: after.values().sum(),
            clusters,
        })
    }

    fn consequence(&self, likeness: &ChangeKey, gathered: &Gathered<'a>) -> Consequence {
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
            is_orphaning: likeness.is_orphaning,
            places,
            reasons,
            copies: Counts { removed, changed, added, clusters: clusters.len() },
            objects: objects.into(),
        }
    }

    /// Returns equal changes of inputs, each once with all of its places.
    fn causes(&self, inputs: &BTreeSet<usize>) -> Vec<FoldedCause> {
        let mut found: BTreeMap<CauseKey<'_>, Vec<&InputChange>> = BTreeMap::new();
        for input in inputs.iter().filter_map(|index| self.given.causes.inputs.get(*index)) {
            found.entry(likeness(input)).or_default().push(input);
        }
        let cause = |inputs: Vec<&InputChange>| {
            let words = if let [one] = inputs.as_slice() { &one.words } else { &inputs[0].alike };
            let places: BTreeSet<&Pos> = inputs.iter().filter_map(|input| input.at.as_ref()).collect();
            let places = places.into_iter().cloned().collect();
            FoldedCause { words: words.clone(), changes: inputs.len(), places }
        };
        found.into_values().map(cause).collect()
    }

    /// Adds the risks of the whole section. A cluster with held removals keeps objects until they are approved: only
    /// sections with held removals empty it.
    fn finish(&self, section: &mut Section, held_in: &BTreeSet<&str>) {
        let clusters = section.clusters();
        let wanted = self.given.wanted;
        let may_empty = |name: &str| section.has_held() || !held_in.contains(name);
        let emptied = wanted.clusters.lost.iter().filter(|name| clusters.contains(&***name));
        let emptied = emptied.filter(|name| may_empty(name));
        let emptied: BTreeSet<String> = emptied.map(ToString::to_string).collect();
        let share = risks::of_share(clusters.len(), self.given.fleet.clusters.len());
        if !emptied.is_empty() {
            section.risks.insert(Risk::Emptied { clusters: emptied });
        }
        section.risks.extend(share);
        section.causes = self.causes(&section.inputs);
    }
}

/// Returns the kind and the words of an input change.
fn likeness(input: &InputChange) -> CauseKey<'_> {
    let sort = match input.kind {
        InputKind::Edit => 0,
        InputKind::Report { .. } => 1,
        InputKind::Time => 2,
    };
    (sort, &input.alike)
}
