//! Signed envelopes (DSSE): a payload with its type, and a signature over both.

use berth_base::text::base64;
use berth_git::signature::{PlainSigner, PublicKey};
use serde::{Deserialize, Serialize};

use super::error::SigningError;

/// The size limit of a payload.
pub(super) const LONGEST_PAYLOAD: usize = 4 << 20;

/// A payload and its signature. Other tools write further fields, which are not signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Envelope {
    payload: String,
    payload_type: String,
    signatures: Vec<Signature>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Signature {
    sig: String,
}

impl Envelope {
    pub fn sign(signer: &PlainSigner, kind: &str, payload: &[u8]) -> Result<Envelope, SigningError> {
        let made = signer.sign(&signed_bytes(kind, payload)).map_err(SigningError::Unsigned)?;
        Ok(Envelope {
            payload: base64::encode(payload),
            payload_type: kind.to_owned(),
            signatures: vec![Signature { sig: base64::encode(&made) }],
        })
    }

    /// Returns the payload if it has this type and one of the keys signed it.
    pub fn open(&self, kind: &str, keys: &[PublicKey]) -> Result<Vec<u8>, SigningError> {
        const WHAT: &str = "the envelope";
        SigningError::limit(self.payload.as_bytes(), LONGEST_PAYLOAD.div_ceil(3) * 4)?;
        let payload = decode(&self.payload).ok_or_else(|| SigningError::unreadable(WHAT, "no base64"))?;
        // Sigstore's bundles have exactly one. With several, another tool might show one that it does not trust.
        let [signature] = &self.signatures[..] else {
            return Err(SigningError::unreadable(WHAT, "it does not have exactly one signature"));
        };
        let made = decode(&signature.sig).ok_or_else(|| SigningError::unreadable(WHAT, "no base64"))?;
        let bytes = signed_bytes(&self.payload_type, &payload);
        if !keys.iter().any(|key| key.verify_plain(&bytes, &made)) {
            return Err(SigningError::Untrusted);
        }
        if self.payload_type != kind {
            return Err(SigningError::unreadable(WHAT, format!("its payload is `{}`", self.payload_type)));
        }
        Ok(payload)
    }
}

/// Decodes base64 in either alphabet.
fn decode(text: &str) -> Option<Vec<u8>> {
    base64::decode_exactly(&text.replace('-', "+").replace('_', "/"))
}

/// Returns the signed bytes ("PAE"). They contain the type, so a payload of one type is never valid as another.
pub fn signed_bytes(kind: &str, payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len()).into_bytes();
    bytes.extend(payload);
    bytes
}
