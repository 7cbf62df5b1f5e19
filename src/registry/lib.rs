//! Container registries as another transport from hub to members: the clusters' folders as artifacts.
//!
//! ```text
//! cluster ref ── publish ──▶ blobs ▶ manifest ▶ signatures ▶ seq-<n> ▶ current ▶ member      each tag moves last
//!                                                                │          │
//!                                   Flux, Argo CD, Config Sync ◀─┴──────────┘          follow ──▶ the member's repository
//! ```
//!
//! - [`address`]: the registry, and each cluster's repository. [`reference`]: one artifact's name. [`credentials`]:
//!   logins to registries.
//! - [`client`]: the API of a registry. [`error`]: its failures.
//! - [`artifact`]: packs and unpacks folders. [`pointer`]: the manifest that berth's own members follow.
//! - [`signing`]: signatures and statements beside artifacts.
//! - [`publish`]: publishes cluster refs as artifacts. [`transport`]: fetches a pointer's folder as Git objects.

pub mod address;
pub mod artifact;
pub mod client;
pub mod credentials;
pub mod error;
pub mod pointer;
pub mod publish;
pub mod reference;
pub mod signing;
pub mod transport;

pub use address::RegistryUrl;
pub use artifact::unpack;
pub use client::{Access, Digest, Registry, Repository};
pub use credentials::Credentials;
pub use error::RegistryError;
pub use reference::ArtifactReference;
pub use transport::RegistryTransport;

#[cfg(test)]
#[path = "../git/testing.rs"]
mod testing;
