//! The whole content of the source tree, in the neutral model; also people's approvals of removals, as
//! files of the fleet repository.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::cluster::Cluster;
use super::decision::Digest;
use super::key::{Key, PlacementRef};
use super::map::Map;
use super::placement::{Placement, Source};
use super::rollout_policy::{PolicyName, RolloutPolicy, WorkloadPattern};
use super::selector::Labels;
use super::shared::Shared;
use super::staged::{Run, StageApproval, StageStrategy};
use super::status::ClusterStatus;
use super::workload::Workload;
use crate::diag::Pos;

/// A fleet as its repository describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fleet {
    pub clusters: Map<String, Shared<Cluster>>,
    pub placements: Map<Key, Shared<Placement>>,
    pub workloads: Map<Key, Shared<Workload>>,
    /// The labels of the documents that describe workloads.
    pub labels: Map<Key, Labels>,
    /// `ClusterStatus` documents of the source tree.
    pub statuses: Map<String, Shared<ClusterStatus>>,
    /// Documents that replaced placements, each with the key of its placement and workload.
    pub replaced: BTreeMap<Key, Key>,
    /// The removals that people approved.
    pub approvals: Vec<Approval>,
    pub rollout_policies: Map<Key, Shared<RolloutPolicy>>,
    /// The rollout policies that workloads name by annotation.
    pub named_policies: Map<Key, PolicyName>,
    /// The staged rollouts that people requested.
    pub runs: BTreeMap<Key, Run>,
    /// The stages that runs refer to by name.
    pub stage_strategies: BTreeMap<Key, StageStrategy>,
    /// The requests to approve a stage, approved or not.
    pub stage_approvals: BTreeMap<Key, StageApproval>,
    pub doubt: Doubt,
    /// Kinds that are not lists although their names end in `List`, each with its API group.
    pub list_kinds: BTreeSet<(String, String)>,
}

impl Fleet {
    /// Returns the placement that a reference names.
    pub fn find(&self, wanted: &PlacementRef) -> Option<&Placement> {
        // Keys order by kind, namespace and name before group.
        let first = Key::new("", &wanted.kind, &wanted.namespace, &wanted.name);
        let (key, placement) = self.placements.range_from(&first).next()?;
        let same =
            *key.kind == *wanted.kind && *key.namespace == *wanted.namespace && *key.name == *wanted.name;
        same.then_some(placement)
    }

    /// Returns the placements that a workload follows.
    pub fn followed_by(&self, workload: &Key) -> impl Iterator<Item = &Placement> {
        let follow = self.placements.get(workload).and_then(|follower| match &follower.source {
            Source::Follows(follow) => Some(follow),
            Source::Own(_) => None,
        });
        follow.into_iter().flat_map(|follow| &follow.placements).filter_map(|wanted| self.find(wanted))
    }

    /// Returns the placements that some workload follows.
    pub fn followed(&self) -> BTreeSet<&Key> {
        self.placements.keys().flat_map(|key| self.followed_by(key)).map(|placement| &placement.key).collect()
    }
}

/// The rollout policies of workloads.
impl Fleet {
    /// Returns the key of the workload that a document describes.
    pub fn key_of<'k>(&'k self, document: &'k Key) -> &'k Key {
        self.replaced.get(document).unwrap_or(document)
    }

    /// Reports whether a document of another kind replaced the placement.
    pub fn is_replaced(&self, placement: &Key) -> bool {
        self.replaced.values().any(|replaced| replaced == placement)
    }

    /// Returns the policies for a workload: first the one that it names, then those whose `workloads` match,
    /// then the fleet's defaults, each by name.
    pub fn policies_of(&self, workload: &Key) -> Vec<&RolloutPolicy> {
        let named = self.named_policy(workload);
        let is_named = |policy: &RolloutPolicy| named.is_some_and(|named| named.key == policy.key);
        let all = self.rollout_policies.values().map(|policy| &**policy);
        let mut found: Vec<&RolloutPolicy> =
            all.filter(|policy| is_named(policy) || policy.is_for(workload)).collect();
        found.sort_by_key(|policy| (!is_named(policy), policy.is_fleet_default(), policy.key.name.clone()));
        found
    }

    /// Returns the policy that a workload names: from its own namespace, or else without a namespace.
    pub fn named_policy(&self, workload: &Key) -> Option<&RolloutPolicy> {
        let name = &self.named_policies.get(workload)?.name;
        let mut all = self.rollout_policies.values().map(|policy| &**policy);
        // Namespaced policies come after the others.
        all.rfind(|policy| *policy.key.name == **name && policy.may_reach(workload))
    }

    /// Returns the workloads that must be proven everywhere before this one.
    pub fn rolls_out_after(&self, workload: &Key) -> BTreeSet<&Key> {
        let mut found = BTreeSet::new();
        for policy in self.policies_of(workload) {
            for pattern in &policy.after {
                found.extend(self.workloads_of(pattern).into_iter().filter(|key| {
                    let is_same_release = policy.together && policy.is_for(key);
                    *key != workload && !is_same_release
                }));
            }
        }
        found
    }

    /// Returns the stages with a name: from a namespace, or else without a namespace.
    pub fn stages_named(&self, name: &str, namespace: &str) -> Option<&StageStrategy> {
        let named = self.stage_strategies.values().filter(|one| *one.key.name == *name);
        named
            .filter(|one| one.key.namespace.is_empty() || *one.key.namespace == *namespace)
            .max_by_key(|one| !one.key.namespace.is_empty())
    }

    /// Returns the workloads that a pattern matches.
    pub fn workloads_of(&self, pattern: &WorkloadPattern) -> Vec<&Key> {
        let first = pattern.first_key();
        let keys = self.workloads.range_from(&first.clone().unwrap_or_else(Key::lowest)).map(|(key, _)| key);
        let is_near = |key: &&Key| {
            first.as_ref().is_none_or(|first| {
                (&key.kind, &key.namespace, &key.name) == (&first.kind, &first.namespace, &first.name)
            })
        };
        keys.take_while(is_near).filter(|key| pattern.matches(key)).collect()
    }
}

/// Unreadable files, and the decisions that must keep their clusters until the files are mended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doubt {
    /// An inventory file, or a file with unknown content, is unreadable: every decision keeps its clusters.
    pub everything: bool,
    /// A file with unknown earlier content is unreadable: no object is removed for now.
    pub objects: bool,
    /// Files with an unreadable policy: the decisions from these files keep their clusters.
    pub files: BTreeSet<String>,
}

/// Permits exactly the removals of a digest, once, before it expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    pub origin: Pos,
    pub digest: Digest,
    pub expires: Timestamp,
    pub reason: String,
}
