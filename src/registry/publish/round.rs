//! Publishes many clusters, several at a time.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::{Published, Publisher};
use crate::error::RegistryError;
use berth_base::progress::Progress;
use berth_git::{CommitId, Repo};

/// The number of clusters published at a time.
const AT_ONCE: usize = 8;

/// The results of a round.
#[derive(Debug, Default)]
pub struct Round {
    /// The clusters that the registry has now, by ref.
    pub published: BTreeMap<String, (CommitId, Published)>,
    /// The clusters that failed, by ref, with the reason. Clusters that were not tried are in neither map.
    pub failures: BTreeMap<String, RegistryError>,
}

impl Round {
    /// Counts the clusters whose publication is new in the registry.
    pub fn changed(&self) -> usize {
        let is_new =
            |result: &&(CommitId, Published)| matches!(result.1, Published::Folder(_) | Published::Renamed);
        self.published.values().filter(is_new).count()
    }
}

impl Publisher {
    /// Publishes these refs of a repository. Ends early if the registry is unreachable.
    pub fn round(
        &self,
        repository: &Path,
        wanted: &BTreeMap<String, CommitId>,
        progress: &Progress,
    ) -> Round {
        let items: Vec<(&String, &CommitId)> = wanted.iter().collect();
        let (next, is_away) = (AtomicUsize::new(0), AtomicBool::new(false));
        let round = Mutex::new(Round::default());
        if let Ok(repo) = Repo::open(repository) {
            self.look_back(&repo);
        }
        progress.begin_of("publishing to the registry", items.len());
        let work = || {
            let repo = Repo::open(repository);
            while !is_away.load(Ordering::SeqCst) && self.leads.load(Ordering::SeqCst) {
                let Some((name, commit)) = items.get(next.fetch_add(1, Ordering::SeqCst)) else { break };
                let result = match &repo {
                    Ok(repo) => self.publish_one(repo, **commit),
                    Err(_) => Repo::open(repository)
                        .map(drop)
                        .map_err(RegistryError::from)
                        .map(|()| Published::NotOurs),
                };
                progress.add(1);
                let mut round = round.lock().unwrap_or_else(PoisonError::into_inner);
                match result {
                    Ok(Published::NotOurs) => {}
                    Ok(published) => {
                        round.published.insert((*name).clone(), (**commit, published));
                    }
                    Err(error) => {
                        if error.is_passing() {
                            is_away.store(true, Ordering::SeqCst);
                        }
                        round.failures.insert((*name).clone(), error);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..AT_ONCE.min(items.len()) {
                scope.spawn(work);
            }
            work();
        });
        round.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
