//! Misspelt and retired API groups: a dialect's kind in a group that is nearly one of its own, of the same domain, or
//! was one of its own once.
//!
//! As a plain object such a document would have no effect, so that a typo in one line would remove a cluster
//! or a workload. Where a typo is less likely, a plain object that no placement selects gets a warning.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::dialects::{Claim, Dialect, Document, ParsedDocument};
use berth_base::diag::{Diagnostic, nearest, nearest_within};
use berth_base::model::Key;

/// The dialects' groups, and which of them each group met so far may be a misspelling of.
pub(super) struct ApiGroups<'d> {
    dialects: &'d [&'d Dialect],
    near: BTreeMap<Arc<str>, Near<'d>>,
}

/// API groups, each with its dialect.
type Near<'d> = Vec<(&'d Dialect, &'static str)>;

impl<'d> ApiGroups<'d> {
    pub(super) fn of(dialects: &'d [&'d Dialect]) -> ApiGroups<'d> {
        ApiGroups { dialects, near: BTreeMap::new() }
    }

    /// The fault of a document that no dialect claims, where one would in a group of its own.
    pub(super) fn misspelt(&mut self, document: &Document) -> Option<Diagnostic> {
        let Key { group, kind, .. } = &document.key;
        let dialects = self.dialects;
        let near = self.near.entry(group.clone()).or_insert_with(|| near(dialects, group));
        let (_, meant) = near.iter().find(|(dialect, meant)| is_kind_of(dialect, meant, document))?;
        let message = format!("the kind `{kind}` is known, but not in the group `{group}`");
        Some(Diagnostic::error(document.at.clone(), message).hint(format!("did you mean `{meant}`?")))
    }

    /// Warnings about plain objects that no placement selects and that may be meant as more than that:
    /// their group is nearly a dialect's, or their kind is one and the group not quite another. One
    /// warning for all of a kind.
    pub(super) fn doubtful<'a>(&self, unselected: impl Iterator<Item = &'a Document>) -> Vec<Diagnostic> {
        let mut kinds: BTreeMap<(&str, &str), (&Document, usize)> = BTreeMap::new();
        for document in unselected {
            kinds.entry((&document.key.group, &document.key.kind)).or_insert((document, 0)).1 += 1;
        }
        kinds.into_values().filter_map(|(document, count)| self.doubt(document, count)).collect()
    }

    fn doubt(&self, document: &Document, count: usize) -> Option<Diagnostic> {
        let Key { group, kind, .. } = &document.key;
        let meant = nearest(group, all(self.dialects).map(|(_, known)| known));
        let retired = || all(self.dialects).find(|(one, _)| one.retired_groups.contains(&&**group));
        let meant = meant.or_else(|| retired().map(|(_, known)| known)).or_else(|| {
            // Others have clusters and placements too, but not in groups that look alike.
            let alike =
                |known: &str| nearest_within(group, [known], group.len().max(known.len()) / 2).is_some();
            let groups = all(self.dialects)
                .filter(|(one, known)| alike(known) && is_kind_of(one, known, document))
                .map(|(_, known)| known);
            nearest_within(group, groups, usize::MAX)
        })?;
        let (dialect, _) = all(self.dialects).find(|(_, known)| *known == meant)?;
        let mut message = format!("no placement selects this `{kind}` of the group `{group}`");
        if count > 1 {
            message.push_str(&format!(", nor {} more", count - 1));
        }
        let known = nearest(kind, dialect.kinds.iter().copied()).filter(|known| *known != &**kind);
        let kind = known.map_or_else(String::new, |known| format!(", and the kind `{known}`"));
        let hint = format!(
            "did you mean the group `{meant}`{kind}? If not, leave the file out with `exclude` in berth.yaml"
        );
        Some(Diagnostic::warning(document.at.clone(), message).hint(hint))
    }
}

fn all<'d>(dialects: &'d [&'d Dialect]) -> impl Iterator<Item = (&'d Dialect, &'static str)> {
    dialects.iter().flat_map(|one| one.groups.iter().map(|group| (*one, *group)))
}

/// Reports whether the dialect would read the document if it were in this group.
fn is_kind_of(dialect: &Dialect, group: &str, document: &Document) -> bool {
    let Key { kind, namespace, name, .. } = &document.key;
    let there = ParsedDocument { key: Key::new(group, kind, namespace, name), ..(**document).clone() };
    let claims = (dialect.claim)(&[there.into()]);
    claims.iter().any(|claim| !matches!(claim, Claim::Foreign | Claim::Unknown))
}

/// The groups that one may be a misspelling or an earlier name of, the nearest first.
fn near<'d>(dialects: &'d [&'d Dialect], group: &str) -> Near<'d> {
    let first = nearest(group, all(dialects).map(|(_, group)| group));
    let mut near: Vec<_> = all(dialects)
        .filter(|(dialect, known)| {
            Some(*known) == first
                || dialect.retired_groups.contains(&group)
                || domain(known).is_some_and(|one| Some(one) == domain(group))
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
