//! The members' reports → their verdicts on the copies of workloads that roll out step by step.
//!
//! A report is about the folder that the member applied, by its tree id. The copies are those of that very tree:
//! usually the cluster's current folder, otherwise one read from the repository. A tree that is missing there is no
//! report.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::PassInputs;
use crate::publish::CurrentState;
use berth_base::model::cluster::WorkloadName;
use berth_base::model::release::CopyReport;
use berth_base::model::{
    ClusterStatus, ContentId, Decision, Fleet, Folder, Key, Map, ObjectId, Pick, Shared, Timestamp, path,
};
use berth_engine::release;
use berth_engine::release::copies::ObjectPaths;
use berth_engine::release::verdict::Account;
use berth_engine::state::Ledger;
use berth_git::{Entry, EntryKind, GitError, Repo, TreeId};

/// The namespaces' folders that are remembered while reports on other trees are read. Most members that are behind
/// are behind by the same publication, and share these.
const MOST_REMEMBERED: usize = 4_096;

/// The verdicts that were added last, and all that they were made from. The next pass looks at the members whose report
/// or folder changed since.
#[derive(Debug, Default)]
pub(crate) struct CopyReportCache {
    asking: Vec<Asking>,
    trees: Map<String, TreeId>,
    statuses: Map<String, Shared<ClusterStatus>>,
    /// The very same statuses, with the verdicts.
    judged: Map<String, Shared<ClusterStatus>>,
    /// Members with a tree that is missing. It may be there another time.
    unread: BTreeSet<String>,
}

impl PassInputs {
    /// Reports whether a member's report is about a folder that is missing, which may arrive without a ref that moves.
    pub(crate) fn lacks_objects(&self) -> bool {
        !self.cache.copies.unread.is_empty()
    }
}

impl CopyReportCache {
    /// Adds to each status the verdicts on workloads with a rollout strategy. Verdicts that a status brings along stay,
    /// with moments no later than `now`.
    pub(super) fn add_verdicts(
        &mut self,
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
        let asking = asking(fleet, current);
        let is_same = asking.iter().eq(&self.asking);
        let last = if is_same { std::mem::take(self) } else { CopyReportCache::default() };
        let changed = last.statuses.changes_by(statuses, Shared::is_same).map(|one| one.key.clone());
        let moved = last.trees.changes(&current.trees).map(|one| one.key.clone());
        let changed: BTreeSet<String> = changed.chain(moved).chain(last.unread).collect();
        let mut judged = last.judged;
        let mut unread = BTreeSet::new();
        let asked: Vec<_> = asking.iter().map(|one| (one, ObjectPaths::of(&one.objects))).collect();
        let mut trees = Trees { repo, namespaces: BTreeMap::new() };
        for cluster in changed {
            let Some(status) = statuses.get(&cluster) else {
                judged.remove(&cluster);
                continue;
            };
            let mut status = status.clone();
            match verdicts(&mut trees, current, &asked, &cluster, &status) {
                Some(verdicts) if verdicts.is_empty() => {}
                Some(verdicts) => status.copies.extend(verdicts),
                None => drop(unread.insert(cluster.clone())),
            }
            judged.insert(cluster, status);
        }
        let reported = std::mem::replace(statuses, judged.clone());
        *self = CopyReportCache { asking, trees: current.trees.clone(), statuses: reported, judged, unread };
    }
}

