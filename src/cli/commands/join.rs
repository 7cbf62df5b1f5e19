//! `berth join NAME`: adds a new member as a file of the inventory.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde_json::{Value as Json, json};

use crate::appliers;
use crate::appliers::argocd::{self, ArgoCdMember};
use crate::appliers::flux::{self, FluxMember, Source, Wakes};
use crate::editing::working_tree::{Edit, WorkingTree, would_be_faulty};
use crate::flags::applier::{Address, address, applier};
use crate::flags::fleet::RepoArg;
use crate::output::results::{DocumentFormat, mentions_text};
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit, Outcome};
use crate::process::files;
use berth_base::meta::names::{is_dns_subdomain, is_label_key, is_label_value};
use berth_base::model::Applier;
use berth_base::model::applier::{ANNOTATION, ARGOCD, BERTH};
use berth_base::text::counted;
use berth_base::yaml::emit;
use berth_engine::dialects::{ClusterKind, DIALECTS, NewCluster};
use berth_engine::plan::{Change, ObjectChange, Plan};
use berth_git::shared_refs::Refs;

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
    let Description { document, placeholder } = args.description()?;
    args.check_new(&tree)?;
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
    args.show_next(&plan, ui);
    if let Some(placeholder) = placeholder {
        let kind = args.dialect.kind;
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

/// The document that describes a new cluster.
struct Description {
    document: Json,
    /// The placeholder for a required address that was not given.
    placeholder: Option<String>,
}

impl JoinArgs {
    fn description(&self) -> Result<Description, CommandError> {
        let name = &self.name;
        if let Some(secret) = self.secret_name.as_ref().filter(|secret| !is_dns_subdomain(secret)) {
            let message = format!("`{secret}` is not a valid name of a Secret or an account");
            let error = CommandError::usage(message);
            return Err(error.hint("use lower-case letters, digits, dashes and dots"));
        }
        // Domains below `.invalid` never exist.
        let needs_endpoint = self.dialect.needs_endpoint && self.api_endpoint.is_none();
        let placeholder = needs_endpoint.then(|| format!("https://{name}.invalid"));
        let new = NewCluster {
            name: name.clone(),
            labels: labels(self)?,
            endpoint: self.api_endpoint.clone().or_else(|| placeholder.clone()),
            account: self.secret_name.clone(),
        };
        let mut document = (self.dialect.document)(&new);
        self.applier.annotate(&mut document);
        Ok(Description { document, placeholder })
    }

    /// Refuses a cluster that a document already describes.
    fn check_new(&self, tree: &WorkingTree) -> Result<(), CommandError> {
        let (name, kind) = (&self.name, self.dialect.kind);
        let mut objects = tree.objects();
        let Some((file, found)) = objects.find(|(_, found)| found.kind == kind && found.name == *name) else {
            return Ok(());
        };
        let message = format!("{kind} {name} already exists: {file}:{}:{}", found.at.line, found.at.column);
        let hint = match self.applier.neighbour() {
            Some(applier) => format!("annotate it `{ANNOTATION}: {}`, and run this again", applier.name),
            None => "edit that file, or choose another name".to_owned(),
        };
        Err(CommandError::usage(message).hint(hint))
    }

    /// Prints the number of objects that the cluster will get, and the next steps.
    fn show_next(&self, plan: &Plan, ui: &Ui) {
        let name = &self.name;
        let is_got = |change: &&ObjectChange| *change.cluster == **name && change.change == Change::Added;
        let gets = counted(plan.changes().filter(is_got).count(), "object");
        let applier = self.applier.neighbour().map(|applier| format!(" --applier {}", applier.name));
        let applier = applier.unwrap_or_default();
        ui.status(&format!(
            "{name} gets {gets}\nnext: commit the file, look at `berth plan`, publish with `berth run --once`, and for {name}: `berth sync --cluster {name} --target kube{applier}`, \
             or `--target dir:PATH --once` for a folder"
        ));
    }
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

/// The program that applies the folder
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Applier")]
pub(crate) struct JoinApplierArgs {
    /// Program that applies the cluster's folder. For any but berth, its objects for this cluster are written, too
    #[arg(long, value_name = "PROGRAM", default_value = "berth", value_parser = applier())]
    applier: &'static Applier,
    /// Folder for the program's objects; default: they are printed
    #[arg(long, value_name = "DIR")]
    applier_out: Option<PathBuf>,
    /// Namespace of the program's objects; default: flux-system for Flux, argocd for Argo CD
    #[arg(long, value_name = "NAMESPACE")]
    applier_namespace: Option<String>,
    /// Place from which the program takes the folder: `oci://HOST/PREFIX` as in `berth run --publish`, or the address of the Git repository with the rendered branch
    #[arg(long, value_name = "URL")]
    applier_source: Option<String>,
    /// Pause between the program's looks for a new folder, such as `30s` or `5m`
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration)]
    source_interval: String,
    /// Argo CD's name of the cluster, `in-cluster` for its own; default: the cluster's name
    #[arg(long, value_name = "NAME")]
    argocd_destination: Option<String>,
    /// AppProject of the Application
    #[arg(long, value_name = "NAME", default_value = "default")]
    argocd_project: String,
    /// Secret with the program's credentials for the source
    #[arg(long, value_name = "NAME")]
    source_secret: Option<String>,
    /// Secret with the certificate of the registry's authority
    #[arg(long, value_name = "NAME")]
    source_ca_secret: Option<String>,
    /// Secret with the public keys (`*.pub`) of which one must have signed the artifact
    #[arg(long, value_name = "NAME")]
    artifact_keys_secret: Option<String>,
    /// Reach the registry by plain HTTP
    #[arg(long)]
    insecure_registry: bool,
    /// ServiceAccount with whose rights the program applies the folder
    #[arg(long, value_name = "NAME")]
    applier_account: Option<String>,
    /// Kustomization of that cluster that must be ready first; repeatable
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    depends_on: Vec<String>,
    /// Secret with the keys for values that SOPS encrypted
    #[arg(long, value_name = "NAME")]
    decryption_secret: Option<String>,
    /// Address of the daemon's webhook, which the program then calls after each of its steps
    #[arg(long, value_name = "URL", requires = "webhook_secret")]
    webhook_url: Option<String>,
    /// Secret whose `token` is the webhook's
    #[arg(long, value_name = "NAME", requires = "webhook_url")]
    webhook_secret: Option<String>,
}

