//! Signed envelopes (DSSE): a payload with its type, and a signature over both. Sigstore's bundles, version
//! 0.3: an envelope with a hint about its key, as cosign 3 and Flux read them.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::SigningError;
use super::statement::{self, Statement};
use berth_base::text::base64;
use berth_git::signature::{PlainSigner, PublicKey};

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

/// The media type of a bundle, as a layer and as an artifact.
pub const MEDIA_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
/// The size limit of a bundle.
pub const LONGEST: usize = 8 << 20;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bundle {
    media_type: String,
    #[serde(default, skip_deserializing)]
    verification_material: Material,
    dsse_envelope: Envelope,
}

/// The hint about the key. It is not signed, so berth ignores it.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Material {
    public_key: Hint,
    tlog_entries: [(); 0],
}

#[derive(Debug, Default, Serialize)]
struct Hint {
    hint: String,
}

/// Signs a statement. Returns the bundle's bytes.
pub fn sign(signer: &PlainSigner, statement: &Statement) -> Result<Vec<u8>, SigningError> {
    let key = signer.public().der().unwrap_or_default();
    let bundle = Bundle {
        media_type: MEDIA_TYPE.to_owned(),
        verification_material: Material {
            public_key: Hint { hint: base64::encode(&Sha256::digest(key)) },
            tlog_entries: [],
        },
        dsse_envelope: Envelope::sign(signer, statement::PAYLOAD_TYPE, &statement.bytes())?,
    };
    serde_json::to_vec(&bundle).map_err(|error| SigningError::unreadable("the bundle", error))
}

/// Returns the statement of a bundle that one of these keys signed, with its exact bytes.
pub fn open(bytes: &[u8], keys: &[PublicKey]) -> Result<(Statement, Vec<u8>), SigningError> {
    const WHAT: &str = "the bundle";
    SigningError::limit(bytes, LONGEST)?;
    let bundle: Bundle =
        serde_json::from_slice(bytes).map_err(|error| SigningError::unreadable(WHAT, error))?;
    if bundle.media_type != MEDIA_TYPE {
        return Err(SigningError::unreadable(WHAT, format!("its media type is `{}`", bundle.media_type)));
    }
    let payload = bundle.dsse_envelope.open(statement::PAYLOAD_TYPE, keys)?;
    Ok((Statement::read(&payload)?, payload))
}
