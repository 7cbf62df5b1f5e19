//! The key by which pods access the repository: made once and then kept, with its public part for the forge, and the
//! pages of forges on which it is added.
//!
//! The private part is stored in a Secret of the cluster, or in a file that only its owner can read. It is never
//! printed.

use std::path::Path;

use serde_json::Value as Json;

use super::text_of;
use crate::install::{Install, Role, deploy_key_secret};
use crate::output::ui::Ui;
use crate::process::exit::CommandError;
use crate::process::files;
use berth_base::edit::objects;
use berth_base::text::base64;
use berth_git::deploy_key::DeployKey;
use berth_git::signature::Signer;
use berth_member::installer::{Applied, ClusterInstaller};

/// The file with the private key. The kustomization omits it.
pub(super) const FILE: &str = "deploy-key.yaml";

/// The public part of a key, as a line of `authorized_keys`. `None` if the Secret contains another kind of key than
/// berth makes.
pub(super) type Public = Option<String>;

/// Returns the key in the folder's file. Makes both if they are missing.
pub(super) fn in_folder(install: &Install, secret: &str, dir: &Path) -> Result<Public, CommandError> {
    let path = dir.join(FILE);
    let text = |private: &str| text_of(&[], &[deploy_key_secret(install, secret, private)]);
    let Ok(before) = std::fs::read(&path) else {
        let key = generate(install)?;
        files::write_private(&path, text(&key.private))?;
        // In a Git repository, the key must not be committed.
        let ignore = dir.join(".gitignore");
        if ignore.symlink_metadata().is_err() {
            files::write_new(&ignore, format!("{FILE}\n"))?;
        }
        return Ok(Some(line(install, &key.public)));
    };
    let found = objects(&before).found;
    let stored = found.iter().find_map(|found| {
        found.node.to_json().pointer("/stringData/key").and_then(Json::as_str).map(str::to_owned)
    });
    match stored.filter(|private| text(private).as_bytes() == before) {
        Some(private) => Ok(public(install, &private)),
        None => {
            let error =
                CommandError::usage(format!("{} does not hold the key of this installation", path.display()));
            Err(error.hint("move it, or name another folder; nothing was written to it"))
        }
    }
}

/// Returns the key in the cluster's Secret, and the effect on the Secret. Makes both if they are missing.
pub(super) fn in_cluster(
    install: &Install,
    secret: &str,
    cluster: &ClusterInstaller,
) -> Result<(Public, Applied, Json), CommandError> {
    let object = deploy_key_secret(install, secret, "");
    let mut live = cluster.get(&object)?;
    let mut done = Applied::Unchanged;
    if live.is_none() {
        let key = generate(install)?;
        done = cluster.create(&deploy_key_secret(install, secret, &key.private))?;
        if done == Applied::Created {
            return Ok((Some(line(install, &key.public)), done, object));
        }
        // Somebody else created the Secret first.
        live = cluster.get(&object)?;
    }
    let encoded = live.as_ref().and_then(|live| live.pointer("/data/key")?.as_str());
    let decoded = encoded.and_then(base64::decode_exactly).and_then(|bytes| String::from_utf8(bytes).ok());
    let Some(private) = decoded else {
        let error = CommandError::usage(format!("the Secret {}/{secret} has no `key`", install.namespace));
        return Err(error.hint("remove the Secret, or name another one with --git-secret"));
    };
    Ok((public(install, &private), done, object))
}

fn generate(install: &Install) -> Result<DeployKey, CommandError> {
    let none = || CommandError::usage("no key can be made: the system gives no random numbers");
    DeployKey::generate(&comment(install)).ok_or_else(none)
}

fn public(install: &Install, private: &str) -> Public {
    Some(line(install, Signer::read(private).ok()?.public()))
}

fn line(install: &Install, public: &berth_git::signature::PublicKey) -> String {
    format!("{} {}", public.line(), comment(install))
}

/// Returns the comment that identifies the key at the forge.
fn comment(install: &Install) -> String {
    match &install.role {
        Role::Hub(_) => format!("{}/{}", install.namespace, install.name),
        Role::Member(member) => format!("{}/{}@{}", install.namespace, install.name, member.cluster),
    }
}

/// Prints the public key, and the steps to add it.
pub(super) fn print_steps(install: &Install, public: &Public, ui: &Ui) {
    let Some(public) = public else {
        return ui.status("the Secret has a key that berth did not make: see that the forge knows it");
    };
    let why = match &install.role {
        Role::Hub(_) => "with the right to write: the daemon publishes",
        Role::Member(_) => {
            "with the right to write, so that it can report; without, it syncs and does not report"
        }
    };
    ui.out(&format!("\nadd this deploy key to the repository, {why}:\n\n{public}\n"));
    for line in places(&install.remote.url) {
        ui.out(&line);
    }
}

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
