//! Converts a wanted object to the shape in which a server stores it, so that every field can be owned.
//!
//! Pure. A Secret's `stringData` becomes `data`: nobody owns `stringData`, so its edits would go unnoticed and its
//! removal would have no effect.

use serde_json::{Map, Value as Json};

use berth_base::text::base64;

/// Returns an object as a server stores it.
pub(crate) fn as_kept(mut object: Json) -> Json {
    let text = |key: &str| object.get(key).and_then(Json::as_str);
    if (text("apiVersion"), text("kind")) == (Some("v1"), Some("Secret")) {
        keep_as_data(&mut object);
    }
    object
}

/// Reports whether a part of the object is still encrypted by SOPS, so that no server can read it.
pub(crate) fn is_encrypted(object: &Json) -> bool {
    let noted = object.get("sops").is_some_and(|sops| sops.get("mac").is_some());
    let is_cipher = |value: &Json| {
        value.as_str().is_some_and(|text| text.starts_with("ENC[AES256_GCM,") && text.ends_with(']'))
    };
    let is_secret = object.get("kind").and_then(Json::as_str) == Some("Secret");
    let data = ["data", "stringData"].iter().filter_map(|key| object.get(*key)?.as_object());
    noted || (is_secret && data.flat_map(Map::values).any(is_cipher))
}

/// Returns the first field of a Secret or ConfigMap with invalid base64. The server refuses such an object without
/// naming the field.
pub(crate) fn undecodable(object: &Json) -> Option<String> {
    let text = |key: &str| object.get(key).and_then(Json::as_str);
    let field = match (text("apiVersion")?, text("kind")?) {
        ("v1", "Secret") => "data",
        ("v1", "ConfigMap") => "binaryData",
        _ => return None,
    };
    let mut values = object.get(field)?.as_object()?.iter();
    let (key, _) =
        values.find(|(_, value)| value.as_str().is_some_and(|text| base64::decode(text).is_none()))?;
    Some(format!("{field}.{key}"))
}

/// Moves `stringData` to `data` if all its values are text. Otherwise leaves it for the server to refuse.
fn keep_as_data(object: &mut Json) {
    let Some(map) = object.as_object_mut() else { return };
    let texts: Option<Map<String, Json>> = match map.get("stringData") {
        Some(Json::Object(texts)) => {
            let encoded = |(key, value): (&String, &Json)| {
                value.as_str().map(|text| (key.clone(), Json::String(base64::encode(text.as_bytes()))))
            };
            texts.iter().map(encoded).collect()
        }
        _ => None,
    };
    let Some(texts) = texts else { return };
    match map.get_mut("data") {
        Some(Json::Object(data)) => data.extend(texts),
        None | Some(Json::Null) => drop(map.insert("data".to_owned(), Json::Object(texts))),
        Some(_) => return,
    }
    map.remove("stringData");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kept(object: Json) -> Json {
        as_kept(object)
    }

    #[test]
    fn a_secrets_text_becomes_its_data_and_counts_before_it() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "eA==", "b": "eA=="}, "stringData": {"b": "y"}});
        let wanted = json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "eA==", "b": "eQ=="}});
        assert_eq!(kept(secret), wanted);
    }

    #[test]
    fn the_field_that_is_no_base64_is_named() {
        let object = |kind: &str, field: &str, value: &str| json!({"apiVersion": "v1", "kind": kind, field: {"a": "eA==", "b": value}});
        assert_eq!(undecodable(&object("Secret", "data", "hunter2")).as_deref(), Some("data.b"));
        assert_eq!(undecodable(&object("ConfigMap", "binaryData", "eA=")).as_deref(), Some("binaryData.b"));
        assert_eq!(undecodable(&object("ConfigMap", "data", "hunter2")), None);
        let mended =
            json!({"apiVersion": "v1", "kind": "Secret", "data": {"b": "-"}, "stringData": {"b": "x"}});
        assert_eq!(undecodable(&kept(mended)), None);
    }

    #[test]
    fn what_is_no_text_is_left_for_the_server_to_refuse() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"port": 666, "a": "b"}});
        assert_eq!(kept(secret.clone()), secret);
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "stringData": {"a": "b"}});
        assert_eq!(kept(map.clone()), map);
    }
}
