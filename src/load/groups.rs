//! Misspelt API groups: a dialect's kind in a group that is nearly one of its own, or of the same domain.
//!
//! As a plain object such a document would mean nothing, so that a slip in one line would remove a
//! cluster or a workload.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::diag::{Diagnostic, nearest};
use crate::dialects::{Claim, Dialect, Document};
use crate::model::Key;

/// The dialects' groups, and which of them each group met so far may be a misspelling of.
pub(super) struct Groups<'d> {
    dialects: &'d [&'d Dialect],
    near: BTreeMap<Arc<str>, Vec<(&'d Dialect, &'static str)>>,
}

impl<'d> Groups<'d> {
    pub(super) fn of(dialects: &'d [&'d Dialect]) -> Groups<'d> {
        Groups { dialects, near: BTreeMap::new() }
    }

    /// The fault of a document that no dialect claims, where one would in a group of its own.
    pub(super) fn misspelt(&mut self, document: &Document) -> Option<Diagnostic> {
        let Key { group, kind, namespace, name } = &document.key;
        let dialects = self.dialects;
        let near = self.near.entry(group.clone()).or_insert_with(|| near(dialects, group));
        let meant = near.iter().find(|(dialect, meant)| {
            let key = Key::new(meant, kind, namespace, name);
            let there = Document { key, ..document.clone() };
            let claims = (dialect.claim)(&[there]);
            claims.iter().any(|claim| !matches!(claim, Claim::Foreign | Claim::Unknown))
        });
        let (_, meant) = meant?;
        let message = format!("the kind `{kind}` is known, but not in the group `{group}`");
        Some(Diagnostic::error(document.at.clone(), message).hint(format!("did you mean `{meant}`?")))
    }
}

/// The groups that one may be a misspelling of, the nearest first.
fn near<'d>(dialects: &'d [&'d Dialect], group: &str) -> Vec<(&'d Dialect, &'static str)> {
    let all = || dialects.iter().flat_map(|one| one.groups.iter().map(|group| (*one, *group)));
    let first = nearest(group, all().map(|(_, group)| group));
    let mut near: Vec<_> = all()
        .filter(|(_, known)| {
            Some(*known) == first || domain(known).is_some_and(|one| Some(one) == domain(group))
        })
        .collect();
    near.sort_by_key(|(_, known)| Some(*known) != first);
    near
}

/// `kubefed.io` of `core.kubefed.io`: who gives out the groups below it.
fn domain(group: &str) -> Option<&str> {
    let (rest, _) = group.rsplit_once('.')?;
    let start = rest.rfind('.').map_or(0, |dot| dot + 1);
    group.get(start..)
}
