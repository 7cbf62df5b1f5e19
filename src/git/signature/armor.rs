//! The lines that SSH puts around base64.

use berth_base::text::base64;

/// The label of a signature.
pub(super) const SIGNATURE: &str = "SSH SIGNATURE";

/// The length of a line in SSH's armor.
const LINE: usize = 70;

/// Decodes the text between the lines that carry the label.
pub fn unwrap(text: &str, label: &str) -> Option<Vec<u8>> {
    let body = text.trim().strip_prefix(&format!("-----BEGIN {label}-----"))?;
    base64::decode_exactly(body.strip_suffix(&format!("-----END {label}-----"))?)
}

pub(crate) fn wrap(bytes: &[u8], label: &str) -> String {
    let text = base64::encode(bytes);
    let mut wrapped = format!("-----BEGIN {label}-----\n");
    for line in text.as_bytes().chunks(LINE) {
        wrapped.extend(line.iter().map(|byte| char::from(*byte)));
        wrapped.push('\n');
    }
    wrapped.push_str(&format!("-----END {label}-----\n"));
    wrapped
}
