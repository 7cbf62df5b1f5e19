//! `berth install member`: a syncer, with rights for the kinds in its cluster's folder.

use std::collections::BTreeSet;
use std::path::Path;

use clap_complete::engine::ArgValueCandidates;

use super::shared_flags::{CommonArgs, fits, has_reference, port_of};
use super::{PlaceArgs, place};
use crate::appliers::{argocd, flux};
use crate::editing::working_tree::WorkingTree;
use crate::flags::applier::{applier, object_name};
use crate::flags::fleet::RepoArg;
use crate::flags::names;
use crate::install::{Member, Overrides, Read, Reporter, Resource, Role, Statuses};
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Outcome, refuse_flags};
use berth_base::diag::did_you_mean;
use berth_base::meta::names::{fault_of_name, is_dns_1035_label, is_dns_label, is_dns_subdomain};
use berth_base::model::Applier;
use berth_base::model::applier::{ARGOCD, BERTH};
use berth_engine::dialects::kubefed::make::{Resources, plural_of};
use berth_git::Repo;
use berth_git::shared_refs::Refs;
use berth_git::transport::remote::shows_password;
use berth_member::sync::backends::kube::record_name;
use berth_member::sync::cluster_folder::{self, FolderError};
use berth_member::sync::desired;
use berth_member::sync::local_overrides::OverrideObjects;

/// The longest name of a fleet that can also name its objects.
const LONGEST: usize = 50;

/// Install the syncer of a member in its own cluster
///
/// Its rights are for the kinds that the cluster gets, and no others: those of its folder as the repository here
/// describes and has published it.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth install member oslo --remote git@git.example.com:team/fleet.git --image registry.example.com/berth:0.1.0 --deploy-key --known-hosts known_hosts --context oslo --apply\n  berth install member oslo --remote https://git.example.com/team/fleet.git --image registry.example.com/berth:0.1.0 --kinds configmaps,deployments.apps --dir oslo"
)]
pub(crate) struct MemberArgs {
    /// The cluster's name
    #[arg(add = ArgValueCandidates::new(names::clusters))]
    cluster: String,
    #[command(flatten)]
    common: CommonArgs,
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    repo: RepoArg,
    /// Namespace for the syncer and its records
    #[arg(long, value_name = "NAMESPACE", default_value = "berth-system", help_heading = "Member")]
    namespace: String,
    /// The fleet's name, as `berth sync --fleet` takes it
    #[arg(long, value_name = "NAME", default_value = "fleet", help_heading = "Member")]
    fleet: String,
    /// Kinds that the syncer may write, such as `configmaps,deployments.apps`; default: those of its folder
    #[arg(long, value_name = "KINDS", value_delimiter = ',', help_heading = "Member")]
    kinds: Vec<String>,
    /// Give the syncer the rights of this ClusterRole on objects, such as `cluster-admin`, in place of rules for kinds
    #[arg(long, value_name = "NAME", conflicts_with_all = ["kinds", "allow_escalation", "tenant_service_account"], help_heading = "Member")]
    cluster_role: Option<String>,
    /// Let the syncer apply roles and bindings with rights that it lacks itself
    #[arg(long, conflicts_with = "tenant_service_account", help_heading = "Member")]
    allow_escalation: bool,
    /// Apply the objects of each namespace as this account there, as `berth sync --tenant-service-account` does
    #[arg(long, value_name = "NAME", help_heading = "Member")]
    tenant_service_account: Option<String>,
    /// Source of local overrides, as in `berth sync --overrides-from`; repeatable
    #[arg(long, value_name = "SOURCE", value_delimiter = ',', help_heading = "Member")]
    overrides_from: Vec<OverrideObjects>,
    /// Report the ClusterProperties of the cluster as facts, as `berth sync --cluster-properties` does
    #[arg(long, help_heading = "Member")]
    cluster_properties: bool,
    /// Send statuses to the daemon at this address, as `berth sync --status-post` does
    #[arg(long, value_name = "URL", help_heading = "Member")]
    status_post: Option<String>,
    /// Secret with `key`, the Ed25519 key of OpenSSH that signs these statuses; default: the key for the repository
    #[arg(long, value_name = "NAME", requires = "status_post", help_heading = "Member")]
    status_key_secret: Option<String>,
    #[command(flatten)]
    reporter: ReporterFlags,
}

impl MemberArgs {
    /// Refuses flags that only berth's own member supports.
    fn check_reporter(&self) -> Result<(), CommandError> {
        if !self.reporter.is_given() {
            return Ok(());
        }
        let of_member = [
            ("--allow-escalation", self.allow_escalation),
            ("--tenant-service-account", self.tenant_service_account.is_some()),
            ("--overrides-from", !self.overrides_from.is_empty()),
        ];
        refuse_flags(
            &of_member,
            "where another program applies",
            "leave it out, or let berth apply the folder",
        )
    }

