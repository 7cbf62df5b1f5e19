//! Clusters by name, clusters that a folder may reach, members of cluster sets, clusters with the wanted
//! namespace, and no clusters at all.

use std::collections::BTreeSet;

use super::{Check, Code, Needs};
use crate::decide::cluster_table::{Row, Table};
use berth_base::model::Key;
use berth_base::model::placement::{ClusterSet, Reach};

pub(super) struct Nowhere<'a>(pub(super) &'a str);

impl Check for Nowhere<'_> {
    fn refuse(&self, _row: Row) -> Option<Code> {
        Some(0)
    }

    fn words(&self) -> String {
        "no cluster".to_owned()
    }

    fn summary(&self, _code: Code) -> String {
        self.0.to_owned()
    }
}

pub(super) struct NamedClusters<'a> {
    listed: Vec<bool>,
    by: Option<&'a Key>,
}

impl<'a> NamedClusters<'a> {
    pub(super) fn new(
        table: &Table<'_>,
        wanted: &BTreeSet<String>,
        by: Option<&'a Key>,
    ) -> NamedClusters<'a> {
        let mut listed = vec![false; table.len()];
        wanted.iter().filter_map(|name| table.row(name)).for_each(|row| listed[row as usize] = true);
        NamedClusters { listed, by }
    }
}

impl Check for NamedClusters<'_> {
    fn refuse(&self, row: Row) -> Option<Code> {
        (!self.listed[row as usize]).then_some(0)
    }

    fn words(&self) -> String {
        self.by.map_or_else(|| "named in the placement".to_owned(), |by| format!("in the placement of {by}"))
    }

    fn summary(&self, _code: Code) -> String {
        format!("not {}", self.words())
    }
}

pub(super) struct Reachable<'a> {
    passes: Vec<bool>,
    folder: &'a str,
}

impl<'a> Reachable<'a> {
    pub(super) fn new(table: &Table<'_>, reach: &'a Reach, is_current: &[bool]) -> Reachable<'a> {
        // Revoking a right removes no current pick.
        let mut passes = is_current.to_vec();
        passes.resize(table.len(), false);
        let reached = reach.clusters.iter().filter_map(|name| table.row(name));
        reached.for_each(|row| passes[row as usize] = true);
        Reachable { passes, folder: &reach.folder }
    }
}

impl Check for Reachable<'_> {
    fn refuse(&self, row: Row) -> Option<Code> {
        (!self.passes[row as usize]).then_some(0)
    }

    fn words(&self) -> String {
        format!("within reach of {}", self.folder)
    }

    fn summary(&self, _code: Code) -> String {
        format!("{} may not place there", self.folder)
    }
}

pub(super) struct InSets<'a> {
    sets: &'a [ClusterSet],
    members: Vec<Needs>,
}

impl<'a> InSets<'a> {
    pub(super) fn new(table: &Table<'_>, sets: &'a [ClusterSet]) -> InSets<'a> {
        let members = sets.iter().filter_map(|set| set.members.as_ref());
        InSets { sets, members: members.map(|members| Needs::labels(table, members)).collect() }
    }

    fn names(&self) -> String {
        self.sets.iter().map(|set| set.name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

impl Check for InSets<'_> {
    fn refuse(&self, row: Row) -> Option<Code> {
        (!self.members.iter().any(|members| members.first_unmet(row).is_none())).then_some(0)
    }

    fn words(&self) -> String {
        match self.sets.len() {
            1 => format!("in the cluster set {}", self.names()),
            _ => format!("in one of the cluster sets {}", self.names()),
        }
    }

    fn summary(&self, _code: Code) -> String {
        match self.sets.len() {
            0 => "no cluster set may be used".to_owned(),
            1 => format!("not in the cluster set {}", self.names()),
            _ => format!("in none of the cluster sets {}", self.names()),
        }
    }
}

pub(super) struct HoldsNamespace<'a> {
    pub(super) table: &'a Table<'a>,
    pub(super) namespace: &'a str,
}

impl Check for HoldsNamespace<'_> {
    fn refuse(&self, row: Row) -> Option<Code> {
        let listed = self.table.cluster(row).namespaces.as_ref();
        listed.is_some_and(|listed| !listed.contains(self.namespace)).then_some(0)
    }

    fn words(&self) -> String {
        format!("has the namespace {}", self.namespace)
    }

    fn summary(&self, _code: Code) -> String {
        format!("does not have the namespace {}", self.namespace)
    }
}
