//! Writes the manifests to a folder or to stdout, or applies them to a cluster.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::deploy_key;
use crate::install::{FILES, File, Install, files as manifests, unwanted};
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit, Outcome};
use crate::process::files;
use berth_base::model::ObjectId;
use berth_base::yaml::emit;
use berth_member::installer::{ApplyError, ClusterInstaller};
use berth_member::live::Access;

/// The first line of each file. Only files with it are overwritten.
const MARK: &str = "# Made by berth install";

const KUSTOMIZATION: &str = "kustomization.yaml";

/// The flags for the place of the manifests.
#[derive(Debug, clap::Args)]
pub(crate) struct PlaceArgs {
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

pub(super) fn place(install: &Install, args: &PlaceArgs, ui: &Ui) -> Outcome {
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
        deploy_key::tell(install, &made, ui);
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
        deploy_key::tell(install, &made, ui);
    }
    Ok(())
}

impl From<ApplyError> for CommandError {
    fn from(error: ApplyError) -> CommandError {
        let failed = CommandError::new(Exit::Unreachable, error.to_string());
        match error {
            ApplyError::Live(error) => error.into(),
            ApplyError::Conflict { .. } => {
                failed.hint("take the fields over with --force-conflicts; running again applies the rest")
            }
            ApplyError::Refused { code: 403, .. } => {
                failed.hint("use a context with the right to do this; running again applies the rest")
            }
            ApplyError::Refused { .. } | ApplyError::Nameless => failed,
        }
    }
}

/// Returns the text of a file.
pub(super) fn text_of(about: &[String], objects: &[Json]) -> String {
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
