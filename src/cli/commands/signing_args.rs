//! The flags of the key that signs: a file, or somebody else who has the key.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::process::exit::CommandError;
use berth_git::signature::{PublicKey, Signer, Signs};
use berth_git::signer::SignerProgram;
use berth_git::transport::Cancel;

// The heading stands at each: one for all would cover whatever flags follow.
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
    /// The file of the key, public or private.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.signing_key.as_deref()
    }

    /// The file with a private key.
    pub(crate) fn secret_file(&self) -> Option<&Path> {
        self.file().filter(|_| self.signing_agent.is_none() && self.signer_command.is_none())
    }

    /// Reads the key, if something is to be signed. `cancel` ends a program that signs.
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

    /// Somebody else who has the key.
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
    Ok(Arc::new(berth_git::signer::SigningAgent::new(socket, patience)))
}

#[cfg(not(unix))]
fn agent(_: &Path, _: Duration) -> Result<Arc<dyn Signs>, CommandError> {
    Err(CommandError::usage("`--signing-agent` needs the sockets of Unix"))
}
