//! Kinds that berth may own and cannot see now: their objects count as unknown, never as gone.

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
    /// Notes the kinds that could not be listed, and the recorded ones that the cluster does not serve. Returns what
    /// is known of their objects.
    pub(super) async fn note_unseen(
        &mut self,
        desired: &DesiredMap,
        failed: Vec<(KindScope, Failure)>,
    ) -> Result<LiveMap, BackendError> {
        self.sync.unseen.clear();
        if failed.iter().any(|(_, failure)| failure.is_not_found()) {
            // Perhaps the cluster does not serve the kind any more.
            let asked = self.connection.ask_kinds().await;
            asked.map_err(|failure| self.connection.api.whole(&failure))?;
        }
        let has_parent = self.parent.current.is_some();
        let mut found = LiveMap::new();
        for (scope, failure) in failed {
            let name = group_kind(&scope.group, &scope.kind);
            match failure.code() {
                // Berth could not have made objects of it.
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
            // All its objects had gone before the kind did.
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

    /// Keeps the known objects of an unseen kind that are no longer wanted. If none is known or wanted and `suspects`,
    /// the kind itself stands for objects that may be left: nothing else would report them.
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
