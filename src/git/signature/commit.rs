//! Splits a commit's bytes into the signed part and the signature in the header, and joins them.
//!
//! The signature covers everything but the header `gpgsig`. Git makes no commit with two such headers; it is not
//! valid.

use super::{PublicKey, Signer, sshsig};

const HEADER: &str = "gpgsig ";

/// The signed bytes, and the signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    pub payload: Vec<u8>,
    pub signature: String,
}

/// Splits a signed commit. `None` if it is not signed, or not in Git's form.
pub fn split(raw: &[u8]) -> Option<Signed> {
    let end = raw.windows(2).position(|pair| pair == b"\n\n")? + 1;
    let (header, rest) = raw.split_at_checked(end)?;
    let header = std::str::from_utf8(header).ok()?;
    let (mut payload, mut signature, mut inside) = (String::new(), None::<String>, false);
    for line in header.split_inclusive('\n') {
        match (line.strip_prefix(HEADER), line.strip_prefix(' ')) {
            (Some(_), _) if signature.is_some() => return None,
            (Some(first), _) => (signature, inside) = (Some(first.to_owned()), true),
            (None, Some(more)) if inside => signature.get_or_insert_default().push_str(more),
            // The header of another hash function, such as `gpgsig-sha256`. None of our keys signs it.
            (None, _) if line.starts_with("gpgsig") => return None,
            (None, _) => {
                inside = false;
                payload.push_str(line);
            }
        }
    }
    let payload = [payload.as_bytes(), rest].concat();
    Some(Signed { payload, signature: signature? })
}

/// Returns the commit with a signature, or the reason why signing failed.
pub fn sign(raw: &[u8], signer: &Signer) -> Result<Vec<u8>, String> {
    let end = raw.windows(2).position(|pair| pair == b"\n\n").ok_or("it is no commit")?;
    let signature = sshsig::sign(signer, raw, super::GIT)?;
    let lines = signature.trim_end().replace('\n', "\n ");
    let (header, rest) = raw.split_at(end + 1);
    Ok([header, HEADER.as_bytes(), lines.as_bytes(), b"\n", rest].concat())
}

/// Returns the key that the commit claims to be signed by. Proves nothing.
pub fn claimed_key(raw: &[u8]) -> Option<PublicKey> {
    sshsig::claimed(&split(raw)?.signature)
}
