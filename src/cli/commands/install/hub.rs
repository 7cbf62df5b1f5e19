//! `berth install hub`: the daemon.

use super::shared_flags::{CommonArgs, address, fits};
use super::{PlaceArgs, place};
use crate::commands::run::hub_cluster::DecisionKind;
use crate::install::{Hub, HubObjects, Remote, Role};
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Outcome, refuse_flags};
use berth_base::meta::names::{is_dns_label, is_dns_subdomain};
use berth_git::is_valid_ref;

/// The longest name that still allows the suffix `-trust`.
const LONGEST: usize = 57;

/// Install the daemon that publishes the fleet
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth install hub --remote git@git.example.com:team/fleet.git --image registry.example.com/berth:0.1.0 --deploy-key --known-hosts known_hosts --apply\n  berth install hub --remote https://git.example.com/team/fleet.git --image registry.example.com/berth:0.1.0 --dir hub && kubectl apply -k hub"
)]
pub(crate) struct HubArgs {
    #[command(flatten)]
    common: CommonArgs,
    #[command(flatten)]
    place: PlaceArgs,
    /// Name of the daemon's objects
    #[arg(long, default_value = "berth-hub", help_heading = "Hub")]
    name: String,
    /// Namespace for the daemon
    #[arg(long, value_name = "NAMESPACE", default_value = "berth-hub", help_heading = "Hub")]
    namespace: String,
    /// Repository of the source alone, as `berth run --source-remote` takes it
    #[arg(long, value_name = "URL", help_heading = "Hub")]
    source_remote: Option<String>,
    /// Secret with the credentials for that repository: `token`, or `key` for ssh
    #[arg(long, value_name = "NAME", requires = "source_remote", help_heading = "Hub")]
    source_secret: Option<String>,
    /// Branch that people edit; default: the one that the repository's HEAD names
    #[arg(long, value_name = "REF", help_heading = "Hub")]
    source: Option<String>,
    /// Name of the fleet in signed commits, as `berth run --fleet` takes it
    #[arg(long, value_name = "NAME", help_heading = "Hub")]
    fleet: Option<String>,
    /// Write Kubernetes Events about the daemon's Deployment when a rollout halts, is taken back or continues
    #[arg(long, help_heading = "Hub")]
    events: bool,
    /// Run two daemons, of which one publishes, and the other takes over by a Lease
    #[arg(long, help_heading = "Hub")]
    standby: bool,
    /// Secret with `key`, the Ed25519 key of OpenSSH that signs commits
    #[arg(long, value_name = "NAME", help_heading = "Hub")]
    signing_secret: Option<String>,
    /// Secret with `secret`, which the senders of webhooks know; a Service takes them
    #[arg(long, value_name = "NAME", help_heading = "Hub")]
    webhook_secret: Option<String>,
    /// Secret with `signers`, the keys of members that send their statuses, as `berth run --status-signers` takes them; a Service takes the statuses
    #[arg(long, value_name = "NAME", help_heading = "Hub")]
    status_secret: Option<String>,
    /// Secret with `address`, to which the daemon's messages go
    #[arg(long, value_name = "NAME", help_heading = "Hub")]
    notify_secret: Option<String>,
    /// Publish each cluster's folder to this container registry as well, as `berth run --publish` does
    #[arg(long, value_name = "URL", help_heading = "Registry")]
    publish: Option<String>,
    /// Secret with `key`, which signs artifacts in place of the key that signs commits
    #[arg(long, value_name = "NAME", requires = "publish", help_heading = "Registry")]
    artifact_signing_secret: Option<String>,
    #[command(flatten)]
    objects: ObjectFlags,
}

