//! `berth federate FILE...`: converts plain objects from files or a live cluster to Federated objects.

mod from_cluster;

use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use clap_complete::engine::ArgValueCandidates;

use crate::editing::working_tree::{self, WorkingTree};
use crate::flags::kubeconfig::HostArgs;
use crate::flags::{fleet, names};
use crate::output::results::{DocumentFormat, NameForm, ResultKind};
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit, Outcome, exit_for};
use crate::process::files;
use berth_base::diag::{Diagnostic, Diagnostics};
use berth_base::meta::parse_selector;
use berth_base::model::path::{CLUSTER_SCOPE, encode};
use berth_base::text::counted;
use berth_base::yaml::emit_documents;
use berth_engine::dialects::kubefed::make::{
    FederateOptions, Federated, GeneratedDocument, KnownTypes, Where, federate,
};

/// Make Federated objects of plain ones
///
/// Each object becomes the template of its Federated object, without what a server wrote and without its
/// status. Objects that the controllers of every cluster make for themselves are left out and named. The objects
/// go to every cluster, unless --clusters or --selector says where.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth federate web.yaml --output-dir apps\n  kubectl get deploy,svc,cm -n shop -o yaml | berth federate - --selector region=south\n  berth federate manifests/ --contents -n shop --skip-api-resources secrets,pods --output-dir apps\n  berth federate --from-cluster deployment web -n shop --context host\n  berth federate --from-cluster namespace shop --contents --output-dir apps"
)]
pub(crate) struct FederateArgs {
    /// Files, folders, or `-` for the standard input; with --from-cluster, a type and a name
    #[arg(required = true, value_name = "FILE|TYPE NAME")]
    files: Vec<PathBuf>,
    /// Take the object TYPE NAME from a live cluster, or with --contents all objects in the namespace NAME
    #[arg(long)]
    from_cluster: bool,
    /// Namespace for objects that name none; with --contents, the namespace to take
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Take Namespaces with the objects in them, and nothing else
    #[arg(short, long)]
    contents: bool,
    /// Place on these clusters, in place of all
    #[arg(long, value_name = "NAMES", value_delimiter = ',', add = ArgValueCandidates::new(names::clusters))]
    clusters: Vec<String>,
    /// Place on clusters with these labels, in place of all: `env=prod,tier in (web, api)`
    #[arg(short = 'l', long, value_name = "SELECTOR", conflicts_with = "clusters")]
    selector: Option<String>,
    /// Leave types out: by short name, kind, plural, plural with group, or a whole group
    #[arg(short, long, value_name = "TYPES", value_delimiter = ',')]
    skip_api_resources: Vec<String>,
    /// Make a FederatedTypeConfig for types without a Federated kind
    #[arg(short = 't', long)]
    enable_type: bool,
    /// Fleet repository with the type configs; default: this folder, if it looks like one
    #[arg(long, value_name = "PATH", env = "BERTH_REPO")]
    repo: Option<PathBuf>,
    /// Write a file for each object below this folder; existing files are never overwritten
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
    /// Output format of the objects; with --output-dir, `json` lists the files
    #[arg(short, long, value_enum, default_value = "yaml")]
    output: DocumentFormat,
    #[command(flatten)]
    host: HostArgs,
}

pub(crate) fn cmd_federate(args: &FederateArgs, ui: &Ui) -> Outcome {
    let mut options = options(args)?;
    let read = if args.from_cluster {
        let types = options.types.clone();
        let wanted = wanted(args, &types)?;
        if args.contents {
            options.namespace = Some(wanted.name.to_owned());
        }
        from_cluster::read(&args.host, &wanted)?
    } else {
        working_tree::read_documents(&args.files, ui)?
    };
    let Federated { documents, diagnostics } = federate(&read.subjects, &options);
    let mut found = read.found;
    found.extend(diagnostics);
    if read.passed_over > 0 {
        found.push(Diagnostic::note(format!(
            "skipped documents that are not Kubernetes objects: {}",
            read.passed_over
        )));
    }
    ui.diagnostics(&found);
    if let Some(folder) = &args.output_dir {
        return write(folder, &documents, &found, args.output, ui);
    }
    let all: Vec<&Json> = documents.iter().map(|made| &made.document).collect();
    match args.output {
        DocumentFormat::Json => ui.json(&json!({"apiVersion": "v1", "kind": "List", "items": all})),
        DocumentFormat::Yaml if all.is_empty() => {}
        DocumentFormat::Yaml => ui.out(&emit_documents(all)),
    }
    ui.status(&format!("made {}", counted(documents.len(), "document")));
    Ok(exit_for(&found))
}

