//! Proves an artifact: its statement is signed, the commit that the statement names confirms all its claims, and the
//! commit's folder is the artifact's content.

use super::checked::{check, publication_of};
use super::publication::Publication;
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
