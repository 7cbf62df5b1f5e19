//! Scalars with an explicit tag: `!!str 12`, `!!int "12"`, `!!binary aGk=`.

use super::scalar::{Scalar, resolve};

/// Reads a scalar by a tag of YAML's own namespace. `None` for a tag nobody knows, an error for a value that
/// does not fit it.
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
        "binary" => match base64(&text).map(String::from_utf8) {
            Some(Ok(decoded)) => Ok((Scalar::Text, decoded)),
            Some(Err(_)) => {
                Err("the bytes of this `!!binary` are not text, which JSON can not say".to_owned())
            }
            None => Err("this `!!binary` is not base64".to_owned()),
        },
        _ => return None,
    })
}

/// Standard base64 with padding; line breaks are skipped, as Go does.
fn base64(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect();
    if !digits.len().is_multiple_of(4) {
        return None;
    }
    let mut out = Vec::with_capacity(digits.len() / 4 * 3);
    let n_groups = digits.len() / 4;
    for (index, group) in digits.chunks(4).enumerate() {
        let padding = group.iter().rev().take_while(|byte| **byte == b'=').count();
        if padding > 2 || (padding > 0 && index + 1 < n_groups) {
            return None;
        }
        let mut bits: u32 = 0;
        for byte in &group[..4 - padding] {
            bits = bits << 6 | u32::from(digit(*byte)?);
        }
        bits <<= 6 * padding;
        out.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
    }
    Some(out)
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}
