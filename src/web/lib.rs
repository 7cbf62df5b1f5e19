//! HTTP clients with limits of time, which trust what the machine trusts and follow no redirect by themselves.
//!
//! - [`agent`]: a client for one address. [`Roots`]: the authorities that it trusts. [`Secret`]: text that nothing prints.

use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ureq::http::Uri;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Proxy};

/// The time for a connection, and for each part of an answer.
const STALL: Duration = Duration::from_secs(30);

/// The authorities that a client trusts to sign certificates.
#[derive(Clone, Debug)]
pub struct Roots(RootCerts);

impl Default for Roots {
    /// Those of the system, or of `SSL_CERT_FILE`, as kube takes them.
    fn default() -> Roots {
        Roots(RootCerts::PlatformVerifier)
    }
}

impl Roots {
    /// Trusts the authorities in a file, and no others.
    pub fn of_file(path: &Path) -> Result<Roots, String> {
        let name = path.display();
        let text = std::fs::read(path).map_err(|error| format!("`{name}` cannot be read: {error}"))?;
        let certificates = parse_pem(&text).filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        });
        let certificates: Vec<_> = certificates.collect();
        if certificates.is_empty() {
            return Err(format!("`{name}` has no certificate in PEM format"));
        }
        Ok(Roots(RootCerts::new_with_certs(&certificates)))
    }
}

/// Makes a client for an address. A request with its answer takes at most `patience`.
pub fn agent(address: &str, patience: Duration, roots: &Roots) -> Agent {
    let tls = TlsConfig::builder()
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .root_certs(roots.0.clone())
        .build();
    let config = Agent::config_builder()
        .tls_config(tls)
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(proxy(address))
        .timeout_global(Some(patience))
        .timeout_connect(Some(STALL))
        .timeout_per_read(Some(STALL))
        .timeout_per_write(Some(STALL))
        .user_agent(concat!("berth/", env!("CARGO_PKG_VERSION")));
    config.build().new_agent()
}

/// Returns the proxy that the environment names. Nothing on this machine is behind it, as for Go's programs.
fn proxy(address: &str) -> Option<Proxy> {
    let uri = address.parse::<Uri>().ok()?;
    if is_local(uri.host()?) { None } else { Proxy::try_from_env() }
}

/// Reports whether a host is this machine.
pub fn is_local(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Text that no output may show.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a text that is kept from every output.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// Returns the text, for the request that needs it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_local() {
        for (host, local) in [
            ("localhost", true),
            ("127.0.0.1", true),
            ("127.9.9.9", true),
            ("[::1]", true),
            ("localhost.example.com", false),
            ("10.0.0.1", false),
            ("127.0.0.1.example.com", false),
        ] {
            assert_eq!(is_local(host), local, "{host}");
        }
    }

    #[test]
    fn a_file_without_a_certificate_is_no_authority() {
        let folder = std::env::temp_dir();
        assert!(
            Roots::of_file(&folder.join("berth-has-no-such-file")).unwrap_err().contains("cannot be read")
        );
        assert!(Roots::of_file(Path::new("/dev/null")).unwrap_err().contains("no certificate"));
    }

    #[test]
    fn no_secret_is_printed() {
        assert_eq!(format!("{:?}", Secret::new("s3cret")), "***");
    }
}
