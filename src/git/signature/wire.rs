//! SSH's binary form (RFC 4251, section 5): numbers, and texts preceded by their lengths. Around it, as text,
//! the lines that SSH puts around base64.

use berth_base::text::base64;

/// Reads from the front. Its methods return `None` if the bytes have another form.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    pub fn new(bytes: &'b [u8]) -> Reader<'b> {
        Reader(bytes)
    }

    pub fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    pub fn number(&mut self) -> Option<u32> {
        let bytes: [u8; 4] = self.take(4)?.try_into().ok()?;
        Some(u32::from_be_bytes(bytes))
    }

    pub fn bytes(&mut self) -> Option<&'b [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.take(length)
    }

    pub fn text(&mut self) -> Option<&'b str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    /// Reads a non-negative number of any size, without leading zeros.
    pub fn big(&mut self) -> Option<&'b [u8]> {
        let bytes = self.bytes()?;
        if bytes.first().is_some_and(|first| *first >= 0x80) {
            return None;
        }
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        bytes.get(zeros..)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Appends bytes with their length.
pub fn put(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    to.extend(bytes);
}

/// The label of a signature.
pub(super) const SIGNATURE: &str = "SSH SIGNATURE";

/// The length of a line in SSH's armor.
const LINE: usize = 70;

/// Decodes the text between the lines that carry the label.
pub(super) fn unwrap(text: &str, label: &str) -> Option<Vec<u8>> {
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
