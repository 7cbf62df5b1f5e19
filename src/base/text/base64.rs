//! Base64 (RFC 4648) in the forms that berth reads and writes.

use ::base64::Engine as _;
use ::base64::alphabet::STANDARD as LETTERS;
use ::base64::engine::general_purpose::{GeneralPurpose, STANDARD, URL_SAFE_NO_PAD};

/// Go's `StdEncoding`: the bits after the last byte may have any value.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &LETTERS,
    ::base64::engine::general_purpose::PAD.with_decode_allow_trailing_bits(true),
);

pub fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Encodes for names and addresses: `-` and `_` in place of `+` and `/`, without padding.
pub fn encode_name(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Decodes as Kubernetes does: padding is required, line breaks are skipped.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let letters: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect();
    LENIENT.decode(letters).ok()
}

/// Decodes only the canonical text of the bytes; white space is skipped.
pub fn decode_exactly(text: &str) -> Option<Vec<u8>> {
    let letters: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    STANDARD.decode(letters).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_as_text() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"foob?>", "Zm9vYj8+"),
            (b"\xff\xef", "/+8="),
        ] {
            assert_eq!(encode(bytes), text);
            assert_eq!(decode(text).as_deref(), Some(bytes), "{text}");
            assert_eq!(decode_exactly(text).as_deref(), Some(bytes), "{text}");
        }
        assert_eq!(encode_name(b"hello?>"), "aGVsbG8_Pg");
    }

    #[test]
    fn each_reader_skips_and_refuses_its_own() {
        for (text, kubernetes, exact) in [
            ("Zm\r\n9v", true, true),
            ("Zm 9v", false, true),
            ("Zh==", true, false),
            ("Zg", false, false),
            ("Zg=", false, false),
            ("Z===", false, false),
            ("Zg==Zg==", false, false),
            ("Zm9_", false, false),
        ] {
            assert_eq!(
                (decode(text).is_some(), decode_exactly(text).is_some()),
                (kubernetes, exact),
                "{text}"
            );
        }
    }
}
