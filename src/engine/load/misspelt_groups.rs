//! Misspelt and retired API groups: a dialect's kind in a group that resembles one of the dialect's groups in
//! the same domain, or that was one earlier.
//!
//! As a plain object, such a document would have no effect, so a typo in one line would remove a cluster or a
//! workload. Where a typo is less likely, a plain object that no placement selects gets a warning.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::dialects::{Claim, Dialect, Document, ParsedDocument};
use berth_base::diag::{Diagnostic, nearest, nearest_within};
use berth_base::model::Key;

/// The dialects' groups, and for each group seen so far the ones that it may be a misspelling of.
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

    /// Returns the fault of an unclaimed document that a dialect would claim in one of its own groups.
    pub(super) fn misspelt(&mut self, document: &Document) -> Option<Diagnostic> {
        let Key { group, kind, .. } = &document.key;
        let dialects = self.dialects;
        let near = self.near.entry(group.clone()).or_insert_with(|| near(dialects, group));
        let (_, meant) = near.iter().find(|(dialect, meant)| is_kind_of(dialect, meant, document))?;
        let message = format!("the kind `{kind}` is known, but not in the group `{group}`");
        Some(Diagnostic::error(document.at.clone(), message).hint(format!("did you mean `{meant}`?")))
    }

    /// Returns warnings about plain objects that no placement selects and that may be misspelt: their group
    /// resembles a dialect's, or a dialect has their kind in a similar group. There is one warning for each
    /// kind.
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
            // Other systems have clusters and placements too, but not in similar groups.
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

/// Reports whether the dialect would read the document in this group.
fn is_kind_of(dialect: &Dialect, group: &str, document: &Document) -> bool {
    let Key { kind, namespace, name, .. } = &document.key;
    let there = ParsedDocument { key: Key::new(group, kind, namespace, name), ..(**document).clone() };
    let claims = (dialect.claim)(&[there.into()]);
    claims.iter().any(|claim| !matches!(claim, Claim::Foreign | Claim::Unknown))
}

/// Returns the groups of which `group` may be a misspelling or an earlier name, the nearest first.
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

/// Returns the domain of a group, such as `kubefed.io` for `core.kubefed.io`.
fn domain(group: &str) -> Option<&str> {
    let (rest, _) = group.rsplit_once('.')?;
    let start = rest.rfind('.').map_or(0, |dot| dot + 1);
    group.get(start..)
}
