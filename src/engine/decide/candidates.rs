//! Candidate rules → the clusters a placement may pick from at all, made once for equal rules.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::cluster_table::{Row, Table, number};
use super::filter::{Checked, looks_at_own_picks};
use super::policy_encoding::{self, Encoder};
use berth_base::model::placement::Filter;

/// The rows of candidates, ascending, and a number for them in cache keys.
#[derive(Clone)]
pub(super) struct Candidates {
    pub(super) id: u32,
    pub(super) rows: Rc<Vec<Row>>,
}

/// The candidate sets met so far.
#[derive(Default)]
pub(super) struct CandidateSets {
    by_rules: RefCell<BTreeMap<Vec<u8>, Candidates>>,
    made: RefCell<u32>,
}

impl CandidateSets {
    pub(super) fn of(&self, table: &Table<'_>, filters: &[Filter], is_current: &[bool]) -> Candidates {
        if filters.iter().any(looks_at_own_picks) {
            return self.make(table, filters, is_current);
        }
        let mut encoder = Encoder::default();
        policy_encoding::filters(&mut encoder, filters);
        if let Some(found) = self.by_rules.borrow().get(&encoder.bytes) {
            return found.clone();
        }
        let made = self.make(table, filters, is_current);
        self.by_rules.borrow_mut().insert(encoder.bytes, made.clone());
        made
    }

    fn make(&self, table: &Table<'_>, filters: &[Filter], is_current: &[bool]) -> Candidates {
        let checks: Vec<_> = filters.iter().map(|filter| Checked::new(table, filter, is_current)).collect();
        let passes = |row: &Row| checks.iter().all(|check| check.refuse(*row).is_none());
        let rows = Rc::new(table.rows().filter(passes).collect());
        let id = *self.made.borrow();
        *self.made.borrow_mut() = number(id as usize + 1);
        Candidates { id, rows }
    }
}
