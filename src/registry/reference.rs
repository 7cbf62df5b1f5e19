//! The name of one artifact: a cluster's repository with a tag or a digest, as users enter it.

use crate::address::{RegistryUrl, is_part};
use crate::client::Digest;
use crate::error::RegistryError;
use crate::pointer::CURRENT;

const FORM: &str = "write it as `oci://registry.example.com/fleet/clusters/oslo`, with `:TAG` or `@sha256:…` where another than the newest is meant";

/// A cluster's artifact: `oci://HOST/PREFIX/clusters/CLUSTER`, then `:TAG` or `@DIGEST`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactReference {
    /// The registry with the repositories of all clusters.
    pub registry: RegistryUrl,
    /// The name of the repository, without the host.
    pub repository: String,
    /// A tag or a digest.
    pub reference: String,
}

impl ArtifactReference {
    /// Reads a name.
    pub fn parse(text: &str) -> Result<ArtifactReference, RegistryError> {
        let refuse = |why: &str| RegistryError::Setting {
            message: format!("the name of the artifact is invalid: {why}"),
            hint: Some(FORM.to_owned()),
        };
        let (rest, reference) = match text.rsplit_once('@') {
            Some((rest, digest)) => {
                digest.parse::<Digest>().map_err(|()| refuse("what follows the `@` is not a digest"))?;
                (rest, digest.to_owned())
            }
            None => match text.rsplit_once(':') {
                Some((rest, tag)) if !tag.contains('/') => {
                    if !is_tag(tag) {
                        return Err(refuse("what follows the last colon is not a tag"));
                    }
                    (rest, tag.to_owned())
                }
                _ => (text, CURRENT.to_owned()),
            },
        };
        // Next to a digest, a tag is redundant.
        let rest = match rest.rsplit_once(':') {
            Some((before, tag)) if is_tag(tag) && before.contains("://") => before,
            _ => rest,
        };
        let (prefix, cluster) =
            rest.rsplit_once("/clusters/").ok_or_else(|| refuse("it is not below `/clusters/`"))?;
        if !is_part(cluster) {
            return Err(refuse("it names no repository of a cluster"));
        }
        let registry = RegistryUrl::parse(prefix)?;
        let repository = registry.repository_at(cluster);
        Ok(ArtifactReference { registry, repository, reference })
    }
}

fn is_tag(text: &str) -> bool {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    !text.is_empty() && text.len() <= 128 && text.chars().all(is_fit) && !text.starts_with(['.', '-'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_repository_and_a_tag_or_a_digest() {
        let digest = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
        for (text, reference) in [
            ("oci://r.example.com/fleet/clusters/oslo".to_owned(), "current"),
            ("oci://127.0.0.1:5000/a/b/clusters/oslo".to_owned(), "current"),
            ("oci://127.0.0.1:5000/a/b/clusters/oslo:seq-4".to_owned(), "seq-4"),
            (format!("oci://r/fleet/clusters/oslo@{digest}"), digest),
            (format!("oci://r/fleet/clusters/oslo:current@{digest}"), digest),
        ] {
            let read = ArtifactReference::parse(&text).unwrap();
            assert_eq!(read.reference, reference, "{text}");
            assert_eq!(read.repository, read.registry.repository_of("oslo"), "{text}");
        }
    }

    #[test]
    fn what_is_no_name_is_refused_and_no_password_is_shown() {
        for text in [
            "",
            "oci://",
            "oci://r/fleet",
            "oci://r/fleet/clusters/",
            "oci://r/fleet/clusters/Oslo",
            "oci://r/clusters/oslo",
            "oci://r/fleet/clusters/oslo:",
            "oci://r/fleet/clusters/oslo:a b",
            "oci://r/fleet/clusters/oslo@sha256:1",
            "r/fleet/clusters/oslo",
            "oci://r/fleet/clusters/../oslo",
            "oci://ann:s3cret@r/fleet/clusters/oslo",
        ] {
            let error = ArtifactReference::parse(text).unwrap_err();
            assert!(error.hint().is_some() && !error.to_string().contains("s3cret"), "{text}: {error}");
        }
    }
}
