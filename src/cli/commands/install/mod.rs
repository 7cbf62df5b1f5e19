//! `berth install`: everything that runs a daemon or a syncer in a cluster, written to a folder or to stdout, or applied
//! to a cluster. `berth install application-set`: Argo CD as the applier of many clusters.

mod deploy_key;
mod hub;
mod member;
mod shared_flags;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Subcommand;
use serde_json::{Value as Json, json};

use crate::appliers::argocd::{ArgoCdMember, NAMESPACE, TEMPLATES, application_set};
use crate::appliers::file;
use crate::appliers::flux::Source;
use crate::flags::applier::{Address, address};
use crate::install::{FILES, File, Install, files as manifests, unwanted};
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit, Outcome};
use crate::process::files;
use berth_base::meta::names::{is_dns_label, is_dns_subdomain, is_label_value};
use berth_base::model::ObjectId;
use berth_base::yaml::emit;
use berth_git::shared_refs::Refs;
use berth_member::installer::{ClusterInstaller, InstallError};
use berth_member::live::Access;
use shared_flags::fits;

/// Install a daemon or a syncer in a cluster
///
/// Writes the manifests into a folder, which `kubectl apply -k` and Kustomize take, or applies them with --apply. A
/// second run with the same flags changes nothing.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth install hub --remote git@git.example.com:team/fleet.git --image registry.example.com/berth:0.1.0 --deploy-key --known-hosts known_hosts --apply\n  berth install member oslo --remote https://git.example.com/team/fleet.git --image registry.example.com/berth:0.1.0 --dir oslo"
)]
pub(crate) struct InstallArgs {
    #[command(subcommand)]
    command: InstallCommand,
}

#[derive(Debug, Subcommand)]
enum InstallCommand {
    Hub(hub::HubArgs),
    Member(member::MemberArgs),
    ApplicationSet(ApplicationSetArgs),
}

pub(crate) fn cmd_install(args: &InstallArgs, ui: &Ui) -> Outcome {
    match &args.command {
        InstallCommand::Hub(args) => hub::cmd_hub(args, ui),
        InstallCommand::Member(args) => member::cmd_member(args, ui),
        InstallCommand::ApplicationSet(args) => cmd_application_set(args, ui),
    }
}

/// The first line of each file. Only files with it are overwritten.
const MARK: &str = "# Made by berth install";

const KUSTOMIZATION: &str = "kustomization.yaml";

/// The flags for the place of the manifests.
#[derive(Debug, clap::Args)]
struct PlaceArgs {
    /// Write the manifests into this folder, for `kubectl apply -k`; `-` prints them. Files of an earlier run are replaced
    #[arg(long, value_name = "DIR|-", required_unless_present = "apply", conflicts_with = "apply")]
    dir: Option<PathBuf>,
    /// Apply them to the cluster, server-side, and say what became of each object
    #[arg(long)]
    apply: bool,
    /// Kubeconfig of the cluster; default: the usual places, or a pod's own credentials
    #[arg(long, value_name = "FILE", requires = "apply", help_heading = "Cluster")]
    kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig
    #[arg(long, value_name = "NAME", requires = "apply", help_heading = "Cluster")]
    context: Option<String>,
    /// Take over fields that other managers own, such as `kubectl`
    #[arg(long, requires = "apply", help_heading = "Cluster")]
    force_conflicts: bool,
}

fn place(install: &Install, args: &PlaceArgs, ui: &Ui) -> Outcome {
    let files = manifests(install);
    match &args.dir {
        None => apply(install, args, &files, ui)?,
        Some(dir) if dir == Path::new("-") => print(install, &files, ui)?,
        Some(dir) => write(install, dir, &files, ui)?,
    }
    for line in files.iter().flat_map(|file| &file.about) {
        ui.status(line);
    }
    Ok(Exit::Done)
}

fn print(install: &Install, files: &[File], ui: &Ui) -> Result<(), CommandError> {
    if install.remote.deploy_key {
        let error = CommandError::usage("--deploy-key makes a private key, which is not printed");
        return Err(error.hint("name a folder with --dir, or use --apply"));
    }
    let texts: Vec<String> = files.iter().map(|file| text_of(&file.about, &file.objects)).collect();
    ui.out(&texts.join("---\n"));
    Ok(())
}

