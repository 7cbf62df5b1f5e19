//! ManifestWorkReplicaSet → a workload that follows the decisions of Placements of its namespace.
//!
//! The clusters get the manifests as written, each once, however many Placements pick the cluster.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::fields::open_namespaced;
use super::groups::WORK;
use super::kinds::{Role, role};
use super::rollout;
use super::work_options::{self, Plurals};
use crate::dialects::{CarriedObject, Document};
use berth_base::model::PlacementRef;
use berth_base::model::decision::Outcome;
use berth_base::model::named::Named;
use berth_base::model::placement::{Follow, Wording};
use berth_base::model::rollout::{Rollout, Strategy};
use berth_base::model::{Condition, Key, Object, ObjectId, Placement, Source, Template, Workload};
use berth_base::packed::Packed;
use berth_base::yaml::{Fields, Node, Scope, Value};

pub(super) fn read(scope: &Scope, document: &Document, plurals: &Plurals) -> Option<(Placement, Workload)> {
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

pub(super) const VERIFIED: Wording = Named { name: "PlacementVerified", function: verified };

fn verified(outcome: &Outcome) -> Option<Condition> {
    let (status, reason, message) = match outcome.picked {
        0 => (false, "PlacementDecisionEmpty", "the placements it follows pick no cluster".to_owned()),
        picked => (true, "AsExpected", format!("{picked} clusters are picked")),
    };
    Some(Condition { kind: "PlacementVerified".to_owned(), status, reason: reason.to_owned(), message })
}
