//! Bytes as text: base64 (RFC 4648), and the lines that SSH puts around it.

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The length of a line in SSH's armor.
const LINE: usize = 70;

/// Base64 with its padding, lines and spaces passed over. `None` for anything else.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let letters: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    if letters.is_empty() || !letters.len().is_multiple_of(4) {
        return None;
    }
    let padding = letters.iter().rev().take_while(|byte| **byte == b'=').count();
    let data = letters.get(..letters.len() - padding).filter(|_| padding <= 2)?;
    let (mut bytes, mut bits, mut held) = (Vec::with_capacity(data.len() * 3 / 4), 0_u32, 0);
    for letter in data {
        let value = LETTERS.iter().position(|one| one == letter)?;
        bits = bits << 6 | u32::try_from(value).ok()?;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held & 0xff) as u8);
            bits &= (1 << held) - 1;
        }
    }
    // What is left over says nothing, or two texts would be the same bytes.
    (bits == 0).then_some(bytes)
}

pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or_default());
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            let index = (bits >> (18 - 6 * place)) & 63;
            text.push(if place <= chunk.len() { char::from(LETTERS[index as usize]) } else { '=' });
        }
    }
    text
}

/// Decodes the text between the lines that carry the label.
pub fn unwrap(text: &str, label: &str) -> Option<Vec<u8>> {
    let body = text.trim().strip_prefix(&format!("-----BEGIN {label}-----"))?;
    decode(body.strip_suffix(&format!("-----END {label}-----"))?)
}

pub fn wrap(bytes: &[u8], label: &str) -> String {
    let text = encode(bytes);
    let mut wrapped = format!("-----BEGIN {label}-----\n");
    for line in text.as_bytes().chunks(LINE) {
        wrapped.extend(line.iter().map(|byte| char::from(*byte)));
        wrapped.push('\n');
    }
    wrapped.push_str(&format!("-----END {label}-----\n"));
    wrapped
}
