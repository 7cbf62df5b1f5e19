//! Clusters by name, clusters that a folder may reach, and no clusters at all.

use std::collections::BTreeSet;

use super::{Check, Code};
use crate::decide::cluster_table::{Row, Table};
use berth_base::model::Key;
use berth_base::model::placement::Reach;

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

pub(super) struct Named<'a> {
    listed: Vec<bool>,
    by: Option<&'a Key>,
}

impl<'a> Named<'a> {
    pub(super) fn new(table: &Table<'_>, wanted: &BTreeSet<String>, by: Option<&'a Key>) -> Named<'a> {
        let mut listed = vec![false; table.len()];
        wanted.iter().filter_map(|name| table.row(name)).for_each(|row| listed[row as usize] = true);
        Named { listed, by }
    }
}

impl Check for Named<'_> {
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
