//! Public keys in SSH's form: Ed25519, ECDSA on P-256 and P-384, RSA from 2048 bits with SHA-2. Signing keys:
//! an OpenSSH private key, or a key held outside of this process.
//!
//! ring does the arithmetic, as for berth's TLS. SHA-1 and DSA are not valid. Hardware keys (`sk-...`) and
//! certificates are not either, since they would need rules of their own.
//!
//! Signing keys are Ed25519 only: its signatures depend on the key and the message alone, so two daemons with
//! one key still make the same commits. No message quotes the key. A signature from outside is checked before
//! use.

use std::fmt;
use std::sync::Arc;

use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, Ed25519KeyPair, KeyPair as _,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA512, RsaPublicKeyComponents, UnparsedPublicKey,
};

use super::wire::{self, Reader, put};
use berth_base::text::base64;

/// A key in SSH's binary form. Equal bytes mean equal keys.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicKey(Vec<u8>);

/// Writes the fingerprint, as `ssh-keygen -l` shows it.
impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digest = ring::digest::digest(&ring::digest::SHA256, &self.0);
        write!(f, "SHA256:{}", base64::encode(digest.as_ref()).trim_end_matches('='))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl PublicKey {
    pub(crate) fn from_wire(bytes: &[u8]) -> PublicKey {
        PublicKey(bytes.to_vec())
    }

    /// Reads a line of `authorized_keys` or a `.pub` file.
    pub fn read(line: &str) -> Option<PublicKey> {
        let mut words = line.split_whitespace();
        let (kind, text) = (words.next()?, words.next()?);
        let key = PublicKey(base64::decode_exactly(text)?);
        (key.algorithm() == Some(kind)).then_some(key)
    }

    /// Returns the key as a line of `authorized_keys`, without a comment.
    pub fn line(&self) -> String {
        format!("{} {}", self.algorithm().unwrap_or_default(), base64::encode(&self.0))
    }

    pub(crate) fn wire(&self) -> &[u8] {
        &self.0
    }

    /// Returns the name of the algorithm, the word before the key in files.
    pub(crate) fn algorithm(&self) -> Option<&str> {
        Reader::new(&self.0).text()
    }

    /// Reports whether the key is Ed25519.
    pub(crate) fn is_ed25519(&self) -> bool {
        self.algorithm() == Some("ssh-ed25519")
    }

    /// Reports whether a signature in SSH's form was made by this key over these bytes.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        self.try_verify(message, signature).is_some()
    }

    fn try_verify(&self, message: &[u8], signature: &[u8]) -> Option<()> {
        let (mut key, mut signature) = (Reader::new(&self.0), Reader::new(signature));
        let (kind, how, made) = (key.text()?, signature.text()?, signature.bytes()?);
        if !signature.is_empty() {
            return None;
        }
        match (kind, how) {
            ("ssh-ed25519", "ssh-ed25519") => {
                let point = last(key.bytes()?, &key)?;
                UnparsedPublicKey::new(&ED25519, point).verify(message, made).ok()
            }
            ("ssh-rsa", "rsa-sha2-256" | "rsa-sha2-512") => {
                let e = key.big()?;
                let n = last(key.big()?, &key)?;
                let how = match how {
                    "rsa-sha2-256" => &RSA_PKCS1_2048_8192_SHA256,
                    _ => &RSA_PKCS1_2048_8192_SHA512,
                };
                RsaPublicKeyComponents { n, e }.verify(how, message, made).ok()
            }
            ("ecdsa-sha2-nistp256", "ecdsa-sha2-nistp256") => {
                let point = (key.text()? == "nistp256").then(|| key.bytes())??;
                let made = fixed::<32>(made)?;
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, last(point, &key)?)
                    .verify(message, &made)
                    .ok()
            }
            ("ecdsa-sha2-nistp384", "ecdsa-sha2-nistp384") => {
                let point = (key.text()? == "nistp384").then(|| key.bytes())??;
                let made = fixed::<48>(made)?;
                UnparsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, last(point, &key)?)
                    .verify(message, &made)
                    .ok()
            }
            _ => None,
        }
    }
}

/// Returns the last part of a key, if nothing follows it.
fn last<'b>(part: &'b [u8], rest: &Reader<'_>) -> Option<&'b [u8]> {
    rest.is_empty().then_some(part)
}

/// Joins the two numbers of an ECDSA signature, each padded to the length of the curve.
fn fixed<const LENGTH: usize>(made: &[u8]) -> Option<Vec<u8>> {
    let mut made = Reader::new(made);
    let (r, s) = (made.big()?, made.big()?);
    if !made.is_empty() || r.len() > LENGTH || s.len() > LENGTH {
        return None;
    }
    let mut both = vec![0; LENGTH - r.len()];
    both.extend(r);
    both.extend(vec![0; LENGTH - s.len()]);
    both.extend(s);
    Some(both)
}

const LABEL: &str = "OPENSSH PRIVATE KEY";
const MAGIC: &[u8] = b"openssh-key-v1\0";
const ED25519_NAME: &str = "ssh-ed25519";
/// The block size of the cipher `none`.
const BLOCK: usize = 8;

/// A key that signs.
#[derive(Clone)]
pub struct Signer {
    holder: KeyHolder,
    public: PublicKey,
}

#[derive(Clone)]
enum KeyHolder {
    /// This process has the key.
    Own(Arc<Ed25519KeyPair>),
    Other(Arc<dyn Signs>),
}

