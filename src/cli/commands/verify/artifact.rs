//! `berth verify --artifact`: proves a registry's artifact with its statement and commit. `--statement`: prints the
//! statement that a daemon would sign about the artifacts of a commit.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde::Serialize;

use super::{VerifyArgs, details, exit_of, proof_text, read_key};
use crate::flags::registry::RegistryArgs;
use crate::flags::signing::origin;
use crate::output::results::{Format, ResultKind};
use crate::output::ui::{Tone, Ui};
use crate::process::exit::{CommandError, Exit, Outcome};
use berth_git::Repo;
use berth_hub::attestation::{
    ArtifactProof, ArtifactProofError, Claim, Publication, prove_artifact, statements_of,
};
use berth_hub::verify::Verifier;
use berth_registry::client::Digest;
use berth_registry::{ArtifactReference, Repository};

/// An artifact to prove
#[derive(Debug, clap::Args)]
pub(crate) struct ArtifactArgs {
    /// Prove an artifact of a registry, `oci://HOST/PREFIX/clusters/CLUSTER` with `:TAG` or `@DIGEST`: its statement is
    /// signed, the commit that the statement names is proven, and the commit's folder is the artifact's
    #[arg(
        long,
        value_name = "URL",
        requires = "key",
        conflicts_with_all = ["commits", "statement"],
        help_heading = "Artifacts"
    )]
    pub artifact: Option<String>,
    /// Trust statements by this key: a public key in PEM or of OpenSSH. May be repeated
    #[arg(long, value_name = "FILE", requires = "artifact", help_heading = "Artifacts")]
    key: Vec<PathBuf>,
    /// Print the statement of a commit about its artifacts, in place of proving it: one line for each hundred of them.
    /// No registry is asked
    #[arg(long, requires = "commits", help_heading = "Artifacts")]
    pub statement: bool,
    #[command(flatten)]
    registry: RegistryArgs,
}

/// The rendered branch, with the verifier of its commits.
#[derive(Clone, Copy)]
pub(super) struct RenderedBranch<'a> {
    pub repo: &'a Repo,
    pub name: &'a str,
    pub verifier: &'a Verifier<'a>,
}

/// Proves an artifact, and prints the result.
pub(super) fn prove(args: &VerifyArgs, reference: &str, branch: RenderedBranch<'_>, ui: &Ui) -> Outcome {
    let proven = ProvenArtifact::of(&args.artifact, &ArtifactReference::parse(reference)?, branch, ui)?;
    match args.output {
        Format::Text => ui.out(&proven.text(args.most, ui)),
        format => format.write(ResultKind::ArtifactProof, &proven.form(), ui),
    }
    Ok(proven.exit())
}

/// An artifact with the result of its proof.
struct ProvenArtifact {
    /// The repository with the digest.
    name: String,
    digest: Digest,
    proof: ArtifactProof,
    /// True if the branch now has another folder for the cluster.
    is_behind: bool,
}

impl ProvenArtifact {
    fn of(
        args: &ArtifactArgs,
        reference: &ArtifactReference,
        branch: RenderedBranch<'_>,
        ui: &Ui,
    ) -> Result<ProvenArtifact, CommandError> {
        let keys = args.key.iter().map(|file| read_key(file)).collect::<Result<Vec<_>, _>>()?;
        let registry = args.registry.registry(&reference.registry.to_string())?;
        let repository = registry.repository_named(&reference.repository);
        let digest = digest_of(reference, &repository)?;
        let claim =
            Claim { registry: &reference.registry, repository: &repository, artifact: digest, keys: &keys };
        let RenderedBranch { repo, name, verifier } = branch;
        let proof = ui.watching("proving the artifact", || prove_artifact(&claim, repo, verifier))?;
        let is_behind = is_behind(&proof, repo, name)?;
        let name = format!("{}@{digest}", repository.full_name());
        Ok(ProvenArtifact { name, digest, proof, is_behind })
    }

    fn exit(&self) -> Exit {
        match &self.proof {
            proof if proof.is_failed() => Exit::Different,
            proof if proof.lacks_commits() => Exit::Unreachable,
            proof => proof.commit.as_ref().map_or(Exit::Done, exit_of),
        }
    }

