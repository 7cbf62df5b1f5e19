//! `spec.template` → the object before overrides.
//!
//! Name, namespace and kind come from the Federated object and its type, whatever the template contains;
//! apiVersion comes from the template if it has one. Finalizers, status and fields that only a server sets
//! are left out. Unlike KubeFed, berth carries the template's annotations.

use serde_json::{Map, Value as Json};

use super::types::Target;
use berth_base::diag::{Diagnostic, Pos};
use berth_base::meta::{Metadata, SERVER_FIELDS};
use berth_base::model::{Object, ObjectId};
use berth_base::packed::Packed;
use berth_base::yaml::{Fields, Mark, Node, Scope};

/// A template as written, for objects of any name.
#[derive(Clone, Debug)]
pub(super) struct Written {
    object: Map<String, Json>,
    at: Pos,
}

/// Reads the field `template`.
pub(super) fn read(fields: &mut Fields<'_>) -> Option<Written> {
    let (scope, path) = (fields.scope(), fields.path_of("template"));
    let node = fields.node("template");
    let at = scope.pos(node.map_or(fields.at(), |node| node.at));
    let object = match node {
        None => Map::new(),
        Some(node) => {
            check_metadata(scope, node, &path)?;
            match node.to_json() {
                Json::Object(fields) => fields,
                _ => Map::new(),
            }
        }
    };
    Some(Written { object, at })
}

/// Returns the object of a Federated object's template.
pub(super) fn object(written: Written, metadata: &Metadata, target: &Target) -> Option<Object> {
    let Written { mut object, at } = written;
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
    Some(Object { id, origin: at, content: Packed::of(&content) })
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

/// Reports parts that any member's API server would refuse, and parts that are left out.
fn check_metadata(scope: &Scope, template: &Node, path: &str) -> Option<()> {
    let mut fields = scope.fields(template, path)?;
    fields.str("apiVersion");
    fields.str("kind");
    if let Some(mut metadata) = fields.fields("metadata") {
        metadata.string_map("labels");
        metadata.string_map("annotations");
        let finalizers = metadata.list("finalizers").unwrap_or_default();
        if !finalizers.is_empty() {
            warn(scope, metadata.place_of("finalizers"), &metadata.path_of("finalizers"));
        }
    }
    Some(())
}

fn warn(scope: &Scope, at: Mark, path: &str) {
    let message = format!("{path} does not reach the members");
    let hint = "set the finalizer in the member, where its controller removes it";
    scope.report(Diagnostic::warning(scope.pos(at), message).hint(hint));
}
