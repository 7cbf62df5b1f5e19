//! Signatures and provenance of artifacts, in the forms that cosign, Flux and others check.
//!
//! - [`simple`]: the signature in cosign's older form, under a tag of its own. [`dsse`]: signed envelopes.
//!   [`bundle`]: an envelope as sigstore's tools store it. [`statement`]: the statement of in-toto inside it, which says
//!   where artifacts come from. [`attach`]: all of them in a registry, beside their artifact.
//!
//! Nothing of an envelope is read before its signature fits.

pub mod attach;
pub mod bundle;
pub mod dsse;
mod error;
pub mod simple;
pub mod statement;

pub use error::SigningError;
pub use statement::{Statement, Subject};

#[cfg(test)]
mod tests;
