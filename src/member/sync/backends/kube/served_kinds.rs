//! The kinds that an API server serves, and the paths of their objects. Read once, and again when a kind is missing.

use std::collections::{BTreeMap, BTreeSet};

use kube::client::Client;

use super::api_client::patiently;
use super::failure::Failure;
use super::identity::parse_group_kind;
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
