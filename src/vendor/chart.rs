//! A chart's address and version → its files, from a container registry or a repository of charts.

use berth_base::diag::did_you_mean;
use berth_git::{EntryKind, Repo, TreeId};
use berth_http::client::Roots;
use berth_registry::client::{Manifest, Registry};
use berth_registry::{Access, Digest, RegistryUrl, unpack};
use semver::Version;
use serde::Deserialize;

use crate::lock::LONGEST_FILE;
use crate::repository::ChartRepository;
use crate::{Fetched, Origin, VendorError};

const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
const CONTENT: [&str; 2] = ["application/vnd.cncf.helm.chart.content.v1.tar+gzip", "application/tar+gzip"];

/// The longest archive of a chart.
pub(crate) const LONGEST_ARCHIVE: u64 = 50 << 20;

const FORM: &str = "write `oci://registry.example.com/charts/web`, or `https://charts.example.com/web` for the chart `web` of a repository";

/// The address of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChartAddress {
    Registry(RegistryUrl),
    /// A repository with an `index.yaml`, and the chart's name there.
    Repository {
        repository: String,
        name: String,
    },
}

/// The archive of a chart.
pub(crate) struct Archive {
    pub bytes: Vec<u8>,
    pub version: String,
    pub digest: String,
}

/// The file that makes a folder a chart.
const CHART_FILE: &str = "Chart.yaml";

/// The part of that file that is checked.
#[derive(Deserialize)]
struct ChartFile {
    name: String,
    version: String,
}

impl ChartAddress {
    pub fn parse(text: &str) -> Result<ChartAddress, VendorError> {
        if RegistryUrl::is_one(text) {
            return Ok(ChartAddress::Registry(RegistryUrl::parse(text)?));
        }
        let refuse = |why: &str| VendorError::wrong(format!("the address of the chart {why}")).or(FORM);
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let rest = rest.ok_or_else(|| refuse("begins with neither `oci://` nor `https://`"))?;
        if rest.contains(['@', '?', '#']) {
            return Err(refuse("has more than a host and a path"));
        }
        let (repository, name) = text.trim_end_matches('/').rsplit_once('/').unwrap_or_default();
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if !rest.contains('/') || name.is_empty() || !name.chars().all(is_name) {
            return Err(refuse("does not end with the name of a chart"));
        }
        Ok(ChartAddress::Repository { repository: repository.to_owned(), name: name.to_owned() })
    }
}

impl std::fmt::Display for ChartAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ChartAddress::Registry(url) => write!(f, "{url}"),
            ChartAddress::Repository { repository, name } => write!(f, "{repository}/{name}"),
        }
    }
}

/// Fetches a chart of a version, or of the newest one, into a scratch repository.
pub fn fetch(
    scratch: &Repo,
    address: &ChartAddress,
    version: Option<&str>,
    access: &Access,
) -> Result<Fetched, VendorError> {
    let archive = match address {
        ChartAddress::Registry(url) => from_registry(&Registry::new(url, access), version)?,
        ChartAddress::Repository { repository, name } => {
            let roots: &Roots = &access.roots;
            ChartRepository::new(repository, roots, access.plain).archive(name, version)?
        }
    };
    let unfit = |why: String| VendorError::server(format!("{address} {}: {why}", archive.version));
    let whole = unpack(scratch, archive.bytes.as_slice()).map_err(|error| unfit(error.to_string()))?;
    let tree = match scratch.tree(whole)?.as_slice() {
        [one] => match one.kind {
            EntryKind::Folder(tree) => tree,
            _ => return Err(unfit("its archive has a file in place of a folder".to_owned())),
        },
        _ => return Err(unfit("its archive must have one folder, the chart's".to_owned())),
    };
    let file = chart_file(scratch, tree).map_err(unfit)?;
    if file.version != archive.version {
        return Err(unfit(format!("its Chart.yaml is that of {} {}", file.name, file.version)));
    }
    // The names of the paths are checked once, before anything is kept.
    crate::folder::files(scratch, tree)?;
    let origin = Origin::Chart {
        chart: address.to_string(),
        version: archive.version.clone(),
        digest: archive.digest.clone(),
    };
    Ok(Fetched { tree, origin })
}

fn chart_file(repo: &Repo, tree: TreeId) -> Result<ChartFile, String> {
    let found = repo.entry_at(tree, CHART_FILE).map_err(|error| error.to_string())?;
    let Some(EntryKind::File(id)) = found else { return Err("it has no Chart.yaml".to_owned()) };
    let bytes = repo.blob(id).map_err(|error| error.to_string())?;
    if bytes.len() > LONGEST_FILE {
        return Err(format!("its Chart.yaml has more than {LONGEST_FILE} bytes"));
    }
    serde_yaml::from_slice(&bytes).map_err(|error| format!("its Chart.yaml: {error}"))
}

