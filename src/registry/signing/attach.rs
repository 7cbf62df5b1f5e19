//! Attaches signatures and statements to an artifact in a registry.
//!
//! The signature has its own tag, where cosign before 3, Flux before 2.8 and others look. The statement refers to the
//! artifact, where newer versions look: they accept any envelope by the trusted key as a signature.

use std::collections::BTreeMap;

use super::statement::Statement;
use super::{SigningError, bundle, simple, statement};
use crate::client::{Descriptor, Digest, Manifest, Repository, media};
use crate::error::RegistryError;
use berth_base::text::base64;
use berth_git::signature::{PlainSigner, PublicKey};
use sha2::{Digest as _, Sha256};

/// The ending of a signature's tag.
const TAG: &str = ".sig";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
/// The number of foreign signatures that are kept next to berth's.
const MOST_SIGNATURES: usize = 32;
/// The number of an artifact's bundles that are read, newest first.
const MOST_BUNDLES: usize = 64;

const CONTENT: &str = "dev.sigstore.bundle.content";
const PREDICATE: &str = "dev.sigstore.bundle.predicateType";
/// The SHA-256 of a statement's bytes: a hint for finding an attached statement among many.
const STATEMENT: &str = "dev.berth.statement";

/// Returns the tag of an artifact's signature.
pub fn signature_tag(artifact: Digest) -> String {
    format!("{}{TAG}", artifact.tag())
}

/// Signs an artifact, unless it has a signature of the key. Keeps foreign signatures.
pub fn attach_signature(
    repository: &Repository,
    artifact: Digest,
    signer: &PlainSigner,
) -> Result<(), RegistryError> {
    let tag = signature_tag(artifact);
    let mut layers = signatures(repository, artifact)?;
    let keys = [signer.public().clone()];
    for layer in &layers {
        if is_signed(repository, layer, artifact, &keys)?.is_ok() {
            return Ok(());
        }
    }
    layers.truncate(MOST_SIGNATURES - 1);
    let payload = simple::payload(&repository.full_name(), &artifact.to_string());
    let made = simple::sign(signer, &payload).map_err(|error| unsigned(repository, artifact, &error))?;
    let annotations = BTreeMap::from([(simple::ANNOTATION.to_owned(), base64::encode(&made))]);
    layers.push(Descriptor { annotations, ..Descriptor::of(simple::MEDIA_TYPE, &payload) });
    let layer_digests: Vec<&str> = layers.iter().map(|layer| layer.digest.as_str()).collect();
    let config = serde_json::json!({
        "architecture": "", "os": "", "config": {},
        "rootfs": { "type": "layers", "diff_ids": layer_digests },
    });
    let config = config.to_string().into_bytes();
    repository.push_blob(&payload, None)?;
    repository.push_blob(&config, None)?;
    let manifest =
        Manifest { artifact_type: None, config: Descriptor::of(CONFIG, &config), ..Manifest::of("", layers) };
    repository.push_manifest(&tag, media::MANIFEST, &manifest.bytes())?;
    Ok(())
}

/// Checks that an artifact has a signature by one of the keys under its tag. Returns the reason if not.
pub fn check_signature(
    repository: &Repository,
    artifact: Digest,
    keys: &[PublicKey],
) -> Result<Result<(), SigningError>, RegistryError> {
    let mut found = Err(SigningError::Unsigned("the registry has none".to_owned()));
    for layer in signatures(repository, artifact)? {
        found = is_signed(repository, &layer, artifact, keys)?;
        if found.is_ok() {
            break;
        }
    }
    Ok(found)
}

fn signatures(repository: &Repository, artifact: Digest) -> Result<Vec<Descriptor>, RegistryError> {
    let Some(pulled) = repository.pull_manifest(&signature_tag(artifact))? else { return Ok(Vec::new()) };
    let manifest: Option<Manifest> = serde_json::from_slice(&pulled.bytes).ok();
    let mut layers = manifest.map(|manifest| manifest.layers).unwrap_or_default();
    layers.retain(|layer| layer.media_type == simple::MEDIA_TYPE);
    layers.truncate(MOST_SIGNATURES);
    Ok(layers)
}

