//! `berth enable TYPE`: gives a type a Federated kind.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::editing::working_tree::{self, Edit, WorkingTree, would_be_faulty};
use crate::flags::fleet::RepoArg;
use crate::output::results::DocumentFormat;
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit, Outcome};
use berth_base::diag::did_you_mean;
use berth_base::edit::{Found, keys};
use berth_base::yaml::{Node, emit};
use berth_engine::dialects::kubefed::make::{
    ApiResource, FederatedKind, KnownTypes, Resources, federated_names, plural_of, read_type_config,
    type_config,
};

/// Let a type have Federated objects
///
/// Writes its FederatedTypeConfig, or sets `propagation: Enabled` in each that is there. The types of
/// Kubernetes are known by name, those of custom resources by their CustomResourceDefinition in the
/// repository, and any other by --kind and --version. The types that KubeFed ships need no config.
#[derive(Debug, clap::Args)]
// As in KubeFed's command, `--version` is the version of the type.
#[command(
    disable_version_flag = true,
    after_help = "Example:\n  berth enable statefulsets.apps\n  berth enable widgets.example.com --kind Widget --version v1\n  berth enable -f directive.yaml -o yaml"
)]
pub(crate) struct EnableArgs {
    /// The type: short name, kind, plural, or plural with group
    #[arg(value_name = "TYPE", required_unless_present = "filename")]
    name: Option<String>,
    /// File with an EnableTypeDirective, in place of TYPE and its flags
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["name", "federated_group", "federated_version", "version"])]
    filename: Option<PathBuf>,
    /// The API group of the Federated kind
    #[arg(long, value_name = "GROUP")]
    federated_group: Option<String>,
    /// The version of the Federated kind
    #[arg(long, value_name = "VERSION")]
    federated_version: Option<String>,
    /// The version of the type itself
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    /// Kind of an unknown type; TYPE is then its plural with its group
    #[arg(long)]
    kind: Option<String>,
    /// Treat the unknown type as cluster-scoped
    #[arg(long, requires = "kind")]
    cluster_scoped: bool,
    #[command(flatten)]
    repo: RepoArg,
    /// The folder for the file, below the repository's root
    #[arg(long, value_name = "DIR", default_value = "types")]
    dir: String,
    /// Print the type config, and write nothing
    #[arg(short, long, value_enum)]
    output: Option<DocumentFormat>,
}

/// The requested type config, from flags or from a directive.
struct TypeRequest {
    name: String,
    version: Option<String>,
    federated_group: Option<String>,
    federated_version: Option<String>,
}

pub(crate) fn cmd_enable(args: &EnableArgs, ui: &Ui) -> Outcome {
    let request = request(args, ui)?;
    let tree = WorkingTree::read(&args.repo.path)?;
    ui.diagnostics(&tree.unreadable());
    let (types, resources) = tree.types();
    let mut resource = match &args.kind {
        Some(kind) => described(&request, kind, !args.cluster_scoped)?,
        None => one_called(&request.name, &resources, &types)?,
    };
    if let Some(version) = &request.version {
        resource.version.clone_from(version);
    }
    let made =
        federated_names(&resource, request.federated_group.as_deref(), request.federated_version.as_deref());
    if let Some(format) = args.output {
        let document = type_config(&made);
        match format {
            DocumentFormat::Json => ui.json(&document),
            DocumentFormat::Yaml => ui.out(&emit(&document)),
        }
        return Ok(Exit::Done);
    }
    let name = resource.full_name();
    let configs = tree.type_configs(&name);
    let asks_for_names = request.federated_group.is_some() || request.federated_version.is_some();
    let known = types.of_target(&resource.group, &resource.kind);
    if !configs.is_empty() {
        if asks_for_names {
            refuse_other_names(&configs, &made)?;
        }
        return enable_again(&tree, &configs, &name, ui);
    }
    if known.is_some() && !asks_for_names && request.version.is_none() {
        ui.out(&format!("{name} needs no type config: {} is built in", made.kind));
        return Ok(Exit::Done);
    }
    refuse_clash(&made, &types)?;
    let path = tree.new_file(&args.dir, &name)?;
    write(&tree, &[Edit { path: path.clone(), text: Some(emit(&type_config(&made))) }])?;
    ui.out(&path);
    ui.status(&format!("{} {} now stands for {name}", made.api_version(), made.kind));
    Ok(Exit::Done)
}

/// Sets `propagation: Enabled` in every config without it. Each control plane has its own config.
fn enable_again(tree: &WorkingTree, configs: &[(&Arc<str>, &Found)], name: &str, ui: &Ui) -> Outcome {
    let resting: Vec<_> =
        configs.iter().copied().filter(|(_, found)| propagation(found) != Some("Enabled")).collect();
    write(tree, &tree.set(&resting, &keys(["spec", "propagation"]), &"Enabled".into())?)?;
    for (file, found) in configs {
        let (place, word) =
            (place(file, found), if propagation(found) == Some("Enabled") { "already" } else { "again" });
        ui.out(&format!("{place}: {name} is enabled {word}"));
    }
    Ok(Exit::Done)
}

