//! The flags of a syncer's statuses: the daemon or repository that stores them, and the page of metrics; and the flags of
//! the additional facts that a member reports, with their files and objects.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tracing::warn;

use crate::flags::remote::{RemoteArgs, StatusRemoteArgs};
use crate::flags::telemetry::MetricsArgs;
use crate::process::exit::CommandError;
use berth_base::diag::Diagnostics;
use berth_base::model::ClusterStatus;
use berth_git::signature::{Signer, sshsig};
use berth_git::transport::{Cancel, WorkingCopy};
use berth_http::client::{self, Client, ClientError, PATIENCE, Request, Roots, short_line};
use berth_member::live::{Access, Cluster, Host, LiveError, Query, Resource};
use berth_member::sync::facts_file;
use berth_member::sync::remote::{SendError, StatusPlace, StatusSender};

const HINT: &str = "name a daemon with `--status-post`, or a repository with `--status-remote`";

/// The observation of a syncer
#[derive(Debug, clap::Args)]
pub(crate) struct ReportingArgs {
    #[command(flatten)]
    status_remote: StatusRemoteArgs,
    #[command(flatten)]
    status_post: StatusPostArgs,
    /// Write no status into any repository
    #[arg(long, env = "BERTH_NO_REPORT", conflicts_with_all = ["status_remote", "status_post"])]
    pub no_report: bool,
    #[command(flatten)]
    pub metrics: MetricsArgs,
}

impl ReportingArgs {
    /// Reports whether statuses are sent anywhere. A registry accepts none.
    pub fn reports(&self, remote: &RemoteArgs) -> bool {
        let has_place = self.status_remote.named().is_given() || self.status_post.is_given();
        !self.no_report && (has_place || !remote.is_registry())
    }

    /// Logs once that statuses stay here, unless this was requested.
    pub fn say_where(&self, remote: &RemoteArgs) {
        if !self.no_report && !self.reports(remote) {
            warn!(
                hint = HINT,
                "no status is sent, since a registry takes none: rollouts wait for this cluster"
            );
        }
    }

    /// Opens the destination of statuses.
    pub fn place(
        &self,
        remote: &RemoteArgs,
        copy: &WorkingCopy,
        cancel: &Cancel,
    ) -> Result<StatusPlace, CommandError> {
        if let Some(sender) = self.status_post.sender(remote)? {
            return Ok(StatusPlace::Sender(sender));
        }
        let other = self.status_remote.named().open(remote, copy, cancel)?;
        Ok(other.map_or(StatusPlace::Remote, StatusPlace::Other))
    }
}

/// The characters of an answer that are shown.
const LONGEST_REASON: usize = 300;

/// A daemon that takes statuses.
#[derive(Debug, clap::Args)]
pub(crate) struct StatusPostArgs {
    /// Send statuses to the daemon at this address, such as `https://berth.example.com/status`, instead of pushing them.
    /// `http` needs --allow-plain
    #[arg(
        long,
        value_name = "URL",
        env = "BERTH_STATUS_POST",
        help_heading = "Remote",
        requires = "remote",
        conflicts_with = "status_remote"
    )]
    status_post: Option<String>,
    /// The Ed25519 key of OpenSSH that signs these statuses; default: the one of --ssh-key
    #[arg(long, value_name = "FILE", env = "BERTH_STATUS_KEY", help_heading = "Remote")]
    status_key: Option<PathBuf>,
}

impl StatusPostArgs {
    pub(crate) fn is_given(&self) -> bool {
        self.status_post.is_some()
    }

    /// Returns the file with the key, if it is not the remote's.
    pub(crate) fn secret_file(&self) -> Option<&Path> {
        self.status_key.as_deref()
    }

    /// Returns the sender to the daemon, if one is set. Connects to nothing yet.
    pub(crate) fn sender(&self, remote: &RemoteArgs) -> Result<Option<Box<dyn StatusSender>>, CommandError> {
        let Some(url) = &self.status_post else { return Ok(None) };
        if !is_fit(url, remote.allows_plain()) {
            // The address may contain a password.
            let error = CommandError::usage("the address of `--status-post` cannot be used");
            return Err(error.hint("write it as `https://host/status`; `http://` needs `--allow-plain`"));
        }
        let Some(key) = self.status_key.as_deref().or_else(|| remote.ssh_key()) else {
            let error = CommandError::usage("no key is named that signs statuses");
            return Err(
                error.hint("make one and name it: ssh-keygen -t ed25519 -N '' -f FILE; --status-key FILE")
            );
        };
        let signer = read(key)?;
        let client = Client::new(url, &Roots::default());
        Ok(Some(Box::new(SignedPost { url: url.clone(), client, signer })))
    }
}

/// Reports whether an address uses `https`, or `http` if plain traffic is allowed.
fn is_fit(url: &str, allows_plain: bool) -> bool {
    let plain = url.strip_prefix("http://").filter(|_| allows_plain);
    let rest = url.strip_prefix("https://").or(plain).unwrap_or_default();
    !rest.is_empty() && !rest.contains(['@', '#']) && url.chars().all(|c| c.is_ascii_graphic())
}

fn read(key: &Path) -> Result<Signer, CommandError> {
    let unusable =
        |why: String| CommandError::usage(format!("the key `{}` cannot sign statuses: {why}", key.display()));
    let text = std::fs::read_to_string(key).map_err(|error| unusable(error.to_string()))?;
    Signer::read(&text)
        .map_err(|error| unusable(error.to_string()).hint("make one: ssh-keygen -t ed25519 -N '' -f FILE"))
}

/// Sends signed statuses to a daemon.
#[derive(Debug)]
struct SignedPost {
    url: String,
    client: Client,
    signer: Signer,
}

