//! The target of a sync, and the flags of a Kubernetes cluster as the target.

use std::path::PathBuf;
use std::time::Duration;

use crate::process::exit::{CommandError, Exit};
use berth_member::live::Access;
use berth_member::sync::backends::kube::Tenant;
use berth_member::sync::backends::kube::drift::DriftMode;
use berth_member::sync::health::custom::{self, HealthRules};
use berth_member::sync::local_overrides::OverrideObjects;

/// The connection to a Kubernetes target, and the work on it
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Options of the target `kube`")]
pub(crate) struct KubeArgs {
    /// Kubeconfig of the cluster; default: the usual places, or a pod's own credentials
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Namespace of berth's record of the objects it owns
    #[arg(long, value_name = "NAMESPACE", default_value = "berth-system", env = "BERTH_NAMESPACE")]
    pub namespace: String,
    /// Number of concurrent requests
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub concurrency: u16,
    /// Seconds that an object may take to become healthy
    #[arg(long, value_name = "SECONDS", default_value_t = 600, env = "BERTH_HEALTH_TIMEOUT")]
    pub health_timeout: u64,
    /// Apply and remove the objects of each namespace as the ServiceAccount of this name there, with its rights
    #[arg(long, value_name = "NAME", env = "BERTH_TENANT_SERVICE_ACCOUNT", value_parser = account)]
    pub tenant_service_account: Option<String>,
    /// With --tenant-service-account, apply and remove cluster-scoped objects with berth's own rights; else they are refused
    #[arg(long, env = "BERTH_TENANT_CLUSTER_SCOPED", requires = "tenant_service_account")]
    pub tenant_cluster_scoped: bool,
    /// Namespaces that are never removed, even with an approval; a `*` at the end matches any rest. Includes berth's own
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "default,kube-*",
        env = "BERTH_PROTECTED_NAMESPACES"
    )]
    pub protected_namespaces: Vec<String>,
    /// Overrides of this member in berth's namespace there: `configmap/NAME`, `secret/NAME`, or all with a label, as `configmaps/LABEL=VALUE` or `secrets/LABEL=VALUE`; repeatable
    #[arg(long, value_name = "SOURCE", value_delimiter = ',', env = "BERTH_OVERRIDES_FROM")]
    pub overrides_from: Vec<OverrideObjects>,
    /// Folder of a pod's own credentials, in place of the usual one
    #[arg(long, value_name = "DIR", env = "BERTH_POD_CREDENTIALS", hide = true)]
    pub pod_credentials: Option<PathBuf>,
    /// File with HealthRule documents, which say when objects of your own kinds are healthy
    #[arg(long, value_name = "FILE", env = "BERTH_HEALTH_RULES")]
    health_rules: Option<PathBuf>,
    /// Seconds of silence after which a watch counts as lost and its kind is listed again
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    pub watch_silence: u64,
    /// Reaction to drift where an object sets none: correct it, or only report it
    #[arg(long, value_enum, default_value = "correct", env = "BERTH_DRIFT")]
    drift: Drift,
    /// Duration in seconds of the lease that keeps a second syncer of the fleet from writing
    #[arg(long, value_name = "SECONDS", default_value_t = 60, env = "BERTH_LEASE_DURATION", value_parser = clap::value_parser!(u64).range(4..=3600))]
    pub lease_duration: u64,
    /// Write no Kubernetes Events
    #[arg(long, env = "BERTH_NO_EVENTS")]
    pub no_events: bool,
    /// Take no lease: make sure yourself that no other syncer applies this fleet there
    #[arg(long, env = "BERTH_NO_LEASE")]
    pub no_lease: bool,
}

/// The reaction to drift
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Drift {
    Correct,
    Report,
}

impl KubeArgs {
    /// Returns the access to the cluster.
    pub fn access(&self) -> Access {
        Access {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            patience: Duration::from_secs(30),
            pod: self.pod_credentials.clone(),
        }
    }

    pub fn tenant(&self) -> Option<Tenant> {
        let account = self.tenant_service_account.clone()?;
        Some(Tenant { account, cluster_scoped: self.tenant_cluster_scoped })
    }

    pub fn drift(&self) -> DriftMode {
        match self.drift {
            Drift::Correct => DriftMode::Correct,
            Drift::Report => DriftMode::Report,
        }
    }

    pub fn health_rules(&self) -> Result<HealthRules, CommandError> {
        let Some(path) = &self.health_rules else { return Ok(HealthRules::default()) };
        let name = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|error| CommandError::io(&name, &error))?;
        custom::read(&name, &bytes).map_err(|found| {
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            CommandError::new(Exit::Faulty, format!("the health rules cannot be read:\n{}", found.join("\n")))
        })
    }
}

fn account(text: &str) -> Result<String, String> {
    let fits = berth_base::meta::names::is_dns_subdomain(text);
    if fits { Ok(text.to_owned()) } else { Err("use lower-case letters, digits, dashes and dots".into()) }
}

/// The target of a sync.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Folder(PathBuf),
    Kube,
}

/// Parses `kube` or `dir:PATH`.
pub(crate) fn place(text: &str) -> Result<Place, String> {
    match text.split_once(':') {
        Some(("dir", path)) if !path.is_empty() => Ok(Place::Folder(PathBuf::from(path))),
        None if text == "kube" => Ok(Place::Kube),
        _ => Err("write it as `kube` or `dir:PATH`".into()),
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Folder(path) => write!(f, "dir:{}", path.display()),
            Place::Kube => f.write_str("kube"),
        }
    }
}
