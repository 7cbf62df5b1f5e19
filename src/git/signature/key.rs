//! Public keys in SSH's form: Ed25519, ECDSA on P-256 and P-384, RSA from 2048 bits with SHA-2.
//!
//! ring does the arithmetic, as for berth's TLS. SHA-1 and DSA are not valid. Hardware keys (`sk-...`) and
//! certificates are not either, since they would need rules of their own.

use std::fmt;

use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA512, RsaPublicKeyComponents, UnparsedPublicKey,
};

use super::wire::Reader;
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
