//! `berth join NAME`: a new member, as a file of the inventory.

use std::collections::BTreeMap;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use super::join_applier::JoinApplierArgs;
use crate::editing::working_tree::{Edit, WorkingTree, would_be_faulty};
use crate::flags::repo::RepoArg;
use crate::output::results::{DocumentFormat, mentions_text};
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit, Outcome};
use berth_base::meta::names::{is_dns_subdomain, is_label_key, is_label_value};
use berth_base::model::applier::ANNOTATION;
use berth_base::text::counted;
use berth_base::yaml::emit;
use berth_engine::dialects::{ClusterKind, DIALECTS, NewCluster};
use berth_engine::plan::Change;

const REGION: &str = "topology.kubernetes.io/region";
const ZONE: &str = "topology.kubernetes.io/zone";

/// Add a member to the inventory
///
/// Writes the file that describes it, and none that is there already. Nothing is asked of the cluster:
/// its syncer, which `berth install member` brings there, fetches what it gets. With `--applier`, another program
/// applies the cluster's folder, and what that program needs is printed; also for a cluster that has joined already.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth join oslo --api-endpoint https://oslo.example.com:6443 --label env=prod --region north\n  berth join turin --dialect ocm --label env=test\n  berth join bergen --dialect kubefleet -o yaml\n  berth join turin --dialect ocm --applier flux --applier-source oci://registry.example.com/fleet --artifact-keys-secret berth-keys --applier-out flux"
)]
pub(crate) struct JoinArgs {
    /// The cluster's name
    name: String,
    /// System whose kind describes the cluster
    #[arg(long, default_value = "kubefed", value_parser = cluster_kind_of())]
    dialect: &'static ClusterKind,
    /// Label of the cluster; repeatable
    #[arg(long = "label", value_name = "KEY=VALUE", value_delimiter = ',')]
    labels: Vec<String>,
    /// Region of the cluster, set as the label topology.kubernetes.io/region
    #[arg(long)]
    region: Option<String>,
    /// Zone of the cluster, set as the label topology.kubernetes.io/zone
    #[arg(long)]
    zone: Option<String>,
    /// Address of the cluster's API server, which berth never calls; a KubeFedCluster without one gets a placeholder
    #[arg(long, value_name = "URL")]
    api_endpoint: Option<String>,
    /// Secret (for KubeFleet: account) that a hub would use; berth does not use it
    #[arg(long, value_name = "NAME")]
    secret_name: Option<String>,
    #[command(flatten)]
    repo: RepoArg,
    /// The folder for the file, below the repository's root
    #[arg(long, value_name = "DIR", default_value = "clusters")]
    dir: String,
    #[command(flatten)]
    applier: JoinApplierArgs,
    /// Print the document, and write nothing
    #[arg(short, long, value_enum)]
    output: Option<DocumentFormat>,
}

/// The cluster kinds by the names of their dialects.
fn inventories() -> impl Iterator<Item = (&'static str, &'static ClusterKind)> {
    DIALECTS.iter().filter_map(|dialect| Some((dialect.name, dialect.cluster_kind?)))
}

/// Parses the name of a dialect into the kind with which it describes clusters.
fn cluster_kind_of() -> impl TypedValueParser<Value = &'static ClusterKind> {
    let names = inventories().map(|(name, kind)| PossibleValue::new(name).help(kind.kind));
    PossibleValuesParser::new(names).try_map(|wanted| {
        let found = inventories().find(|(name, _)| *name == wanted);
        found.map(|(_, kind)| kind).ok_or("no such dialect")
    })
}

