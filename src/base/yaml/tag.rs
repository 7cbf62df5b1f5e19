//! Scalars with an explicit tag: `!!str 12`, `!!int "12"`, `!!binary aGk=`.

use super::scalar::{Scalar, resolve};
use crate::text::base64;

/// Reads a scalar by a tag of YAML's own namespace. `None` for an unknown tag; an error for a value that does
/// not fit the tag.
pub(super) fn tagged_scalar(tag: &str, text: String) -> Option<Result<(Scalar, String), String>> {
    let misfit = |text: &str| Err(format!("`{text}` does not fit its tag `!!{tag}`"));
    Some(match tag {
        "str" | "timestamp" => Ok((Scalar::Text, text)),
        "null" | "bool" | "int" | "float" => match (tag, resolve(&text)) {
            ("null", scalar @ Scalar::Null)
            | ("bool", scalar @ Scalar::Bool(_))
            | ("int" | "float", scalar @ (Scalar::Int(_) | Scalar::Large(_)))
            | ("float", scalar @ Scalar::Float(_)) => Ok((scalar, text)),
            _ => misfit(&text),
        },
        "binary" => match base64::decode(&text).map(String::from_utf8) {
            Some(Ok(decoded)) => Ok((Scalar::Text, decoded)),
            Some(Err(_)) => {
                Err("the bytes of this `!!binary` are not text, and JSON cannot hold them".to_owned())
            }
            None => Err("this `!!binary` is not base64".to_owned()),
        },
        _ => return None,
    })
}
