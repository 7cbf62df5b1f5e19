//! Signatures by keys outside of this process: an SSH agent, or a program that calls a KMS or HSM.
//!
//! Each has limited time. `signature` checks their results before use.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::signature::{PublicKey, Signs};
use crate::transport::Cancel;
use crate::transport::process::{self, ProcessEnd};
use berth_base::diag::harmless_line;
use berth_base::text::{base64, cut};

/// The characters of a program's error output that messages show.
const LONGEST_MESSAGE: usize = 200;

/// A program that reads bytes from its input and writes their signature, as bytes or as base64.
#[derive(Debug)]
pub struct SignerProgram {
    path: PathBuf,
    /// The time for one signature.
    patience: Duration,
    cancel: Cancel,
}

impl SignerProgram {
    pub fn new(path: &Path, patience: Duration, cancel: &Cancel) -> SignerProgram {
        SignerProgram { path: path.to_owned(), patience, cancel: cancel.clone() }
    }
}

impl Signs for SignerProgram {
    fn sign(&self, key: &PublicKey, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let shown = self.path.display();
        let failed = |error: std::io::Error| format!("`{shown}` does not run: {error}");
        let (input, mut to) = std::io::pipe().map_err(failed)?;
        // A statement may exceed a pipe's buffer, so a thread writes it. If the program reads less, its signature is
        // wrong.
        let bytes = bytes.to_vec();
        let writing = std::thread::spawn(move || to.write_all(&bytes));
        let mut command = Command::new(&self.path);
        for (name, _) in std::env::vars_os() {
            // These variables may hold tokens and passwords that the program does not need.
            if name.to_string_lossy().starts_with("BERTH_") {
                command.env_remove(name);
            }
        }
        command.env("BERTH_SIGNING_PUBLIC_KEY", key.line()).stdin(input);
        let end = process::run(command, self.patience, &self.cancel).map_err(failed)?;
        drop(writing);
        match end {
            ProcessEnd::Done { status, out, .. } if status.success() => signature(key, &out)
                .ok_or_else(|| format!("`{shown}` gave no signature of {}, plain or as base64", form(key))),
            ProcessEnd::Done { status, err, .. } => {
                let said = String::from_utf8_lossy(&err);
                let said = harmless_line(said.trim()).into_owned();
                Err(format!("`{shown}` refuses ({status}): {}", cut(&said, LONGEST_MESSAGE)))
            }
            ProcessEnd::TimedOut => {
                Err(format!("`{shown}` did not end within {} seconds", self.patience.as_secs()))
            }
            ProcessEnd::Cancelled => Err(format!("`{shown}` was interrupted")),
            ProcessEnd::TooMuch => Err(format!("`{shown}` wrote more than a signature")),
        }
    }
}

fn signature(key: &PublicKey, out: &[u8]) -> Option<Vec<u8>> {
    if is_signature(key, out) {
        return Some(out.to_vec());
    }
    let decoded = base64::decode_exactly(std::str::from_utf8(out).ok()?.trim())?;
    is_signature(key, &decoded).then_some(decoded)
}

/// Reports whether bytes have the form of this key's signatures.
fn is_signature(key: &PublicKey, bytes: &[u8]) -> bool {
    match (key.is_ed25519(), bytes) {
        (true, _) => bytes.len() == 64,
        (false, [0x30, length, rest @ ..]) => rest.len() == usize::from(*length),
        (false, _) => false,
    }
}

/// Names the form that [`is_signature`] expects.
fn form(key: &PublicKey) -> &'static str {
    if key.is_ed25519() { "64 bytes" } else { "ECDSA in DER" }
}

#[cfg(unix)]
pub use agent::SigningAgent;

/// The protocol of agents: <https://datatracker.ietf.org/doc/draft-ietf-sshm-ssh-agent/>.
#[cfg(unix)]
mod agent {
    use std::io::{self, Read as _, Write as _};
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    use super::{Duration, Path, PathBuf, PublicKey, Signs, form, is_signature};
    use crate::signature::p256_signature;
    use crate::signature::wire::{Reader, put};

    const SIGN_REQUEST: u8 = 13;
    const SIGN_RESPONSE: u8 = 14;
    /// Far longer than any answer with a signature.
    const LONGEST: u32 = 16 << 10;

    /// An SSH agent, which has keys itself or in a hardware token.
    #[derive(Debug)]
    pub struct SigningAgent {
        socket: PathBuf,
        patience: Duration,
    }

    impl SigningAgent {
        pub fn new(socket: &Path, patience: Duration) -> SigningAgent {
            SigningAgent { socket: socket.to_owned(), patience }
        }

        fn ask(&self, request: &[u8]) -> io::Result<Vec<u8>> {
            let until = Instant::now() + self.patience;
            let mut stream = UnixStream::connect(&self.socket)?;
            stream.set_write_timeout(Some(self.patience))?;
            let mut framed = Vec::new();
            put(&mut framed, request);
            stream.write_all(&framed)?;
            let mut length = [0; 4];
            read(&mut stream, &mut length, until)?;
            let length = u32::from_be_bytes(length);
            if length > LONGEST {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "its answer is too long"));
            }
            let mut answer = vec![0; usize::try_from(length).unwrap_or_default()];
            read(&mut stream, &mut answer, until)?;
            Ok(answer)
        }
    }

    /// Fills a buffer before the deadline.
    fn read(stream: &mut UnixStream, mut buffer: &mut [u8], until: Instant) -> io::Result<()> {
        while !buffer.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            stream.set_read_timeout(Some(left))?;
            match stream.read(buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => buffer = &mut buffer[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    impl Signs for SigningAgent {
        fn sign(&self, key: &PublicKey, bytes: &[u8]) -> Result<Vec<u8>, String> {
            let shown = self.socket.display();
            let mut request = vec![SIGN_REQUEST];
            put(&mut request, key.wire());
            put(&mut request, bytes);
            // No flags: they only matter for RSA.
            request.extend(0_u32.to_be_bytes());
            let answer = self.ask(&request).map_err(|error| format!("the agent at `{shown}`: {error}"))?;
            let mut answer = Reader::new(&answer);
            if answer.take(1) != Some(&[SIGN_RESPONSE]) {
                return Err(format!("the agent at `{shown}` refuses, or does not have the key"));
            }
            let mut made = Reader::new(answer.bytes().unwrap_or_default());
            let (_kind, signature) = (made.bytes(), made.bytes().unwrap_or_default());
            let signature =
                if key.is_ed25519() { Some(signature.to_vec()) } else { p256_signature(signature) };
            signature
                .filter(|signature| is_signature(key, signature))
                .ok_or_else(|| format!("the agent at `{shown}` gave no signature of {}", form(key)))
        }
    }
}
