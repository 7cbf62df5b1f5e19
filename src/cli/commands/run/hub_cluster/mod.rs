//! The flags of a daemon that writes its decisions and clusters to a hub cluster, where other systems read them.

mod worker;

use std::str::FromStr;
use std::time::Duration;

use crate::process::exit::{CommandError, Exit};
use berth_base::backoff::pace::paced;
use berth_base::meta::names::{is_dns_label, is_label_value};
use berth_engine::hub_objects::HubPlaces;
use berth_engine::hub_objects::decisions::DecisionApi;
use berth_hub::daemon::PassResult;
use berth_hub::daemon::pass_metrics::PassMeter;
use berth_member::live::Access;

pub(crate) use worker::{HubCluster, HubWorker};

/// The time limit of one request.
const PATIENCE: Duration = Duration::from_secs(15);

/// The objects of a hub cluster
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Objects in a hub cluster")]
pub(crate) struct HubClusterArgs {
    /// Write the clusters of each placement to a hub cluster, as PlacementDecisions: `kube`, or `kube:CONTEXT` for a context of the kubeconfig
    #[arg(long, value_name = "HUB", env = "BERTH_PUBLISH_DECISIONS")]
    publish_decisions: Option<HubPlace>,
    /// Write the clusters to a hub cluster, as ClusterProfiles
    #[arg(long, value_name = "HUB", env = "BERTH_PUBLISH_PROFILES")]
    publish_profiles: Option<HubPlace>,
    /// Kinds of PlacementDecisions: those of SIG Multicluster, those of Open Cluster Management; default: both, where the hub has them
    #[arg(
        long,
        value_name = "KINDS",
        value_enum,
        value_delimiter = ',',
        env = "BERTH_DECISION_KINDS",
        requires = "publish_decisions"
    )]
    decision_kinds: Vec<DecisionKind>,
    /// Write all decisions to this namespace; default: the namespace of each placement
    #[arg(
        long,
        value_name = "NAMESPACE",
        env = "BERTH_DECISIONS_NAMESPACE",
        value_parser = namespace,
        requires = "publish_decisions"
    )]
    decisions_namespace: Option<String>,
    /// Namespace of the ClusterProfiles, and of decisions for placements that have none
    #[arg(long, value_name = "NAMESPACE", default_value = "fleet", env = "BERTH_PROFILES_NAMESPACE", value_parser = namespace)]
    profiles_namespace: String,
    /// Label that namespace with this cluster set
    #[arg(
        long,
        value_name = "NAME",
        env = "BERTH_PROFILES_CLUSTER_SET",
        value_parser = cluster_set,
        requires = "publish_profiles"
    )]
    profiles_cluster_set: Option<String>,
    /// Compare the hub's objects at least this often, in seconds, and put right what somebody changed
    #[arg(long, value_name = "SECONDS", default_value_t = 300, env = "BERTH_HUB_INTERVAL", value_parser = clap::value_parser!(u64).range(1..))]
    hub_interval: u64,
}

/// A kind of decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DecisionKind {
    /// `PlacementDecision` of `multicluster.x-k8s.io`
    Sig,
    /// `PlacementDecision` of `cluster.open-cluster-management.io`
    Ocm,
}

impl DecisionKind {
    /// Returns the forms of these kinds; all forms if none is given.
    pub fn forms(kinds: &[DecisionKind]) -> Vec<DecisionApi> {
        let all = [(DecisionKind::Sig, DecisionApi::Sig), (DecisionKind::Ocm, DecisionApi::Ocm)];
        let wanted = all.into_iter().filter(|(kind, _)| kinds.is_empty() || kinds.contains(kind));
        wanted.map(|(_, form)| form).collect()
    }
}

/// A hub cluster, by the context of a kubeconfig.
#[derive(Clone, Debug, PartialEq, Eq)]
struct HubPlace {
    context: Option<String>,
}

impl FromStr for HubPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<HubPlace, String> {
        match text.split_once(':') {
            None if text == "kube" => Ok(HubPlace { context: None }),
            Some(("kube", context)) if !context.is_empty() => {
                Ok(HubPlace { context: Some(context.to_owned()) })
            }
            _ => Err("write it as `kube`, or `kube:CONTEXT`".to_owned()),
        }
    }
}

fn namespace(text: &str) -> Result<String, String> {
    let fits = is_dns_label(text);
    if fits { Ok(text.to_owned()) } else { Err("use lower-case letters, digits and dashes".to_owned()) }
}

fn cluster_set(text: &str) -> Result<String, String> {
    let fits = is_label_value(text) && !text.is_empty();
    if fits { Ok(text.to_owned()) } else { Err("use a name that fits the value of a label".to_owned()) }
}

impl HubClusterArgs {
    pub fn are_wanted(&self) -> bool {
        self.publish_decisions.is_some() || self.publish_profiles.is_some()
    }

    /// Starts the writing threads, one for each hub.
    pub fn start(
        &self,
        access: &Access,
        fleet: &str,
        meter: Option<&PassMeter>,
    ) -> Result<Vec<HubWorker>, CommandError> {
        let interval = paced(Duration::from_secs(self.hub_interval));
        let start = |hub| {
            let counts = meter.map(PassMeter::hub_objects).unwrap_or_default();
            HubWorker::start(hub, interval, counts)
                .map_err(|error| CommandError::io("starting to write to the hub cluster", &error))
        };
        self.hubs(access, fleet).into_iter().map(start).collect()
    }

    /// Writes the result of one pass. Returns a line for each hub.
    pub fn write(
        &self,
        access: &Access,
        fleet: &str,
        passed: &PassResult,
    ) -> Result<Vec<String>, CommandError> {
        let mut said = Vec::new();
        for mut hub in self.hubs(access, fleet) {
            let unwritten = |why: String| {
                CommandError::new(
                    Exit::Unreachable,
                    format!("the hub cluster does not show the state: {why}"),
                )
                .hint("the state is published all the same; the next run writes what is missing")
            };
            let done = hub.round(&passed.shown).map_err(unwritten)?;
            said.extend(done.notes);
            said.push(format!(
                "wrote {} to the hub cluster",
                berth_base::text::counted(done.writes, "object")
            ));
        }
        Ok(said)
    }

    /// Returns the hubs. Decisions and profiles for the same hub are written together, profiles first.
    pub fn hubs(&self, access: &Access, fleet: &str) -> Vec<HubCluster> {
        let hub = |place: &HubPlace, decisions: bool, profiles: bool| HubCluster {
            access: Access {
                context: place.context.clone().or_else(|| access.context.clone()),
                patience: PATIENCE,
                ..access.clone()
            },
            place: HubPlaces {
                fleet: if fleet.is_empty() { "default".to_owned() } else { fleet.to_owned() },
                decisions: self.decisions_namespace.clone(),
                profiles: self.profiles_namespace.clone(),
                cluster_set: self.profiles_cluster_set.clone(),
            },
            forms: if decisions { DecisionKind::forms(&self.decision_kinds) } else { Vec::new() },
            takes_served_forms: self.decision_kinds.is_empty(),
            profiles,
            statuses: Default::default(),
        };
        match (&self.publish_decisions, &self.publish_profiles) {
            (Some(one), Some(other)) if one == other => vec![hub(one, true, true)],
            (decisions, profiles) => {
                let profiles = profiles.iter().map(|place| hub(place, false, true));
                profiles.chain(decisions.iter().map(|place| hub(place, true, false))).collect()
            }
        }
    }
}
