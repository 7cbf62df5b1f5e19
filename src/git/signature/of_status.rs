//! The signature of a status that a member sends by POST: one of `ssh-keygen -Y sign`, as one line for a header.

use super::key::PublicKey;
use super::private::Signer;
use super::{armor, sshsig};

/// The namespace of these signatures, so that none of a commit counts as one.
pub const STATUS: &str = "berth-status";

/// Signs the bytes of a status.
pub fn sign(signer: &Signer, status: &[u8]) -> Result<String, String> {
    let armored = sshsig::sign(signer, status, STATUS)?;
    Ok(armored.lines().filter(|line| !line.starts_with('-')).collect())
}

/// Returns the key that the line says it is by. Proves nothing.
pub fn claimed(line: &str) -> Option<PublicKey> {
    sshsig::claimed(&armored(line))
}

/// Returns the key that signed the bytes of a status; otherwise what is wrong with the signature.
pub fn verify(status: &[u8], line: &str) -> Result<PublicKey, String> {
    sshsig::verify(status, &armored(line), STATUS)
}

fn armored(line: &str) -> String {
    format!("-----BEGIN {0}-----\n{line}\n-----END {0}-----\n", armor::SIGNATURE)
}