impl JoinApplierArgs {
    /// Returns the applier, unless it is berth's own member.
    pub fn neighbour(&self) -> Option<&'static Applier> {
        Some(self.applier).filter(|applier| **applier != BERTH)
    }

    /// Adds the applier to the document of a cluster.
    pub fn annotate(&self, document: &mut Json) {
        if let Some(applier) = self.neighbour() {
            document["metadata"]["annotations"] = json!({ANNOTATION: applier.name});
        }
    }

    /// Returns the applier's objects for a cluster. `None` for berth's own member.
    pub fn objects(&self, cluster: &str) -> Result<Option<Vec<Json>>, CommandError> {
        let Some(applier) = self.neighbour() else { return Ok(None) };
        for (flag, name) in self.names() {
            if !is_dns_subdomain(name) {
                let error = CommandError::usage(format!("{flag}: `{name}` is not a valid name of an object"));
                return Err(error.hint("use lower-case letters, digits, dashes and dots"));
            }
        }
        if *applier == ARGOCD {
            return self.argocd_objects(cluster).map(Some);
        }
        let member = FluxMember {
            cluster: cluster.to_owned(),
            namespace: self.applier_namespace.clone().unwrap_or_else(|| flux::NAMESPACE.to_owned()),
            source: self.source(cluster)?,
            source_interval: self.source_interval.clone(),
            credentials: self.source_secret.clone(),
            authority: self.source_ca_secret.clone(),
            account: self.applier_account.clone(),
            depends_on: self.depends_on.clone(),
            decryption: self.decryption_secret.clone(),
            wakes: self
                .webhook_url
                .clone()
                .zip(self.webhook_secret.clone())
                .map(|(url, secret)| Wakes { url, secret }),
        };
        Ok(Some(flux::objects(&member)))
    }

    /// Returns Argo CD's objects. Argo CD knows repositories and their credentials by Secrets of its own.
    fn argocd_objects(&self, cluster: &str) -> Result<Vec<Json>, CommandError> {
        let given = [
            ("--source-secret", self.source_secret.is_some()),
            ("--source-ca-secret", self.source_ca_secret.is_some()),
            ("--artifact-keys-secret", self.artifact_keys_secret.is_some()),
            ("--applier-account", self.applier_account.is_some()),
            ("--depends-on", !self.depends_on.is_empty()),
            ("--decryption-secret", self.decryption_secret.is_some()),
            ("--webhook-url", self.webhook_url.is_some()),
        ];
        if let Some((flag, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
            let error = CommandError::usage(format!("{flag} is for Flux alone"));
            return Err(error.hint("leave it out; Argo CD has its credentials in Secrets of repositories"));
        }
        let member = ArgoCdMember {
            cluster: cluster.to_owned(),
            destination: self.argocd_destination.clone().unwrap_or_else(|| cluster.to_owned()),
            source: self.source(cluster)?,
            namespace: self.applier_namespace.clone().unwrap_or_else(|| argocd::NAMESPACE.to_owned()),
            project: self.argocd_project.clone(),
        };
        Ok(argocd::objects(&member))
    }

    fn names(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let secrets = [
            self.applier_namespace.as_ref().map(|name| ("--applier-namespace", name)),
            self.argocd_destination.as_ref().map(|name| ("--argocd-destination", name)),
            Some(("--argocd-project", &self.argocd_project)),
            self.source_secret.as_ref().map(|name| ("--source-secret", name)),
            self.source_ca_secret.as_ref().map(|name| ("--source-ca-secret", name)),
            self.artifact_keys_secret.as_ref().map(|name| ("--artifact-keys-secret", name)),
            self.applier_account.as_ref().map(|name| ("--applier-account", name)),
            self.decryption_secret.as_ref().map(|name| ("--decryption-secret", name)),
            self.webhook_secret.as_ref().map(|name| ("--webhook-secret", name)),
        ];
        secrets.into_iter().flatten().chain(self.depends_on.iter().map(|name| ("--depends-on", name)))
    }

    fn source(&self, cluster: &str) -> Result<Source, CommandError> {
        let Some(url) = &self.applier_source else {
            let error =
                CommandError::usage(format!("--applier {} needs --applier-source", self.applier.name));
            return Err(
                error.hint("give the registry as `oci://HOST/PREFIX`, or the address of the Git repository")
            );
        };
        let url = match address("--applier-source", url)? {
            Address::Registry(registry) => {
                return Ok(Source::Registry {
                    url: format!("oci://{}/{}", registry.host(), registry.repository_of(cluster)),
                    keys: self.artifact_keys_secret.clone(),
                    is_insecure: self.insecure_registry,
                });
            }
            Address::Git(url) => url,
        };
        if self.artifact_keys_secret.is_some() || self.insecure_registry || self.source_ca_secret.is_some() {
            let message =
                "--artifact-keys-secret, --source-ca-secret and --insecure-registry are for registries alone";
            return Err(CommandError::usage(message).hint("leave them out, or give an `oci://` address"));
        }
        let branch = Refs::default().cluster_branch(cluster);
        let branch = branch.strip_prefix("refs/heads/").unwrap_or(&branch).to_owned();
        Ok(Source::Git { url, branch })
    }

    /// Prints the applier's objects, or writes them to the given place.
    pub fn write(&self, cluster: &str, objects: &[Json], ui: &Ui) -> Result<(), CommandError> {
        let about =
            [format!("{} applies the folder of the cluster {cluster}. Apply this there.", self.applier.name)];
        let text = appliers::file(&about, objects);
        match &self.applier_out {
            Some(folder) => {
                let path = folder.join(format!("{cluster}.yaml"));
                files::write(&path, text)?;
                ui.out(&path.display().to_string());
            }
            None => ui.out(text.trim_end()),
        }
        Ok(())
    }
}

/// Accepts a whole number of hours, minutes or seconds.
fn duration(text: &str) -> Result<String, String> {
    let number = text.strip_suffix(['h', 'm', 's']).and_then(|number| number.parse::<u32>().ok());
    match number.filter(|number| *number > 0) {
        Some(_) => Ok(text.to_owned()),
        None => Err("write it as `30s`, `5m` or `1h`".into()),
    }
}
