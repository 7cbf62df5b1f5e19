//! Warnings about rendered workloads: overrides that reach no cluster, and open secrets; and faults of
//! copies: a failure in each decision, and one message for an equal fault in many clusters.

use std::collections::{BTreeMap, BTreeSet};

use super::claims::TemplateClaim;
use super::copies::CopyFault;
use super::inputs::RenderInputs;
use berth_base::diag::{Diagnostic, Diagnostics, Pos, did_you_mean};
use berth_base::model::{
    Applies, Decision, Failure, Fleet, Key, Map, Object, Override, PickCursor, Requirement, Shared, Term,
    Workload,
};
use berth_base::packed::View;
use berth_base::parallel;
use berth_base::patch::sops;
use berth_base::text::some_quoted;

/// The warnings of each workload, cached for the next rendering.
#[derive(Clone, Debug, Default)]
pub(super) struct Warnings {
    /// The workloads' own warnings.
    own: Map<Key, Vec<Diagnostic>>,
    /// The warnings of workloads in clusters that lack their namespace.
    homeless: Map<Key, Diagnostic>,
    /// The overrides of workloads for clusters with certain labels.
    rules: Map<Key, Vec<LabelOverride>>,
    /// The workloads that place each namespace.
    bringing: Map<String, BTreeSet<Key>>,
}

/// An override for clusters with certain labels. Several workloads may have it; it needs a cluster of one of
/// them.
#[derive(Clone, Debug)]
struct LabelOverride {
    at: Pos,
    by: Key,
    is_met: bool,
}

impl Warnings {
    /// Checks these workloads again, and those whose warnings depend on them.
    pub(super) fn update(&mut self, old: &RenderInputs, new: &RenderInputs, keys: &BTreeSet<Key>) {
        let fleet = &new.fleet;
        let mut looked: BTreeSet<Key> = keys.clone();
        if old.fleet.clusters != fleet.clusters {
            looked.extend(self.own.keys().cloned());
        }
        let labelled = Labelled::of(fleet, looked.iter().filter_map(|key| fleet.workloads.get(key)));
        let these: Vec<&Key> = looked.iter().collect();
        let found = parallel::map(&these, |key| {
            let (workload, decision) = (fleet.workloads.get(key), new.decisions.get(key));
            let own = workload.map(|workload| own(fleet, workload, decision));
            let rules = workload.zip(decision).map(|(workload, decision)| labelled.rules(workload, decision));
            (own.filter(|own| !own.is_empty()), rules.filter(|rules| !rules.is_empty()))
        });
        for (key, (own, rules)) in these.into_iter().zip(found) {
            set(&mut self.own, key, own);
            set(&mut self.rules, key, rules);
        }
        looked.extend(self.of_moved_namespaces(new, &moved_namespaces(old, new, keys)));
        self.take_namespaces(old, new, keys);
        let looked: Vec<&Key> = looked.iter().collect();
        let found = parallel::map(&looked, |key| self.homeless(new, key));
        for (key, found) in looked.into_iter().zip(found) {
            set(&mut self.homeless, key, found);
        }
    }

    /// Returns the workloads whose namespace may be missing in other clusters now: those with such a warning,
    /// and those in a cluster that lost the namespace.
    fn of_moved_namespaces(&self, new: &RenderInputs, moved: &MovedNamespaces<'_>) -> Vec<Key> {
        let warned = self.homeless.keys().filter(|key| moved.contains_key(&*key.namespace));
        let mut found: Vec<Key> = warned.cloned().collect();
        if moved.values().any(|lost| !lost.is_empty()) {
            let is_in = |lost: &BTreeSet<&str>, key: &Key| {
                let decision = new.decisions.get(key);
                decision.is_some_and(|decision| lost.iter().any(|cluster| decision.has(cluster)))
            };
            let inside = new.fleet.workloads.keys();
            let losers = inside.filter(|key| moved.get(&*key.namespace).is_some_and(|lost| is_in(lost, key)));
            found.extend(losers.cloned());
        }
        found
    }