fn is_signed(
    repository: &Repository,
    layer: &Descriptor,
    artifact: Digest,
    keys: &[PublicKey],
) -> Result<Result<(), SigningError>, RegistryError> {
    let made = layer.annotations.get(simple::ANNOTATION).and_then(|text| base64::decode_exactly(text));
    let Some(made) = made else { return Ok(Err(SigningError::Untrusted)) };
    Ok(match pulled(repository, layer, simple::LONGEST)? {
        Some(payload) => simple::check(&payload, &made, &artifact.to_string(), keys),
        None => Err(SigningError::Untrusted),
    })
}

/// Attaches a bundle with a statement to its artifact, unless the artifact has the same statement by the same key.
pub fn attach_statement(
    repository: &Repository,
    artifact: &Descriptor,
    statement: &Statement,
    bundle: &[u8],
    key: &PublicKey,
) -> Result<(), RegistryError> {
    let Some(digest) = artifact.digest() else { return Ok(()) };
    let payload = statement.bytes();
    let hint = berth_base::text::hex(&Sha256::digest(&payload));
    let keys = [key.clone()];
    let here = bundles(repository, digest)?;
    for entry in here.iter().filter(|entry| entry.annotations.get(STATEMENT) == Some(&hint)) {
        let opened = pull_bundle(repository, entry)?.map(|bundle| bundle::open(&bundle, &keys));
        if opened.is_some_and(|opened| opened.is_ok_and(|(_, bytes)| bytes == payload)) {
            return Ok(());
        }
    }
    let annotations =
        [(CONTENT, "dsse-envelope"), (PREDICATE, statement::PROVENANCE), (STATEMENT, hint.as_str())];
    let annotations = annotations.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let manifest = Manifest {
        subject: Some(Descriptor { artifact_type: None, annotations: BTreeMap::new(), ..artifact.clone() }),
        annotations: annotations.into(),
        ..Manifest::of(bundle::MEDIA_TYPE, vec![Descriptor::of(bundle::MEDIA_TYPE, bundle)])
    };
    repository.push_blob(bundle, None)?;
    repository.push_blob(b"{}", None)?;
    repository.push_referrer(&manifest)?;
    Ok(())
}

/// The statement of an artifact's bundle, or the reason why it is not valid.
pub type Found = Result<Statement, SigningError>;

/// Pulls the statements about an artifact, newest last. A valid one is signed by one of the keys and is a provenance
/// of the artifact.
pub fn statements(
    repository: &Repository,
    artifact: Digest,
    keys: &[PublicKey],
) -> Result<Vec<Found>, RegistryError> {
    let mut found = Vec::new();
    for entry in bundles(repository, artifact)? {
        let Some(bundle) = pull_bundle(repository, &entry)? else { continue };
        found.push(bundle::open(&bundle, keys).and_then(|(statement, _)| {
            statement.names_of(&artifact.to_string())?;
            Ok(statement)
        }));
    }
    Ok(found)
}

fn bundles(repository: &Repository, artifact: Digest) -> Result<Vec<Descriptor>, RegistryError> {
    let mut all = repository.referrers(artifact)?;
    all.retain(|entry| entry.artifact_type.as_deref() == Some(bundle::MEDIA_TYPE));
    let old = all.len().saturating_sub(MOST_BUNDLES);
    Ok(all.split_off(old))
}

/// Pulls a bundle by a manifest that refers to the artifact. `None` if it does not exist.
fn pull_bundle(repository: &Repository, entry: &Descriptor) -> Result<Option<Vec<u8>>, RegistryError> {
    let Some(digest) = entry.digest() else { return Ok(None) };
    let Some(manifest) = repository.pull_manifest(&digest.to_string())? else { return Ok(None) };
    let manifest: Option<Manifest> = serde_json::from_slice(&manifest.bytes).ok();
    match manifest.as_ref().map(|manifest| manifest.layers.as_slice()) {
        Some([layer]) if layer.media_type == bundle::MEDIA_TYPE => pulled(repository, layer, bundle::LONGEST),
        _ => Ok(None),
    }
}

/// Pulls a blob by an untrusted description. `None` if it is missing, or longer than the limit.
fn pulled(repository: &Repository, blob: &Descriptor, most: usize) -> Result<Option<Vec<u8>>, RegistryError> {
    let most = u64::try_from(most).unwrap_or(u64::MAX);
    if blob.size > most || blob.digest().is_none() {
        return Ok(None);
    }
    match repository.pull_blob(blob, most) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

fn unsigned(repository: &Repository, artifact: Digest, error: &SigningError) -> RegistryError {
    RegistryError::Unsigned {
        what: format!("{}@{artifact}", repository.full_name()),
        reason: error.to_string(),
    }
}
