//! Signatures and provenance of artifacts, in the forms that cosign, Flux and others check.
//!
//! - [`simple`]: the signature in cosign's older form, under its own tag. [`bundle`]: signed envelopes, and
//!   one in sigstore's form. [`statement`]: the in-toto statement inside, about the origin of artifacts.
//!   [`attach`]: stores all of them in a registry, next to their artifact.
//!
//! Nothing of an envelope is used before its signature is verified.

pub mod attach;
pub mod bundle;
pub mod simple;
pub mod statement;

pub use statement::{Statement, Subject};

/// A signature that cannot be made, or is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SigningError {
    #[error("there is no signature: {0}")]
    Unsigned(String),
    #[error("it has {bytes} bytes, more than the limit of {most}")]
    TooLong { bytes: usize, most: usize },
    #[error("{what} cannot be read: {why}")]
    Unreadable { what: &'static str, why: String },
    #[error("its signature is not by a trusted key, or its content was changed")]
    Untrusted,
    #[error("it is a signature of {other}")]
    OtherArtifact { other: String },
    #[error("it is a statement about other artifacts")]
    OtherSubjects,
    #[error("it is not a provenance, but a statement of the kind `{0}`")]
    NoProvenance(String),
}

impl SigningError {
    fn unreadable(what: &'static str, why: impl std::fmt::Display) -> SigningError {
        // A parser's message may contain foreign bytes.
        let why = berth_base::diag::harmless_line(&berth_base::text::cut(&why.to_string(), 200)).into_owned();
        SigningError::Unreadable { what, why }
    }

    /// Refuses bytes beyond the size limit.
    fn limit(bytes: &[u8], most: usize) -> Result<(), SigningError> {
        match bytes.len() {
            few if few <= most => Ok(()),
            bytes => Err(SigningError::TooLong { bytes, most }),
        }
    }
}

#[cfg(test)]
mod tests;
