//! The signature in cosign's older form ("simple signing"): a payload that names the artifact, and a signature over
//! exactly its bytes in an annotation beside it.

use berth_git::signature::{PlainSigner, PublicKey};
use serde::{Deserialize, Serialize};

use super::SigningError;

/// The media type of the payload.
pub const MEDIA_TYPE: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// The annotation of the layer with the signature, as base64.
pub const ANNOTATION: &str = "dev.cosignproject.cosign/signature";
/// The size limit of a payload.
pub const LONGEST: usize = 64 << 10;

const KIND: &str = "cosign container image signature";

#[derive(Debug, Serialize, Deserialize)]
struct Payload {
    critical: Critical,
    optional: Option<serde_json::Value>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Critical {
    identity: Identity,
    image: Image,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Identity {
    docker_reference: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Image {
    docker_manifest_digest: String,
}

/// Returns the payload for an artifact. `repository` is its place at the push. Verifiers do not compare it, so that
/// mirrors can serve the artifact.
pub fn payload(repository: &str, digest: &str) -> Vec<u8> {
    let payload = Payload {
        critical: Critical {
            identity: Identity { docker_reference: repository.to_owned() },
            image: Image { docker_manifest_digest: digest.to_owned() },
            kind: KIND.to_owned(),
        },
        optional: None,
    };
    serde_json::to_vec(&payload).unwrap_or_default()
}

/// Signs a payload.
pub fn sign(signer: &PlainSigner, payload: &[u8]) -> Result<Vec<u8>, SigningError> {
    signer.sign(payload).map_err(SigningError::Unsigned)
}

/// Checks that one of these keys signed this payload for this artifact.
pub fn check(payload: &[u8], signature: &[u8], digest: &str, keys: &[PublicKey]) -> Result<(), SigningError> {
    SigningError::limit(payload, LONGEST)?;
    if !keys.iter().any(|key| key.verify_plain(payload, signature)) {
        return Err(SigningError::Untrusted);
    }
    let read: Payload =
        serde_json::from_slice(payload).map_err(|error| SigningError::unreadable("the payload", error))?;
    if read.critical.kind != KIND {
        return Err(SigningError::unreadable("the payload", format!("its type is `{}`", read.critical.kind)));
    }
    match read.critical.image.docker_manifest_digest {
        same if same == digest => Ok(()),
        other => Err(SigningError::OtherArtifact {
            other: berth_base::diag::harmless_line(&berth_base::text::cut(&other, 100)).into_owned(),
        }),
    }
}