    fn text(&self, most: usize, ui: &Ui) -> String {
        let ProvenArtifact { digest, proof, is_behind, .. } = self;
        let word = proof.word();
        let tone = match word {
            "ok" => Tone::Good,
            "root" => Tone::Strong,
            "differs" => Tone::Bad,
            _ => Tone::Warn,
        };
        let folder = proof.folder.as_deref().unwrap_or("-");
        let mut text = format!("{} {digest}  {folder}\n", ui.tint(&format!("{word:<8}"), tone));
        let found = findings(proof);
        for finding in found.iter().take(most) {
            let _ = writeln!(text, "           {finding}");
        }
        if let Some(more @ 1..) = found.len().checked_sub(most) {
            let _ = writeln!(text, "           and {more} more");
        }
        if *is_behind {
            text.push_str("           the branch has a newer folder for this cluster\n");
        }
        if let Some(commit) = &proof.commit {
            text.push_str(&proof_text(commit, most, ui));
        }
        text
    }

    fn form(&self) -> ArtifactProofForm<'_> {
        let ProvenArtifact { name, proof, is_behind, .. } = self;
        let mut details = findings(proof);
        let commit = proof.commit.as_ref();
        details.extend(commit.map(|proof| self::details(&proof.verdict)).unwrap_or_default());
        ArtifactProofForm {
            artifact: name,
            folder: proof.folder.as_deref(),
            commit: commit.map(|proof| proof.commit.to_string()),
            sequence: commit.and_then(|proof| proof.seq),
            source: commit.and_then(|proof| proof.source).map(|source| source.to_string()),
            verdict: proof.word(),
            failed: proof.is_failed(),
            newer_on_branch: *is_behind,
            details,
        }
    }
}

/// The proof of an artifact, for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ArtifactProofForm<'a> {
    artifact: &'a str,
    folder: Option<&'a str>,
    commit: Option<String>,
    sequence: Option<u64>,
    source: Option<String>,
    verdict: &'static str,
    failed: bool,
    newer_on_branch: bool,
    details: Vec<String>,
}

/// The digest that a reference names, or that its tag stands for in the registry.
fn digest_of(reference: &ArtifactReference, repository: &Repository) -> Result<Digest, CommandError> {
    if let Ok(digest) = reference.reference.parse() {
        return Ok(digest);
    }
    repository.manifest_digest(&reference.reference)?.ok_or_else(|| {
        let message = format!("the registry has no `{}:{}`", repository.full_name(), reference.reference);
        CommandError::new(Exit::Unreachable, message)
    })
}

/// Reports whether the branch now has another folder for the cluster. No signature shows this.
fn is_behind(proof: &ArtifactProof, repo: &Repo, branch: &str) -> Result<bool, CommandError> {
    let (Some(folder), Some(proof)) = (&proof.folder, &proof.commit) else { return Ok(false) };
    let Some(tip) = repo.read_ref(branch)? else { return Ok(false) };
    let [then, now] = [proof.commit, tip].map(|commit| -> Result<_, CommandError> {
        let root = repo.commit(commit)?.tree;
        let (parent, name) = folder.split_once('/').unwrap_or_default();
        let parent = repo.folders_named(root, [parent])?.remove(parent);
        let folder = parent.map(|parent| repo.folders_named(parent, [name])).transpose()?;
        Ok(folder.and_then(|mut folder| folder.remove(name)))
    });
    Ok(then? != now?)
}

fn findings(proof: &ArtifactProof) -> Vec<String> {
    let mut found = proof.findings.clone();
    if proof.statement.is_none() {
        found.push("no statement about it is signed by a trusted key".to_owned());
        found.extend(proof.refused.iter().map(|refused| format!("a statement does not count: {refused}")));
    }
    if let Some(commit) = &proof.missing {
        found.push(format!(
            "the commit {commit} that its statement names is not in this repository: fetch it"
        ));
    }
    found
}

impl From<ArtifactProofError> for CommandError {
    fn from(error: ArtifactProofError) -> CommandError {
        match error {
            ArtifactProofError::Registry(error) => error.into(),
            ArtifactProofError::Verify(error) => error.into(),
            ArtifactProofError::Publish(error) => error.into(),
            ArtifactProofError::Git(error) => error.into(),
        }
    }
}

/// Prints the statements of a commit.
pub(super) fn print_statement(repo: &Repo, commit: &str, ui: &Ui) -> Outcome {
    let commit = repo.require(commit)?;
    let Some(publication) = Publication::read(repo, commit)? else {
        let message = format!("berth did not make the commit {commit}, so it has no statement");
        return Err(CommandError::usage(message).hint("name a commit of the rendered branch"));
    };
    for statement in statements_of(repo, &publication, &origin(None))? {
        ui.out(&String::from_utf8_lossy(&statement.bytes()));
    }
    Ok(Exit::Done)
}
