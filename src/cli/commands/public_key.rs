//! `berth public-key`: prints the public part of a key, for checking its signatures.

use std::path::{Path, PathBuf};

use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit, Outcome};
use berth_git::signature::{PlainSigner, PublicKey};

/// Print the public key of a signing key
///
/// Reads a private key, or a public one, of OpenSSH or in PEM. cosign and Flux take PEM; `--allowed-signers` and
/// `ssh-keygen` take the line of OpenSSH. A private key is never printed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth public-key berth-key > berth.pub\n  cosign verify --key berth.pub --insecure-ignore-tlog registry.example.com/fleet/clusters/oslo:current\n  berth public-key artifact-key.pem --form ssh"
)]
pub(crate) struct PublicKeyArgs {
    #[arg(value_name = "FILE")]
    key: PathBuf,
    /// Form of the printed key
    #[arg(long, value_enum, default_value = "pem")]
    form: KeyForm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum KeyForm {
    /// As cosign, Flux and OpenSSL read it
    Pem,
    /// As a line of `authorized_keys`
    Ssh,
}

pub(crate) fn cmd_public_key(args: &PublicKeyArgs, ui: &Ui) -> Outcome {
    let key = read(&args.key)?;
    let text = match args.form {
        KeyForm::Pem => key.pem(),
        KeyForm::Ssh => Some(format!("{}\n", key.line())),
    };
    let text = text.ok_or_else(|| {
        let message = format!("`{}` is no key that signs artifacts", args.key.display());
        CommandError::usage(message).hint("name an Ed25519 key, or one on the curve P-256")
    })?;
    ui.out(text.trim_end());
    Ok(Exit::Done)
}

/// Reads the public part of a key, in any form.
pub(crate) fn read(file: &Path) -> Result<PublicKey, CommandError> {
    let unusable = |why: &str| {
        let message = format!("the key `{}` cannot be read: {why}", file.display());
        CommandError::usage(message)
            .hint("name a key of OpenSSH or in PEM, private or public, without a passphrase")
    };
    let text = std::fs::read_to_string(file).map_err(|error| unusable(&error.to_string()))?;
    let public = PublicKey::read_pem(&text).or_else(|| PublicKey::read(text.trim()));
    match public {
        Some(public) => Ok(public),
        None => PlainSigner::read(&text)
            .map(|signer| signer.public().clone())
            .map_err(|error| unusable(&error.to_string())),
    }
}