fn write(install: &Install, dir: &Path, files: &[File], ui: &Ui) -> Result<(), CommandError> {
    for name in FILES {
        let path = dir.join(name);
        match files.iter().find(|file| file.name == name) {
            Some(file) => put(&path, &text_of(&file.about, &file.objects))?,
            None => clear(&path)?,
        }
    }
    let names: Vec<&str> = files.iter().map(|file| file.name).collect();
    let kustomization = json!({"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
        "resources": names});
    put(&dir.join(KUSTOMIZATION), &text_of(&[], &[kustomization]))?;
    if let Some(secret) = install.remote.secret.as_ref().filter(|_| install.remote.deploy_key) {
        let made = deploy_key::in_folder(install, secret, dir)?;
        deploy_key::print_steps(install, &made, ui);
    }
    ui.status(&format!("the manifests are in {0}: kubectl apply -k {0}", dir.display()));
    if install.remote.deploy_key {
        let file = dir.join(deploy_key::FILE);
        ui.status(&format!(
            "the private key is in {0}, and in no other file: kubectl apply -f {0}",
            file.display()
        ));
        ui.status("keep that file out of Git, and remove it once it is applied");
    }
    Ok(())
}

fn apply(install: &Install, args: &PlaceArgs, files: &[File], ui: &Ui) -> Result<(), CommandError> {
    let access = Access {
        kubeconfig: args.kubeconfig.clone(),
        context: args.context.clone(),
        patience: Duration::from_secs(30),
        pod: None,
    };
    let cluster = ClusterInstaller::connect(&access, args.force_conflicts)?;
    ui.status(&format!("applying to {}", cluster.server()));
    let say = |done: &str, object: &Json| {
        let id = ObjectId::of(object).map_or_else(String::new, |id| id.to_string());
        ui.out(&format!("{done:<10} {id}"));
    };
    let mut key = None;
    for (index, file) in files.iter().enumerate() {
        for object in &file.objects {
            say(cluster.apply(object)?.word(), object);
        }
        // The Secret must come after its namespace, and before the pods that mount it.
        if let Some(secret) =
            install.remote.secret.as_ref().filter(|_| install.remote.deploy_key && index == 0)
        {
            let (made, done, object) = deploy_key::in_cluster(install, secret, &cluster)?;
            say(done.word(), &object);
            key = Some(made);
        }
    }
    for object in unwanted(install) {
        if cluster.remove(&object)? {
            say("removed", &object);
        }
    }
    if let Some(made) = key {
        deploy_key::print_steps(install, &made, ui);
    }
    Ok(())
}

impl From<InstallError> for CommandError {
    fn from(error: InstallError) -> CommandError {
        let failed = CommandError::new(Exit::Unreachable, error.to_string());
        match error {
            InstallError::Live(error) => error.into(),
            InstallError::Conflict { .. } => {
                failed.hint("take the fields over with --force-conflicts; running again applies the rest")
            }
            InstallError::Refused { code: 403, .. } => {
                failed.hint("use a context with the right to do this; running again applies the rest")
            }
            InstallError::Refused { .. } | InstallError::Nameless => failed,
        }
    }
}

/// Returns the text of a file.
fn text_of(about: &[String], objects: &[Json]) -> String {
    let head: String = std::iter::once(MARK.to_owned())
        .chain(about.iter().map(|line| format!("# {line}")))
        .map(|line| line + "\n")
        .collect();
    let objects: Vec<String> = objects.iter().map(emit).collect();
    head + &objects.join("---\n")
}

/// Writes a file if it is new or carries the mark.
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

/// Print the ApplicationSet by which Argo CD applies the folders of many clusters
///
/// It makes an Application for each cluster that a placement picks, by the PlacementDecisions in Argo CD's namespace.
/// Argo CD must know each cluster by its name in the fleet.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth install application-set --source oci://registry.example.com/fleet --placement everywhere | kubectl apply -f -"
)]
struct ApplicationSetArgs {
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

fn cmd_application_set(args: &ApplicationSetArgs, ui: &Ui) -> Outcome {
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
