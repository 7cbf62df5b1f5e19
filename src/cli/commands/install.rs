//! The flags of `berth join --install`, and the manifests they lead to: for the kinds that a cluster gets.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::exit::CommandError;
use super::files;
use super::ui::Ui;
use super::working_tree::{Edit, WorkingTree};
use berth_base::meta::names::{is_dns_label, is_dns_subdomain};
use berth_base::yaml::emit;
use berth_git::Repo;
use berth_git::protocol::Refs;
use berth_git::transport::RemoteUrl;
use berth_git::transport::remote::shows_password;
use berth_member::install::{FILES, File, Install, Overrides, Remote, Resource, files as manifests};
use berth_member::sync::backends::kube::record_name;
use berth_member::sync::cluster_folder::{self, FolderError};
use berth_member::sync::desired;
use berth_member::sync::override_objects::OverrideObjects;

/// The first line of each file. Only files that begin with it are overwritten.
const MARK: &str = "# Made by berth join --install";

/// The manifests that run a syncer in the member's own cluster
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Install")]
pub(crate) struct InstallArgs {
    /// Also write the manifests that run its syncer in its own cluster into this folder; `-` prints them
    ///
    /// A cluster that is already in the inventory stays unchanged there. Files of an earlier run are replaced.
    #[arg(long, value_name = "DIR|-")]
    install: Option<PathBuf>,
    /// Address of the rendered branch's repository, as the syncer reaches it: `https://…` or ssh
    #[arg(long, value_name = "URL", requires = "install")]
    remote: Option<String>,
    /// Secret with the credentials for the repository: `token`, or `key` and `known_hosts` for ssh; empty for none
    #[arg(long, value_name = "NAME", default_value = "berth-git", requires = "install")]
    git_secret: String,
    /// Say that this Secret also holds `ca.crt`, the authority of the Git server
    #[arg(long, requires = "install")]
    git_ca: bool,
    /// Image with berth in it
    #[arg(long, value_name = "IMAGE", default_value = concat!("berth:", env!("CARGO_PKG_VERSION")), requires = "install")]
    image: String,
    /// Namespace for the syncer and its records
    #[arg(long, value_name = "NAMESPACE", default_value = "berth-system", requires = "install")]
    namespace: String,
    /// The fleet's name, as `berth sync --fleet` takes it
    #[arg(long, value_name = "NAME", default_value = "fleet", requires = "install")]
    fleet: String,
    /// Kinds that the syncer may write, such as `configmaps,deployments.apps`; default: those of its folder
    #[arg(long, value_name = "KINDS", value_delimiter = ',', requires = "install")]
    kinds: Vec<String>,
    /// Let the syncer apply roles and bindings with rights that it lacks itself
    #[arg(long, requires = "install", conflicts_with = "tenant_service_account")]
    allow_escalation: bool,
    /// Apply the objects of each namespace as this account there, as `berth sync --tenant-service-account` does
    #[arg(long, value_name = "NAME", requires = "install")]
    tenant_service_account: Option<String>,
    /// Source of local overrides, as in `berth sync --overrides-from`; repeatable
    #[arg(long, value_name = "SOURCE", value_delimiter = ',', requires = "install")]
    overrides_from: Vec<OverrideObjects>,
    /// Also limit the syncer to the connections that it needs
    #[arg(long, requires = "install")]
    network_policy: bool,
}

/// The destination of manifests.
#[derive(Clone, Copy, Debug)]
enum Place<'a> {
    Folder(&'a Path),
    Stdout,
}

impl InstallArgs {
    pub fn is_wanted(&self) -> bool {
        self.install.is_some()
    }

    /// Reports whether the manifests go to stdout, where nothing else may be printed.
    pub(crate) fn is_printed(&self) -> bool {
        matches!(self.place(), Some(Place::Stdout))
    }

