//! Manifests that refer to another one, such as signatures. Found by the API if the registry has it, else by the
//! index under the tag `sha256-<hex>`, which clients maintain themselves.

use serde::{Deserialize, Serialize};

use super::login::Rights;
use super::{Descriptor, Digest, Manifest, Repository, media};
use crate::error::RegistryError;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Index {
    schema_version: u32,
    #[serde(default)]
    media_type: String,
    #[serde(default)]
    manifests: Vec<Descriptor>,
}

impl Repository {
    /// Returns the manifests that refer to this one.
    pub fn referrers(&self, of: Digest) -> Result<Vec<Descriptor>, RegistryError> {
        let path = format!("{}/referrers/{of}", self.name);
        let answer = self.ask("GET", &path, &[("accept", media::INDEX)], None, Rights::Pull)?;
        match answer.status.as_u16() {
            200 => self.read_index(&answer.body),
            // The API or the manifest does not exist: use the tag.
            404 | 405 | 400 => self.tagged_referrers(of),
            _ => Err(self.http.refusal(&answer, &self.name)),
        }
    }

    /// Pushes a manifest that refers to another one, and makes it findable. The caller must be the repository's only
    /// writer, because the index is read and written.
    pub fn push_referrer(&self, manifest: &Manifest) -> Result<Digest, RegistryError> {
        let bytes = manifest.bytes();
        let digest = Digest::of(&bytes);
        let keeps_referrers = self.push_manifest(&digest.to_string(), media::MANIFEST, &bytes)?;
        let subject = manifest.subject.as_ref().and_then(Descriptor::digest);
        let Some(subject) = subject.filter(|_| !keeps_referrers) else { return Ok(digest) };
        let mut known = self.tagged_referrers(subject)?;
        let entry = Descriptor {
            artifact_type: manifest.artifact_type.clone(),
            annotations: manifest.annotations.clone(),
            ..Descriptor::of(media::MANIFEST, &bytes)
        };
        if !known.contains(&entry) {
            known.retain(|other| other.digest != entry.digest);
            known.push(entry);
            let index = Index { schema_version: 2, media_type: media::INDEX.to_owned(), manifests: known };
            let bytes = serde_json::to_vec(&index).unwrap_or_default();
            self.push_manifest(&subject.tag(), media::INDEX, &bytes)?;
        }
        Ok(digest)
    }

    fn tagged_referrers(&self, of: Digest) -> Result<Vec<Descriptor>, RegistryError> {
        match self.pull_manifest(&of.tag())? {
            Some(pulled) => self.read_index(&pulled.bytes),
            None => Ok(Vec::new()),
        }
    }

    fn read_index(&self, bytes: &[u8]) -> Result<Vec<Descriptor>, RegistryError> {
        let index: Index = serde_json::from_slice(bytes)
            .map_err(|_| self.wrong("", "its list of referrers is not as expected"))?;
        Ok(index.manifests)
    }
}
