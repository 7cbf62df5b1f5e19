//! HTTP clients with time limits. They trust the machine's certificate authorities and follow no redirects.
//!
//! A request is retried while the server is busy or unreachable. A web server's clock is read from the date
//! of its answers.

use std::io::Read as _;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Proxy};

use berth_base::backoff::{Backoff, chance};
use berth_base::diag::harmless_line;
use berth_base::model::Timestamp;

pub use ureq::http::request::Builder;
pub use ureq::http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri, header};
pub use ureq::{Body, BodyReader};

/// The usual time limit of a request with its answer.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// The time limit of a connection, and of each part of an answer.
const STALL: Duration = Duration::from_secs(30);

/// The trusted certificate authorities.
#[derive(Clone, Debug)]
pub struct Roots(RootCerts);

impl Default for Roots {
    /// Trusts the system's authorities, or those in `SSL_CERT_FILE`, as kube does.
    fn default() -> Roots {
        Roots(RootCerts::PlatformVerifier)
    }
}

impl Roots {
    /// Trusts only the authorities in a file.
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

/// A request that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// An address or a header is malformed.
    #[error("{0}")]
    Malformed(String),
    #[error("{0}")]
    Unreachable(String),
    #[error("more than {0} bytes")]
    TooLong(u64),
}

/// A client for one address. It blocks its caller.
#[derive(Clone, Debug)]
pub struct Client(Agent);

impl Client {
    /// Makes a client for an address, without connecting.
    pub fn new(address: &str, roots: &Roots) -> Client {
        let tls = TlsConfig::builder()
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .root_certs(roots.0.clone())
            .build();
        let config = Agent::config_builder()
            .tls_config(tls)
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(proxy(address))
            .timeout_connect(Some(STALL))
            .timeout_per_read(Some(STALL))
            .timeout_per_write(Some(STALL))
            .user_agent(concat!("berth/", env!("CARGO_PKG_VERSION")));
        Client(config.build().new_agent())
    }

    /// Sends a request. The answer with its body must arrive within `patience`.
    pub fn send(
        &self,
        request: Builder,
        body: Option<&[u8]>,
        patience: Duration,
    ) -> Result<Response<Body>, ClientError> {
        let malformed = |error: ureq::http::Error| ClientError::Malformed(error.to_string());
        let answer = match body {
            None => {
                let request = request.body(()).map_err(malformed)?;
                self.0.run(self.0.configure_request(request).timeout_global(Some(patience)).build())
            }
            Some(body) => {
                let request = request.body(body).map_err(malformed)?;
                self.0.run(self.0.configure_request(request).timeout_global(Some(patience)).build())
            }
        };
        answer.map_err(|error| ClientError::Unreachable(error.to_string()))
    }
}

/// Reads a body to its end.
pub fn read(body: Body, longest: u64) -> Result<Vec<u8>, ClientError> {
    let mut bytes = Vec::new();
    let read = reader(body).take(longest.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| ClientError::Unreachable(error.to_string()))?;
    if bytes.len() as u64 > longest { Err(ClientError::TooLong(longest)) } else { Ok(bytes) }
}

/// Returns a reader of a body as it arrives. The caller limits its length.
pub fn reader(body: Body) -> BodyReader<'static> {
    body.into_with_config().limit(u64::MAX).reader()
}

/// Returns the pause that a busy server asks for.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// Makes one harmless line of limited length from a foreign text.
pub fn short_line(text: &str, most: usize) -> String {
    harmless_line(&text.chars().take(most).collect::<String>()).into_owned()
}

/// Returns the proxy from the environment. This machine's own servers are never behind it, as in Go programs.
fn proxy(address: &str) -> Option<Proxy> {
    let uri = address.parse::<Uri>().ok()?;
    if is_local(uri.host()?) { None } else { Proxy::try_from_env() }
}

/// Reports whether a host is this machine.
pub fn is_local(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The pauses between two attempts, if the server names none.
pub const PAUSES: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(8));

const TRIES: u32 = 4;
/// The longest pause that a server may ask for. In a CI run, a longer wait would cost more than the message is worth.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The next step after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The failure is final.
    Never,
    Soon,
    /// The server asks for this pause.
    After(Duration),
}

impl Retry {
    /// Returns the retry of a request that a busy server refused, with the pause that it asked for.
    pub fn of_busy(pause: Option<Duration>) -> Retry {
        pause.map_or(Retry::Soon, Retry::After)
    }
}

/// Tries a request several times, as long as its failures are temporary.
pub fn with_retries<T, E>(
    pauses: Backoff,
    attempt: impl Fn() -> Result<T, E>,
    retry: impl Fn(&E) -> Retry,
) -> Result<T, E> {
    let mut failures = 0;
    loop {
        let error = match attempt() {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        failures += 1;
        let pause = match retry(&error) {
            Retry::Never => return Err(error),
            Retry::Soon => pauses.jittered(failures, chance()),
            Retry::After(pause) => pause,
        };
        if failures >= TRIES || pause > LONGEST_PAUSE {
            return Err(error);
        }
        std::thread::sleep(pause);
    }
}

/// Asks a server for its time, without credentials. `None` if the answer has no readable date.
pub fn server_time(url: &str) -> Option<Timestamp> {
    let answer = Client::new(url, &Roots::default()).send(Request::head(url), None, PATIENCE).ok()?;
    read_date(answer.headers().get("date")?.to_str().ok()?)
}

/// Reads a date in HTTP's format: `Sun, 06 Nov 1994 08:49:37 GMT`.
fn read_date(date: &str) -> Option<Timestamp> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let [_, day, month, year, time, "GMT"] = date.split(' ').collect::<Vec<_>>()[..] else { return None };
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    format!("{year}-{month:02}-{day}T{time}Z").parse().ok()
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
    fn the_date_of_an_answer_is_a_moment() {
        let moment = "1994-11-06T08:49:37Z".parse().ok();
        assert_eq!(read_date("Sun, 06 Nov 1994 08:49:37 GMT"), moment);
        for odd in ["", "Sun, 06 Nov 1994 08:49:37 CET", "Sunday, 06-Nov-94 08:49:37 GMT", "x y z"] {
            assert_eq!(read_date(odd), None, "{odd}");
        }
    }
}