pub(crate) fn cmd_join(args: &JoinArgs, ui: &Ui) -> Outcome {
    let name = &args.name;
    if !is_dns_subdomain(name) {
        let error = CommandError::usage(format!("`{name}` is not a valid name of a cluster"));
        return Err(error.hint("use lower-case letters, digits, dashes and dots"));
    }
    let tree = WorkingTree::read(&args.repo.path)?;
    let applied = args.applier.objects(name)?;
    if let Some(objects) = &applied
        && let Some(known) = tree.loaded.fleet.clusters.get(name)
        && known.applier == args.applier.neighbour()
    {
        args.applier.write(name, objects, ui)?;
        return Ok(Exit::Done);
    }
    if let Some(secret) = args.secret_name.as_ref().filter(|secret| !is_dns_subdomain(secret)) {
        let error = CommandError::usage(format!("`{secret}` is not a valid name of a Secret or an account"));
        return Err(error.hint("use lower-case letters, digits, dashes and dots"));
    }
    // `.invalid` is never anybody's.
    let needs_endpoint = args.dialect.needs_endpoint && args.api_endpoint.is_none();
    let placeholder = needs_endpoint.then(|| format!("https://{name}.invalid"));
    let new = NewCluster {
        name: name.clone(),
        labels: labels(args)?,
        endpoint: args.api_endpoint.clone().or_else(|| placeholder.clone()),
        account: args.secret_name.clone(),
    };
    let (mut document, kind) = ((args.dialect.document)(&new), args.dialect.kind);
    args.applier.annotate(&mut document);
    if let Some((file, found)) = tree.objects().find(|(_, found)| found.kind == kind && found.name == *name) {
        let message = format!("{kind} {name} already exists: {file}:{}:{}", found.at.line, found.at.column);
        let hint = match args.applier.neighbour() {
            Some(applier) => format!("annotate it `{ANNOTATION}: {}`, and run this again", applier.name),
            None => "edit that file, or choose another name".to_owned(),
        };
        return Err(CommandError::usage(message).hint(hint));
    }
    let path = tree.new_file(&args.dir, name)?;
    let edits = [Edit { path: path.clone(), text: Some(emit(&document)) }];
    let (after, new_errors) = tree.check(&edits);
    if let Some(error) = would_be_faulty(&new_errors) {
        return Err(error);
    }
    if let Some(format) = args.output {
        match format {
            DocumentFormat::Json => ui.json(&document),
            DocumentFormat::Yaml => ui.out(&emit(&document)),
        }
        return Ok(Exit::Done);
    }
    let plan = tree.plan(&edits)?;
    ui.diagnostics(&tree.lacking(&edits)?);
    tree.write(&edits)?;
    match &applied {
        Some(objects) => {
            ui.status(&path);
            args.applier.write(name, objects, ui)?;
        }
        None => ui.out(&path),
    }
    let gets =
        plan.changes().filter(|change| *change.cluster == **name && change.change == Change::Added).count();
    ui.status(&format!(
        "{name} gets {}\nnext: commit the file, look at `berth plan`, and run `berth sync --cluster {name}{}` there",
        counted(gets, "object"),
        args.applier.neighbour().map(|applier| format!(" --applier {}", applier.name)).unwrap_or_default(),
    ));
    if let Some(placeholder) = placeholder {
        ui.status(&format!(
            "the address `{placeholder}` is a placeholder: a {kind} needs one, and berth never calls it"
        ));
    }
    let named = mentions_text(&after.fleet, name);
    if !named.is_empty() {
        ui.status(&format!("already named by\n{}", named.trim_end()));
    }
    Ok(Exit::Done)
}

fn labels(args: &JoinArgs) -> Result<BTreeMap<String, String>, CommandError> {
    let mut labels = BTreeMap::new();
    let written = args.labels.iter().map(|label| match label.split_once('=') {
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None => Err(CommandError::usage(format!("--label {label}: write it as KEY=VALUE"))),
    });
    let places = [(REGION, &args.region), (ZONE, &args.zone)];
    let places = places.into_iter().filter_map(|(key, value)| Some(Ok((key.to_owned(), value.clone()?))));
    for label in written.chain(places) {
        let (key, value) = label?;
        if !is_label_key(&key) || !is_label_value(&value) {
            let error = CommandError::usage(format!("`{key}={value}` is not a label"));
            return Err(error.hint("use letters, digits, `-`, `_` and `.`, at most 63 each"));
        }
        if labels.insert(key.clone(), value.clone()).is_some_and(|before| before != value) {
            return Err(CommandError::usage(format!("the label `{key}` has two values")));
        }
    }
    Ok(labels)
}
