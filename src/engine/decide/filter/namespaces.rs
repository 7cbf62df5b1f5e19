//! The wanted namespace, for clusters that list their namespaces.

use super::{Check, Code};
use crate::decide::cluster_table::{Row, Table};

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
