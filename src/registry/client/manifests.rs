//! Manifests: pulled and pushed by tag or digest, within the size that registries accept.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::http::{Answer, Ask};
use super::login::Rights;
use super::{Digest, Repository};
use crate::error::RegistryError;

/// The media types of OCI.
pub mod media {
    pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
    pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
    /// An empty config: `{}`.
    pub const EMPTY: &str = "application/vnd.oci.empty.v1+json";
    /// The layer type that Flux, Argo CD and Config Sync all accept.
    pub const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
}

const ACCEPT: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json";
const DIGEST: &str = "docker-content-digest";

/// The type, digest and size of a blob or manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    pub media_type: String,
    /// A [`Digest`], not yet checked.
    pub digest: String,
    pub size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl Descriptor {
    /// Describes bytes.
    pub fn of(media_type: &str, bytes: &[u8]) -> Descriptor {
        Descriptor {
            media_type: media_type.to_owned(),
            digest: Digest::of(bytes).to_string(),
            size: bytes.len() as u64,
            artifact_type: None,
            annotations: BTreeMap::new(),
        }
    }

    /// Describes the empty config, `{}`.
    pub fn empty() -> Descriptor {
        Descriptor::of(media::EMPTY, b"{}")
    }

    /// Returns the digest; `None` if it is malformed or of another hash function.
    pub fn digest(&self) -> Option<Digest> {
        self.digest.parse().ok()
    }
}

/// A manifest of OCI.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    pub schema_version: u32,
    #[serde(default)]
    pub media_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    pub config: Descriptor,
    pub layers: Vec<Descriptor>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl Manifest {
    /// Makes a manifest of an artifact with an empty config.
    pub fn of(artifact_type: &str, layers: Vec<Descriptor>) -> Manifest {
        Manifest {
            schema_version: 2,
            media_type: media::MANIFEST.to_owned(),
            artifact_type: Some(artifact_type.to_owned()),
            config: Descriptor::empty(),
            layers,
            subject: None,
            annotations: BTreeMap::new(),
        }
    }

    /// Returns the bytes to push. Equal manifests have equal bytes.
    pub fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// A pulled manifest.
#[derive(Clone, Debug)]
pub struct Pulled {
    pub digest: Digest,
    pub bytes: Vec<u8>,
}

impl Repository {
    /// Returns the digest of a manifest without pulling it; `None` if it does not exist.
    pub fn manifest_digest(&self, reference: &str) -> Result<Option<Digest>, RegistryError> {
        let answer = self.ask_manifest("HEAD", reference)?;
        if answer.status == 404 {
            return Ok(None);
        }
        if !answer.status.is_success() {
            return Err(self.http.refusal(&answer, &self.named(reference)));
        }
        match answer.header(DIGEST).map(str::parse) {
            Some(Ok(digest)) => Ok(Some(digest)),
            // Few registries omit the digest: then it is computed.
            None => Ok(self.pull_manifest(reference)?.map(|pulled| pulled.digest)),
            Some(Err(())) => Err(self.wrong(&format!(":{reference}"), "its digest is not readable")),
        }
    }

    /// Pulls a manifest by its tag or digest; `None` if it does not exist.
    pub fn pull_manifest(&self, reference: &str) -> Result<Option<Pulled>, RegistryError> {
        let answer = self.ask_manifest("GET", reference)?;
        if answer.status == 404 {
            return Ok(None);
        }
        if !answer.status.is_success() {
            return Err(self.http.refusal(&answer, &self.named(reference)));
        }
        let digest = Digest::of(&answer.body);
        let is_other = |said: &str| said.parse() != Ok(digest);
        let is_by_digest = reference.contains(':');
        if (is_by_digest && is_other(reference)) || answer.header(DIGEST).is_some_and(is_other) {
            return Err(self.wrong(&format!(":{reference}"), "its bytes are not those of its digest"));
        }
        Ok(Some(Pulled { digest, bytes: answer.body }))
    }

    /// Pushes a manifest under a tag or its digest. Returns true if the registry itself maintains the referrers.
    pub fn push_manifest(
        &self,
        reference: &str,
        media_type: &str,
        bytes: &[u8],
    ) -> Result<bool, RegistryError> {
        let answer = self.http.send(&Ask {
            method: "PUT",
            path: &self.manifest_path(reference),
            headers: &[("content-type", media_type)],
            body: Some(bytes),
            repository: &self.name,
            rights: Rights::Push,
        })?;
        if answer.status.is_success() {
            return Ok(answer.headers.contains_key("oci-subject"));
        }
        Err(self.http.refusal(&answer, &self.named(reference)))
    }

    /// Deletes a manifest with all its tags by its digest, or one tag. Returns false if the registry supports no
    /// deletion.
    pub fn delete_manifest(&self, reference: &str) -> Result<bool, RegistryError> {
        let answer = self.http.send(&Ask {
            method: "DELETE",
            path: &self.manifest_path(reference),
            headers: &[],
            body: None,
            repository: &self.name,
            rights: Rights::Delete,
        })?;
        match answer.status.as_u16() {
            200..=299 | 404 => Ok(true),
            400 | 405 | 501 => Ok(false),
            _ => Err(self.http.refusal(&answer, &self.named(reference))),
        }
    }

    fn ask_manifest(&self, method: &'static str, reference: &str) -> Result<Answer, RegistryError> {
        self.http.send(&Ask {
            method,
            path: &self.manifest_path(reference),
            headers: &[("accept", ACCEPT)],
            body: None,
            repository: &self.name,
            rights: Rights::Pull,
        })
    }

    fn manifest_path(&self, reference: &str) -> String {
        format!("{}/manifests/{reference}", self.name)
    }

    /// Returns a manifest's name in the usual notation.
    pub(super) fn named(&self, reference: &str) -> String {
        let separator = if reference.contains(':') { '@' } else { ':' };
        format!("{}{separator}{reference}", self.name)
    }
}
