//! Warnings about workloads that render: overrides that reach no cluster, and open secrets.

use std::collections::{BTreeMap, BTreeSet};

use berth_base::diag::{Diagnostic, Diagnostics, Pos, did_you_mean};
use berth_base::model::decision::PickCursor;
use berth_base::model::{Applies, Decision, Fleet, Key, Map, Object, Override, Requirement, Term, Workload};
use berth_base::packed::View;
use berth_base::patch::sops;

pub(super) fn collect(fleet: &Fleet, decisions: &Map<Key, Decision>, found: &mut Diagnostics) {
    let mut rules = Rules::of(fleet);
    for (key, workload) in &fleet.workloads {
        if let Some(secret) = workload.templates.iter().map(|one| &one.object).find(|object| is_open(object))
        {
            let message =
                format!("{key} holds a Secret: everybody who can read the repository can read its data");
            found.push(Diagnostic::warning(secret.origin.clone(), message).hint(sops::ADVICE));
        }
        if let Some(decision) = decisions.get(key) {
            let mut picks = decision.cursor();
            found
                .extend(workload.overrides.iter().filter_map(|one| unused(fleet, workload, &mut picks, one)));
            workload.overrides.iter().for_each(|one| rules.look(decision, one));
        }
    }
    found.extend(rules.warnings());
    homeless(fleet, decisions, found);
}

/// Warns of objects of a placement's own namespace that reach clusters which nothing brings the namespace to.
fn homeless(fleet: &Fleet, decisions: &Map<Key, Decision>, found: &mut Diagnostics) {
    let mut bringing: BTreeMap<&str, Vec<&Key>> = BTreeMap::new();
    for (key, workload) in &fleet.workloads {
        let ids = workload.templates.iter().map(|template| &template.object.id);
        for id in ids.filter(|id| &*id.kind == "Namespace" && id.group.is_empty()) {
            bringing.entry(&id.name).or_default().push(key);
        }
    }
    // Every cluster has these.
    let is_everywhere = |namespace: &str| namespace == "default" || namespace.starts_with("kube-");
    for (key, workload) in &fleet.workloads {
        let namespace = &*key.namespace;
        let is_inside = |workload: &Workload| {
            workload.templates.iter().all(|template| *template.object.id.namespace == *namespace)
        };
        let Some(decision) = decisions.get(key) else { continue };
        if namespace.is_empty()
            || is_everywhere(namespace)
            || workload.templates.is_empty()
            || !is_inside(workload)
        {
            continue;
        }
        let bringing = bringing.get(namespace).map(Vec::as_slice).unwrap_or_default();
        let bringing = bringing.iter().filter_map(|key| decisions.get(*key));
        let mut bringing: Vec<PickCursor<'_>> = bringing.map(Decision::cursor).collect();
        let mut has = |cluster: &str| bringing.iter_mut().any(|picks| picks.has(cluster));
        let without = decision.picks.iter().filter(|pick| !has(&pick.cluster)).count();
        if without == 0 {
            continue;
        }
        let message = format!(
            "{key} is placed in {without} of {} clusters that get no namespace `{namespace}`",
            decision.picks.len()
        );
        let at = fleet.placements.get(key).map(|placement| placement.origin.clone());
        let hint = "place the Namespace too, or create it in those clusters";
        let at = at.unwrap_or_else(|| Pos::file(decision.source.as_str()));
        found.push(Diagnostic::warning(at, message).hint(hint));
    }
}

/// Overrides for clusters with certain labels. One may be for several workloads, and needs a cluster of one
/// of them.
struct Rules<'a> {
    fleet: &'a Fleet,
    /// Clusters by label, for the keys that rules name: most rules are for few clusters.
    labelled: BTreeMap<(&'a str, &'a str), Vec<&'a str>>,
    met: BTreeSet<&'a Pos>,
    unmet: BTreeMap<&'a Pos, &'a Override>,
}

impl<'a> Rules<'a> {
    fn of(fleet: &'a Fleet) -> Rules<'a> {
        let overrides = fleet.workloads.values().flat_map(|workload| &workload.overrides);
        let terms = overrides.flat_map(|one| match &one.clusters {
            Applies::AnyOf(terms) => terms.as_slice(),
            Applies::To(_) => &[],
        });
        let keys: BTreeSet<&str> = terms.filter_map(|term| Some(label_of(term)?.0)).collect();
        let mut labelled: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
        for (name, cluster) in fleet.clusters.iter().filter(|_| !keys.is_empty()) {
            for (key, value) in cluster.labels.iter().filter(|(key, _)| keys.contains(key.as_str())) {
                labelled.entry((key, value)).or_default().push(name);
            }
        }
        Rules { fleet, labelled, met: BTreeSet::new(), unmet: BTreeMap::new() }
    }

    fn look(&mut self, decision: &Decision, one: &'a Override) {
        let Applies::AnyOf(terms) = &one.clusters else { return };
        if self.met.contains(&one.origin) || terms.is_empty() {
            return;
        }
        if terms.iter().any(|term| self.is_met(term, decision)) {
            self.unmet.remove(&one.origin);
            self.met.insert(&one.origin);
        } else {
            self.unmet.insert(&one.origin, one);
        }
    }

    /// Reports whether one of the decision's clusters matches the term.
    fn is_met(&self, term: &Term, decision: &Decision) -> bool {
        let meets = |name: &str| self.fleet.clusters.get(name).is_some_and(|cluster| cluster.meets(term));
        match label_of(term) {
            Some(label) => {
                let named = self.labelled.get(&label).map(Vec::as_slice).unwrap_or_default();
                named.iter().any(|name| decision.has(name) && meets(name))
            }
            None => decision.picks.iter().any(|pick| meets(&pick.cluster)),
        }
    }

    fn warnings(self) -> impl Iterator<Item = Diagnostic> {
        self.unmet.into_iter().map(|(at, one)| {
            let message = format!(
                "this rule of {} has no effect: its selector matches none of the clusters with its objects",
                one.by
            );
            Diagnostic::warning(at.clone(), message)
        })
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

/// A label that a term asks for by its value.
fn label_of(term: &Term) -> Option<(&str, &str)> {
    term.labels.requirements.iter().find_map(|one| match one {
        Requirement::Is(key, value) => Some((key.as_str(), value.as_str())),
        _ => None,
    })
}

/// A Secret with a value that is not encrypted.
fn is_open(object: &Object) -> bool {
    let open = |value: View<'_>| match value.as_str() {
        Some(text) => !text.is_empty() && !sops::is_sealed(&value.to_json()),
        None => !value.is_null(),
    };
    let any_open =
        |key: &str| object.content.get(key).is_some_and(|data| data.entries().any(|(_, value)| open(value)));
    object.id.is_secret() && (any_open("data") || any_open("stringData"))
}
