//! SSH signatures of commits: made with a private key, checked against the keys that a file allows.
//!
//! - `wire`, `armor`: SSH's binary form and its text. `key`: public keys and their checks. [`private`]: the
//!   key that signs. `sshsig`: the signature itself, as `ssh-keygen -Y sign` makes it. [`allowed`]: who may
//!   sign, as `ssh-keygen -Y verify` reads it. [`commit`]: the signature in a commit's header. [`of_status`]: that of a
//!   status. [`plain`], `pem`: signatures and keys as cosign has them, for artifacts.
//!
//! Pure: a moment is an argument, files are read elsewhere. Whatever is not understood is not valid.

pub mod allowed;
mod armor;
pub mod commit;
mod key;
pub mod of_status;
mod pem;
pub mod plain;
pub mod private;
mod sshsig;
pub(crate) mod wire;

pub use allowed::AllowedSigners;
pub use key::PublicKey;
pub use plain::PlainSigner;
pub(crate) use plain::p256_signature;
pub use private::{KeyError, Signer, Signs};
pub use sshsig::verify;

/// The namespace of signatures of commits and tags, in SSH's words.
pub(crate) const GIT: &str = "git";

#[cfg(test)]
mod tests;
