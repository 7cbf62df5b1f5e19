//! Sigstore's bundles, version 0.3: an envelope with a hint about its key, as cosign 3 and Flux read them.

use berth_base::text::base64;
use berth_git::signature::{PlainSigner, PublicKey};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::dsse::Envelope;
use super::error::SigningError;
use super::statement::{self, Statement};

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
