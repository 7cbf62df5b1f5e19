//! A repository of charts: an `index.yaml`, and archives at the addresses in it.

use std::collections::BTreeMap;

use berth_http::client::{
    self, Client, ClientError, PATIENCE, Request, Roots, StatusCode, Uri, header, is_local, short_line,
};
use serde::Deserialize;

use crate::VendorError;
use crate::chart::{Archive, LONGEST_ARCHIVE, digest_of, newest, no_version, unknown_version};

const LONGEST_INDEX: u64 = 32 << 20;
const MOST_REDIRECTS: usize = 5;
/// The characters of an address that an error shows.
const SHOWN: usize = 200;

pub(crate) struct ChartRepository<'a> {
    address: &'a str,
    roots: &'a Roots,
    /// Allows http to other machines.
    plain: bool,
}

/// The part of an index that is read.
#[derive(Deserialize)]
struct Index {
    #[serde(default)]
    entries: BTreeMap<String, Vec<IndexEntry>>,
}

#[derive(Deserialize)]
struct IndexEntry {
    version: String,
    #[serde(default)]
    urls: Vec<String>,
    /// SHA-256 of the archive, in hex.
    #[serde(default)]
    digest: Option<String>,
}

impl ChartRepository<'_> {
    pub fn new<'a>(address: &'a str, roots: &'a Roots, plain: bool) -> ChartRepository<'a> {
        ChartRepository { address, roots, plain }
    }

    /// Fetches the archive of a chart, of the newest version unless one is named.
    pub fn archive(&self, name: &str, version: Option<&str>) -> Result<Archive, VendorError> {
        let shown = format!("{}/{name}", self.address);
        let at = format!("{}/index.yaml", self.address);
        let index: Index = serde_yaml::from_slice(&self.get(&at, LONGEST_INDEX)?)
            .map_err(|error| VendorError::server(format!("{at} is no index of charts: {error}")))?;
        let Some(entries) = index.entries.get(name) else {
            let near = berth_base::diag::did_you_mean(name, index.entries.keys().map(String::as_str));
            let error = VendorError::wrong(format!("{} has no chart `{name}`", self.address));
            return Err(match near {
                Some(near) => error.or(near),
                None => error,
            });
        };
        let versions = || entries.iter().map(|entry| entry.version.as_str());
        let version = match version {
            Some(version) => version,
            None => newest(versions()).ok_or_else(|| no_version(&shown))?,
        };
        let entry = entries.iter().find(|entry| entry.version == version);
        let entry = entry.ok_or_else(|| unknown_version(&shown, version, versions()))?;
        let url = entry.urls.first();
        let url = url
            .ok_or_else(|| VendorError::server(format!("the index has no address for {shown} {version}")))?;
        let url = if url.contains("://") { url.clone() } else { format!("{}/{url}", self.address) };
        let bytes = self.get(&url, LONGEST_ARCHIVE)?;
        let digest = digest_of(&bytes);
        let expected = entry.digest.as_ref().map(|digest| digest.trim_start_matches("sha256:"));
        if expected.is_some_and(|expected| digest != format!("sha256:{expected}")) {
            let message = format!("the archive of {shown} {version} is another one than its index says");
            return Err(VendorError::server(message).or("somebody replaced it, or the index is old"));
        }
        Ok(Archive { bytes, version: version.to_owned(), digest })
    }

    /// Fetches a file, also after redirects. Nothing secret is sent.
    fn get(&self, address: &str, longest: u64) -> Result<Vec<u8>, VendorError> {
        let begins_secure = self.address.starts_with("https://");
        let mut address = address.to_owned();
        for _ in 0..=MOST_REDIRECTS {
            // A query may have a token of its server.
            let shown = short_line(address.split('?').next().unwrap_or_default(), SHOWN);
            let failed = |error: ClientError| VendorError::server(format!("{shown}: {error}"));
            let uri: Uri =
                address.parse().map_err(|_| VendorError::server(format!("{shown} is no address")))?;
            let is_secure = uri.scheme_str() == Some("https");
            let is_permitted = !begins_secure && (self.plain || uri.host().is_some_and(is_local));
            if !is_secure && !is_permitted {
                let error = VendorError::wrong(format!("{shown} is not https"));
                return Err(error.or("`--registry-http` allows http, which others can read and change"));
            }
            let answer = Client::new(&address, self.roots).send(Request::get(&address), None, PATIENCE * 4);
            let answer = answer.map_err(failed)?;
            let status = answer.status();
            if status.is_redirection() {
                let next = answer.headers().get(header::LOCATION).and_then(|next| next.to_str().ok());
                let next = next.ok_or_else(|| VendorError::server(format!("{shown} leads nowhere")))?;
                address = absolute(&uri, next);
                continue;
            }
            return match status {
                StatusCode::OK => client::read(answer.into_body(), longest).map_err(failed),
                status => Err(VendorError::server(format!("{shown}: {status}"))),
            };
        }
        Err(VendorError::server(format!("{} has too many redirects", self.address)))
    }
}

/// Returns the address that a redirect of `from` means.
fn absolute(from: &Uri, to: &str) -> String {
    let origin = format!(
        "{}://{}",
        from.scheme_str().unwrap_or("https"),
        from.authority().map_or("", |one| one.as_str())
    );
    match to {
        to if to.contains("://") => to.to_owned(),
        to if to.starts_with("//") => format!("{}:{to}", from.scheme_str().unwrap_or("https")),
        to if to.starts_with('/') => format!("{origin}{to}"),
        to => {
            let folder = from.path().rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{origin}{folder}/{to}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_may_be_relative() {
        let from: Uri = "https://a.example.com/x/index.yaml".parse().unwrap();
        for (to, expected) in [
            ("https://b.example.com/y", "https://b.example.com/y"),
            ("//b.example.com/y", "https://b.example.com/y"),
            ("/y", "https://a.example.com/y"),
            ("y.tgz", "https://a.example.com/x/y.tgz"),
        ] {
            assert_eq!(absolute(&from, to), expected);
        }
    }
}