impl StatusSender for SignedPost {
    /// Sends a status with its signature. On success, it is stored in the repository.
    fn send(&self, status: &[u8]) -> Result<(), SendError> {
        let signature = sshsig::sign_status(&self.signer, status).map_err(SendError::Failed)?;
        let url = &self.url;
        let request = Request::post(url).header("berth-signature", signature);
        let request = request.header("content-type", "application/yaml");
        let answer = self.client.send(request, Some(status), PATIENCE).map_err(|error: ClientError| {
            let reason = short_line(&error.to_string(), LONGEST_REASON);
            SendError::Failed(format!("`{url}` cannot be reached: {reason}"))
        })?;
        if answer.status().is_success() {
            return Ok(());
        }
        let code = answer.status().as_u16();
        let body = client::read(answer.into_body(), 1 << 16).unwrap_or_default();
        let words = String::from_utf8_lossy(&body);
        let reason = short_line(&format!("{} ({code})", words.trim()), LONGEST_REASON);
        match code {
            408 | 429 | 500..=599 => {
                Err(SendError::Failed(format!("`{url}` cannot take the status now: {reason}")))
            }
            _ => Err(SendError::Refused(format!("`{url}` refuses the status: {reason}"))),
        }
    }
}

/// The API of ClusterProperties, newest version first.
const GROUP: &str = "about.k8s.io";
const VERSIONS: [&str; 2] = ["v1beta1", "v1alpha1"];
/// The longest reported value: all members' statuses are in one repository.
const LONGEST: usize = 1024;
/// The number of reported properties.
const MOST: usize = 100;

/// Facts about the cluster
#[derive(Debug, clap::Args)]
pub(crate) struct FactsArgs {
    /// File with a ClusterStatus to report too: labels, claims, properties, scores, capacities. Read again in each round
    #[arg(long, value_name = "FILE", env = "BERTH_FACTS")]
    facts: Option<PathBuf>,
    /// Report the cluster's ClusterProperties (about.k8s.io) as claims and properties, too. Read again in each round
    #[arg(long, env = "BERTH_CLUSTER_PROPERTIES")]
    cluster_properties: bool,
}

impl FactsArgs {
    /// Returns the source of facts. `access` is for the member's cluster, if it is a Kubernetes cluster.
    pub fn source(&self, cluster: &str, access: Option<Access>) -> FactsSource {
        FactsSource {
            file: self.facts.clone(),
            cluster: cluster.to_owned(),
            access: access.filter(|_| self.cluster_properties),
            connection: None,
            complained: false,
        }
    }
}

/// The places of a member's facts.
#[derive(Debug)]
pub(crate) struct FactsSource {
    file: Option<PathBuf>,
    /// The cluster that the file must name.
    cluster: String,
    /// The access to the cluster, if its ClusterProperties are reported.
    access: Option<Access>,
    connection: Option<Cluster>,
    /// True once omitted properties were logged.
    complained: bool,
}

impl FactsSource {
    /// Reads the facts. A value in the file overrides the ClusterProperty of the same name.
    pub fn read(&mut self) -> Result<ClusterStatus, String> {
        let mut facts = match &self.file {
            Some(path) => read_own_file(path, |name, bytes| facts_file::read(name, bytes, &self.cluster))?,
            None => ClusterStatus::default(),
        };
        for (name, value) in self.properties()? {
            facts.claims.entry(name.clone()).or_insert_with(|| value.clone());
            facts.properties.entry(name).or_insert(value);
        }
        Ok(facts)
    }

    /// Reads the ClusterProperties. A cluster whose API server lacks the kind has none.
    fn properties(&mut self) -> Result<BTreeMap<String, String>, String> {
        let Some(access) = &self.access else { return Ok(BTreeMap::new()) };
        let connected = match self.connection.take() {
            Some(connected) => connected,
            None => Cluster::connect_pod(access).map_err(|error| error.to_string())?,
        };
        let mut found = Vec::new();
        for version in VERSIONS {
            let resource = Resource::new(GROUP, version, "clusterproperties", "ClusterProperty", false);
            match connected.list(&[Query::all(resource)]).pop() {
                Some(Err(LiveError::NotServed { .. })) => {}
                Some(Err(error)) => return Err(error.to_string()),
                Some(Ok(listed)) => {
                    found = listed;
                    break;
                }
                None => {}
            }
        }
        self.connection = Some(connected);
        let property = |object: &serde_json::Value| {
            let value = object.pointer("/spec/value")?.as_str()?;
            Some((object.pointer("/metadata/name")?.as_str()?.to_owned(), value.to_owned()))
        };
        let all = found.iter().filter_map(property);
        let (mut kept, long): (BTreeMap<_, _>, BTreeMap<_, _>) =
            all.partition(|(_, value)| value.chars().count() <= LONGEST);
        let more: Vec<String> = kept.keys().skip(MOST).cloned().collect();
        more.iter().for_each(|name| drop(kept.remove(name)));
        if (!long.is_empty() || !more.is_empty()) && !std::mem::replace(&mut self.complained, true) {
            let names: Vec<&String> = long.keys().chain(&more).collect();
            warn!(properties = ?names, "ClusterProperties that are too long or too many are not reported");
        }
        Ok(kept)
    }
}

/// Reads one of the member's own files, such as overrides or facts. All its problems are one message.
pub(super) fn read_own_file<T>(
    path: &Path,
    read: impl FnOnce(&str, &[u8]) -> Result<T, Diagnostics>,
) -> Result<T, String> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|error| format!("{name}: {error}"))?;
    read(&name, &bytes).map_err(|found| found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}
