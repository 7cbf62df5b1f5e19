//! Tests of publishing against real repositories.

mod members;
mod publishing;
mod refusals;

use std::collections::BTreeMap;

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::testing::bare;
use berth_base::model::{
    Contents, Decision, Digest, Folder, Key, ObjectId, Pick, PickDetails, Refused, path,
};
use berth_base::packed::Packed;
use berth_engine::plan::{Plan, plan};
use berth_engine::state::State;
use berth_git::shared_refs::Refs;
use berth_git::{CommitId, GitContents, Repo};

/// A repository to publish into.
struct Branch {
    _folder: TempDir,
    repo: Repo,
    refs: Refs,
}

impl Branch {
    fn new() -> Branch {
        let (folder, repo) = bare();
        Branch { _folder: folder, repo, refs: Refs::default() }
    }

    fn current(&self) -> Option<CurrentState> {
        read_current(&self.repo, &self.refs.rendered).unwrap()
    }

    /// Makes a state with one workload per tuple: `(workload, clusters, content)`.
    fn state(&self, workloads: &[(&str, &[&str], &str)]) -> State {
        let mut contents = GitContents::writing(&self.repo).unwrap();
        let mut state = State::default();
        for (name, clusters, content) in workloads {
            let decision = decision("FederatedDeployment", "shop", name, clusters);
            let path = path::of_object(&ObjectId::new("apps", "Deployment", "shop", name));
            let id = contents.put(format!("name: {name}\ncontent: {content}\n").as_bytes()).unwrap();
            for cluster in *clusters {
                let folder: &mut Folder = state.folders.or_default(*cluster);
                folder.put((path.as_str().into(), id).into());
            }
            state.decisions.insert(decision.key.clone(), decision);
        }
        state
    }

    fn try_publish(&self, current: Option<&CurrentState>, next: &State) -> Result<Published, PublishError> {
        let nothing = State::default();
        let before = current.map_or(&nothing, |current| &current.state);
        match current {
            Some(current) => refuse_empty(&current.state, next)?,
            None => refuse_gone(&self.repo, &self.refs)?,
        }
        let summary = Summary::of(&plan(before, next), current.is_none());
        let drafted = draft(&self.repo, current, next, &stamp(100), &summary)?;
        point(&self.repo, &self.refs, current, &drafted)?;
        Ok(drafted)
    }

    /// Publishes with another stamp, even if the state is unchanged.
    fn stamped(&self, current: Option<&CurrentState>, next: &State, stamp: &Stamp) {
        let drafted = draft(&self.repo, current, next, stamp, &Summary::default()).unwrap();
        point(&self.repo, &self.refs, current, &drafted).unwrap();
    }

    /// Publishes onto the present tip of the branch.
    fn publish(&self, next: &State) -> Option<Committed> {
        match self.try_publish(self.current().as_ref(), next).unwrap() {
            Published::Unchanged => None,
            Published::Committed(committed) => Some(*committed),
        }
    }

    fn message(&self) -> String {
        let head = self.current().unwrap().commit;
        self.repo.commit(head).unwrap().message
    }
}

fn stamp(now: i64) -> Stamp {
    let now = berth_base::model::Timestamp::from_second(1_700_000_000 + now).unwrap();
    Stamp::new(CommitId([0xab; 20]), "web: more of it\nBerth-Seq: 99", 1_700_000_000, now)
}

/// Returns a state as it is read back: without clusters that have no objects.
fn as_read(state: &State) -> State {
    let mut state = state.clone();
    state.folders.retain(|_, folder| !folder.is_empty());
    state
}

fn texts(found: &berth_base::diag::Diagnostics) -> Vec<String> {
    found.iter().map(ToString::to_string).collect()
}

fn map<V>(entries: impl IntoIterator<Item = (&'static str, V)>) -> BTreeMap<String, V> {
    entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn decision(kind: &str, namespace: &str, name: &str, clusters: &[&str]) -> Decision {
    let details = PickDetails { reason: "matches".to_owned(), ..PickDetails::default() };
    let picks = clusters.iter().map(|name| Pick::new(*name, details.clone()));
    Decision {
        picks: picks.collect(),
        refused: vec![Refused { reason: "not labelled so".to_owned(), clusters: 2 }],
        digest: Some(Digest([7; 16])),
        policy: Some(Packed::of(&json!({"numberOfClusters": 2}))),
        objects: vec![ObjectId::new("apps", "Deployment", namespace, name)],
        ..Decision::new(Key::new("example.org", kind, namespace, name), "fleet/web.yaml")
    }
}