    /// Records which namespaces these workloads place now.
    fn take_namespaces(&mut self, old: &RenderInputs, new: &RenderInputs, keys: &BTreeSet<Key>) {
        for key in keys {
            let [before, after] = [old, new].map(|inputs| inputs.fleet.workloads.get(key));
            for namespace in before.into_iter().flat_map(|before| namespaces(before)) {
                let mut left = self.bringing.remove(namespace).unwrap_or_default();
                left.remove(key);
                if !left.is_empty() {
                    self.bringing.insert(namespace.to_owned(), left);
                }
            }
            for namespace in after.into_iter().flat_map(|after| namespaces(after)) {
                let mut all = self.bringing.remove(namespace).unwrap_or_default();
                all.insert(key.clone());
                self.bringing.insert(namespace.to_owned(), all);
            }
        }
    }

    /// Warns of a placement's namespaced objects in clusters where no workload places the namespace.
    fn homeless(&self, inputs: &RenderInputs, key: &Key) -> Option<Diagnostic> {
        let RenderInputs { fleet, decisions, .. } = inputs;
        let (workload, decision) = (fleet.workloads.get(key)?, decisions.get(key)?);
        let namespace = &*key.namespace;
        // Every cluster has these namespaces.
        let is_everywhere = namespace == "default" || namespace.starts_with("kube-");
        let mut templates = workload.templates.iter();
        if namespace.is_empty()
            || is_everywhere
            || workload.templates.is_empty()
            || !templates.all(|template| *template.object.id.namespace == *namespace)
        {
            return None;
        }
        let bringing = self.bringing.get(namespace).into_iter().flatten();
        let bringing = bringing.filter_map(|key| decisions.get(key));
        let mut bringing: Vec<PickCursor<'_>> = bringing.map(Decision::cursor).collect();
        let mut has = |cluster: &str| bringing.iter_mut().any(|picks| picks.has(cluster));
        let without = decision.picks.iter().filter(|pick| !has(&pick.cluster)).count();
        if without == 0 {
            return None;
        }
        let message = format!(
            "{key} is placed in {without} of {} clusters that get no namespace `{namespace}`",
            decision.picks.len()
        );
        let at = fleet.placements.get(key).map(|placement| placement.origin.clone());
        let hint = "place the Namespace too, or create it in those clusters";
        let at = at.unwrap_or_else(|| Pos::file(decision.source.as_str()));
        Some(Diagnostic::warning(at, message).hint(hint))
    }

    /// Returns all warnings.
    pub(super) fn all(&self) -> impl Iterator<Item = Diagnostic> {
        let (mut met, mut unmet) = (BTreeSet::new(), BTreeMap::new());
        for LabelOverride { at, by, is_met } in self.rules.values().flatten() {
            match is_met {
                true => _ = met.insert(at),
                false => _ = unmet.insert(at, by),
            }
        }
        unmet.retain(|at, _| !met.contains(at));
        let without_effect = |(at, by): (&Pos, &Key)| {
            let message = format!(
                "this rule of {by} has no effect: its selector matches none of the clusters with its objects"
            );
            Diagnostic::warning(at.clone(), message)
        };
        let own = self.own.values().flatten().chain(self.homeless.values()).cloned();
        own.chain(unmet.into_iter().map(without_effect))
    }
}

fn set<V: Clone>(map: &mut Map<Key, V>, key: &Key, value: Option<V>) {
    match value {
        Some(value) => drop(map.insert(key.clone(), value)),
        None => drop(map.remove(key)),
    }
}

fn own(fleet: &Fleet, workload: &Workload, decision: Option<&Decision>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    if let Some(secret) = workload.templates.iter().map(|one| &one.object).find(|object| is_open(object)) {
        let key = &workload.key;
        let message =
            format!("{key} holds a Secret: everybody who can read the repository can read its data");
        found.push(Diagnostic::warning(secret.origin.clone(), message).hint(sops::ADVICE));
    }
    if let Some(decision) = decision {
        let mut picks = decision.cursor();
        found.extend(workload.overrides.iter().filter_map(|one| unused(fleet, workload, &mut picks, one)));
    }
    found
}

