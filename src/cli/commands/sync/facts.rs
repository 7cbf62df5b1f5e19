//! The flags of the additional facts that a member reports, and their files and objects.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tracing::warn;

use berth_base::diag::Diagnostics;
use berth_base::model::ClusterStatus;
use berth_member::live::{Access, Cluster, Host, LiveError, Query, Resource};
use berth_member::sync::facts_file;

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
