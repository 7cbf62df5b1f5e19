//! What every copy gets after its overrides: the labels that no override may remove, berth's own
//! annotations for the syncer, and no empty maps, which would make equal objects differ.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use super::numbers::RETAIN;
use crate::model::{Key, Template, annotation};

/// The patched object with final labels and annotations, or why it cannot have them.
/// `retain` lists what the member keeps.
pub(super) fn finished(
    mut object: Json,
    template: &Template,
    retain: Option<String>,
) -> Result<Json, String> {
    let metadata = object.get_mut("metadata").and_then(Json::as_object_mut).ok_or("it has no metadata")?;
    merge(metadata, "labels", &template.final_labels)?;
    merge(metadata, "annotations", &template.sync_annotations)?;
    if let Some(retain) = retain {
        merge(metadata, "annotations", &BTreeMap::from([(RETAIN.to_owned(), retain)]))?;
    }
    Ok(object)
}

/// The finished object with its owner's name on it.
pub(super) fn owned(object: &Json, owner: &Key) -> Json {
    let mut object = object.clone();
    let name = format!("{}/{}/{}", owner.kind_and_group(), owner.namespace, owner.name);
    if let Some(metadata) = object.get_mut("metadata").and_then(Json::as_object_mut) {
        let annotations = metadata.entry("annotations").or_insert_with(|| Json::Object(Map::new()));
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(annotation::WORKLOAD.to_owned(), name.into());
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