/// Returns the namespaces that a workload places.
fn namespaces(workload: &Workload) -> impl Iterator<Item = &str> {
    let ids = workload.templates.iter().map(|template| &template.object.id);
    ids.filter(|id| &*id.kind == "Namespace" && id.group.is_empty()).map(|id| &*id.name)
}

/// Namespaces whose clusters changed, each with the clusters that one of its workloads left.
type MovedNamespaces<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

fn moved_namespaces<'a>(
    old: &'a RenderInputs,
    new: &'a RenderInputs,
    keys: &BTreeSet<Key>,
) -> MovedNamespaces<'a> {
    let mut moved = MovedNamespaces::new();
    for key in keys {
        let [before, after] = [old, new].map(|inputs| inputs.fleet.workloads.get(key));
        let [picks_before, picks_after] =
            [old, new].map(|inputs| inputs.decisions.get(key).map(|decision| &decision.picks));
        if before == after && picks_before == picks_after {
            continue;
        }
        let brings = |namespace| after.is_some_and(|after| namespaces(after).any(|one| one == namespace));
        let before = before.into_iter().flat_map(|before| namespaces(before));
        for namespace in before {
            let mut stays = new.decisions.get(key).filter(|_| brings(namespace)).map(Decision::cursor);
            let names = picks_before.into_iter().flat_map(|picks| picks.iter()).map(|pick| &*pick.cluster);
            let is_lost = |cluster: &&str| stays.as_mut().is_none_or(|picks| !picks.has(cluster));
            moved.entry(namespace).or_default().extend(names.filter(is_lost));
        }
        let after = after.into_iter().flat_map(|after| namespaces(after));
        after.for_each(|namespace| _ = moved.entry(namespace).or_default());
    }
    moved
}

/// Clusters by label, for the keys that rules name: most rules match few clusters.
struct Labelled<'a> {
    fleet: &'a Fleet,
    clusters: BTreeMap<(&'a str, &'a str), Vec<&'a str>>,
}

impl<'a> Labelled<'a> {
    fn of(fleet: &'a Fleet, workloads: impl Iterator<Item = &'a Shared<Workload>>) -> Labelled<'a> {
        let terms = workloads.flat_map(|workload| &workload.overrides).flat_map(terms);
        let keys: BTreeSet<&str> = terms.filter_map(|term| Some(label_of(term)?.0)).collect();
        let mut labelled: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
        for (name, cluster) in fleet.clusters.iter().filter(|_| !keys.is_empty()) {
            for (key, value) in cluster.labels.iter().filter(|(key, _)| keys.contains(key.as_str())) {
                labelled.entry((key, value)).or_default().push(name);
            }
        }
        Labelled { fleet, clusters: labelled }
    }

    fn rules(&self, workload: &Workload, decision: &Decision) -> Vec<LabelOverride> {
        let rule = |one: &Override| {
            let is_met = terms(one).iter().any(|term| self.is_met(term, decision));
            LabelOverride { at: one.origin.clone(), by: (*one.by).clone(), is_met }
        };
        workload.overrides.iter().filter(|one| !terms(one).is_empty()).map(rule).collect()
    }

    /// Reports whether one of the decision's clusters matches the term.
    fn is_met(&self, term: &Term, decision: &Decision) -> bool {
        let meets = |name: &str| self.fleet.clusters.get(name).is_some_and(|cluster| cluster.meets(term));
        match label_of(term) {
            Some(label) => {
                let named = self.clusters.get(&label).map(Vec::as_slice).unwrap_or_default();
                named.iter().any(|name| decision.has(name) && meets(name))
            }
            None => decision.picks.iter().any(|pick| meets(&pick.cluster)),
        }
    }
}

