//! The flags of the program that applies a cluster's folder, and the address where it finds folders.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::appliers::{argocd, flux};
use crate::process::exit::{CommandError, refuse_flags};
use berth_base::meta::names::{is_dns_label, is_dns_subdomain};
use berth_base::model::Applier;
use berth_base::model::applier::{APPLIERS, ARGOCD, BERTH};
use berth_git::shared_refs::write_cluster_branch;
use berth_git::{CommitId, GitError, Repo, TreeId, Writer};
use berth_member::live::Access;
use berth_member::sync::ClusterFolder;
use berth_member::sync::backends::kube::neighbour::{ArgoCd, Flux, Neighbour, Revisions};
use berth_registry::{RegistryUrl, artifact};

/// The program that applies the folder
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Applier")]
pub(crate) struct ApplierArgs {
    /// Program that applies the folder. With any but berth, nothing is applied here: its status is reported, and objects are removed that it leaves for an approval
    #[arg(long, value_name = "PROGRAM", default_value = "berth", env = "BERTH_APPLIER", value_parser = applier())]
    applier: &'static Applier,
    /// The program's object for this folder, as NAMESPACE/NAME; default: the one that `berth join --applier` writes
    #[arg(long, value_name = "OBJECT", env = "BERTH_APPLIER_OBJECT", value_parser = object_name)]
    applier_object: Option<(String, String)>,
    /// Kubeconfig of the cluster that has the program's object, if it is another one: Argo CD's, for example
    #[arg(long, value_name = "FILE", env = "BERTH_APPLIER_KUBECONFIG")]
    applier_kubeconfig: Option<PathBuf>,
    /// The context in that kubeconfig, or else in the one of `--kubeconfig`
    #[arg(long, value_name = "NAME", env = "BERTH_APPLIER_CONTEXT")]
    applier_context: Option<String>,
}

impl ApplierArgs {
    /// Returns the program that applies the folder.
    pub fn program(&self) -> &'static Applier {
        self.applier
    }

    /// Returns another program that applies a cluster's folder. `None` for berth's own member.
    pub fn neighbour(&self, cluster: &str) -> Option<Box<dyn Neighbour>> {
        if *self.applier == BERTH {
            return None;
        }
        let is_argocd = *self.applier == ARGOCD;
        let usual = || match is_argocd {
            true => (argocd::NAMESPACE.to_owned(), argocd::name_of(cluster)),
            false => (flux::NAMESPACE.to_owned(), flux::name_of(cluster)),
        };
        let (namespace, name) = self.applier_object.clone().unwrap_or_else(usual);
        Some(match is_argocd {
            true => Box::new(ArgoCd { namespace, name }),
            false => Box::new(Flux { namespace, name }),
        })
    }

    /// Returns the access to the cluster with the program's object. `None` if that cluster is the target.
    pub fn record_access(&self, target: &Access) -> Option<Access> {
        if self.applier_kubeconfig.is_none() && self.applier_context.is_none() {
            return None;
        }
        let kubeconfig = self.applier_kubeconfig.clone().or_else(|| target.kubeconfig.clone());
        Some(Access { kubeconfig, context: self.applier_context.clone(), ..target.clone() })
    }

    /// Refuses flags that only berth's own member supports.
    pub fn refuse_with(&self, others: &[(&str, bool)]) -> Result<(), CommandError> {
        if *self.applier == BERTH {
            return Ok(());
        }
        let place = format!("where {} applies the folder", self.applier.name);
        refuse_flags(others, &place, "leave it out, or let berth apply the folder")
    }
}

/// Returns the revisions of a folder, one for each way of publishing it.
pub(crate) fn revisions(repo: PathBuf) -> Revisions {
    Box::new(move |folder: &ClusterFolder| {
        let tree: TreeId = folder.tree.parse().map_err(|()| format!("`{}` is no tree", folder.tree))?;
        let repo = Repo::open(&repo).map_err(|error| error.to_string())?;
        let branch = || -> Result<CommitId, GitError> {
            write_cluster_branch(&mut Writer::new(&repo)?, &folder.cluster, tree)
        };
        let branch = branch().map_err(|error| error.to_string())?;
        let mut revisions = vec![format!("sha1:{branch}")];
        // A folder that does not fit into an artifact is in no registry.
        if let Ok(artifact) = artifact::pack(&repo, tree, &folder.cluster) {
            revisions.push(artifact.digest().to_string());
        }
        Ok(revisions)
    })
}

/// Parses the name of a program.
pub(crate) fn applier() -> impl TypedValueParser<Value = &'static Applier> {
    let names = APPLIERS.into_iter().map(|applier| PossibleValue::new(applier.name));
    PossibleValuesParser::new(names).try_map(|name| Applier::named(&name).ok_or("no such program"))
}

pub(crate) fn object_name(text: &str) -> Result<(String, String), String> {
    match text.split_once('/') {
        Some((namespace, name)) if is_dns_label(namespace) && is_dns_subdomain(name) => {
            Ok((namespace.to_owned(), name.to_owned()))
        }
        _ => Err("write it as NAMESPACE/NAME".into()),
    }
}

/// The address where the folders of all clusters are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// The common prefix of the repositories in a registry.
    Registry(RegistryUrl),
    /// A Git repository.
    Git(String),
}

/// Reads the value of a flag.
pub(crate) fn address(flag: &str, url: &str) -> Result<Address, CommandError> {
    if url.contains('@') && !url.starts_with("ssh://") || url.contains("://") && has_password(url) {
        let error = CommandError::usage(format!("{flag} must not hold a name or a password"));
        return Err(error.hint("put them into a Secret of that cluster"));
    }
    if RegistryUrl::is_one(url) {
        return Ok(Address::Registry(RegistryUrl::parse(url)?));
    }
    if !["https://", "http://", "ssh://"].iter().any(|scheme| url.starts_with(scheme)) {
        let error =
            CommandError::usage(format!("{flag} `{url}` is no address that another program can read"));
        return Err(error.hint("begin it with oci://, https://, http:// or ssh://"));
    }
    Ok(Address::Git(url.to_owned()))
}

/// Reports whether an address has a password before its host.
fn has_password(url: &str) -> bool {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest).split('/').next().unwrap_or_default();
    host.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
}
