//! Kinds that may contain berth's objects and cannot be read now: their objects count as unknown, never as removed.

use super::super::BackendError;
use super::failure::Failure;
use super::identity::{group_kind, parse_group_kind};
use super::session::ClusterSession;
use super::survey::{DesiredMap, LiveMap, refuse};
use super::watching::kind_scope::KindScope;
use crate::sync::desired::Annotations;
use crate::sync::plan::{ALL_OF_KIND, Form, Live};
use berth_base::model::ObjectId;

impl ClusterSession {
    /// Records the kinds that could not be listed, and the recorded kinds that the cluster does not serve. Returns
    /// the known state of their objects.
    pub(super) async fn note_unseen(
        &mut self,
        desired: &DesiredMap,
        failed: Vec<(KindScope, Failure)>,
    ) -> Result<LiveMap, BackendError> {
        self.sync.unseen.clear();
        if failed.iter().any(|(_, failure)| failure.is_not_found()) {
            // The cluster may no longer serve the kind.
            let asked = self.connection.ask_kinds().await;
            asked.map_err(|failure| self.connection.api.whole(&failure))?;
        }
        let has_parent = self.parent.current.is_some();
        let mut found = LiveMap::new();
        for (scope, failure) in failed {
            let name = group_kind(&scope.group, &scope.kind);
            match failure.code() {
                // Berth cannot have created objects of a kind without these requests.
                405 => continue,
                404 if !self.parent.kinds().any(|kind| *kind == name)
                    || !self.connection.kinds.serves(&name) =>
                {
                    continue;
                }
                403 if !has_parent && !desired.keys().any(|id| scope.holds(id)) => continue,
                0 | 401 => return Err(self.connection.api.whole(&failure)),
                _ => {}
            }
            let why = failure.words(&*scope.kind == "Secret");
            for id in desired.keys().filter(|id| scope.holds(id)) {
                refuse(&mut found, id, format!("its kind cannot be listed, so it stays unchanged: {why}"));
            }
            self.keep_unseen(&mut found, desired, &name, &why, true);
        }
        let unserved = self.parent.kinds().filter(|name| !self.connection.kinds.serves(name));
        for name in unserved.cloned().collect::<Vec<_>>() {
            let (group, kind) = parse_group_kind(&name);
            let is_away = self.connection.kinds.is_away(group);
            let has_entries = self
                .watching
                .shared
                .cache()
                .entries()
                .any(|(id, entry)| entry.owned && is_of(id, group, kind));
            // All its objects were removed before the kind was.
            if !has_entries && !is_away && self.watching.has_listed(group, kind) {
                continue;
            }
            let why = match is_away {
                true => "the server of its API group does not answer",
                false => "the cluster does not serve it now",
            };
            self.keep_unseen(&mut found, desired, &name, why, is_away);
        }
        Ok(found)
    }

    /// Keeps the known objects of an unseen kind that are no longer wanted. If none is known or wanted and `suspects`
    /// is set, adds a placeholder for the kind: nothing else would report objects that may be left.
    fn keep_unseen(
        &mut self,
        found: &mut LiveMap,
        desired: &DesiredMap,
        name: &str,
        why: &str,
        suspects: bool,
    ) {
        let (group, kind) = parse_group_kind(name);
        let unknown = |annotations: Annotations| Live {
            owned: true,
            form: Form::Faulty(format!("the live objects of its kind are unknown: {why}")),
            annotations,
            stays: None,
        };
        let cache = self.watching.shared.cache();
        let known = cache.entries().filter(|(id, entry)| is_of(id, group, kind) && entry.owned);
        let mut left = known.filter(|(id, _)| !desired.contains_key(*id)).peekable();
        if left.peek().is_none() && suspects && !desired.keys().any(|id| is_of(id, group, kind)) {
            found.insert(ObjectId::new(group, kind, "", ALL_OF_KIND), unknown(Annotations::default()));
        }
        found.extend(left.map(|(id, entry)| (id.clone(), unknown(entry.annotations.clone()))));
        drop(cache);
        self.sync.unseen.insert(name.to_owned());
    }
}

fn is_of(id: &ObjectId, group: &str, kind: &str) -> bool {
    *id.group == *group && *id.kind == *kind
}