/// A holder of keys outside of this process.
pub trait Signs: Send + Sync {
    /// Returns a signature of these bytes, or the reason why there is none: 64 bytes for Ed25519, DER for ECDSA on
    /// P-256.
    fn sign(&self, key: &PublicKey, bytes: &[u8]) -> Result<Vec<u8>, String>;
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer({})", self.public)
    }
}

impl PartialEq for Signer {
    fn eq(&self, other: &Signer) -> bool {
        self.public == other.public
    }
}

impl Eq for Signer {}

/// The reasons why a private key cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("it is not an OpenSSH private key")]
    Unreadable,
    #[error("it is protected by a passphrase, and berth cannot ask for one")]
    Protected,
    #[error("it is not an Ed25519 key")]
    Kind,
    #[error("it is neither an Ed25519 key nor one on the curve P-256 with its public part")]
    PlainKind,
}

impl Signer {
    /// Reads a file of `ssh-keygen -t ed25519 -N ''`.
    pub fn read(text: &str) -> Result<Signer, KeyError> {
        let bytes = wire::unwrap(text, LABEL).ok_or(KeyError::Unreadable)?;
        let mut reader = Reader::new(&bytes);
        let magic = reader.take(MAGIC.len()).ok_or(KeyError::Unreadable)?;
        if magic != MAGIC {
            return Err(KeyError::Unreadable);
        }
        let cipher = reader.text().ok_or(KeyError::Unreadable)?;
        if cipher != "none" {
            return Err(KeyError::Protected);
        }
        let section = private_section(&mut reader).ok_or(KeyError::Unreadable)?;
        let mut section = Reader::new(section);
        let (one, two) = (section.number(), section.number());
        if one.is_none() || one != two {
            return Err(KeyError::Unreadable);
        }
        if section.text().ok_or(KeyError::Unreadable)? != ED25519_NAME {
            return Err(KeyError::Kind);
        }
        let parts = section.bytes().zip(section.bytes());
        let (point, secret) = parts.ok_or(KeyError::Unreadable)?;
        let seed = secret.get(..32).ok_or(KeyError::Unreadable)?;
        let pair = Ed25519KeyPair::from_seed_and_public_key(seed, point).map_err(|_| KeyError::Unreadable)?;
        let mut wire = Vec::new();
        put(&mut wire, ED25519_NAME.as_bytes());
        put(&mut wire, point);
        Ok(Signer { holder: KeyHolder::Own(Arc::new(pair)), public: PublicKey::from_wire(&wire) })
    }

    /// Makes a signer for a key outside of this process.
    pub fn held_by(public: PublicKey, holder: Arc<dyn Signs>) -> Result<Signer, KeyError> {
        let is_fit = public.algorithm() == Some(ED25519_NAME);
        if is_fit { Ok(Signer { holder: KeyHolder::Other(holder), public }) } else { Err(KeyError::Kind) }
    }

    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Returns the 64 bytes of a signature, or the reason why there is none. A signature from outside is not checked
    /// yet.
    pub(super) fn sign_plain(&self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        match &self.holder {
            KeyHolder::Own(pair) => Ok(pair.sign(bytes).as_ref().to_vec()),
            KeyHolder::Other(holder) => holder.sign(&self.public, bytes),
        }
    }

    /// Returns a signature in SSH's form, or the reason why there is none.
    pub(super) fn sign(&self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let signature = self.sign_plain(bytes)?;
        let mut made = Vec::new();
        put(&mut made, ED25519_NAME.as_bytes());
        put(&mut made, &signature);
        match &self.holder {
            KeyHolder::Other(_) if !self.public.verify(bytes, &made) => {
                Err(format!("the signer's answer is not a signature by the key {}", self.public))
            }
            _ => Ok(made),
        }
    }
}

/// Writes the key of a seed as `ssh-keygen -t ed25519 -N ''` does. `check` is any number; readers use it to detect
/// wrong decryption.
pub(crate) fn write(seed: &[u8; 32], check: u32, comment: &str) -> Option<(Signer, String)> {
    let pair = Ed25519KeyPair::from_seed_unchecked(seed).ok()?;
    let point = pair.public_key().as_ref().to_vec();
    let mut public = Vec::new();
    put(&mut public, ED25519_NAME.as_bytes());
    put(&mut public, &point);
    let mut section = [check.to_be_bytes(), check.to_be_bytes()].concat();
    section.extend(&public);
    put(&mut section, &[&seed[..], &point].concat());
    put(&mut section, comment.as_bytes());
    let missing = section.len().next_multiple_of(BLOCK) - section.len();
    section.extend((1u8..).take(missing));
    let mut whole = MAGIC.to_vec();
    for text in ["none", "none", ""] {
        put(&mut whole, text.as_bytes());
    }
    whole.extend(1u32.to_be_bytes());
    put(&mut whole, &public);
    put(&mut whole, &section);
    let signer = Signer { holder: KeyHolder::Own(Arc::new(pair)), public: PublicKey::from_wire(&public) };
    Some((signer, wire::wrap(&whole, LABEL)))
}

fn private_section<'b>(reader: &mut Reader<'b>) -> Option<&'b [u8]> {
    let (_kdf, _options) = (reader.bytes()?, reader.bytes()?);
    let keys = reader.number()?;
    let _public = reader.bytes()?;
    let section = reader.bytes()?;
    (keys == 1 && reader.is_empty()).then_some(section)
}