    fn place(&self) -> Option<Place<'_>> {
        let path = self.install.as_deref()?;
        Some(if path == Path::new("-") { Place::Stdout } else { Place::Folder(path) })
    }

    /// Refuses flags that can lead to no manifests, before anything is written.
    pub fn check(&self) -> Result<(), CommandError> {
        if self.is_wanted() {
            self.remote()?;
            refuse("--namespace", &self.namespace, is_dns_label(&self.namespace))?;
            let secret = self.git_secret.is_empty() || is_dns_subdomain(&self.git_secret);
            refuse("--git-secret", &self.git_secret, secret)?;
            if let Some(account) = &self.tenant_service_account {
                refuse("--tenant-service-account", account, is_dns_subdomain(account))?;
            }
        }
        Ok(())
    }

    /// Makes the manifests of a cluster in the tree as it will be with these edits.
    pub fn make(
        &self,
        cluster: &str,
        tree: &WorkingTree,
        repo: &Path,
        edits: &[Edit],
    ) -> Result<Install, CommandError> {
        let overrides = self.overrides_from.iter().map(|from| Overrides {
            text: from.to_string(),
            plural: from.plural().to_owned(),
            name: from.name().map(str::to_owned),
        });
        Ok(Install {
            cluster: cluster.to_owned(),
            fleet: self.fleet.clone(),
            name: record_name(&self.fleet),
            namespace: self.namespace.clone(),
            image: self.image.clone(),
            remote: self.remote()?,
            kinds: self.resources(cluster, tree, repo, edits)?,
            escalate: self.allow_escalation,
            tenant_account: self.tenant_service_account.clone(),
            overrides: overrides.collect(),
            network_policy: self.network_policy,
        })
    }

    fn remote(&self) -> Result<Remote, CommandError> {
        let Some(url) = &self.remote else {
            let error = CommandError::usage("--install needs --remote");
            return Err(error.hint(
                "give the address of the rendered branch's repository, as the cluster \
                                   reaches it",
            ));
        };
        if shows_password(url) {
            return Err(CommandError::usage("a manifest must not hold a password")
                .hint("put it into the Secret that `--git-secret` names"));
        }
        RemoteUrl::parse(url, false)?;
        let ssh = !url.contains("://") && !url.starts_with('/') || url.starts_with("ssh://");
        if !ssh && !url.starts_with("https://") {
            let error = CommandError::usage(format!("`{url}` is not an address that a pod can reach"));
            return Err(
                error.hint("write it as `https://host/path`, `ssh://user@host/path` or `user@host:path`")
            );
        }
        let authority = url.split_once("://").and_then(|(_, rest)| rest.split('/').next());
        let port = authority.and_then(|it| it.rsplit_once(':')?.1.parse().ok());
        let secret = Some(self.git_secret.clone()).filter(|name| !name.is_empty());
        Ok(Remote { url: url.clone(), port, secret, ssh, own_authority: self.git_ca })
    }

    /// The kinds it works on: those named, or those of its folder as it is published and as it will be.
    fn resources(
        &self,
        cluster: &str,
        tree: &WorkingTree,
        repo: &Path,
        edits: &[Edit],
    ) -> Result<BTreeSet<Resource>, CommandError> {
        let (_, known) = tree.types();
        let resource = |(group, plural): (&str, &str)| Resource {
            group: group.to_owned(),
            plural: plural.to_lowercase(),
        };
        if !self.kinds.is_empty() {
            let named = self.kinds.iter().map(|name| match known.called(name).first() {
                Some(known) => resource((&known.group, &known.plural)),
                None => {
                    let (plural, group) = name.split_once('.').unwrap_or((name, ""));
                    resource((group, plural))
                }
            });
            return Ok(named.collect());
        }
        let mut kinds = tree.kinds_of(cluster, edits)?;
        kinds.extend(published(repo, cluster)?);
        let plural = |(group, kind): &(String, String)| match known.of_kind(group, kind) {
            Some(known) => resource((group, &known.plural)),
            None => resource((group, &berth_engine::dialects::kubefed::make::plural_of(kind))),
        };
        Ok(kinds.iter().map(plural).collect())
    }

    /// Writes the manifests, or prints them.
    pub fn write(&self, install: &Install, ui: &Ui) -> Result<(), CommandError> {
        let files = manifests(install);
        match self.place() {
            None => {}
            Some(Place::Stdout) => {
                let texts: Vec<String> = files.iter().map(text_of).collect();
                ui.out(&texts.join("---\n"));
            }
            Some(Place::Folder(folder)) => {
                for name in FILES {
                    let path = folder.join(name);
                    match files.iter().find(|file| file.name == name) {
                        Some(file) => put(&path, &text_of(file))?,
                        None => clear(&path)?,
                    }
                }
                let apply = format!("kubectl apply -f {}", folder.display());
                ui.status(&format!("the syncer's manifests are in {}: {apply}", folder.display()));
            }
        }
        for file in &files {
            for line in &file.about {
                ui.status(line);
            }
        }
        Ok(())
    }
}

fn refuse(flag: &str, name: &str, fits: bool) -> Result<(), CommandError> {
    if fits {
        return Ok(());
    }
    let error = CommandError::usage(format!("{flag} `{name}` is not a valid name"));
    Err(error.hint("use lower-case letters, digits and dashes"))
}

/// The kinds in the folder that is published for the cluster, if one is: what is there may have to go.
fn published(repo: &Path, cluster: &str) -> Result<BTreeSet<(String, String)>, CommandError> {
    let Ok(repo) = Repo::open(repo) else { return Ok(BTreeSet::new()) };
    match cluster_folder::fetch(&repo, &Refs::default(), cluster) {
        Ok(fetched) => {
            let objects = desired::read(&fetched).objects;
            Ok(objects.into_keys().map(|id| (id.group.to_string(), id.kind.to_string())).collect())
        }
        Err(FolderError::NoFolder { .. }) => Ok(BTreeSet::new()),
        Err(error) => Err(CommandError::from(error)),
    }
}

fn text_of(file: &File) -> String {
    let head: String = std::iter::once(MARK.to_owned())
        .chain(file.about.iter().map(|line| format!("# {line}")))
        .map(|line| line + "\n")
        .collect();
    let objects: Vec<String> = file.objects.iter().map(emit).collect();
    head + &objects.join("---\n")
}

/// Writes a file that is new, or was made so before.
fn put(path: &Path, text: &str) -> Result<(), CommandError> {
    match std::fs::read(path) {
        Ok(before) if before == text.as_bytes() => Ok(()),
        Ok(before) if before.starts_with(MARK.as_bytes()) => files::replace(path, &before, text),
        Ok(_) => Err(files::already_there(path)),
        Err(_) => files::write_new(path, text),
    }
}

fn clear(path: &Path) -> Result<(), CommandError> {
    match std::fs::read(path) {
        Ok(before) if before.starts_with(MARK.as_bytes()) => files::delete(path, &before),
        _ => Ok(()),
    }
}
