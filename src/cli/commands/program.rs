//! This program, as statements about artifacts name it.

use sha2::{Digest as _, Sha256};

use berth_base::text::hex;
use berth_hub::attestation::Origin;

/// Returns the parts of a statement that no commit has: this program, and the source's address if it is to be named.
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
