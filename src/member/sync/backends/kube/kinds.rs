//! The kinds that an API server serves, and the paths of their objects. Read once, and again when a kind is
//! missing.
//!
//! Kinds may contain berth's objects and not be readable now: their objects count as unknown, never as
//! removed.

use std::collections::{BTreeMap, BTreeSet};

use kube::client::Client;

use super::super::BackendError;
use super::api_client::patiently;
use super::failure::Failure;
use super::identity::{group_kind, parse_group_kind};
use super::session::ClusterSession;
use super::survey::{DesiredMap, LiveMap, refuse};
use super::watching::kind_watch::KindScope;
use crate::sync::desired::Annotations;
use crate::sync::plan::{ALL_OF_KIND, Form, Live};
use berth_base::model::ObjectId;

/// A kind in one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServedKind {
    pub version: String,
    pub plural: String,
    pub namespaced: bool,
    /// True if its objects can be listed, changed and removed.
    pub managed: bool,
}

/// Every kind, with its versions in the server's order of preference.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServedKinds {
    served: BTreeMap<(String, String), Vec<ServedKind>>,
    /// Groups whose own server does not answer, so that their kinds are unknown.
    away: BTreeSet<String>,
}

impl ServedKinds {
    /// Asks the server: with two requests, or with one per group if the server is too old for that.
    pub async fn ask(client: &Client) -> Result<ServedKinds, Failure> {
        // Sent one after the other, because opening a second connection takes longer than the first answer.
        let core = patiently(|| client.list_core_api_versions_aggregated()).await;
        let groups = patiently(|| client.list_api_groups_aggregated()).await;
        let (core, groups) = match (core, groups) {
            (Ok(core), Ok(groups)) if !core.items.is_empty() => (core, groups),
            // A kind must not count as missing only because a request failed.
            (Err(failure), _) | (_, Err(failure)) if failure.may_pass() => return Err(failure),
            _ => return ServedKinds::ask_each(client).await,
        };
        let mut kinds = ServedKinds::default();
        for group in core.items.into_iter().chain(groups.items) {
            let name = group.metadata.and_then(|metadata| metadata.name).unwrap_or_default();
            for version in group.versions {
                let number = version.version.unwrap_or_default();
                if version.freshness.as_deref() == Some("Stale") {
                    kinds.away.insert(name.clone());
                }
                for resource in version.resources {
                    let kind = resource.response_kind.and_then(|it| it.kind).unwrap_or_default();
                    let served = ServedKind {
                        version: number.clone(),
                        plural: resource.resource.unwrap_or_default(),
                        namespaced: resource.scope.as_deref() == Some("Namespaced"),
                        managed: is_managed(&resource.verbs),
                    };
                    kinds.add(&name, &kind, served);
                }
            }
        }
        Ok(kinds)
    }

    async fn ask_each(client: &Client) -> Result<ServedKinds, Failure> {
        let mut kinds = ServedKinds::default();
        let groups = patiently(|| client.list_api_groups()).await?;
        let mut lists = vec![(String::new(), patiently(|| client.list_core_api_resources("v1")).await)];
        for group in groups.groups {
            let preferred = group.preferred_version.map(|version| version.group_version).unwrap_or_default();
            let mut versions: Vec<String> =
                group.versions.into_iter().map(|version| version.group_version).collect();
            versions.sort_by_key(|version| *version != preferred);
            for version in versions {
                let list = patiently(|| client.list_api_group_resources(&version)).await;
                lists.push((group.name.clone(), list));
            }
        }
        for (group, list) in lists {
            let list = match list {
                Ok(list) => list,
                Err(failure) if failure.may_pass() && failure.code() != 503 => return Err(failure),
                // An aggregated API whose server is down only makes its own group unavailable.
                Err(_) => {
                    kinds.away.insert(group);
                    continue;
                }
            };
            let version = list.group_version.rsplit('/').next().unwrap_or_default().to_owned();
            for resource in list.resources.into_iter().filter(|resource| !resource.name.contains('/')) {
                let served = ServedKind {
                    version: version.clone(),
                    plural: resource.name,
                    namespaced: resource.namespaced,
                    managed: is_managed(&resource.verbs),
                };
                kinds.add(&group, &resource.kind, served);
            }
        }
        Ok(kinds)
    }

    fn add(&mut self, group: &str, kind: &str, served: ServedKind) {
        self.served.entry((group.to_owned(), kind.to_owned())).or_default().push(served);
    }

    pub fn is_empty(&self) -> bool {
        self.served.is_empty()
    }

    /// Returns a kind in the version that the server prefers.
    pub fn preferred(&self, group: &str, kind: &str) -> Option<&ServedKind> {
        self.served.get(&(group.to_owned(), kind.to_owned()))?.first()
    }

    /// Reports whether a kind is served, by its name as in `Deployment.apps`.
    pub fn serves(&self, name: &str) -> bool {
        let (group, kind) = parse_group_kind(name);
        self.preferred(group, kind).is_some()
    }

    /// Reports whether the group's server does not answer, so that it may have unknown kinds.
    pub(crate) fn is_away(&self, group: &str) -> bool {
        self.away.contains(group)
    }

    /// Returns a kind in one version.
    pub fn version(&self, group: &str, kind: &str, version: &str) -> Option<&ServedKind> {
        self.served.get(&(group.to_owned(), kind.to_owned()))?.iter().find(|served| served.version == version)
    }

    /// Returns every kind by group and name, in the version that the server prefers.
    pub fn all(&self) -> impl Iterator<Item = (&str, &str, &ServedKind)> {
        self.served
            .iter()
            .filter_map(|((group, kind), served)| Some((group.as_str(), kind.as_str(), served.first()?)))
    }

    /// Returns every kind whose objects berth could own.
    pub fn managed(&self) -> impl Iterator<Item = (String, String)> + '_ {
        let usable = |served: &Vec<ServedKind>| served.first().is_some_and(|served| served.managed);
        self.served.iter().filter(move |(_, served)| usable(served)).map(|(name, _)| name.clone())
    }
}

fn is_managed(verbs: &[String]) -> bool {
    ["list", "patch", "delete"].iter().all(|verb| verbs.iter().any(|one| one == verb))
}

impl ServedKind {
    /// Returns the path of all objects of this kind, or of those in one namespace.
    pub fn path(&self, group: &str, namespace: &str) -> String {
        let root = match group {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        };
        match namespace {
            "" => format!("{root}/{}", self.plural),
            namespace => format!("{root}/namespaces/{namespace}/{}", self.plural),
        }
    }

    /// Returns the path of an object's collection. Fails if the object has a namespace and must not, or the reverse.
    pub fn place_of(&self, id: &ObjectId) -> Result<String, Failure> {
        match (self.namespaced, id.namespace.is_empty()) {
            (true, true) => Err(Failure::rule(format!("objects of kind {} need a namespace", id.kind))),
            (false, false) => Err(Failure::rule(format!("objects of kind {} have no namespace", id.kind))),
            _ => Ok(self.path(&id.group, &id.namespace)),
        }
    }
}

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
