//! `berth install application-set`: Argo CD as the applier of many clusters.

use super::common::fits;
use crate::appliers::argocd::{ArgoCdMember, NAMESPACE, TEMPLATES, application_set};
use crate::appliers::file;
use crate::appliers::flux::Source;
use crate::flags::applier::{Address, address};
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit, Outcome};
use berth_base::meta::names::{is_dns_label, is_dns_subdomain, is_label_value};
use berth_git::protocol::Refs;

/// Print the ApplicationSet by which Argo CD applies the folders of many clusters
///
/// It makes an Application for each cluster that a placement picks, by the PlacementDecisions in Argo CD's namespace.
/// Argo CD must know each cluster by its name in the fleet.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth install application-set --source oci://registry.example.com/fleet --placement everywhere | kubectl apply -f -"
)]
pub(crate) struct ApplicationSetArgs {
    /// Place of the folders: `oci://HOST/PREFIX` as in `berth run --publish`, or the address of the Git repository with the rendered branch
    #[arg(long, value_name = "URL")]
    source: String,
    /// Placement whose decisions name the clusters
    #[arg(long, value_name = "NAME")]
    placement: String,
    /// Name of the ApplicationSet
    #[arg(long, value_name = "NAME", default_value = "berth")]
    name: String,
    /// Namespace of Argo CD
    #[arg(long, value_name = "NAMESPACE", default_value = NAMESPACE)]
    namespace: String,
    /// AppProject of the Applications
    #[arg(long, value_name = "NAME", default_value = "default")]
    project: String,
    /// Reach the registry by plain HTTP
    #[arg(long)]
    insecure_registry: bool,
}

pub(super) fn cmd_application_set(args: &ApplicationSetArgs, ui: &Ui) -> Outcome {
    fits(
        "--placement",
        &args.placement,
        is_dns_subdomain(&args.placement) && is_label_value(&args.placement),
    )?;
    fits("--name", &args.name, is_dns_subdomain(&args.name))?;
    fits("--namespace", &args.namespace, is_dns_label(&args.namespace))?;
    fits("--project", &args.project, is_dns_subdomain(&args.project))?;
    let [cluster, destination] = TEMPLATES.map(str::to_owned);
    let source = match address("--source", &args.source)? {
        Address::Registry(registry) => Source::Registry {
            url: format!("{registry}/clusters/{cluster}"),
            keys: None,
            is_insecure: args.insecure_registry,
        },
        Address::Git(_) if args.insecure_registry => {
            let error = CommandError::usage("--insecure-registry is for registries alone");
            return Err(error.hint("leave it out, or give an `oci://` address"));
        }
        Address::Git(url) => {
            let branches = Refs::default().cluster_branches;
            let branches = branches.strip_prefix("refs/heads/").unwrap_or(&branches);
            Source::Git { url, branch: format!("{branches}{cluster}") }
        }
    };
    let (namespace, project) = (args.namespace.clone(), args.project.clone());
    let member = ArgoCdMember { cluster, destination, source, namespace, project };
    let about = ["Argo CD applies the folders of the clusters that a placement picks.".to_owned()];
    ui.out(file(&about, &application_set(&member, &args.name, &args.placement)).trim_end());
    Ok(Exit::Done)
}
