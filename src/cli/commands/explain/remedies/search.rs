//! Tries edits, smallest first, and lets the engine decide after each.

use std::collections::BTreeSet;

use super::candidates::{Question, Ways};
use super::edits::{FileEdit, made};
use super::{Remedies, Remedy};
use berth_base::diag::Diagnostics;
use berth_base::model::{Decision, Key, Map};
use berth_base::source::SourceTree;
use berth_engine::decide::ClusterTrace;
use berth_hub::inputs::PassInputs;

/// The number of edits tried. Each requires all decisions.
const MOST: usize = 120;

/// The number of rules that one remedy satisfies, and of its edits.
const MOST_RULES: usize = 3;
const MOST_EDITS: usize = 6;

/// Finds the smallest edits with which a placement picks a cluster. Restores the inputs afterwards.
pub(crate) fn find(inputs: &mut PassInputs, key: &Key, traced: &ClusterTrace) -> Remedies {
    let (loaded, decided, diagnostics) = inputs.decide();
    let fleet = &loaded.fleet;
    let mut remedies = Remedies { reason: traced.reason.clone(), ..Remedies::default() };
    let (Some(placement), Some(cluster)) = (fleet.placements.get(key), fleet.clusters.get(&traced.cluster))
    else {
        return remedies;
    };
    let tree = inputs.tree().clone();
    let question = Question { tree: &tree, fleet, cluster, rank: traced.rank };
    let rules = question.ways(placement);
    let (before, errors) = (&decided.decisions, errors(&diagnostics));
    let asked = Asked { key, cluster: &traced.cluster, before, errors };
    let mut size = None;
    for edits in combined(&rules).into_iter().take(MOST) {
        // Keep all remedies of the smallest size, and no larger ones.
        if size.is_some_and(|size| edits.len() > size) {
            break;
        }
        let Some(edited) = made(&tree, &edits) else { continue };
        remedies.tried += 1;
        if let Some(remedy) = asked.remedy(inputs, edited, &edits) {
            size = Some(edits.len());
            remedies.found.push(remedy);
        }
    }
    inputs.edit_tree(|now| *now = tree.clone());
    remedies
}

/// Combines one way for each of up to [`MOST_RULES`] rules, fewest edits first.
fn combined(rules: &[Ways]) -> Vec<Vec<&FileEdit>> {
    let mut found: Vec<Vec<&FileEdit>> = Vec::new();
    let mut last: Vec<(usize, Vec<&FileEdit>)> = vec![(0, Vec::new())];
    for _ in 0..MOST_RULES {
        let mut next = Vec::new();
        for (from, chosen) in &last {
            for (index, ways) in rules.iter().enumerate().skip(*from) {
                for way in ways {
                    let edits: Vec<&FileEdit> = chosen.iter().copied().chain(way).collect();
                    if edits.len() <= MOST_EDITS && next.len() < MOST {
                        next.push((index + 1, edits));
                    }
                }
            }
        }
        for (_, edits) in &next {
            if !found.contains(edits) {
                found.push(edits.clone());
            }
        }
        last = next;
    }
    found.sort_by_key(Vec::len);
    found
}

/// The question, with the answer before any edit.
struct Asked<'a> {
    key: &'a Key,
    cluster: &'a str,
    before: &'a Map<Key, Decision>,
    errors: usize,
}

impl Asked<'_> {
    /// Lets the engine decide with the edited tree.
    fn remedy(&self, inputs: &mut PassInputs, edited: SourceTree, edits: &[&FileEdit]) -> Option<Remedy> {
        inputs.edit_tree(|tree| *tree = edited);
        let (_, decided, diagnostics) = inputs.decide();
        let after = &decided.decisions;
        if !after.get(self.key)?.has(self.cluster) || errors(&diagnostics) > self.errors {
            return None;
        }
        let (before, now) = (names(self.before.get(self.key)), names(after.get(self.key)));
        let only = |these: &BTreeSet<&str>, those: &BTreeSet<&str>| -> Vec<String> {
            let other = these.difference(those).filter(|name| **name != self.cluster);
            other.map(|name| (*name).to_owned()).collect()
        };
        let keys: BTreeSet<&Key> = self.before.keys().chain(after.keys()).collect();
        let differs = |key: &&Key| names(self.before.get(*key)) != names(after.get(*key));
        let others = keys.into_iter().filter(|key| *key != self.key).filter(differs);
        Some(Remedy {
            edits: edits.iter().map(|edit| edit.shown.clone()).collect(),
            gained: only(&now, &before),
            lost: only(&before, &now),
            others: others.cloned().collect(),
        })
    }
}

fn names(decision: Option<&Decision>) -> BTreeSet<&str> {
    let picks = decision.into_iter().flat_map(|decision| decision.picks.iter());
    picks.map(|pick| &*pick.cluster).collect()
}

fn errors(diagnostics: &Diagnostics) -> usize {
    diagnostics.errors().count()
}
