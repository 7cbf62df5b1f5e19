//! The flags of the signatures and statements of artifacts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::program::origin;
use super::signing_args::SigningArgs;
use crate::process::exit::CommandError;
use berth_git::signature::{PlainSigner, PublicKey, Signer};
use berth_git::transport::Cancel;
use berth_git::transport::remote::shows_password;
use berth_hub::attestation::Attestor;
use berth_registry::publish::Attach;

/// The key of artifacts
#[derive(Debug, clap::Args)]
pub(crate) struct ArtifactSigningArgs {
    /// Sign artifacts with this key in place of --signing-key: a private key in PEM, on the curve P-256 or Ed25519. If
    /// the file has a public key, the agent or the program of --signing-key signs
    #[arg(
        long,
        value_name = "FILE",
        env = "BERTH_ARTIFACT_SIGNING_KEY",
        requires = "publish",
        help_heading = "Signing"
    )]
    artifact_signing_key: Option<PathBuf>,
    /// Let the statements about artifacts name this address as the source's; default: they name commits alone
    #[arg(
        long,
        value_name = "URL",
        env = "BERTH_ARTIFACT_SOURCE",
        requires = "publish",
        help_heading = "Signing"
    )]
    artifact_source: Option<String>,
}

impl ArtifactSigningArgs {
    /// The file with the key.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.artifact_signing_key.as_deref()
    }

    /// Returns who signs artifacts, if anybody does.
    pub(crate) fn attestor(
        &self,
        signing: &SigningArgs,
        of_commits: Option<&Signer>,
        rendered: &str,
        cancel: &Cancel,
    ) -> Result<Option<Arc<dyn Attach>>, CommandError> {
        if self.artifact_source.as_deref().is_some_and(shows_password) {
            let message = "--artifact-source has a password, and all who read artifacts would read it";
            return Err(CommandError::usage(message).hint("leave it out of the address"));
        }
        let Some(signer) = self.signer(signing, of_commits, cancel)? else { return Ok(None) };
        Ok(Some(Arc::new(Attestor::new(signer, rendered, origin(self.artifact_source.clone())))))
    }

    /// Reads the key: its own, or else the one of commits.
    fn signer(
        &self,
        signing: &SigningArgs,
        of_commits: Option<&Signer>,
        cancel: &Cancel,
    ) -> Result<Option<PlainSigner>, CommandError> {
        let Some(file) = &self.artifact_signing_key else { return Ok(of_commits.cloned().map(Into::into)) };
        let unusable = |why: &str| {
            let message = format!("the key of artifacts `{}` cannot be used: {why}", file.display());
            CommandError::usage(message)
                .hint("make one: openssl ecparam -name prime256v1 -genkey -noout -out FILE")
        };
        let text = std::fs::read_to_string(file).map_err(|error| unusable(&error.to_string()))?;
        let public = PublicKey::read_pem(&text).or_else(|| PublicKey::read(text.trim()));
        let signer = match (public, signing.holder(cancel)?) {
            (Some(public), Some(holder)) => PlainSigner::held_by(public, holder),
            (Some(_), None) => {
                let hint = "name the private key, or who has it with --signing-agent or --signer-command";
                return Err(unusable("it is a public key").hint(hint));
            }
            (None, _) => PlainSigner::read(&text),
        };
        signer.map(Some).map_err(|error| unusable(&error.to_string()))
    }
}
