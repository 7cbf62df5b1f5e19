//! `spec.template` → the object before overrides.
//!
//! Name, namespace and kind are those of the Federated object and its type, whatever the template
//! says; apiVersion is the template's if it has one. Finalizers stay out, as do status and what only
//! a server writes. Unlike KubeFed, berth carries the template's annotations.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::types::Target;
use crate::diag::Diagnostic;
use crate::meta::Metadata;
use crate::model::{Object, ObjectId, Template, annotation};
use crate::yaml::{Fields, Mark, Node, Scope};

const SERVER_FIELDS: [&str; 10] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generateName",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

pub(super) fn read(
    spec: &mut Fields<'_>,
    metadata: &Metadata,
    target: &Target,
    adopts: bool,
) -> Option<Template> {
    let scope = spec.scope();
    let node = spec.node("template");
    let at = node.map_or(spec.at(), |node| node.at);
    let mut object = match node {
        None => Map::new(),
        Some(node) => {
            check_metadata(scope, node)?;
            match node.to_json() {
                Json::Object(fields) => fields,
                _ => Map::new(),
            }
        }
    };
    object.remove("status");
    let api_version = match object.get("apiVersion").and_then(Json::as_str) {
        Some(given) if !given.is_empty() => given.trim_start_matches('/').to_owned(),
        _ => target.api_version(),
    };
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), target.kind.clone().into());
    let inner = object.remove("metadata").unwrap_or_default();
    object.insert("metadata".to_owned(), member_metadata(inner, metadata, target));
    let content = Json::Object(object);
    let id = ObjectId::of(&content)?;
    Some(Template {
        object: Arc::new(Object { id, origin: scope.pos(at), content }),
        final_labels: BTreeMap::from([("kubefed.io/managed".to_owned(), "true".to_owned())]),
        sync_annotations: match adopts {
            true => BTreeMap::from([(annotation::TAKE_OVER.to_owned(), "true".to_owned())]),
            false => BTreeMap::new(),
        },
    })
}

fn member_metadata(inner: Json, metadata: &Metadata, target: &Target) -> Json {
    let mut fields = match inner {
        Json::Object(fields) => fields,
        _ => Map::new(),
    };
    fields.remove("finalizers");
    for key in SERVER_FIELDS {
        fields.remove(key);
    }
    fields.insert("name".to_owned(), metadata.name.clone().into());
    fields.remove("namespace");
    if target.namespaced {
        fields.insert("namespace".to_owned(), metadata.namespace.clone().into());
    }
    Json::Object(fields)
}

/// Reports what a member's API server would refuse in any object, and what is left out.
fn check_metadata(scope: &Scope, template: &Node) -> Option<()> {
    let mut fields = scope.fields(template, "spec.template")?;
    fields.str("apiVersion");
    fields.str("kind");
    if let Some(mut metadata) = fields.fields("metadata") {
        metadata.string_map("labels");
        metadata.string_map("annotations");
        let finalizers = metadata.list("finalizers").unwrap_or_default();
        if !finalizers.is_empty() {
            warn(scope, metadata.place_of("finalizers"));
        }
    }
    Some(())
}

fn warn(scope: &Scope, at: Mark) {
    let message = "spec.template.metadata.finalizers does not reach the members";
    let hint = "a finalizer belongs to whoever removes it in the member; set it there";
    scope.report(Diagnostic::warning(scope.pos(at), message).hint(hint));
}
