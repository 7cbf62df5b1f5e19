//! Statements about the origin of a publication's artifacts, in the form of SLSA's provenance.
//!
//! - [`provenance`]: the folders that a commit of the rendered branch changed, and the inputs of the commit, as a
//!   predicate. [`attestor`]: signs artifacts and attaches statements. [`artifact_proof`]: compares an artifact, its
//!   statement and the commit.
//!
//! A statement depends only on the commit, apart from the program and the source's address. So anyone with the branch
//! can make the statement again.

pub mod artifact_proof;
pub mod attestor;
pub mod provenance;

pub use artifact_proof::{ArtifactProof, ArtifactProofError, Claim, prove_artifact};
pub use artifact_proof::{Mismatch, check, publication_of};
pub use attestor::{Attestor, statements_of};
pub use provenance::Origin;
pub use provenance::{Publication, folder_of};