/// Returns the request to a live cluster.
fn wanted<'a>(
    args: &'a FederateArgs,
    types: &'a KnownTypes,
) -> Result<from_cluster::ClusterRequest<'a>, CommandError> {
    let words: Vec<&str> = args.files.iter().filter_map(|word| word.to_str()).collect();
    let [kind, name] = words[..] else {
        let error = CommandError::usage("--from-cluster requires a type and a name");
        return Err(error.hint("berth federate --from-cluster deployment web -n shop"));
    };
    Ok(from_cluster::ClusterRequest {
        kind,
        name,
        namespace: args.namespace.as_deref(),
        contents: args.contents,
        skip: &args.skip_api_resources,
        types,
    })
}

fn options(args: &FederateArgs) -> Result<FederateOptions, CommandError> {
    let placement = match (&args.selector, args.clusters.is_empty()) {
        (Some(selector), _) => {
            let selector = parse_selector(selector)
                .map_err(|fault| CommandError::usage(format!("--selector: {fault}")))?;
            Where::Selector(selector)
        }
        (None, false) => Where::Clusters(args.clusters.clone()),
        (None, true) => Where::Everywhere,
    };
    let mut options = FederateOptions {
        placement,
        namespace: args.namespace.clone(),
        contents: args.contents,
        skip_api_resources: args.skip_api_resources.iter().cloned().collect(),
        enable_types: args.enable_type,
        ..FederateOptions::default()
    };
    if let Some(repo) = args.repo.clone().or_else(fleet::around_here) {
        let tree = WorkingTree::read(&repo)?;
        (options.types, options.resources) = tree.types();
        let is_namespace = |kind: &str| kind == "FederatedNamespace";
        let named = tree
            .objects()
            .filter(|(_, found)| is_namespace(&found.kind))
            .map(|(_, found)| found.name.clone());
        options.federated_namespaces = named.collect();
    }
    Ok(options)
}

/// Writes a file for each document that has none yet; nothing if there is an error, or a file with another content.
fn write(
    folder: &Path,
    documents: &[GeneratedDocument],
    found: &Diagnostics,
    output: DocumentFormat,
    ui: &Ui,
) -> Outcome {
    if found.has_errors() {
        ui.status("nothing was written, because there are errors");
        return Ok(Exit::Faulty);
    }
    let mut named = names(documents);
    for path in named.keys() {
        files::refuse_links(folder, path)?;
    }
    let texts: BTreeMap<String, String> =
        named.iter().map(|(path, made)| (path.clone(), emit_documents([&made.document]))).collect();
    let is_there = |path: &String| folder.join(path).symlink_metadata().is_ok();
    let is_written =
        |path: &String| std::fs::read(folder.join(path)).is_ok_and(|there| there == texts[path].as_bytes());
    if let Some(other) = named.keys().find(|path| is_there(path) && !is_written(path)) {
        return Err(files::already_there(&folder.join(other)));
    }
    named.retain(|path, _| !is_there(path));
    for path in named.keys() {
        files::write_new(&folder.join(path), &texts[path])?;
    }
    if output == DocumentFormat::Json {
        let file = |(path, made): (&String, &&GeneratedDocument)| FileForm {
            file: folder.join(path).display().to_string(),
            name: NameForm::of(&made.key),
        };
        ui.json(&ResultKind::FileList.of(&FileList { files: named.iter().map(file).collect() }));
    }
    ui.status(&format!("wrote {} to {}", counted(named.len(), "file"), folder.display()));
    Ok(Exit::Done)
}

/// The written files, for programs.
#[derive(Serialize)]
struct FileList {
    files: Vec<FileForm>,
}

#[derive(Serialize)]
struct FileForm {
    file: String,
    #[serde(flatten)]
    name: NameForm,
}

/// A path for each document: its namespace, then kind and name; with its group where two would meet.
fn names(documents: &[GeneratedDocument]) -> BTreeMap<String, &GeneratedDocument> {
    let mut named = BTreeMap::new();
    for made in documents {
        let namespace = &made.key.namespace;
        let folder = match made.of_kind.as_str() {
            "FederatedTypeConfig" => "types".to_owned(),
            _ if namespace.is_empty() => CLUSTER_SCOPE.to_owned(),
            _ => encode(namespace),
        };
        let (kind, name) = (made.of_kind.to_lowercase(), encode(&made.key.name));
        let mut path = match folder.as_str() {
            "types" => format!("{folder}/{name}.yaml"),
            _ => format!("{folder}/{}-{name}.yaml", encode(&kind)),
        };
        if named.contains_key(&path) {
            path = format!("{folder}/{}.{}-{name}.yaml", encode(&kind), encode(&made.key.group));
        }
        named.insert(path, made);
    }
    named
}
