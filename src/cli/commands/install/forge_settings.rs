//! The pages of forges on which a deploy key is added.

/// One kind of forge.
struct Forge {
    name: &'static str,
    /// The public servers of this kind.
    hosts: &'static [&'static str],
    /// The path below the repository's page.
    page: &'static str,
    /// The checkbox that grants write access.
    right: &'static str,
}

const FORGES: [Forge; 3] = [
    Forge {
        name: "GitHub",
        hosts: &["github.com", "ssh.github.com"],
        page: "settings/keys/new",
        right: "Allow write access",
    },
    Forge {
        name: "GitLab",
        hosts: &["gitlab.com", "altssh.gitlab.com"],
        page: "-/settings/repository",
        right: "Grant write permissions to this key",
    },
    Forge {
        name: "Gitea, Forgejo",
        hosts: &["codeberg.org", "gitea.com"],
        page: "settings/keys",
        right: "Enable write access",
    },
];

/// Returns a line for each forge that the server may be: the page, and the checkbox.
pub(super) fn places(url: &str) -> Vec<String> {
    let Some((host, path)) = host_and_path(url) else { return Vec::new() };
    let known = FORGES.iter().find(|forge| forge.hosts.contains(&host.as_str()));
    let forges = known.map_or(&FORGES[..], std::slice::from_ref);
    let line = |forge: &Forge| {
        let (host, Forge { name, page, right, .. }) = (public_host(&host), forge);
        format!("  {name}: https://{host}/{path}/{page} (\"{right}\")")
    };
    forges.iter().map(line).collect()
}

/// Returns the host without user and port, and the path of the repository's page.
fn host_and_path(url: &str) -> Option<(String, String)> {
    let (authority, path) = match url.split_once("://") {
        Some((_, rest)) => rest.split_once('/')?,
        None => url.split_once(':')?,
    };
    let host = authority.rsplit('@').next()?;
    let host = match host.split_once(']') {
        Some((inside, _)) => format!("{inside}]"),
        None => host.split(':').next()?.to_owned(),
    };
    let path = path.trim_matches('/');
    Some((host, path.strip_suffix(".git").unwrap_or(path).to_owned()))
}

/// Returns the host of the web pages, if ssh has another one.
fn public_host(host: &str) -> &str {
    match host {
        "ssh.github.com" => "github.com",
        "altssh.gitlab.com" => "gitlab.com",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_follows_from_the_address() {
        for (url, said) in [
            (
                "git@github.com:team/fleet.git",
                "  GitHub: https://github.com/team/fleet/settings/keys/new (\"Allow write access\")",
            ),
            (
                "ssh://git@ssh.github.com:443/team/fleet.git",
                "  GitHub: https://github.com/team/fleet/settings/keys/new (\"Allow write access\")",
            ),
            (
                "ssh://git@gitlab.com/a/b/fleet",
                "  GitLab: https://gitlab.com/a/b/fleet/-/settings/repository (\"Grant write permissions to this key\")",
            ),
        ] {
            assert_eq!(places(url), [said], "{url}");
        }
        let unknown = places("ssh://git@[::1]:2222/team/fleet.git");
        assert_eq!(unknown.len(), 3);
        assert!(unknown[2].contains("https://[::1]/team/fleet/settings/keys"), "{unknown:?}");
    }
}
