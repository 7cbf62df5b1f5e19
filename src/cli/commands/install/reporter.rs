//! The flags of a member whose folder another program applies.

use super::common::fits;
use crate::appliers::{argocd, flux};
use crate::flags::applier::{applier, object_name};
use crate::install::{Read, Reporter, Resource};
use crate::process::exit::{CommandError, refuse_flags};
use berth_base::meta::names::is_dns_subdomain;
use berth_base::model::Applier;
use berth_base::model::applier::{ARGOCD, BERTH};

/// The flags of a reporter.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Applier")]
pub(super) struct ReporterFlags {
    /// Program that applies the folder. With any but berth, the process reports how that program does, and has fewer rights
    #[arg(long, value_name = "PROGRAM", default_value = "berth", value_parser = applier())]
    applier: &'static Applier,
    /// The program's object for this folder, as NAMESPACE/NAME; default: the one that `berth join --applier` writes
    #[arg(long, value_name = "OBJECT", value_parser = object_name)]
    applier_object: Option<(String, String)>,
    /// Secret with `kubeconfig`, the way to the cluster that has this object, if it is another one
    #[arg(long, value_name = "NAME")]
    applier_kubeconfig_secret: Option<String>,
}

impl ReporterFlags {
    /// Returns the reporter. `None` if berth applies the folder.
    pub fn of(&self, cluster: &str) -> Result<Option<Reporter>, CommandError> {
        if *self.applier == BERTH {
            let given = [
                ("--applier-object", self.applier_object.is_some()),
                ("--applier-kubeconfig-secret", self.applier_kubeconfig_secret.is_some()),
            ];
            let hint = "name the program, as in `--applier flux`";
            refuse_flags(&given, "where berth applies the folder", hint)?;
            return Ok(None);
        }
        if let Some(secret) = &self.applier_kubeconfig_secret {
            fits("--applier-kubeconfig-secret", secret, is_dns_subdomain(secret))?;
        }
        let kind =
            |group: &str, plural: &str| Resource { group: group.to_owned(), plural: plural.to_owned() };
        let (usual, kinds) = if *self.applier == ARGOCD {
            ((argocd::NAMESPACE, argocd::name_of(cluster)), vec![kind("argoproj.io", "applications")])
        } else {
            let source = "source.toolkit.fluxcd.io";
            let kinds = vec![
                kind("kustomize.toolkit.fluxcd.io", "kustomizations"),
                kind(source, "gitrepositories"),
                kind(source, "ocirepositories"),
            ];
            ((flux::NAMESPACE, flux::name_of(cluster)), kinds)
        };
        let (namespace, name) = self.applier_object.clone().unwrap_or((usual.0.to_owned(), usual.1));
        let object = self.applier_object.as_ref().map(|(namespace, name)| format!("{namespace}/{name}"));
        let is_elsewhere = self.applier_kubeconfig_secret.is_some();
        Ok(Some(Reporter {
            program: self.applier.name.to_owned(),
            object,
            reads: if is_elsewhere { Vec::new() } else { vec![Read { namespace, name, kinds }] },
            kubeconfig_secret: self.applier_kubeconfig_secret.clone(),
        }))
    }

    /// Reports whether another program applies the folder.
    pub fn is_given(&self) -> bool {
        *self.applier != BERTH
    }
}
