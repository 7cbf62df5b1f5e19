//! The flags of the signing key, which is in a file or held elsewhere, and of the statements about artifacts.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::process::exit::CommandError;
use berth_base::text::hex;
use berth_git::external_signer::SignerProgram;
use berth_git::signature::{PlainSigner, PublicKey, Signer, Signs};
use berth_git::transport::Cancel;
use berth_git::transport::remote::shows_password;
use berth_hub::attestation::{Attestor, Origin};
use berth_registry::publish::Attach;

// Each flag has its own heading: a common one would apply to all following flags.
/// The key that signs
#[derive(Debug, clap::Args)]
pub(crate) struct SigningArgs {
    /// Sign commits with this Ed25519 key of OpenSSH, so that members can require signatures. With an agent or a
    /// program, the public key
    #[arg(long, value_name = "FILE", env = "BERTH_SIGNING_KEY", help_heading = "Signing")]
    signing_key: Option<PathBuf>,
    /// Let the agent of SSH at this socket sign: it has the key, or asks a token for it
    #[arg(
        long,
        value_name = "SOCKET",
        env = "BERTH_SIGNING_AGENT",
        requires = "signing_key",
        conflicts_with = "signer_command",
        help_heading = "Signing"
    )]
    signing_agent: Option<PathBuf>,
    /// Let this program sign, such as one that asks a KMS or HSM: it reads bytes from its input and writes their Ed25519
    /// signature, as 64 bytes or as base64
    #[arg(
        long,
        value_name = "FILE",
        env = "BERTH_SIGNER_COMMAND",
        requires = "signing_key",
        help_heading = "Signing"
    )]
    signer_command: Option<PathBuf>,
    /// Give the agent or the program this long for a signature
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 30,
        env = "BERTH_SIGNER_TIMEOUT",
        value_parser = clap::value_parser!(u64).range(1..),
        help_heading = "Signing"
    )]
    signer_timeout: u64,
}

impl SigningArgs {
    /// Returns the file of the key, public or private.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.signing_key.as_deref()
    }

    /// Returns the file with a private key.
    pub(crate) fn secret_file(&self) -> Option<&Path> {
        self.file().filter(|_| self.signing_agent.is_none() && self.signer_command.is_none())
    }

    /// Reads the key, if signing is requested. `cancel` ends a signing program.
    pub(crate) fn signer(&self, cancel: &Cancel) -> Result<Option<Signer>, CommandError> {
        let Some(file) = &self.signing_key else { return Ok(None) };
        let unusable = |why: String, hint: &str| {
            let error =
                CommandError::usage(format!("the signing key `{}` cannot be used: {why}", file.display()));
            error.hint(hint)
        };
        const MAKE: &str = "make one: ssh-keygen -t ed25519 -N '' -f FILE";
        let text = std::fs::read_to_string(file).map_err(|error| unusable(error.to_string(), MAKE))?;
        let Some(holder) = self.holder(cancel)? else {
            return Signer::read(&text).map(Some).map_err(|error| unusable(error.to_string(), MAKE));
        };
        const PUBLIC: &str = "name the file that `ssh-keygen` calls FILE.pub, or one that holds such a line";
        let key = PublicKey::read(text.trim());
        let key = key.ok_or_else(|| unusable("it is not an OpenSSH public key".to_owned(), PUBLIC))?;
        Signer::held_by(key, holder).map(Some).map_err(|error| unusable(error.to_string(), PUBLIC))
    }

    /// Returns the external holder of the key, if one is set.
    pub(crate) fn holder(&self, cancel: &Cancel) -> Result<Option<Arc<dyn Signs>>, CommandError> {
        let patience = Duration::from_secs(self.signer_timeout);
        match (&self.signing_agent, &self.signer_command) {
            (Some(socket), _) => agent(socket, patience).map(Some),
            (None, Some(program)) => Ok(Some(Arc::new(SignerProgram::new(program, patience, cancel)))),
            (None, None) => Ok(None),
        }
    }
}

#[cfg(unix)]
#[allow(clippy::unnecessary_wraps, reason = "elsewhere there is no socket")]
fn agent(socket: &Path, patience: Duration) -> Result<Arc<dyn Signs>, CommandError> {
    Ok(Arc::new(berth_git::external_signer::SigningAgent::new(socket, patience)))
}

#[cfg(not(unix))]
fn agent(_: &Path, _: Duration) -> Result<Arc<dyn Signs>, CommandError> {
    Err(CommandError::usage("`--signing-agent` needs the sockets of Unix"))
}

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
    /// Returns the file with the key.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.artifact_signing_key.as_deref()
    }

    /// Returns the attestor that signs artifacts, if requested.
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

    /// Reads the key for artifacts, or else the key for commits.
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
                let hint =
                    "name the private key, or give its holder with --signing-agent or --signer-command";
                return Err(unusable("it is a public key").hint(hint));
            }
            (None, _) => PlainSigner::read(&text),
        };
        signer.map(Some).map_err(|error| unusable(&error.to_string()))
    }
}

/// Returns the claims that no commit confirms: this program, and the source's address if it is to be named.
pub(crate) fn origin(repository: Option<String>) -> Origin {
    let file = std::env::current_exe().and_then(std::fs::File::open);
    let program = file.and_then(|mut file| {
        let mut hash = Sha256::new();
        std::io::copy(&mut file, &mut Hashing(&mut hash))?;
        Ok(hex(&hash.finalize()))
    });
    Origin { repository, version: env!("CARGO_PKG_VERSION").to_owned(), program: program.ok() }
}

struct Hashing<'h>(&'h mut Sha256);

impl std::io::Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
