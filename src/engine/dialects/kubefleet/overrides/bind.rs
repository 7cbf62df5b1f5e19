//! Matches overrides with workloads, in the order of their application, and finds overrides without a
//! workload.
//!
//! ClusterResourceOverrides come first, then ResourceOverrides, each in the order of its snapshot's name, so
//! a ResourceOverride wins. An override of a Namespace also applies to objects that are placed with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{OverrideSpec, PlacementName, Target};
use berth_base::diag::{Diagnostic, Diagnostics, Pos};
use berth_base::model::object::{ObjectId, version_of};
use berth_base::model::{Applies, Key, Override, Shared, Template, Workload};
use berth_base::packed::View;

/// The only version of namespaces.
const NAMESPACE_VERSION: &str = "v1";

/// Adds to every workload its overrides, and returns a warning for each override without a workload.
/// `placements` are all placements.
pub fn bind(
    workloads: &mut [Workload],
    mut specs: Vec<Shared<OverrideSpec>>,
    placements: &BTreeSet<Key>,
) -> Vec<Diagnostic> {
    specs.sort_by_cached_key(|spec| order(spec));
    let mut hits = vec![BTreeSet::new(); specs.len()];
    let index = Index::new(&specs);
    for workload in workloads.iter_mut() {
        for (spec, objects) in index.for_workload(workload) {
            if !is_for(&specs[spec], &workload.key) {
                continue;
            }
            hits[spec].extend(objects.iter().map(|(target, _)| *target));
            let ids: BTreeSet<ObjectId> = objects.into_iter().map(|(_, id)| id).collect();
            workload.overrides.extend(overrides(&specs[spec], &ids.into_iter().collect::<Vec<_>>()));
        }
    }
    let is_missed = specs.iter().zip(&hits).any(|(spec, hits)| hits.len() < spec.targets.len());
    let carried = if is_missed { carried(workloads) } else { BTreeMap::new() };
    specs.iter().zip(&hits).flat_map(|(spec, hits)| misses(spec, hits, placements, &carried)).collect()
}

/// Returns every object in a workload, with its version and one of its placements.
fn carried(workloads: &[Workload]) -> BTreeMap<ObjectId, (String, Key)> {
    let of = |workload: &Workload| -> Vec<(ObjectId, (String, Key))> {
        let one = |template: &Template| {
            (template.object.id.clone(), (version(template).to_owned(), workload.key.clone()))
        };
        workload.templates.iter().map(one).collect()
    };
    workloads.iter().flat_map(of).collect()
}

fn order(spec: &OverrideSpec) -> (bool, String, String) {
    let cluster_scoped = &*spec.key.kind == "ClusterResourceOverride";
    (!cluster_scoped, spec.key.namespace.to_string(), format!("{}-0", spec.key.name))
}

/// Overrides by the object or namespace that they name, so that each workload checks only few of them.
struct Index<'a> {
    specs: &'a [Shared<OverrideSpec>],
    by_target: BTreeMap<&'a ObjectId, Vec<(usize, usize)>>,
}

