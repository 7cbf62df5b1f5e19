//! Signatures of plain bytes, without SSH's wrapping, as cosign and Flux check them: Ed25519 in 64 bytes, or
//! ECDSA on P-256 with SHA-256 in DER. Keys in the forms of X.509 and OpenSSL: PEM around DER.
//!
//! The bytes signed for a commit begin with `SSHSIG`. So one key can serve both: neither signature is valid
//! for the other.

use std::fmt;
use std::sync::Arc;

use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, ED25519, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair as _, UnparsedPublicKey,
};

use super::keys::{KeyError, PublicKey, Signer, Signs};
use super::wire::{Reader, put};
use berth_base::text::base64;

/// A key that signs plain bytes.
#[derive(Clone)]
pub struct PlainSigner {
    holder: Holder,
    public: PublicKey,
}

#[derive(Clone)]
enum Holder {
    /// The key that also signs commits.
    Commits(Signer),
    Ed25519(Arc<Ed25519KeyPair>),
    P256(Arc<EcdsaKeyPair>),
    /// A key outside of this process.
    Other(Arc<dyn Signs>),
}

impl fmt::Debug for PlainSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PlainSigner({})", self.public)
    }
}

impl From<Signer> for PlainSigner {
    fn from(signer: Signer) -> PlainSigner {
        PlainSigner { public: signer.public().clone(), holder: Holder::Commits(signer) }
    }
}

impl PlainSigner {
    /// Reads a private key: Ed25519 or P-256, as PKCS #8 or RFC 5915 in PEM; or a file of `ssh-keygen -t ed25519 -N
    /// ''`.
    pub fn read(text: &str) -> Result<PlainSigner, KeyError> {
        if text.contains("ENCRYPTED") {
            return Err(KeyError::Protected);
        }
        if let Some(sec1) = block(text, "EC PRIVATE KEY") {
            return PlainSigner::p256(&around_sec1(&sec1)).ok_or(KeyError::PlainKind);
        }
        let Some(pkcs8) = block(text, "PRIVATE KEY") else {
            return Signer::read(text).map(PlainSigner::from);
        };
        PlainSigner::p256(&pkcs8).or_else(|| PlainSigner::ed25519(&pkcs8)).ok_or(KeyError::PlainKind)
    }

    /// Makes a signer for a key outside of this process.
    pub fn held_by(public: PublicKey, holder: Arc<dyn Signs>) -> Result<PlainSigner, KeyError> {
        match public.der() {
            Some(_) => Ok(PlainSigner { holder: Holder::Other(holder), public }),
            None => Err(KeyError::PlainKind),
        }
    }

    fn p256(pkcs8: &[u8]) -> Option<PlainSigner> {
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8, &SystemRandom::new()).ok()?;
        let public = PublicKey::p256(pair.public_key().as_ref());
        Some(PlainSigner { holder: Holder::P256(Arc::new(pair)), public })
    }

    fn ed25519(pkcs8: &[u8]) -> Option<PlainSigner> {
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(pkcs8).ok()?;
        let mut wire = Vec::new();
        put(&mut wire, b"ssh-ed25519");
        put(&mut wire, pair.public_key().as_ref());
        let public = PublicKey::from_wire(&wire);
        Some(PlainSigner { holder: Holder::Ed25519(Arc::new(pair)), public })
    }

    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Returns a signature, or the reason why signing failed. Signatures on P-256 differ each time.
    pub fn sign(&self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let made = match &self.holder {
            Holder::Commits(signer) => signer.sign_plain(bytes)?,
            Holder::Ed25519(pair) => pair.sign(bytes).as_ref().to_vec(),
            Holder::P256(pair) => {
                let made = pair.sign(&SystemRandom::new(), bytes);
                made.map_err(|_| "no random numbers".to_owned())?.as_ref().to_vec()
            }
            Holder::Other(holder) => holder.sign(&self.public, bytes)?,
        };
        if self.public.verify_plain(bytes, &made) {
            Ok(made)
        } else {
            Err(format!("the signer's answer is not a signature by the key {}", self.public))
        }
    }
}

