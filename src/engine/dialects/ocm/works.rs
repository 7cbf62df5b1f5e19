//! ManifestWork → a workload of the cluster of its namespace. A work that a hub's own controllers make
//! (for a ManifestWorkReplicaSet or an add-on) is bookkeeping, see [`is_made`].
//!
//! ManifestWorkReplicaSet → a workload that follows the decisions of Placements of its namespace. The
//! clusters get the manifests as written, each once, however many Placements pick the cluster.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::fields::open_namespaced;
use super::kinds::{Role, WORK, role};
use super::rollout;
use super::work_options::{self, Plurals};
use crate::dialects::{CarriedObject, Document};
use berth_base::model::decision::Outcome;
use berth_base::model::named::Named;
use berth_base::model::placement::{Filter, Follow, NamedCluster, Policy, Rule, Wording};
use berth_base::model::rollout::{Rollout, Strategy};
use berth_base::model::{
    Condition, Key, Object, ObjectId, Placement, PlacementRef, Source, Template, Workload,
};
use berth_base::packed::Packed;
use berth_base::yaml::{Fields, Node, Scope, Value};

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

pub(super) fn read_manifest_work(
    scope: &Scope,
    document: &Document,
    plurals: &Plurals,
) -> Option<(Placement, Workload)> {
    let root = document.open();
    let (mut fields, metadata) = open_namespaced(scope, &root)?;
    let templates = templates(scope, fields.required_fields("spec")?, plurals);
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

pub(super) fn read_work_replica_set(
    scope: &Scope,
    document: &Document,
    plurals: &Plurals,
) -> Option<(Placement, Workload)> {
    let root = document.open();
    let (mut fields, metadata) = open_namespaced(scope, &root)?;
    let mut spec = fields.required_fields("spec")?;
    let (placements, rollouts) = placements(scope, &mut spec, &metadata.namespace);
    let template = spec.required_fields("manifestWorkTemplate");
    let templates = template.map(|template| templates(scope, template, plurals)).unwrap_or_default();
    spec.choice("cascadeDeletionPolicy", &["Background", "Foreground"]);
    spec.finish();
    fields.finish();
    let key = Key::new(WORK, "ManifestWorkReplicaSet", &metadata.namespace, &metadata.name);
    let follow = Follow { placements, filters: Vec::new(), condition: VERIFIED };
    let origin = document.at.clone();
    Some((
        Placement::new(key.clone(), origin.clone(), Source::Follows(follow)),
        Workload { strategy: Strategy::Progressive(rollouts), ..Workload::new(key, origin, templates) },
    ))
}

/// Returns the manifests of a work, for access rules.
pub(super) fn carried_objects(document: &Document) -> Vec<CarriedObject> {
    let manifests = ["spec", "manifestWorkTemplate", "workload", "manifests"];
    let manifests = manifests.iter().try_fold(document.root.view(), |view, part| view.get(part));
    match manifests.map(|view| Node::unpack(view).value) {
        Some(Value::List(items)) if role(document) == Some(Role::Work) => {
            items.iter().filter_map(|item| CarriedObject::of(item, item.at)).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the followed placements, and the rollout of each.
fn placements(scope: &Scope, spec: &mut Fields<'_>, namespace: &str) -> (Vec<PlacementRef>, Vec<Rollout>) {
    let (mut named, mut rollouts) = (Vec::new(), Vec::new());
    for mut one in spec.each("placementRefs") {
        let placement = one.required_str("name").map(|name| PlacementRef {
            kind: "Placement".to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            at: scope.pos(one.place_of("name")),
        });
        let strategy = one.fields("rolloutStrategy").map(rollout::read);
        if let Some(placement) = placement {
            let strategy = strategy.unwrap_or(Rollout::TOGETHER);
            rollouts.push(Rollout { placement: Some(placement.clone()), ..strategy });
            named.push(placement);
        }
        one.finish();
    }
    let is_list = spec.node("placementRefs").is_none_or(|node| node.what() == "a list");
    if is_list && spec.list("placementRefs").unwrap_or_default().is_empty() {
        spec.error_at("placementRefs", "spec.placementRefs must name at least one Placement");
    }
    (named, rollouts)
}

pub(super) fn templates(scope: &Scope, mut template: Fields<'_>, plurals: &Plurals) -> Vec<Template> {
    let mut templates = Vec::new();
    if let Some(mut workload) = template.required_fields("workload") {
        let path = workload.path_of("manifests");
        let manifests = workload.list("manifests").unwrap_or_default();
        if manifests.is_empty() {
            workload.error_at("manifests", format!("{path} must hold at least one object"));
        }
        let mut met = BTreeSet::new();
        for (index, node) in manifests.iter().enumerate() {
            let Some(object) = manifest(scope, node, &format!("{path}[{index}]")) else { continue };
            if !met.insert(object.id.clone()) {
                scope.error(node.at, format!("{path}[{index}] repeats {}", object.id));
            }
            templates.push(Template {
                object: Arc::new(object),
                final_labels: Default::default(),
                sync_annotations: Default::default(),
                retained: Vec::new(),
            });
        }
        workload.finish();
    }
    let ids: Vec<ObjectId> = templates.iter().map(|one| one.object.id.clone()).collect();
    let options = work_options::read(&mut template, &ids, plurals);
    for one in &mut templates {
        one.sync_annotations = options.of(&one.object.id, plurals).into();
    }
    if template.node("executor").is_some() {
        let message =
            format!("{} has no effect: objects are applied as the syncer", template.path_of("executor"));
        scope.warning(template.place_of("executor"), message);
    }
    template.finish();
    templates
}

/// Returns an object as written, if it names its kind.
fn manifest(scope: &Scope, node: &Node, path: &str) -> Option<Object> {
    let mut fields = scope.fields(node, path)?;
    fields.required_str("apiVersion");
    fields.required_str("kind");
    if let Some(mut metadata) = fields.required_fields("metadata") {
        metadata.required_str("name");
        if metadata.misplaced("generateName").is_some() {
            let message =
                format!("{} is not possible here: give it a name", metadata.path_of("generateName"));
            metadata.error_at("generateName", message);
        }
        metadata.string_map("labels");
        metadata.string_map("annotations");
    }
    let content = node.to_json();
    let id = ObjectId::of(&content)?;
    Some(Object { id, origin: scope.pos(node.at), content: Packed::of(&content) })
}

const VERIFIED: Wording = Named { name: "PlacementVerified", function: verified };

fn verified(outcome: &Outcome) -> Option<Condition> {
    let (status, reason, message) = match outcome.picked {
        0 => (false, "PlacementDecisionEmpty", "the placements it follows pick no cluster".to_owned()),
        picked => (true, "AsExpected", format!("{picked} clusters are picked")),
    };
    Some(Condition { kind: "PlacementVerified".to_owned(), status, reason: reason.to_owned(), message })
}
