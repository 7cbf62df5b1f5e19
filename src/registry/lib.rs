//! Container registries as another way from hub to members: the clusters' folders as artifacts.
//!
//! ```text
//! cluster ref ── publish ──▶ blobs ▶ manifest ▶ signatures ▶ seq-<n> ▶ current ▶ member      each tag after what it names
//!                                                                │          │
//!                                   Flux, Argo CD, Config Sync ◀─┴──────────┘          follow ──▶ the member's repository
//! ```
//!
//! - [`address`]: the place, and each cluster's repository there. [`reference`]: one artifact's name.
//!   [`credentials`]: logins as registries have them.
//! - [`client`]: the API of a registry. [`error`]: its failures.
//! - [`artifact`]: a folder ↔ a layer. [`pointer`]: what berth's own members follow.
//! - [`signing`]: signatures and statements beside artifacts.
//! - [`publish`]: cluster refs → artifacts. [`follow`]: a pointer → Git objects, as a transport of Git's.

pub mod address;
pub mod artifact;
pub mod client;
pub mod credentials;
pub mod error;
pub mod follow;
pub mod pointer;
pub mod publish;
pub mod reference;
pub mod signing;

pub use address::RegistryUrl;
pub use client::{Access, Registry, Repository};
pub use credentials::Credentials;
pub use error::RegistryError;
pub use follow::RegistryTransport;
pub use reference::ArtifactReference;

#[cfg(test)]
#[path = "../git/testing.rs"]
mod testing;
