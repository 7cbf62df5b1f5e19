//! Refuses patches of values that SOPS encrypted: their keys and checksum cover the original object, so a
//! changed one could not be decrypted.

use serde_json::Value as Json;

use super::pointer::OperationFault;
use crate::model::{Operation, Pointer, Verb};

/// Refuses an operation that reads or changes an encrypted value or SOPS's metadata.
pub(super) fn check(object: &Json, operation: &Operation) -> Result<(), OperationFault> {
    if operation.verb == Verb::Test {
        return Ok(());
    }
    let source = operation.from.as_ref().filter(|_| matches!(operation.verb, Verb::Move | Verb::Copy));
    for path in [Some(&operation.path), source].into_iter().flatten() {
        if path.parts().is_empty() && object.get("sops").is_some() || touches(object, path) {
            let message =
                format!("`{path}` is encrypted by SOPS, and a patch into it would make it unreadable");
            return Err(OperationFault {
                message,
                hint: Some("change the value with `sops`, per cluster if need be".to_owned()),
            });
        }
    }
    Ok(())
}

/// The alternative to committing encrypted values.
pub const ADVICE: &str = "keep secrets out of Git: place objects of External Secrets or Sealed Secrets, which members open themselves";

/// Returns the first place of an object that SOPS encrypted, as a path: its metadata, or a value.
pub fn place_of_cipher(object: &Json) -> Option<String> {
    if object.get("sops").is_some_and(Json::is_object) {
        return Some("sops".to_owned());
    }
    // Hardly any object has one, so paths are written only on demand.
    let fields = object.as_object().filter(|_| holds_sealed(object))?;
    fields.iter().find_map(|(key, value)| cipher_below(value, key))
}

fn cipher_below(value: &Json, path: &str) -> Option<String> {
    match value {
        Json::Object(fields) => {
            fields.iter().find_map(|(key, value)| cipher_below(value, &format!("{path}.{key}")))
        }
        Json::Array(items) => {
            items.iter().enumerate().find_map(|(index, item)| cipher_below(item, &format!("{path}[{index}]")))
        }
        _ => is_sealed(value).then(|| path.to_owned()),
    }
}

fn touches(object: &Json, path: &Pointer) -> bool {
    let mut value = object;
    for (depth, part) in path.parts().iter().enumerate() {
        if (depth == 0 && part == "sops" && object.get("sops").is_some()) || is_sealed(value) {
            return true;
        }
        let next = match value {
            Json::Object(fields) => fields.get(part),
            Json::Array(items) => part.parse().ok().and_then(|index: usize| items.get(index)),
            _ => None,
        };
        match next {
            Some(next) => value = next,
            None => return false,
        }
    }
    holds_sealed(value)
}

fn holds_sealed(value: &Json) -> bool {
    match value {
        Json::Array(items) => items.iter().any(holds_sealed),
        Json::Object(fields) => fields.values().any(holds_sealed),
        _ => is_sealed(value),
    }
}

/// Reports whether SOPS encrypted a value. Other tools also write `ENC[…]`.
pub fn is_sealed(value: &Json) -> bool {
    value.as_str().is_some_and(|text| text.starts_with("ENC[AES256_GCM,") && text.ends_with(']'))
}
