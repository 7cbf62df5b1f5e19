//! The last changes of every copy, after its overrides: labels that no override may remove, and berth's
//! annotations for the syncer. Empty maps are left out, so that they do not make equal objects differ.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use super::replicas::RETAIN;
use berth_base::model::{Applier, Fleet, Key, Template, annotation, object};
use berth_base::patch::sops;

/// Returns the patched object with final labels, annotations and its owner's name; the error is the reason
/// why it cannot have them. `retain` lists the fields that the member keeps.
pub(super) fn finished(
    mut object: Json,
    owner: &Key,
    template: &Template,
    retain: Option<String>,
    applier: Option<&Applier>,
) -> Result<Json, String> {
    let metadata = object.get_mut("metadata").and_then(Json::as_object_mut).ok_or("it has no metadata")?;
    merge(metadata, "labels", &template.final_labels)?;
    merge(metadata, "annotations", &template.sync_annotations)?;
    if let Some(retain) = retain {
        merge(metadata, "annotations", &BTreeMap::from([(RETAIN.to_owned(), retain)]))?;
    }
    let name = format!("{}/{}/{}", owner.kind_and_group(), owner.namespace, owner.name);
    merge(metadata, "annotations", &BTreeMap::from([(annotation::WORKLOAD.to_owned(), name)]))?;
    if let Some(applier) = applier {
        applier.annotate(&template.object.id, metadata);
    }
    Ok(object)
}

/// The reason why a copy may not reach a member, and a hint.
pub(super) struct Refusal {
    pub(super) message: String,
    pub(super) hint: &'static str,
}

/// Refuses objects that a member would misread: a list, whose items would be applied unseen; and a value that
/// SOPS encrypted, unless the program that applies the object can decrypt it.
pub(super) fn refusal(object: &Json, fleet: &Fleet, applier: Option<&Applier>) -> Option<Refusal> {
    let fields = object.as_object()?;
    if let Some(key) = object::list_field(object) {
        let message =
            format!("`kubectl apply` would apply the contents of its field `{key}` instead of the object");
        return Some(Refusal { message, hint: "remove the field; place each object by itself" });
    }
    let kind = fields.get("kind").and_then(Json::as_str).unwrap_or_default();
    let group = object::group_of(fields.get("apiVersion").and_then(Json::as_str).unwrap_or_default());
    if kind.ends_with("List") && !fleet.list_kinds.contains(&(group.to_owned(), kind.to_owned())) {
        let message = format!("`{kind}` is a list or an unknown kind");
        let hint = "place each object by itself; for a kind of your own, add its CustomResourceDefinition to the repository";
        return Some(Refusal { message, hint });
    }
    // Without SOPS's metadata, no program can decrypt a value, or detects that it should.
    let is_opened = fields.get("sops").is_some_and(Json::is_object) && applier.is_some_and(|it| it.decrypts);
    if let Some(place) = sops::place_of_cipher(object).filter(|_| !is_opened) {
        let message =
            format!("`{place}` is encrypted by SOPS, and berth has no key: members would apply the cipher");
        return Some(Refusal { message, hint: sops::ADVICE });
    }
    None
}

/// Returns a finished object without its owner's name.
pub(super) fn without_owner(object: &Json) -> Json {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Json::as_object_mut)
        && let Some(annotations) = metadata.get_mut("annotations").and_then(Json::as_object_mut)
    {
        annotations.remove(annotation::WORKLOAD);
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    object
}

fn merge(
    metadata: &mut Map<String, Json>,
    key: &str,
    added: &BTreeMap<String, String>,
) -> Result<(), String> {
    let mut fields = match metadata.remove(key) {
        None | Some(Json::Null) => Map::new(),
        Some(Json::Object(fields)) => fields,
        Some(_) => return Err(format!("metadata.{key} is not a mapping")),
    };
    fields.extend(added.iter().map(|(name, value)| (name.clone(), value.clone().into())));
    if !fields.is_empty() {
        metadata.insert(key.to_owned(), Json::Object(fields));
    }
    Ok(())
}
