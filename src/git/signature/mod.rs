//! SSH signatures of commits: made with a private key, checked against the keys in a file.
//!
//! - `wire`, `armor`: SSH's binary form and its text. `key`: public keys and their checks. [`private`]: the key that
//!   signs. `sshsig`: the signature itself, as `ssh-keygen -Y sign` makes it. [`allowed`]: the allowed signers, as
//!   `ssh-keygen -Y verify` reads them. [`commit`]: the signature in a commit's header. [`of_status`]: the signature
//!   of a status. [`plain`], `pem`: signatures and keys in cosign's form, for artifacts.
//!
//! Pure: moments are arguments, and files are read elsewhere. Anything that berth cannot read is not valid.

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

/// SSH's namespace for signatures of commits and tags.
pub(crate) const GIT: &str = "git";

#[cfg(test)]
mod tests;
