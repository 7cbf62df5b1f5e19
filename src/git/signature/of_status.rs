//! The signature of a status sent by POST: a signature of `ssh-keygen -Y sign`, as one line for a header.

use super::key::PublicKey;
use super::private::Signer;
use super::{armor, sshsig};

/// The namespace of these signatures. It keeps a commit's signature from counting for a status.
pub const STATUS: &str = "berth-status";

/// Signs the bytes of a status.
pub fn sign(signer: &Signer, status: &[u8]) -> Result<String, String> {
    let armored = sshsig::sign(signer, status, STATUS)?;
    Ok(armored.lines().filter(|line| !line.starts_with('-')).collect())
}

/// Returns the key that the signature claims. Proves nothing.
pub fn claimed(line: &str) -> Option<PublicKey> {
    sshsig::claimed(&armored(line))
}

/// Returns the key that signed the bytes of a status, or the reason why the signature is not valid.
pub fn verify(status: &[u8], line: &str) -> Result<PublicKey, String> {
    sshsig::verify(status, &armored(line), STATUS)
}

fn armored(line: &str) -> String {
    format!("-----BEGIN {0}-----\n{line}\n-----END {0}-----\n", armor::SIGNATURE)
}
