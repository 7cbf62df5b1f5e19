//! Membership in cluster sets.

use super::{Check, Code, Needs};
use crate::decide::cluster_table::{Row, Table};
use berth_base::model::placement::ClusterSet;

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
