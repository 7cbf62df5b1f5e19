//! Keys in the forms of X.509 and OpenSSL: PEM around DER.

use berth_base::text::base64;

use super::key::PublicKey;
use super::wire::{Reader, put};

/// The label of a public key.
const PUBLIC: &str = "PUBLIC KEY";
/// The length of a line in PEM.
const LINE: usize = 64;
/// The bytes before an Ed25519 point: SEQUENCE { SEQUENCE { 1.3.101.112 }, BIT STRING }.
const ED25519: &[u8] = &[0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// The bytes before a point of P-256: SEQUENCE { SEQUENCE { id-ecPublicKey, prime256v1 }, BIT STRING }.
const P256: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// PKCS #8 around the key of RFC 5915 on P-256: INTEGER 0, SEQUENCE { id-ecPublicKey, prime256v1 }.
const AROUND_SEC1: &[u8] = &[
    0x02, 0x01, 0x00, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07,
];

/// Returns the bytes of the block with this label, if the text has one.
pub(super) fn block(text: &str, label: &str) -> Option<Vec<u8>> {
    let (_, after) = text.split_once(&format!("-----BEGIN {label}-----"))?;
    let (body, _) = after.split_once(&format!("-----END {label}-----"))?;
    base64::decode_exactly(body)
}

/// Writes a block with this label.
fn wrap(bytes: &[u8], label: &str) -> String {
    let text = base64::encode(bytes);
    let lines = text.as_bytes().chunks(LINE).map(|line| String::from_utf8_lossy(line).into_owned() + "\n");
    format!("-----BEGIN {label}-----\n{}-----END {label}-----\n", lines.collect::<String>())
}

impl PublicKey {
    /// Reads a public key in PEM, as `openssl pkey -pubout` and `cosign public-key` write it: Ed25519, or ECDSA on
    /// P-256 with an uncompressed point.
    pub fn read_pem(text: &str) -> Option<PublicKey> {
        let der = block(text, PUBLIC)?;
        match (der.strip_prefix(ED25519), der.strip_prefix(P256)) {
            (Some(point), _) if point.len() == 32 => Some(PublicKey::ed25519(point)),
            (_, Some(point)) if point.len() == 65 && point.first() == Some(&4) => {
                Some(PublicKey::p256(point))
            }
            _ => None,
        }
    }

    /// Returns the key in X.509's DER. `None` for kinds of keys that cannot sign artifacts.
    pub fn der(&self) -> Option<Vec<u8>> {
        let mut key = Reader::new(self.wire());
        match key.text()? {
            "ssh-ed25519" => Some([ED25519, key.bytes()?].concat()),
            "ecdsa-sha2-nistp256" => {
                let _curve = key.bytes()?;
                Some([P256, key.bytes()?].concat())
            }
            _ => None,
        }
    }

    /// Returns the key in PEM, for programs without SSH's forms. `None` for kinds of keys that cannot sign artifacts.
    pub fn pem(&self) -> Option<String> {
        self.der().map(|der| wrap(&der, PUBLIC))
    }

    fn ed25519(point: &[u8]) -> PublicKey {
        let mut wire = Vec::new();
        put(&mut wire, b"ssh-ed25519");
        put(&mut wire, point);
        PublicKey::from_wire(&wire)
    }

    pub(super) fn p256(point: &[u8]) -> PublicKey {
        let mut wire = Vec::new();
        put(&mut wire, b"ecdsa-sha2-nistp256");
        put(&mut wire, b"nistp256");
        put(&mut wire, point);
        PublicKey::from_wire(&wire)
    }
}

/// Wraps a private key of RFC 5915 in PKCS #8. Assumes that it is on P-256.
pub(super) fn around_sec1(key: &[u8]) -> Vec<u8> {
    der(0x30, &[AROUND_SEC1, &der(0x04, key)].concat())
}

/// Encodes a signature of ECDSA on P-256 from its two numbers, without leading zeros.
pub(super) fn ecdsa(r: &[u8], s: &[u8]) -> Vec<u8> {
    let number = |bytes: &[u8]| {
        let is_negative = bytes.first().is_none_or(|first| *first >= 0x80);
        der(0x02, &[if is_negative { &[0][..] } else { &[] }, bytes].concat())
    };
    der(0x30, &[number(r), number(s)].concat())
}

fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let mut bytes = vec![tag];
    match u8::try_from(length) {
        Ok(short) if short < 0x80 => bytes.push(short),
        Ok(one) => bytes.extend([0x81, one]),
        Err(_) => {
            bytes.push(0x82);
            bytes.extend(u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes());
        }
    }
    bytes.extend(content);
    bytes
}
