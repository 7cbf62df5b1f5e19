//! The members' reports → their verdicts on the copies of workloads that roll out step by step.
//!
//! A report is about the folder that the member applied, by its tree id. The copies are those of that very tree:
//! usually the cluster's current folder, otherwise one read from the repository. A tree that is missing there is no
//! report.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::publish::CurrentState;
use berth_base::model::cluster::WorkloadName;
use berth_base::model::release::CopyReport;
use berth_base::model::{ClusterStatus, ContentId, Fleet, Folder, Map, ObjectId, Shared, Timestamp};
use berth_engine::release;
use berth_engine::release::copies::ObjectPaths;
use berth_engine::release::verdict::Account;
use berth_git::{Entry, EntryKind, Repo, TreeId};

/// The namespaces' folders that are remembered while reports on other trees are read. Most members that are behind
/// are behind by the same publication, and share these.
const MOST_REMEMBERED: usize = 4_096;

/// Adds to each status the verdicts on workloads with a rollout strategy. Verdicts that a status brings along stay,
/// with moments no later than `now`.
pub(super) fn add(
    repo: &Repo,
    fleet: &Fleet,
    current: &CurrentState,
    statuses: &mut Map<String, Shared<ClusterStatus>>,
    now: Timestamp,
) {
    let is_ahead = |report: &CopyReport| report.since.is_some_and(|since| since > now);
    statuses.update(|_, status| {
        let mut status = Some(status).filter(|status| status.copies.values().any(is_ahead))?.clone();
        for report in status.copies.values_mut().filter(|report| is_ahead(report)) {
            report.since = Some(now);
        }
        Some(status)
    });
    let workloads = workloads(fleet, current);
    let mut trees = Trees { repo, namespaces: BTreeMap::new() };
    for (cluster, asked) in by_cluster(&workloads) {
        let Some(status) = statuses.get(cluster) else { continue };
        let Some(applied) = &status.applied else { continue };
        let (Some(account), Ok(tree)) = (Account::of(applied), applied.tree.parse()) else { continue };
        let Some(mut folder) = AppliedFolder::find(&mut trees, current, cluster, tree) else { continue };
        let published = current.state.folders.get(cluster);
        let mut verdicts = BTreeMap::new();
        for one in asked {
            if status.copies.contains_key(&one.name) || verdicts.contains_key(&one.name) {
                continue;
            }
            // A copy that is there although the cluster lost this workload's belongs to another one.
            let is_theirs =
                |path: &str| one.is_leaving(cluster) && published.is_some_and(|now| now.contains_key(path));
            let copies = one.paths.copies(|path| folder.content_at(path).filter(|_| !is_theirs(path)));
            let verdict = match copies.is_empty() {
                true if one.is_leaving(cluster) => account.verdict_on_removal(one.objects),
                _ => account.verdict(&copies),
            };
            verdicts.insert(one.name.clone(), verdict);
        }
        if let (Some(status), false) = (statuses.get_mut(cluster), verdicts.is_empty()) {
            status.copies.extend(verdicts);
        }
    }
}

/// A workload that waits for verdicts.
struct Asking<'a> {
    name: WorkloadName,
    objects: &'a [ObjectId],
    paths: ObjectPaths<'a>,
    clusters: BTreeSet<&'a str>,
    removing: Option<&'a BTreeMap<String, Timestamp>>,
}

impl Asking<'_> {
    /// Reports whether the cluster has lost its copies, and its member may still have them.
    fn is_leaving(&self, cluster: &str) -> bool {
        self.removing.is_some_and(|removing| removing.contains_key(cluster))
    }
}

fn workloads<'a>(fleet: &Fleet, current: &'a CurrentState) -> Vec<Asking<'a>> {
    let asking = release::observed(fleet).filter_map(|observed| {
        let workload = observed.workload;
        let decision = current.state.decisions.get(&workload.key)?;
        let removing = current.state.releases.get(&workload.key).map(|releases| &releases.removing);
        let picked = decision.picks.iter().map(|pick| &*pick.cluster);
        let leaving = removing.into_iter().flat_map(|removing| removing.keys().map(String::as_str));
        Some(Asking {
            name: WorkloadName::of(&workload.key),
            objects: &decision.objects,
            paths: ObjectPaths::of(&decision.objects),
            clusters: picked.chain(leaving).collect(),
            removing,
        })
    });
    asking.collect()
}

fn by_cluster<'w, 'a>(workloads: &'w [Asking<'a>]) -> BTreeMap<&'a str, Vec<&'w Asking<'a>>> {
    let mut by_cluster: BTreeMap<&str, Vec<&Asking<'_>>> = BTreeMap::new();
    for workload in workloads {
        for cluster in &workload.clusters {
            by_cluster.entry(cluster).or_default().push(workload);
        }
    }
    by_cluster
}

/// The folder that a member says it applied.
enum AppliedFolder<'t, 'r> {
    Current(&'t Folder),
    /// Another folder, with those of its namespaces that were asked for.
    Other {
        trees: &'t mut Trees<'r>,
        namespaces: BTreeMap<Vec<u8>, TreeId>,
    },
}

impl<'t, 'r> AppliedFolder<'t, 'r> {
    fn find(
        trees: &'t mut Trees<'r>,
        current: &'t CurrentState,
        cluster: &str,
        tree: TreeId,
    ) -> Option<AppliedFolder<'t, 'r>> {
        if current.trees.get(cluster) == Some(&tree) {
            return current.state.folders.get(cluster).map(AppliedFolder::Current);
        }
        let entries = trees.repo.tree(tree).ok()?;
        let folder = |entry: Entry| match entry.kind {
            EntryKind::Folder(id) => Some((entry.name, id)),
            EntryKind::File(_) | EntryKind::Other { .. } => None,
        };
        Some(AppliedFolder::Other { trees, namespaces: entries.into_iter().filter_map(folder).collect() })
    }

    fn content_at(&mut self, path: &str) -> Option<ContentId> {
        match self {
            AppliedFolder::Current(folder) => folder.get(path).copied(),
            AppliedFolder::Other { trees, namespaces } => {
                let (namespace, file) = path.split_once('/')?;
                let id = namespaces.get(namespace.as_bytes())?;
                trees.namespace(*id).get(file.as_bytes()).copied()
            }
        }
    }
}

type Files = Rc<BTreeMap<Vec<u8>, ContentId>>;

/// Reads the folders of earlier publications.
struct Trees<'r> {
    repo: &'r Repo,
    namespaces: BTreeMap<TreeId, Files>,
}

impl Trees<'_> {
    /// Returns the files of a namespace's folder; none of a folder that is missing.
    fn namespace(&mut self, id: TreeId) -> Files {
        if let Some(known) = self.namespaces.get(&id) {
            return known.clone();
        }
        let file = |entry: Entry| match entry.kind {
            EntryKind::File(id) => Some((entry.name, id)),
            EntryKind::Folder(_) | EntryKind::Other { .. } => None,
        };
        let entries = self.repo.tree(id).unwrap_or_default();
        let files: Files = Rc::new(entries.into_iter().filter_map(file).collect());
        if self.namespaces.len() >= MOST_REMEMBERED {
            self.namespaces.clear();
        }
        self.namespaces.insert(id, files.clone());
        files
    }
}
