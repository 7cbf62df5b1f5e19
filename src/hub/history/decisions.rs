//! A placement on both sides of a publication.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::SubjectChange;
use crate::inputs::InputError;
use crate::inputs::gate::decision_id;
use berth_base::model::{ContentId, Decision, Key, path};
use berth_engine::plan::Counts;
use berth_engine::state::decision::read_decision;
use berth_git::{Repo, TreeId};

/// The number of decisions to remember. Most publications leave a decision as it is.
const REMEMBERED: usize = 10_000;

/// Reads decisions, each content once.
#[derive(Debug)]
pub(super) struct DecisionReader<'r> {
    repo: &'r Repo,
    known: RefCell<BTreeMap<ContentId, Option<Rc<Decision>>>>,
}

/// A placement's decision before and after a publication.
#[derive(Debug)]
pub(super) struct Sides {
    ids: [Option<ContentId>; 2],
    decisions: [Option<Rc<Decision>>; 2],
}

impl<'r> DecisionReader<'r> {
    pub fn new(repo: &'r Repo) -> DecisionReader<'r> {
        DecisionReader { repo, known: RefCell::default() }
    }

    pub fn sides(&self, key: &Key, trees: [TreeId; 2]) -> Result<Sides, InputError> {
        let [before, after] = trees.map(|root| decision_id(self.repo, root, key));
        let ids = [before?, after?];
        let [before, after] = ids.map(|id| id.map(|id| self.read(id)).transpose());
        Ok(Sides { ids, decisions: [before?.flatten(), after?.flatten()] })
    }

    pub fn read(&self, id: ContentId) -> Result<Option<Rc<Decision>>, InputError> {
        if let Some(known) = self.known.borrow().get(&id) {
            return Ok(known.clone());
        }
        let decision = read_decision(&self.repo.blob(id)?).ok().map(Rc::new);
        let mut known = self.known.borrow_mut();
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(id, decision.clone());
        Ok(decision)
    }
}

impl Sides {
    fn both(&self) -> impl Iterator<Item = &Decision> {
        self.decisions.iter().flatten().map(|decision| &**decision)
    }

    /// Returns the files that the placement's objects have in a cluster.
    pub fn files(&self) -> BTreeSet<String> {
        self.both().flat_map(|side| side.objects.iter().map(path::of_object)).collect()
    }

    /// Returns the files that they had before the publication.
    pub fn before_files(&self) -> BTreeSet<String> {
        let before = self.decisions[0].iter();
        before.flat_map(|side| side.objects.iter().map(path::of_object)).collect()
    }

    pub fn has(&self, cluster: &str) -> bool {
        self.both().any(|side| side.pick(cluster).is_some())
    }

    /// Returns the change of the placement, in all clusters or in one. `copies` counts its changed files there.
    pub fn change(&self, cluster: Option<&str>, copies: Counts) -> SubjectChange {
        if self.ids[0] == self.ids[1] {
            return SubjectChange { copies, ..SubjectChange::default() };
        }
        let sides = &self.decisions;
        let [was, is] = sides.each_ref().map(|side| clusters_of(side.as_deref(), cluster));
        let (joined, left) = (is.difference(&was).cloned().collect(), was.difference(&is).cloned().collect());
        let is_of_decision = match cluster {
            Some(cluster) => {
                let [was, is] =
                    sides.each_ref().map(|side| side.as_ref().and_then(|side| side.pick(cluster)));
                was != is
            }
            None => sides[0] != sides[1],
        };
        SubjectChange { joined, left, copies, is_of_decision }
    }
}

fn clusters_of(decision: Option<&Decision>, cluster: Option<&str>) -> BTreeSet<String> {
    let picks = decision.into_iter().flat_map(|decision| decision.picked());
    let names = picks.map(|pick| pick.cluster.to_string());
    names.filter(|name| cluster.is_none_or(|wanted| wanted == name)).collect()
}