/// Returns the verdicts on all workloads that ask for one of this member; `None` where the tree is missing that its
/// report is about.
fn verdicts(
    trees: &mut Trees<'_>,
    current: &CurrentState,
    asking: &[(&Asking, ObjectPaths<'_>)],
    cluster: &str,
    status: &ClusterStatus,
) -> Option<BTreeMap<WorkloadName, CopyReport>> {
    let mut verdicts = BTreeMap::new();
    let Some(applied) = &status.applied else { return Some(verdicts) };
    let (Some(account), Ok(tree)) = (Account::of(applied), applied.tree.parse()) else {
        return Some(verdicts);
    };
    let mut asking = asking.iter().filter(|(one, _)| one.asks(cluster)).peekable();
    if asking.peek().is_none() {
        return Some(verdicts);
    }
    let mut folder = AppliedFolder::find(trees, current, cluster, tree)?;
    let published = current.state.folders.get(cluster);
    for (one, paths) in asking {
        if status.copies.contains_key(&one.name) || verdicts.contains_key(&one.name) {
            continue;
        }
        // A copy that is there although the cluster lost this workload's belongs to another one.
        let is_theirs = |path: &str| {
            one.has_of_others(cluster, path)
                || one.is_leaving(cluster) && published.is_some_and(|now| now.contains_key(path))
        };
        let mut is_unread = false;
        let copies = paths.copies(|path| {
            let content = folder.content_at(path).unwrap_or_else(|_| {
                is_unread = true;
                None
            });
            content.filter(|_| !is_theirs(path))
        });
        if is_unread {
            return None;
        }
        let verdict = match copies.is_empty() {
            true if one.is_leaving(cluster) => account.verdict_on_removal(&one.objects),
            _ => account.verdict(&copies),
        };
        verdicts.insert(one.name.clone(), verdict);
    }
    Some(verdicts)
}

/// A workload that waits for verdicts.
#[derive(Debug)]
struct Asking {
    name: WorkloadName,
    objects: Vec<ObjectId>,
    picks: Shared<Vec<Pick>>,
    /// The clusters that have lost its copies, and whose members may still have them.
    removing: BTreeSet<String>,
    /// The places of its objects where the copy is another workload's, as clusters and paths.
    of_others: BTreeSet<(String, String)>,
}

/// They ask for the same verdicts.
impl PartialEq for Asking {
    fn eq(&self, other: &Asking) -> bool {
        let clusters = |one: &Asking| one.picks.iter().map(|pick| pick.cluster.clone()).collect::<Vec<_>>();
        (&self.name, &self.objects) == (&other.name, &other.objects)
            && (&self.removing, &self.of_others) == (&other.removing, &other.of_others)
            && (self.picks.is_same(&other.picks) || clusters(self) == clusters(other))
    }
}

impl Asking {
    fn asks(&self, cluster: &str) -> bool {
        self.picks.binary_search_by(|pick| (*pick.cluster).cmp(cluster)).is_ok() || self.is_leaving(cluster)
    }

    fn is_leaving(&self, cluster: &str) -> bool {
        self.removing.contains(cluster)
    }

    fn has_of_others(&self, cluster: &str, path: &str) -> bool {
        !self.of_others.is_empty() && self.of_others.contains(&(cluster.to_owned(), path.to_owned()))
    }
}

fn asking(fleet: &Fleet, current: &CurrentState) -> Vec<Asking> {
    let recorded = recorded(&current.state.ledger);
    let asking = release::observed(fleet).filter_map(|observed| {
        let key = &observed.workload.key;
        let decision = current.state.decisions.get(key)?;
        let removing = current.state.releases.get(key).map(|releases| releases.removing.keys().cloned());
        Some(Asking {
            name: WorkloadName::of(key),
            objects: decision.objects.clone(),
            picks: decision.picks.clone(),
            removing: removing.into_iter().flatten().collect(),
            of_others: of_others(&recorded, decision),
        })
    });
    asking.collect()
}

/// The clusters where the ledger says whose a copy is, by object, each with the workload whose release it is part of.
type Recorded<'l> = BTreeMap<&'l ObjectId, Vec<(&'l str, Option<&'l Key>)>>;

fn recorded(ledger: &Ledger) -> Recorded<'_> {
    let mut recorded = Recorded::new();
    for ((cluster, object), owner) in &ledger.owners {
        let user = Some(&owner.workload).filter(|_| !owner.is_handed_over);
        recorded.entry(object).or_default().push((cluster, user));
    }
    recorded
}

/// Returns the places of a decision's objects where the copy is no part of its release.
fn of_others(recorded: &Recorded<'_>, decision: &Decision) -> BTreeSet<(String, String)> {
    let places = decision.objects.iter().filter_map(|object| Some((object, recorded.get(object)?)));
    let of_others = places.flat_map(|(object, clusters)| {
        let others = clusters.iter().filter(|(_, user)| *user != Some(&decision.key));
        others.map(move |(cluster, _)| ((*cluster).to_owned(), path::of_object(object)))
    });
    of_others.collect()
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

    fn content_at(&mut self, path: &str) -> Result<Option<ContentId>, GitError> {
        match self {
            AppliedFolder::Current(folder) => Ok(folder.get(path).copied()),
            AppliedFolder::Other { trees, namespaces } => {
                let place = path.split_once('/');
                let place = place.and_then(|(name, file)| Some((*namespaces.get(name.as_bytes())?, file)));
                let Some((namespace, file)) = place else { return Ok(None) };
                Ok(trees.namespace(namespace)?.get(file.as_bytes()).copied())
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
    /// Returns the files of a namespace's folder.
    fn namespace(&mut self, id: TreeId) -> Result<Files, GitError> {
        if let Some(known) = self.namespaces.get(&id) {
            return Ok(known.clone());
        }
        let file = |entry: Entry| match entry.kind {
            EntryKind::File(id) => Some((entry.name, id)),
            EntryKind::Folder(_) | EntryKind::Other { .. } => None,
        };
        let entries = self.repo.tree(id)?;
        let files: Files = Rc::new(entries.into_iter().filter_map(file).collect());
        if self.namespaces.len() >= MOST_REMEMBERED {
            self.namespaces.clear();
        }
        self.namespaces.insert(id, files.clone());
        Ok(files)
    }
}
