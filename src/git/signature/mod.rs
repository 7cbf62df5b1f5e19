//! SSH signatures of commits: made with a private key, checked against the keys in a file.
//!
//! - `wire`: SSH's binary form and its text. [`keys`]: public keys and their checks, and the key that signs.
//!   [`sshsig`]: the signature itself, as `ssh-keygen -Y sign` makes it, and that of a status. [`allowed`]: the
//!   allowed signers, as `ssh-keygen -Y verify` reads them. [`commit`]: the signature in a commit's header.
//!   [`plain`]: signatures and keys in cosign's form, for artifacts.
//!
//! Pure: moments are arguments, and files are read elsewhere. Anything that berth cannot read is not valid.

pub mod allowed;
pub mod commit;
pub mod keys;
pub mod plain;
pub mod sshsig;
pub(crate) mod wire;

pub use allowed::AllowedSigners;
pub use keys::PublicKey;
pub use keys::{KeyError, Signer, Signs};
pub use plain::PlainSigner;
pub(crate) use plain::p256_signature;
pub use sshsig::verify;

/// SSH's namespace for signatures of commits and tags.
pub(crate) const GIT: &str = "git";

#[cfg(test)]
mod tests;