fn from_registry(registry: &Registry, version: Option<&str>) -> Result<Archive, VendorError> {
    let shown = registry.url().to_string();
    let repository = registry.repository_named(registry.url().repository());
    // A tag has no `+`.
    let tag = |version: &str| version.replace('+', "_");
    let versions = || -> Result<Vec<String>, VendorError> {
        Ok(repository.tags()?.iter().map(|tag| tag.replace('_', "+")).collect())
    };
    let version = match version {
        Some(version) => version.to_owned(),
        None => {
            let tags = versions()?;
            newest(tags.iter().map(String::as_str)).ok_or_else(|| no_version(&shown))?.to_owned()
        }
    };
    let is_of_version = |c: char| c.is_ascii_alphanumeric() || ".-+_".contains(c);
    if version.is_empty() || !version.chars().all(is_of_version) {
        return Err(VendorError::wrong(format!("`{}` is no version", version.escape_debug())));
    }
    let Some(pulled) = repository.pull_manifest(&tag(&version))? else {
        let tags = versions()?;
        return Err(unknown_version(&shown, &version, tags.iter().map(String::as_str)));
    };
    let no_chart = || VendorError::server(format!("{shown} {version} is no chart of Helm"));
    let manifest: Manifest = serde_json::from_slice(&pulled.bytes).map_err(|_| no_chart())?;
    let layer = manifest.layers.iter().find(|layer| CONTENT.contains(&&*layer.media_type));
    let layer = layer.filter(|_| manifest.config.media_type == CONFIG).ok_or_else(no_chart)?;
    let bytes = repository.pull_blob(layer, LONGEST_ARCHIVE)?;
    Ok(Archive { bytes, version, digest: pulled.digest.to_string() })
}

/// Returns the digest of an archive.
pub(crate) fn digest_of(bytes: &[u8]) -> String {
    Digest::of(bytes).to_string()
}

/// Returns the newest version, and a version that is none of its own only if there is no other.
pub(crate) fn newest<'v>(versions: impl Iterator<Item = &'v str>) -> Option<&'v str> {
    let read = |text: &'v str| {
        let version = Version::parse(text.strip_prefix('v').unwrap_or(text)).ok()?;
        Some((version.pre.is_empty(), version, text))
    };
    versions.filter_map(read).max().map(|(.., text)| text)
}

pub(crate) fn no_version(shown: &str) -> VendorError {
    VendorError::server(format!("{shown} has no version")).or("is the name of the chart right?")
}

pub(crate) fn unknown_version<'v>(
    shown: &str,
    version: &str,
    known: impl Iterator<Item = &'v str> + Clone,
) -> VendorError {
    let Some(last) = newest(known.clone()) else { return no_version(shown) };
    let near = did_you_mean(version, known).map(|near| format!("{near} ")).unwrap_or_default();
    VendorError::wrong(format!("{shown} has no version {version}")).or(format!("{near}the newest is {last}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_chart() {
        let address = ChartAddress::parse("https://charts.example.com/stable/web/").unwrap();
        assert_eq!(address.to_string(), "https://charts.example.com/stable/web");
        assert_eq!(
            address,
            ChartAddress::Repository {
                repository: "https://charts.example.com/stable".to_owned(),
                name: "web".to_owned()
            }
        );
        assert!(matches!(
            ChartAddress::parse("oci://registry.example.com/web"),
            Ok(ChartAddress::Registry(_))
        ));
        for wrong in [
            "",
            "web",
            "ftp://charts.example.com/web",
            "https://charts.example.com",
            "https://",
            "https://user:secret@charts.example.com/web",
            "https://charts.example.com/web?token=secret",
            "https://charts.example.com/a b",
        ] {
            let error = ChartAddress::parse(wrong).unwrap_err();
            assert!(!error.to_string().contains("secret") && error.hint().is_some(), "{wrong}: {error}");
        }
    }

    #[test]
    fn the_newest_version_is_none_that_is_in_the_making() {
        let newest = |versions: &[&'static str]| newest(versions.iter().copied());
        assert_eq!(newest(&["1.9.0", "1.10.0", "2.0.0-rc.1", "latest"]), Some("1.10.0"));
        assert_eq!(newest(&["v0.1.0", "0.0.9"]), Some("v0.1.0"));
        assert_eq!(newest(&["1.0.0-a", "1.0.0-b"]), Some("1.0.0-b"));
        assert_eq!(newest(&["latest"]), None);
    }
}