/// Returns the terms by which an override selects clusters.
fn terms(one: &Override) -> &[Term] {
    match &one.clusters {
        Applies::AnyOf(terms) => terms,
        Applies::To(_) | Applies::First(..) => &[],
    }
}

fn unused(
    fleet: &Fleet,
    workload: &Workload,
    picks: &mut PickCursor<'_>,
    one: &Override,
) -> Option<Diagnostic> {
    let Applies::To(cluster) = &one.clusters else { return None };
    if picks.has(cluster) {
        return None;
    }
    let at = one.origin.clone();
    if fleet.clusters.contains_key(cluster) {
        let message = format!(
            "the override for cluster `{cluster}` has no effect: {} is not placed there",
            workload.key
        );
        return Some(Diagnostic::warning(at, message));
    }
    let message = format!(
        "the override for cluster `{cluster}` has no effect: no cluster is named \
                           `{cluster}`"
    );
    let hint = did_you_mean(cluster, fleet.clusters.keys().map(String::as_str));
    Some(Diagnostic::warning(at, message).maybe_hint(hint))
}

/// Returns a label that a term requires with its value.
fn label_of(term: &Term) -> Option<(&str, &str)> {
    term.labels.requirements.iter().find_map(|one| match one {
        Requirement::Is(key, value) => Some((key.as_str(), value.as_str())),
        _ => None,
    })
}

/// Reports whether a Secret has a value that is not encrypted.
fn is_open(object: &Object) -> bool {
    let open = |value: View<'_>| match value.as_str() {
        Some(text) => !text.is_empty() && !sops::is_sealed(&value.to_json()),
        None => !value.is_null(),
    };
    let any_open =
        |key: &str| object.content.get(key).is_some_and(|data| data.entries().any(|(_, value)| open(value)));
    object.id.is_secret() && (any_open("data") || any_open("stringData"))
}

/// The maximal number of clusters that a message names; the decision names all.
const CLUSTERS_NAMED: usize = 10;

#[derive(Debug, Default)]
pub(super) struct Problems {
    failures: BTreeMap<Key, Vec<Failure>>,
    /// By place, workload and message.
    messages: BTreeMap<(Pos, Key, String), Told>,
}

#[derive(Debug)]
struct Told {
    hint: Option<String>,
    clusters: Vec<String>,
}

impl Problems {
    pub(super) fn add(&mut self, claim: &TemplateClaim<'_>, cluster: &str, fault: CopyFault) {
        let (key, object) = (&claim.workload.key, &*claim.id);
        let failure = Failure {
            cluster: cluster.to_owned(),
            object: object.clone(),
            of_override: fault.of_override,
            reason: fault.message.clone(),
        };
        self.failures.entry(key.clone()).or_default().push(failure);
        let about = if claim.workload.templates.len() > 1 { format!("{object}: ") } else { String::new() };
        let message = format!("{about}{}", fault.message);
        let told = self.messages.entry((fault.at, key.clone(), message));
        told.or_insert_with(|| Told { hint: fault.hint, clusters: Vec::new() })
            .clusters
            .push(cluster.to_owned());
    }

    /// Returns the number of copies that have failed so far.
    pub(super) fn count(&self) -> usize {
        self.failures.values().map(Vec::len).sum()
    }

    pub(super) fn report(self, decisions: &mut Map<Key, Decision>, found: &mut Diagnostics) {
        for (key, mut failures) in self.failures {
            if let Some(decision) = decisions.get_mut(&key) {
                failures.sort();
                decision.failures = failures;
            }
        }
        for ((at, key, message), told) in self.messages {
            let message = format!("{key} cannot be rendered for {}: {message}", named(&told.clusters));
            found.push(Diagnostic::error(at, message).maybe_hint(told.hint));
        }
    }
}

fn named(clusters: &[String]) -> String {
    let word = if clusters.len() == 1 { "cluster" } else { "clusters" };
    format!("{word} {}", some_quoted(clusters, CLUSTERS_NAMED))
}
