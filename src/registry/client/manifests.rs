//! Manifests: pulled and pushed by tag or digest, within the size that registries accept. The tags of a
//! repository, page by page.
//!
//! Manifests that refer to another one, such as signatures, are found by the API if the registry has it, else
//! by the index under the tag `sha256-<hex>`, which clients maintain themselves.

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

/// The number of tags per page.
const PAGE: usize = 1_000;
/// More pages than any repository of berth's has.
const MOST_PAGES: usize = 1_000;

impl Repository {
    /// Returns all tags. A repository that does not exist has none.
    pub fn tags(&self) -> Result<Vec<String>, RegistryError> {
        #[derive(Deserialize)]
        struct Page {
            // Registries send `null` for an empty list.
            tags: Option<Vec<String>>,
        }
        let mut tags = Vec::new();
        let mut path = format!("{}/tags/list?n={PAGE}", self.name);
        for _ in 0..MOST_PAGES {
            let answer = self.ask("GET", &path, &[], None, Rights::Pull)?;
            if answer.status == 404 {
                return Ok(tags);
            }
            if !answer.status.is_success() {
                return Err(self.http.refusal(&answer, &self.name));
            }
            let page: Page = serde_json::from_slice(&answer.body)
                .map_err(|_| self.wrong("", "its list of tags is not as expected"))?;
            tags.extend(page.tags.unwrap_or_default());
            match answer.header("link").and_then(next_page) {
                Some(next) => next.clone_into(&mut path),
                None => return Ok(tags),
            }
        }
        Err(self.wrong("", "its list of tags does not end"))
    }
}

/// Reads the address in `<address>; rel="next"`.
fn next_page(link: &str) -> Option<&str> {
    let (address, about) = link.strip_prefix('<')?.split_once('>')?;
    about.contains("next").then_some(address)
}

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

#[cfg(test)]
mod tests {
    use super::next_page;

    #[test]
    fn the_next_page_is_found_in_the_link() {
        assert_eq!(
            next_page(r#"</v2/a/tags/list?n=1&last=b>; rel="next""#),
            Some("/v2/a/tags/list?n=1&last=b")
        );
        assert_eq!(next_page(r#"</v2/a>; rel="prev""#), None);
        assert_eq!(next_page(""), None);
    }
}
