//! Objects for people to see: without the server's fields and the data of Secrets.

use std::hash::{BuildHasher as _, RandomState};

use serde_json::{Map, Value as Json, json};

use super::identity::LAST_APPLIED;
use berth_base::model::annotation::{APPLIED, SEALED};

/// Shows objects, with hashes in place of the data of Secrets.
#[derive(Debug, Default)]
pub(crate) struct SecretMask(RandomState);

impl SecretMask {
    /// Returns an object for people: without the server's fields and the data of Secrets.
    pub fn shown(&self, object: &Json, is_secret: bool) -> Json {
        let mut object = object.clone();
        if let Some(map) = object.as_object_mut() {
            map.remove("status");
            if is_secret {
                for key in ["data", "stringData"] {
                    if let Some(data) = map.get_mut(key) {
                        self.hide(data);
                    }
                }
            }
        }
        if let Some(metadata) = object.get_mut("metadata").and_then(Json::as_object_mut) {
            for key in ["creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"] {
                metadata.remove(key);
            }
            if let Some(annotations) = metadata.get_mut("annotations").and_then(Json::as_object_mut) {
                annotations.remove(LAST_APPLIED);
                annotations.remove(APPLIED);
                annotations.remove(SEALED);
            }
        }
        object
    }

    fn hide(&self, data: &mut Json) {
        let hidden = |value: &Json| {
            // A random key of this process, so that a short value cannot be guessed from its hash.
            json!(format!("hash {:016x}", self.0.hash_one(value.to_string())))
        };
        match data {
            Json::Object(map) => {
                let all: Map<String, Json> =
                    map.iter().map(|(key, value)| (key.clone(), hidden(value))).collect();
                *map = all;
            }
            other => *other = hidden(other),
        }
    }
}
