//! Names and labels of the objects, and the marks by which berth recognizes its own.

use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};

use super::HubPlaces;
use berth_base::meta::names::{is_dns_subdomain, is_label_value};
use berth_base::model::Key;
use berth_base::text::hex;

/// The label that names the fleet on everything that berth writes to a hub.
const FLEET: &str = "berth.dev/fleet";
/// The annotation that names the placement of a decision's object.
pub(super) const PLACEMENT: &str = "berth.dev/placement";

/// The longest label value.
const LONGEST_LABEL: usize = 63;
/// The longest name of an object, minus the space for numbers.
const LONGEST_NAME: usize = 230;

/// Returns the placement in one text, for the annotation.
pub(super) fn placement_text(key: &Key) -> String {
    format!("{} {}", key.kind_and_group(), key.full_name())
}

/// Returns a text as a label value. A hash replaces the part that does not fit.
pub(super) fn label_value(text: &str) -> String {
    if is_label_value(text) { text.to_owned() } else { hashed(text, LONGEST_LABEL) }
}

/// Returns a text as the name of an object.
pub(super) fn object_name(text: &str) -> String {
    if is_dns_subdomain(text) && text.len() <= LONGEST_NAME {
        text.to_owned()
    } else {
        hashed(text, LONGEST_NAME)
    }
}

fn hashed(text: &str, longest: usize) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let start: String = text.chars().take(longest - 11).map(plain).collect();
    let digest = hex(&Sha256::digest(text)[..5]);
    format!("{}-{digest}", start.trim_matches('-')).trim_start_matches('-').to_owned()
}

/// Reports whether berth wrote an object for this fleet.
pub(super) fn is_own(object: &Json, place: &HubPlaces) -> bool {
    label(object, FLEET) == Some(&label_value(&place.fleet))
}

/// Returns the label that marks an object as berth's own.
pub(super) fn own_label(place: &HubPlaces) -> (String, String) {
    (FLEET.to_owned(), label_value(&place.fleet))
}

pub(super) fn label<'o>(object: &'o Json, key: &str) -> Option<&'o str> {
    object.get("metadata")?.get("labels")?.get(key)?.as_str()
}

pub(super) fn annotation<'o>(object: &'o Json, key: &str) -> Option<&'o str> {
    object.get("metadata")?.get("annotations")?.get(key)?.as_str()
}

pub(super) fn name(object: &Json) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

pub(super) fn namespace(object: &Json) -> &str {
    object["metadata"]["namespace"].as_str().unwrap_or_default()
}

/// Returns an object with these labels and annotations added; other writers' entries stay.
pub(super) fn marked(object: &Json, labels: &[(String, String)], annotations: &[(String, String)]) -> Json {
    let mut object = object.clone();
    for (field, entries) in [("labels", labels), ("annotations", annotations)] {
        for (key, value) in entries {
            object["metadata"][field][key] = json!(value);
        }
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        // Without this field in the request, the server keeps its own.
        metadata.remove("managedFields");
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_does_not_fit_gets_a_hash() {
        assert_eq!(label_value("shop.web"), "shop.web");
        let long = "x".repeat(70);
        for text in [long.as_str(), "a/b", "-", "ä", &"-".repeat(90)] {
            let (value, name) = (label_value(text), object_name(text));
            assert!(is_label_value(&value) && !value.is_empty(), "{value}");
            assert!(is_dns_subdomain(&name), "{name}");
        }
        assert_ne!(label_value(&format!("{long}a")), label_value(&format!("{long}b")));
        assert_eq!(object_name(&long), long);
    }
}