/// The objects that the daemon writes for others
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Objects for others")]
struct ObjectFlags {
    /// Write the clusters of each placement to the daemon's cluster, as PlacementDecisions
    #[arg(long, value_name = "HUB", value_parser = ["kube"])]
    publish_decisions: Option<String>,
    /// Kinds of PlacementDecisions: those of SIG Multicluster, those of Open Cluster Management; default: both, where the cluster has them
    #[arg(long, value_name = "KINDS", value_enum, value_delimiter = ',', requires = "publish_decisions")]
    decision_kinds: Vec<DecisionKind>,
    /// Write all decisions to this namespace; default: the namespace of each placement
    #[arg(long, value_name = "NAMESPACE", requires = "publish_decisions")]
    decisions_namespace: Option<String>,
    /// Write the clusters to the daemon's cluster, as ClusterProfiles
    #[arg(long, value_name = "HUB", value_parser = ["kube"])]
    publish_profiles: Option<String>,
    /// Namespace of the ClusterProfiles, and of decisions for placements that have none; default: `fleet`
    #[arg(long, value_name = "NAMESPACE")]
    profiles_namespace: Option<String>,
}

impl ObjectFlags {
    fn wanted(&self) -> Result<HubObjects, CommandError> {
        let namespaces = [
            ("--decisions-namespace", &self.decisions_namespace),
            ("--profiles-namespace", &self.profiles_namespace),
        ];
        for (flag, namespace) in namespaces {
            if let Some(namespace) = namespace {
                fits(flag, namespace, is_dns_label(namespace))?;
            }
        }
        if self.publish_decisions.is_none() && self.publish_profiles.is_none() {
            let given = [("--profiles-namespace", self.profiles_namespace.is_some())];
            let hint = "add `--publish-profiles kube` or `--publish-decisions kube`";
            refuse_flags(&given, "where no objects are written", hint)?;
        }
        let decisions = match self.publish_decisions {
            Some(_) => DecisionKind::forms(&self.decision_kinds),
            None => Vec::new(),
        };
        Ok(HubObjects {
            decisions,
            decisions_namespace: self.decisions_namespace.clone(),
            profiles: self.publish_profiles.is_some(),
            profiles_namespace: self.profiles_namespace.clone(),
        })
    }
}

pub(super) fn cmd_hub(args: &HubArgs, ui: &Ui) -> Outcome {
    fits("--name", &args.name, is_dns_label(&args.name) && args.name.len() <= LONGEST)?;
    let secrets = [
        ("--source-secret", &args.source_secret),
        ("--signing-secret", &args.signing_secret),
        ("--webhook-secret", &args.webhook_secret),
        ("--status-secret", &args.status_secret),
        ("--notify-secret", &args.notify_secret),
        ("--artifact-signing-secret", &args.artifact_signing_secret),
    ];
    for (flag, secret) in secrets {
        if let Some(secret) = secret {
            fits(flag, secret, is_dns_subdomain(secret))?;
        }
    }
    if let Some(source) = &args.source {
        let full = if source.starts_with("refs/") { source.clone() } else { format!("refs/heads/{source}") };
        if !is_valid_ref(&full) || source.contains(['*', '$']) {
            let error = CommandError::usage(format!("--source `{source}` is not the name of a branch"));
            return Err(error.hint("write it as `main` or `refs/heads/main`"));
        }
    }
    if let Some(fleet) = &args.fleet {
        fits("--fleet", fleet, is_dns_subdomain(fleet))?;
    }
    let hub = Hub {
        source_remote: args.source_remote.as_ref().map(|url| source_remote(url, args)).transpose()?,
        source: args.source.clone(),
        fleet: args.fleet.clone(),
        events: args.events,
        standby: args.standby,
        signing_secret: args.signing_secret.clone(),
        webhook_secret: args.webhook_secret.clone(),
        status_secret: args.status_secret.clone(),
        notify_secret: args.notify_secret.clone(),
        publish: args.publish.clone(),
        artifact_secret: args.artifact_signing_secret.clone(),
        objects: args.objects.wanted()?,
    };
    let install = args.common.parameters(&args.name, &args.namespace, Role::Hub(hub))?;
    place(&install, &args.place, ui)
}

fn source_remote(url: &str, args: &HubArgs) -> Result<Remote, CommandError> {
    let (ssh, port) = address(url)?;
    if ssh && args.source_secret.is_none() {
        return Err(CommandError::usage("ssh needs a key").hint("name its Secret with --source-secret"));
    }
    Ok(Remote { url: url.to_owned(), port, ssh, secret: args.source_secret.clone(), ..Remote::default() })
}