/// Returns the `propagation` of a type config.
pub(super) fn propagation(config: &Found) -> Option<&str> {
    config.node.get("spec").and_then(|spec| spec.get("propagation")).and_then(Node::as_str)
}

fn place(file: &str, found: &Found) -> String {
    format!("{file}:{}:{}", found.at.line, found.at.column)
}

fn refuse_other_names(configs: &[(&Arc<str>, &Found)], made: &FederatedKind) -> Result<(), CommandError> {
    for (file, found) in configs {
        let Some(known) = read_type_config(&found.node.to_json()) else { continue };
        if (&known.group, &known.version, &known.kind) != (&made.group, &made.version, &made.kind) {
            let (api_version, place) = (known.api_version(), place(file, found));
            let message =
                format!("{} is already federated as {api_version} {}: {place}", found.name, known.kind);
            return Err(CommandError::usage(message)
                .hint("edit the file by hand: the objects of that kind would lose their type config"));
        }
    }
    Ok(())
}

/// Writes files, unless they would add errors.
fn write(tree: &WorkingTree, edits: &[Edit]) -> Result<(), CommandError> {
    let (_, new_errors) = tree.check(edits);
    match would_be_faulty(&new_errors) {
        Some(error) => Err(error),
        None => tree.write(edits),
    }
}

fn refuse_clash(made: &FederatedKind, types: &KnownTypes) -> Result<(), CommandError> {
    match types.of_federated(&made.group, &made.kind) {
        Some(other)
            if (&other.target.group, &other.target.kind) != (&made.target.group, &made.target.kind) =>
        {
            let message = format!(
                "`{}` in the group `{}` is already the Federated kind of {}",
                made.kind,
                made.group,
                other.target.full_name()
            );
            Err(CommandError::usage(message).hint("use --federated-group with a group of your own"))
        }
        _ => Ok(()),
    }
}

fn request(args: &EnableArgs, ui: &Ui) -> Result<TypeRequest, CommandError> {
    match &args.filename {
        Some(path) => directive(path, ui),
        None => Ok(TypeRequest {
            name: args.name.clone().unwrap_or_default(),
            version: args.version.clone(),
            federated_group: args.federated_group.clone(),
            federated_version: args.federated_version.clone(),
        }),
    }
}

/// Reads an EnableTypeDirective of KubeFed.
fn directive(path: &Path, ui: &Ui) -> Result<TypeRequest, CommandError> {
    let read = working_tree::read_documents(&[path.to_owned()], ui)?;
    let found = read.subjects.into_iter().find(|subject| subject.object["kind"] == "EnableTypeDirective");
    let Some(subject) = found else {
        let fault = read.found.errors().next().map(ToString::to_string);
        let error = CommandError::usage(format!("{} has no EnableTypeDirective", path.display()));
        return Err(match fault {
            Some(fault) => error.hint(fault),
            None => error.hint("or name the type: `berth enable TYPE`"),
        });
    };
    let text =
        |key: &str| subject.object["spec"][key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let name = subject.object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    if name.is_empty() {
        return Err(CommandError::usage(format!("{}: metadata.name must be the type", subject.at)));
    }
    Ok(TypeRequest {
        name,
        version: text("targetVersion"),
        federated_group: text("federatedGroup"),
        federated_version: text("federatedVersion"),
    })
}

/// Describes a type from the command line alone.
fn described(request: &TypeRequest, kind: &str, namespaced: bool) -> Result<ApiResource, CommandError> {
    let Some(version) = &request.version else {
        return Err(CommandError::usage("use --kind together with --version, the version of the type"));
    };
    let (plural, group) = match request.name.split_once('.') {
        Some((plural, group)) => (plural.to_owned(), group),
        None => (request.name.clone(), ""),
    };
    let plural = if plural.eq_ignore_ascii_case(kind) { plural_of(kind) } else { plural };
    Ok(ApiResource { plural, ..ApiResource::guessed(group, version, kind, namespaced) })
}

/// Finds the only type with this name.
pub(super) fn one_called(
    name: &str,
    resources: &Resources,
    types: &KnownTypes,
) -> Result<ApiResource, CommandError> {
    let mut meant = resources.called(name);
    meant.extend(types.iter().filter(|known| known.is_called(name)).map(|known| &known.target));
    meant.sort();
    meant.dedup_by(|a, b| (&a.group, &a.kind) == (&b.group, &b.kind));
    match meant.as_slice() {
        [one] => Ok((*one).clone()),
        [] => {
            let error = CommandError::usage(format!("no type is named `{name}`"));
            let near = did_you_mean(name, resources.names());
            Err(error.hint(near.unwrap_or_else(|| {
                "for a custom resource, commit its CustomResourceDefinition, or write `PLURAL.GROUP --kind KIND --version VERSION`"
                    .to_owned()
            })))
        }
        several => {
            let names: Vec<String> = several.iter().map(|one| one.full_name()).collect();
            let error = CommandError::usage(format!("`{name}` is the name of {} types", names.len()));
            Err(error.hint(format!("write one of {}", names.join(", "))))
        }
    }
}
