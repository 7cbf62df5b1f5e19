//! Signatures and provenance of artifacts, in the forms that cosign, Flux and others check.
//!
//! - [`simple`]: the signature in cosign's older form, under its own tag. [`dsse`]: signed envelopes. [`bundle`]: an
//!   envelope in sigstore's form. [`statement`]: the in-toto statement inside, about the origin of artifacts.
//!   [`attach`]: stores all of them in a registry, next to their artifact.
//!
//! Nothing of an envelope is used before its signature is verified.

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