impl<'a> Index<'a> {
    fn new(specs: &'a [Shared<OverrideSpec>]) -> Index<'a> {
        let mut by_target: BTreeMap<&ObjectId, Vec<(usize, usize)>> = BTreeMap::new();
        for (spec, one) in specs.iter().enumerate() {
            for (target, wanted) in one.targets.iter().enumerate() {
                by_target.entry(&wanted.id).or_default().push((spec, target));
            }
        }
        Index { specs, by_target }
    }

    /// Returns the specs that match objects of a workload, in order, with the matching targets and objects.
    fn for_workload(&self, workload: &Workload) -> BTreeMap<usize, Vec<(usize, ObjectId)>> {
        let mut found: BTreeMap<usize, Vec<(usize, ObjectId)>> = BTreeMap::new();
        for template in &workload.templates {
            let id = &template.object.id;
            for (spec, target) in self.by_target.get(id).into_iter().flatten() {
                if self.specs[*spec].targets[*target].version == version(template) {
                    found.entry(*spec).or_default().push((*target, id.clone()));
                }
            }
            if id.namespace.is_empty() {
                continue;
            }
            let namespace = ObjectId::new("", "Namespace", "", &id.namespace);
            for (spec, target) in self.by_target.get(&namespace).into_iter().flatten() {
                if self.specs[*spec].targets[*target].version == NAMESPACE_VERSION {
                    found.entry(*spec).or_default().push((*target, id.clone()));
                }
            }
        }
        found
    }
}

fn version(template: &Template) -> &str {
    version_of(template.object.content.get("apiVersion").and_then(View::as_str).unwrap_or_default())
}

/// Reports whether an override may apply to a placement's workload.
fn is_for(spec: &OverrideSpec, placement: &Key) -> bool {
    spec.placement.as_ref().is_none_or(|wanted| *placement == key_of(wanted, &spec.key))
}

fn key_of(wanted: &PlacementName, by: &Key) -> Key {
    if wanted.namespaced {
        Key::new(&by.group, "ResourcePlacement", &by.namespace, &wanted.name)
    } else {
        Key::new(&by.group, "ClusterResourcePlacement", "", &wanted.name)
    }
}

fn overrides(spec: &OverrideSpec, objects: &[ObjectId]) -> Vec<Override> {
    let rules = spec.rules.iter().filter(|rule| !rule.clusters.is_empty());
    let (by, objects) = (Arc::new(spec.key.clone()), Arc::from(objects));
    rules
        .map(|rule| Override {
            by: Arc::clone(&by),
            origin: rule.at.clone(),
            clusters: Applies::AnyOf(rule.clusters.clone()),
            objects: Some(Arc::clone(&objects)),
            action: rule.action.clone(),
        })
        .collect()
}

/// Returns warnings for targets of an override that match nothing.
fn misses(
    spec: &OverrideSpec,
    hits: &BTreeSet<usize>,
    placements: &BTreeSet<Key>,
    carried: &BTreeMap<ObjectId, (String, Key)>,
) -> Vec<Diagnostic> {
    let pos = |at: berth_base::yaml::Mark| Pos { line: at.line, column: at.column, ..spec.origin.clone() };
    if let Some(wanted) = &spec.placement {
        let key = key_of(wanted, &spec.key);
        if !placements.contains(&key) {
            let message = format!("{} names {key}, which does not exist", spec.key);
            let other = PlacementName { namespaced: !wanted.namespaced, ..wanted.clone() };
            let other = key_of(&other, &spec.key);
            let hint = placements.contains(&other).then(|| {
                format!(
                    "there is a {}: write `scope: {}`",
                    other.kind,
                    if wanted.namespaced { "Cluster" } else { "Namespaced" }
                )
            });
            return vec![Diagnostic::warning(pos(wanted.at), message).maybe_hint(hint)];
        }
    }
    let missed = |(index, target): (usize, &Target)| {
        if hits.contains(&index) {
            return None;
        }
        let Target { path, id, version, .. } = target;
        let (why, hint) = match (carried.get(id), &spec.placement) {
            (Some((is, _)), _) if is != version => {
                (format!("{id} is of version {is}, not {version}"), Some(format!("write `version: {is}`")))
            }
            (Some((_, carrier)), Some(wanted)) => {
                let wanted = key_of(wanted, &spec.key);
                (format!("{wanted} does not carry {id}"), Some(format!("{carrier} does")))
            }
            _ => (format!("no placement carries {id} ({version})"), None),
        };
        let message = format!("{path}: {why}, so this override has no effect");
        Some(Diagnostic::warning(pos(target.at), message).maybe_hint(hint))
    };
    spec.targets.iter().enumerate().filter_map(missed).collect()
}

/// Checks that no two overrides of one kind name the same object: reports the later ones and returns their
/// keys.
pub fn refuse_rivals(specs: &[Shared<OverrideSpec>]) -> (BTreeSet<Key>, Diagnostics) {
    let mut sorted: Vec<&Shared<OverrideSpec>> = specs.iter().collect();
    sorted.sort_by_cached_key(|spec| order(spec));
    let mut owners: BTreeMap<(bool, &ObjectId, &str), &Key> = BTreeMap::new();
    let (mut refused, mut found) = (BTreeSet::new(), Diagnostics::new());
    for spec in sorted {
        for target in &spec.targets {
            let claim = (order(spec).0, &target.id, target.version.as_str());
            let owner = *owners.entry(claim).or_insert(&spec.key);
            if *owner == spec.key {
                continue;
            }
            let at = Pos { line: target.at.line, column: target.at.column, ..spec.origin.clone() };
            let message = format!("{} selects {}, which {owner} already overrides", target.path, target.id);
            found.push(Diagnostic::error(at, message).hint("put the rules into one override"));
            refused.insert(spec.key.clone());
        }
    }
    (refused, found)
}
