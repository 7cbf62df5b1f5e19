//! ManifestWork → a workload of the cluster of its namespace.
//!
//! A work that a hub's own controllers make (for a ManifestWorkReplicaSet or an add-on) is bookkeeping, see
//! [`is_made`].

use super::fields::open_namespaced;
use super::groups::WORK;
use super::work_options::Plurals;
use super::work_replica_set;
use crate::dialects::Document;
use berth_base::model::placement::{Filter, NamedCluster, Policy, Rule};
use berth_base::model::{Key, Placement, Source, Workload};
use berth_base::packed::Packed;
use berth_base::yaml::Scope;

/// Labels that controllers put on their works.
const MADE: [&str; 2] =
    ["work.open-cluster-management.io/manifestworkreplicaset", "open-cluster-management.io/addon-name"];

/// Reports whether a controller made the work: then the controller's source is read instead.
pub(super) fn is_made(document: &Document) -> bool {
    let metadata = document.root.get("metadata");
    let labels = metadata.and_then(|metadata| metadata.get("labels"));
    let owners = metadata.and_then(|metadata| metadata.get("ownerReferences"));
    let owned = owners.is_some_and(|owners| owners.items().next().is_some());
    owned || MADE.iter().any(|label| labels.and_then(|labels| labels.get(label)).is_some())
}

pub(super) fn read(scope: &Scope, document: &Document, plurals: &Plurals) -> Option<(Placement, Workload)> {
    let root = document.open();
    let (mut fields, metadata) = open_namespaced(scope, &root)?;
    let templates = work_replica_set::templates(scope, fields.required_fields("spec")?, plurals);
    fields.finish();
    let key = Key::new(WORK, "ManifestWork", &metadata.namespace, &metadata.name);
    let here = Filter { rule: Rule::Named([metadata.namespace.clone()].into()), by: None };
    let policy = Policy {
        filters: vec![here],
        text: document
            .root
            .get("metadata")
            .and_then(|metadata| metadata.get("namespace"))
            .map_or(Packed::NULL, |namespace| Packed::of(&namespace.to_json())),
        ..Policy::BLANK
    };
    let origin = document.at.clone();
    let named = NamedCluster { at: scope.pos(metadata.namespace_at), name: metadata.namespace };
    let source = Source::Own(Box::new(policy));
    Some((
        Placement { named: vec![named], ..Placement::new(key.clone(), origin.clone(), source) },
        Workload::new(key, origin, templates),
    ))
}
