//! Statements about the origin of a publication's artifacts, in the form of SLSA's provenance.
//!
//! - [`publication`]: the folders that a commit of the rendered branch changed. [`provenance`]: the inputs of the
//!   commit, as a predicate. [`attestor`]: signs artifacts and attaches statements. [`checked`]: compares a statement
//!   with its commit. [`artifact_proof`]: compares an artifact, its statement and the commit.
//!
//! A statement depends only on the commit, apart from the program and the source's address. So anyone with the branch
//! can make the statement again.

pub mod artifact_proof;
pub mod attestor;
pub mod checked;
pub mod provenance;
pub mod publication;

pub use artifact_proof::{ArtifactProof, ArtifactProofError, Claim, prove_artifact};
pub use attestor::{Attestor, statements_of};
pub use checked::{Mismatch, check, publication_of};
pub use provenance::Origin;
pub use publication::{Publication, folder_of};
