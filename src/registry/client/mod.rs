//! A registry's API, as OCI's distribution specification describes it. It blocks its caller.
//!
//! - [`http`]: one request with its login, within limits of time and size. [`login`]: tokens and passwords.
//! - [`blobs`], [`manifests`]: the content of a repository, its tags too, and manifests that refer to another.
//!
//! Every received byte is checked against the requested digest.

mod blobs;
mod http;
mod login;
mod manifests;

use std::sync::Arc;

use crate::address::RegistryUrl;
use crate::credentials::Credentials;
use crate::error::RegistryError;
use berth_http::client::Roots;

pub use blobs::Digest;
pub use blobs::Mounted;
pub use manifests::{Descriptor, Manifest, Pulled, media};

/// The access to a registry.
#[derive(Clone, Debug, Default)]
pub struct Access {
    pub credentials: Credentials,
    pub roots: Roots,
    /// Allows http, which others on the network can read and change. On this machine it is always allowed.
    pub plain: bool,
}

/// One registry. Its connections and tokens are shared by all users of it.
#[derive(Clone, Debug)]
pub struct Registry {
    http: Arc<http::Http>,
    url: RegistryUrl,
}

/// One repository of a registry.
#[derive(Clone, Debug)]
pub struct Repository {
    http: Arc<http::Http>,
    name: String,
}

impl Registry {
    /// Prepares access to a registry, without any request.
    pub fn new(url: &RegistryUrl, access: &Access) -> Registry {
        Registry { http: Arc::new(http::Http::new(url.host(), access)), url: url.clone() }
    }

    /// Returns the address, as messages may show it.
    pub fn url(&self) -> &RegistryUrl {
        &self.url
    }

    /// Returns a cluster's repository.
    pub fn repository_of(&self, cluster: &str) -> Repository {
        Repository { http: self.http.clone(), name: self.url.repository_of(cluster) }
    }
}

impl Registry {
    /// Returns the repository with this name.
    pub fn repository_named(&self, name: &str) -> Repository {
        Repository { http: self.http.clone(), name: name.to_owned() }
    }
}

impl Repository {
    /// Returns the name, without the host.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name with the host, in the notation of registry clients: `HOST/NAME`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.http.host(), self.name)
    }

    fn wrong(&self, what: &str, reason: impl Into<String>) -> RegistryError {
        self.http.wrong(&format!("{}{what}", self.name), &reason.into())
    }
}
