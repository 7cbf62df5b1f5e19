//! A publication → the statement that says where its artifacts come from, in the form of SLSA's provenance.
//!
//! - [`publication`]: the folders that a commit of the rendered branch changed. [`provenance`]: the inputs of the commit,
//!   as a predicate. [`attestor`]: artifacts signed, with their statements beside them. [`checked`]: a statement held
//!   against the commit that it names. [`artifact_proof`]: an artifact, its statement and the commit, held together.
//!
//! All of it is a function of the commit, but for the program that made it and the address of its source. So anybody who
//! has the branch can make the statement again.

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
