//! The signature of `ssh-keygen -Y sign` (PROTOCOL.sshsig): its key, its purpose and its bytes. The one of a
//! status sent by POST is a single line, for a header.

use ring::digest::{SHA256, SHA512, digest};

use super::keys::{PublicKey, Signer};
use super::wire::{self, Reader, SIGNATURE as LABEL, put};

const MAGIC: &[u8] = b"SSHSIG";
const VERSION: u32 = 1;

struct Parts<'b> {
    key: PublicKey,
    namespace: &'b str,
    hash: &'b str,
    made: &'b [u8],
}

fn read(bytes: &[u8]) -> Option<Parts<'_>> {
    let mut reader = Reader::new(bytes);
    if reader.take(MAGIC.len())? != MAGIC || reader.number()? != VERSION {
        return None;
    }
    let key = PublicKey::from_wire(reader.bytes()?);
    let (namespace, _reserved) = (reader.text()?, reader.bytes()?);
    let (hash, made) = (reader.text()?, reader.bytes()?);
    reader.is_empty().then_some(Parts { key, namespace, hash, made })
}

/// Returns the bytes that SSH signs.
fn signed(namespace: &str, hash: &str, message: &[u8]) -> Option<Vec<u8>> {
    let digest = match hash {
        "sha512" => digest(&SHA512, message),
        "sha256" => digest(&SHA256, message),
        _ => return None,
    };
    let mut bytes = MAGIC.to_vec();
    put(&mut bytes, namespace.as_bytes());
    put(&mut bytes, b"");
    put(&mut bytes, hash.as_bytes());
    put(&mut bytes, digest.as_ref());
    Some(bytes)
}

/// Returns the key that made this signature of these bytes for this namespace, or the reason why it is not valid.
pub fn verify(message: &[u8], signature: &str, namespace: &str) -> Result<PublicKey, String> {
    let bytes = wire::unwrap(signature, LABEL).ok_or("its signature is not an SSH signature")?;
    let parts = read(&bytes).ok_or("its signature cannot be read")?;
    if parts.namespace != namespace {
        return Err(format!("its signature is for `{}`, not for `{namespace}`", parts.namespace));
    }
    let signed = signed(namespace, parts.hash, message).ok_or("its signature uses an unknown hash")?;
    if parts.key.verify(&signed, parts.made) {
        Ok(parts.key)
    } else {
        Err(format!("its signature by the key {} does not match its content", parts.key))
    }
}

/// Returns the key that a signature claims. Proves nothing.
pub(super) fn claimed(signature: &str) -> Option<PublicKey> {
    Some(read(&wire::unwrap(signature, LABEL)?)?.key)
}

/// Signs bytes for a namespace. The same bytes give the same signature.
pub(super) fn sign(signer: &Signer, message: &[u8], namespace: &str) -> Result<String, String> {
    const HASH: &str = "sha512";
    let made = signer.sign(&signed(namespace, HASH, message).unwrap_or_default())?;
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_be_bytes());
    put(&mut bytes, signer.public().wire());
    put(&mut bytes, namespace.as_bytes());
    put(&mut bytes, b"");
    put(&mut bytes, HASH.as_bytes());
    put(&mut bytes, &made);
    Ok(wire::wrap(&bytes, LABEL))
}

/// The namespace of these signatures. It keeps a commit's signature from counting for a status.
pub const STATUS: &str = "berth-status";

/// Signs the bytes of a status.
pub fn sign_status(signer: &Signer, status: &[u8]) -> Result<String, String> {
    let armored = sign(signer, status, STATUS)?;
    Ok(armored.lines().filter(|line| !line.starts_with('-')).collect())
}

/// Returns the key that the signature claims. Proves nothing.
pub fn claimed_by_status(line: &str) -> Option<PublicKey> {
    claimed(&armored(line))
}

/// Returns the key that signed the bytes of a status, or the reason why the signature is not valid.
pub fn verify_status(status: &[u8], line: &str) -> Result<PublicKey, String> {
    verify(status, &armored(line), STATUS)
}

fn armored(line: &str) -> String {
    format!("-----BEGIN {0}-----\n{line}\n-----END {0}-----\n", wire::SIGNATURE)
}