/// Converts a P-256 signature from SSH's two numbers to DER.
pub(crate) fn p256_signature(made: &[u8]) -> Option<Vec<u8>> {
    let mut made = Reader::new(made);
    let (r, s) = (made.big()?, made.big()?);
    (made.is_empty() && r.len() <= 32 && s.len() <= 32).then(|| ecdsa(r, s))
}

impl PublicKey {
    /// Reports whether this key made a signature of exactly these bytes, as [`PlainSigner::sign`] makes it.
    pub fn verify_plain(&self, message: &[u8], signature: &[u8]) -> bool {
        let mut key = Reader::new(self.wire());
        let algorithm: &dyn ring::signature::VerificationAlgorithm = match key.text() {
            Some("ssh-ed25519") => &ED25519,
            Some("ecdsa-sha2-nistp256") if key.text() == Some("nistp256") => &ECDSA_P256_SHA256_ASN1,
            _ => return false,
        };
        let Some(point) = key.bytes().filter(|_| key.is_empty()) else { return false };
        UnparsedPublicKey::new(algorithm, point).verify(message, signature).is_ok()
    }
}

/// The label of a public key.
const PUBLIC: &str = "PUBLIC KEY";
/// The length of a line in PEM.
const LINE: usize = 64;
/// The bytes before an Ed25519 point: SEQUENCE { SEQUENCE { 1.3.101.112 }, BIT STRING }.
const ED25519_PREFIX: &[u8] = &[0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// The bytes before a point of P-256: SEQUENCE { SEQUENCE { id-ecPublicKey, prime256v1 }, BIT STRING }.
const P256_PREFIX: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// PKCS #8 around the key of RFC 5915 on P-256: INTEGER 0, SEQUENCE { id-ecPublicKey, prime256v1 }.
const AROUND_SEC1: &[u8] = &[
    0x02, 0x01, 0x00, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07,
];

/// Returns the bytes of the block with this label, if the text has one.
fn block(text: &str, label: &str) -> Option<Vec<u8>> {
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
        match (der.strip_prefix(ED25519_PREFIX), der.strip_prefix(P256_PREFIX)) {
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
            "ssh-ed25519" => Some([ED25519_PREFIX, key.bytes()?].concat()),
            "ecdsa-sha2-nistp256" => {
                let _curve = key.bytes()?;
                Some([P256_PREFIX, key.bytes()?].concat())
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

    fn p256(point: &[u8]) -> PublicKey {
        let mut wire = Vec::new();
        put(&mut wire, b"ecdsa-sha2-nistp256");
        put(&mut wire, b"nistp256");
        put(&mut wire, point);
        PublicKey::from_wire(&wire)
    }
}

/// Wraps a private key of RFC 5915 in PKCS #8. Assumes that it is on P-256.
fn around_sec1(key: &[u8]) -> Vec<u8> {
    der(0x30, &[AROUND_SEC1, &der(0x04, key)].concat())
}

/// Encodes a signature of ECDSA on P-256 from its two numbers, without leading zeros.
fn ecdsa(r: &[u8], s: &[u8]) -> Vec<u8> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Signatures made by OpenSSL, for tests alone: `openssl genpkey`, `openssl ec`, `openssl pkey -pubout`, `openssl
    /// dgst -sha256 -sign` and `openssl pkeyutl -sign -rawin`.
    const MESSAGE: &[u8] = b"plain bytes";
    const P256: &str = include_str!("../../../fixtures/signatures/artifact-p256.pem");
    const P256_SEC1: &str = include_str!("../../../fixtures/signatures/artifact-p256-sec1.pem");
    const P256_PUBLIC: &str = include_str!("../../../fixtures/signatures/artifact-p256.pub.pem");
    const P256_MADE: &[u8] = include_bytes!("../../../fixtures/signatures/artifact-p256.sig");
    const ED25519: &str = include_str!("../../../fixtures/signatures/artifact-ed25519.pem");
    const ED25519_PUBLIC: &str = include_str!("../../../fixtures/signatures/artifact-ed25519.pub.pem");
    const ED25519_MADE: &[u8] = include_bytes!("../../../fixtures/signatures/artifact-ed25519.sig");

    #[test]
    fn keys_of_openssl_sign_and_are_written_as_openssl_writes_them() {
        for (private, public, made) in [
            (P256, P256_PUBLIC, P256_MADE),
            (P256_SEC1, P256_PUBLIC, P256_MADE),
            (ED25519, ED25519_PUBLIC, ED25519_MADE),
        ] {
            let signer = PlainSigner::read(private).expect("a key");
            assert_eq!(signer.public().pem().as_deref(), Some(public));
            let key = PublicKey::read_pem(public).expect("a public key");
            assert_eq!(&key, signer.public());
            assert!(key.verify_plain(MESSAGE, made));
            let own = signer.sign(MESSAGE).expect("a signature");
            assert!(key.verify_plain(MESSAGE, &own));
            for (message, made) in [
                (&b"plain byte"[..], made.to_vec()),
                (MESSAGE, made[..made.len() - 1].to_vec()),
                (MESSAGE, [made, &[0]].concat()),
                (MESSAGE, Vec::new()),
            ] {
                assert!(!key.verify_plain(message, &made));
            }
            assert!(!key.verify_plain(MESSAGE, if made == P256_MADE { ED25519_MADE } else { P256_MADE }));
        }
        assert_eq!(PlainSigner::read(ED25519).expect("a key").sign(MESSAGE).as_deref(), Ok(ED25519_MADE));
    }

    #[test]
    fn a_key_of_ssh_serves_both_uses_and_neither_signature_passes_for_the_other() {
        let (signer, text) = super::super::keys::write(&[7; 32], 1, "test").expect("a key");
        let plain = PlainSigner::read(&text).expect("a key");
        assert_eq!(plain.public(), signer.public());
        let made = plain.sign(MESSAGE).expect("a signature");
        assert!(plain.public().verify_plain(MESSAGE, &made));
        let of_commit = super::super::sshsig::sign(&signer, MESSAGE, "git").expect("a signature");
        let bytes = super::super::wire::unwrap(&of_commit, super::super::wire::SIGNATURE).expect("armor");
        assert!(!plain.public().verify_plain(MESSAGE, &bytes[bytes.len() - 64..]));
        assert!(PublicKey::read_pem(&plain.public().pem().expect("PEM")).as_ref() == Some(plain.public()));
    }

    #[test]
    fn what_ssh_signs_on_p256_has_the_form_of_openssl() {
        let line = include_str!("../../../fixtures/signatures/ecdsab256.pub");
        let key = PublicKey::read(line).expect("a key");
        assert!(
            key.pem()
                .expect("PEM")
                .starts_with("-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE")
        );
        let numbers = |r: &[u8], s: &[u8]| {
            let mut made = Vec::new();
            put(&mut made, r);
            put(&mut made, s);
            p256_signature(&made)
        };
        assert_eq!(numbers(&[0, 0x80, 1], &[2]), Some(vec![0x30, 8, 2, 3, 0, 0x80, 1, 2, 1, 2]));
        assert_eq!(numbers(&[], &[2]), Some(vec![0x30, 6, 2, 1, 0, 2, 1, 2]));
        assert_eq!(numbers(&[1; 33], &[2]), None);
        assert_eq!(p256_signature(&[1, 2, 3]), None);
    }

    #[test]
    fn other_keys_are_refused_by_what_they_are() {
        for (text, why) in [
            ("", KeyError::Unreadable),
            ("-----BEGIN PRIVATE KEY-----\n!\n-----END PRIVATE KEY-----", KeyError::Unreadable),
            ("-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----", KeyError::PlainKind),
            ("-----BEGIN EC PRIVATE KEY-----\nMAA=\n-----END EC PRIVATE KEY-----", KeyError::PlainKind),
            ("-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\nMAA=", KeyError::Protected),
        ] {
            assert_eq!(PlainSigner::read(text).err(), Some(why), "{text}");
        }
        for text in [
            "",
            "-----BEGIN PUBLIC KEY-----\nMAA=\n-----END PUBLIC KEY-----",
            &P256_PUBLIC.replace("PUBLIC", "X"),
        ] {
            assert_eq!(PublicKey::read_pem(text), None);
        }
    }
}