    fn statuses(&self) -> Result<Option<Statuses>, CommandError> {
        let Some(url) = &self.status_post else { return Ok(None) };
        if let Some(secret) = &self.status_key_secret {
            fits("--status-key-secret", secret, is_dns_subdomain(secret))?;
        }
        let port = url.strip_prefix("https://").and_then(|rest| port_of(rest, 443));
        let Some(port) = port.filter(|_| !shows_password(url) && !has_reference(url)) else {
            // The address may contain a password.
            return Err(CommandError::usage("the address of --status-post cannot be used")
                .hint("write it as `https://berth.example.com/status`"));
        };
        if self.status_key_secret.is_none() && !self.common.has_key() {
            return Err(CommandError::usage("no key is named that signs statuses")
                .hint("name the Secret that has it with --status-key-secret"));
        }
        Ok(Some(Statuses { url: url.clone(), port, secret: self.status_key_secret.clone() }))
    }
}

pub(super) fn cmd_member(args: &MemberArgs, ui: &Ui) -> Outcome {
    fits("the cluster", &args.cluster, is_dns_subdomain(&args.cluster))?;
    fits("--fleet", &args.fleet, is_dns_label(&args.fleet) && args.fleet.len() <= LONGEST)?;
    args.check_reporter()?;
    if let Some(account) = &args.tenant_service_account {
        fits("--tenant-service-account", account, is_dns_subdomain(account))?;
    }
    if let Some(role) = &args.cluster_role {
        fits("--cluster-role", role, !role.is_empty() && fault_of_name(role).is_none())?;
    }
    let overrides = args.overrides_from.iter().map(|from| Overrides {
        text: from.to_string(),
        plural: from.plural().to_owned(),
        name: from.name().map(str::to_owned),
    });
    let mut member = Member {
        cluster: args.cluster.clone(),
        fleet: args.fleet.clone(),
        kinds: BTreeSet::new(),
        cluster_role: args.cluster_role.clone(),
        escalate: args.allow_escalation,
        tenant_account: args.tenant_service_account.clone(),
        overrides: overrides.collect(),
        cluster_properties: args.cluster_properties,
        statuses: args.statuses()?,
        reporter: args.reporter.of(&args.cluster)?,
    };
    let parameters =
        |member| args.common.parameters(&record_name(&args.fleet), &args.namespace, Role::Member(member));
    // Faulty flags are reported before anything is read.
    parameters(member.clone())?;
    if args.cluster_role.is_none() {
        member.kinds = match args.kinds.as_slice() {
            [] => of_folder(&args.repo.path, &args.cluster)?,
            kinds => named(kinds)?,
        };
    }
    place(&parameters(member)?, &args.place, ui)
}

/// Parses the kinds that the user names.
fn named(kinds: &[String]) -> Result<BTreeSet<Resource>, CommandError> {
    let known = Resources::default();
    let named = kinds.iter().map(|name| {
        let found = match known.called(name).first() {
            Some(known) => resource(&known.group, &known.plural),
            None => {
                let (plural, group) = name.split_once('.').unwrap_or((name, ""));
                resource(group, plural)
            }
        };
        let fits =
            is_dns_1035_label(&found.plural) && (found.group.is_empty() || is_dns_subdomain(&found.group));
        fits.then_some(found).ok_or_else(|| {
            let error = CommandError::usage(format!("--kinds `{name}` is not the name of a kind"));
            error.hint("write it as `configmaps` or `deployments.apps`")
        })
    });
    named.collect()
}

/// Returns the kinds in the cluster's folder, as published and as it will be.
fn of_folder(repo: &Path, cluster: &str) -> Result<BTreeSet<Resource>, CommandError> {
    let tree = WorkingTree::read(repo)?;
    let (_, known) = tree.types();
    let clusters = &tree.loaded.fleet.clusters;
    if !clusters.contains_key(cluster) {
        let error = CommandError::usage(format!("no cluster `{cluster}` in this fleet"));
        let near = did_you_mean(cluster, clusters.keys().map(String::as_str));
        return Err(error.hint(near.unwrap_or_else(|| {
            format!("add it with `berth join {cluster}`, or name the kinds with --kinds")
        })));
    }
    let mut kinds = tree.kinds_of(cluster)?;
    kinds.extend(published(repo, cluster)?);
    let plural = |(group, kind): &(String, String)| match known.of_kind(group, kind) {
        Some(known) => resource(group, &known.plural),
        None => resource(group, &plural_of(kind)),
    };
    Ok(kinds.iter().map(plural).collect())
}

fn resource(group: &str, plural: &str) -> Resource {
    Resource { group: group.to_owned(), plural: plural.to_lowercase() }
}

/// Returns the kinds in the cluster's published folder, if any: the member may have to prune their objects.
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
