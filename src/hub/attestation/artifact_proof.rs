//! Proves an artifact: its statement is signed, the commit that the statement names confirms all its claims, and the
//! commit's folder is the artifact's content.

use std::fmt;

use serde_json::Value as Json;

use super::provenance::{Origin, Publication, predicate};
use crate::publish::PublishError;
use crate::verify::{Proof, Verdict, Verifier, VerifyError};
use berth_base::model::path;
use berth_git::signature::PublicKey;
use berth_git::{CommitId, GitError, Repo, TreeId};
use berth_registry::artifact::{self, LONGEST_LAYER, UnpackError, layer_of};
use berth_registry::client::{Digest, Manifest};
use berth_registry::signing::{SigningError, Statement, attach};
use berth_registry::{RegistryError, RegistryUrl, Repository};

/// An artifact, and the keys that may have signed it.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    pub registry: &'a RegistryUrl,
    pub repository: &'a Repository,
    pub artifact: Digest,
    pub keys: &'a [PublicKey],
}

/// The result of proving an artifact.
#[derive(Debug, Default)]
pub struct ArtifactProof {
    /// The statement used, the newest of several valid ones.
    pub statement: Option<Statement>,
    /// The reasons why other statements are not valid.
    pub refused: Vec<SigningError>,
    /// The folder on the rendered branch, such as `clusters/oslo`.
    pub folder: Option<String>,
    /// The claims that are not confirmed; empty if all are.
    pub findings: Vec<String>,
    /// The proof of the commit that the statement names.
    pub commit: Option<Proof>,
    /// A required commit that is missing in the repository.
    pub missing: Option<CommitId>,
}

impl ArtifactProof {
    /// Returns the verdict in one word, as for a commit's proof.
    pub fn word(&self) -> &'static str {
        match (&self.commit, self.missing) {
            _ if self.is_failed() => "differs",
            (Some(proof), _) => proof.verdict.word(),
            (None, _) => "missing",
        }
    }

    /// Reports whether the proof failed.
    pub fn is_failed(&self) -> bool {
        self.statement.is_none()
            || !self.findings.is_empty()
            || self.commit.as_ref().is_some_and(|proof| proof.verdict.is_failed())
    }

    /// Reports whether the repository lacks something that the proof needs.
    pub fn lacks_commits(&self) -> bool {
        let lacks = |proof: &Proof| matches!(proof.verdict, Verdict::Missing(_));
        self.missing.is_some() || self.commit.as_ref().is_some_and(lacks)
    }
}

/// The proof reached no verdict.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactProofError {
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error(transparent)]
    Verify(#[from] VerifyError),
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error(transparent)]
    Git(#[from] GitError),
}

/// Proves an artifact by the commits of a repository.
pub fn prove_artifact(
    claim: &Claim<'_>,
    repo: &Repo,
    verifier: &Verifier<'_>,
) -> Result<ArtifactProof, ArtifactProofError> {
    let mut proof = ArtifactProof::default();
    for found in attach::statements(claim.repository, claim.artifact, claim.keys)? {
        match found {
            Ok(statement) => {
                let sequence = |one: &Statement| {
                    one.predicate["buildDefinition"]["internalParameters"]["sequence"].as_u64()
                };
                let is_newer =
                    proof.statement.as_ref().is_none_or(|other| sequence(&statement) >= sequence(other));
                if is_newer {
                    proof.statement = Some(statement);
                }
            }
            Err(refused) => proof.refused.push(refused),
        }
    }
    let Some(statement) = &proof.statement else { return Ok(proof) };
    let commit = match publication_of(statement) {
        Ok(commit) => commit,
        Err(mismatch) => {
            proof.findings.push(mismatch.to_string());
            return Ok(proof);
        }
    };
    if !repo.has_commit(commit) {
        proof.missing = Some(commit);
        return Ok(proof);
    }
    let Some(publication) = Publication::read(repo, commit)? else {
        proof.findings.push(format!("berth did not make the commit {commit} that the statement names"));
        return Ok(proof);
    };
    proof.findings.extend(check(statement, &publication).iter().map(ToString::to_string));
    let names = statement.names_of(&claim.artifact.to_string()).unwrap_or_default();
    match names.iter().find(|name| is_of_repository(name, claim)) {
        Some(name) => proof.folder = Some((*name).to_owned()),
        None => {
            let names = berth_base::text::some_quoted(&names, 3);
            let names = berth_base::diag::harmless_line(&names).into_owned();
            proof
                .findings
                .push(format!("the statement is about {names}, and this is another cluster's repository"));
        }
    }
    if let Some(tree) = proof.folder.as_ref().and_then(|folder| publication.folders.get(folder)) {
        proof.findings.extend(compare_folder(claim, repo, *tree)?);
    }
    proof.commit = Some(verifier.prove(commit)?);
    Ok(proof)
}

/// Reports whether a folder's artifacts belong in the repository. A shortened folder name is accepted, since it does
/// not show the cluster's name.
fn is_of_repository(folder: &str, claim: &Claim<'_>) -> bool {
    let Some((_, part)) = folder.split_once('/') else { return false };
    match path::decode(part) {
        Some(cluster) => claim.registry.repository_of(&cluster) == claim.repository.name(),
        None => path::is_cut(part),
    }
}

/// Compares the artifact with a folder. Returns the difference.
fn compare_folder(
    claim: &Claim<'_>,
    repo: &Repo,
    tree: TreeId,
) -> Result<Option<String>, ArtifactProofError> {
    // Another version of berth may have packed it differently; then the content decides.
    if artifact::pack(repo, tree, "").is_ok_and(|packed| packed.digest() == claim.artifact) {
        return Ok(None);
    }
    let Some(pulled) = claim.repository.pull_manifest(&claim.artifact.to_string())? else {
        return Ok(Some("the artifact is not in the registry".to_owned()));
    };
    let manifest: Option<Manifest> = serde_json::from_slice(&pulled.bytes).ok();
    let Some(layer) = manifest.as_ref().and_then(layer_of) else {
        return Ok(Some("the artifact is not one layer with a folder".to_owned()));
    };
    let mut reader = claim.repository.open_blob(layer, LONGEST_LAYER)?;
    let scratch = repo.scratch()?;
    let unpacked = artifact::unpack(scratch.repo(), &mut reader);
    claim.repository.finish_blob(reader)?;
    match unpacked {
        Ok(found) if found == tree => Ok(None),
        Ok(_) => Ok(Some("the artifact's content is not the folder of the commit".to_owned())),
        Err(UnpackError::Git(error)) => Err(error.into()),
        Err(error) => Ok(Some(format!("the artifact's {error}"))),
    }
}

/// A claim of a statement that the commit does not confirm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The statement names no commit.
    NoPublication,
    /// The place in the predicate of a claim that the commit does not confirm.
    Claim(String),
    /// The statement names a folder that the commit did not change.
    Subject(String),
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::NoPublication => f.write_str("the statement names no commit of a rendered branch"),
            Mismatch::Claim(place) => write!(f, "the statement's `{place}` differs from the commit"),
            Mismatch::Subject(name) => {
                write!(f, "the statement is about `{name}`, which the commit did not change")
            }
        }
    }
}

/// Returns the commit that a statement names as the origin of its artifacts.
pub fn publication_of(statement: &Statement) -> Result<CommitId, Mismatch> {
    let byproducts = &statement.predicate["runDetails"]["byproducts"];
    let published =
        byproducts.as_array().into_iter().flatten().find(|product| product["name"] == "publication");
    let commit = published.and_then(|product| product["digest"]["gitCommit"].as_str());
    commit.and_then(|commit| commit.parse().ok()).ok_or(Mismatch::NoPublication)
}

/// Compares a statement with its commit. The commit cannot confirm the program and the source's address.
pub fn check(statement: &Statement, publication: &Publication) -> Vec<Mismatch> {
    let said = &statement.predicate;
    let text = |value: &Json| value.as_str().map(str::to_owned);
    let parameters = &said["buildDefinition"]["externalParameters"];
    let builder = &said["runDetails"]["builder"];
    let origin = Origin {
        repository: text(&parameters["repository"]),
        version: text(&builder["version"]["berth"]).unwrap_or_default(),
        program: text(&builder["builderDependencies"][0]["digest"]["sha256"]),
    };
    let mut found = Vec::new();
    differences(said, &predicate(publication, &origin), "predicate", &mut found);
    let names = statement.subjects().iter().map(|subject| &subject.name);
    let unknown = names.filter(|name| !publication.folders.contains_key(*name));
    found.extend(unknown.map(|name| Mismatch::Subject(shown(name))));
    found
}

/// Lists the places at which two values differ.
fn differences(said: &Json, given: &Json, place: &str, found: &mut Vec<Mismatch>) {
    match (said, given) {
        (Json::Object(one), Json::Object(other)) => {
            for name in one.keys().chain(other.keys().filter(|name| !one.contains_key(*name))) {
                let none = &Json::Null;
                let (one, other) = (one.get(name).unwrap_or(none), other.get(name).unwrap_or(none));
                differences(one, other, &format!("{place}.{}", shown(name)), found);
            }
        }
        (Json::Array(one), Json::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                differences(one, other, &format!("{place}[{index}]"), found);
            }
        }
        (one, other) if one == other => {}
        _ => found.push(Mismatch::Claim(place.to_owned())),
    }
}

fn shown(name: &str) -> String {
    berth_base::diag::harmless_line(&berth_base::text::cut(name, 100)).into_owned()
}
