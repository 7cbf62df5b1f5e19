//! The parent object of berth's objects: it holds the fleet, the folder applied last, and the owned kinds.
//!
//! It lists a kind from before the first object of that kind is created until after the last one is removed. A write
//! names the version last read, so that two syncers never both believe to own it.
//!
//! Annotations of the parent object suspend and resume a cluster's syncer.

use std::collections::BTreeSet;

use kube::api::{DeleteParams, PatchParams, Preconditions};
use serde_json::{Value as Json, json};

use super::super::{BackendError, Record};
use super::api_client::{Action, ApiClient};
use super::connection::Connection;
use super::failure::Failure;
use super::identity::{GROUP_KINDS, Identity, SET_ID};
use super::watching::cached_object::version_of;
use crate::live::Access;
use crate::live::session::ApiSession;
use berth_base::model::annotation::{SUSPEND, SUSPEND_UNTIL};
use berth_base::model::status::Suspension;

/// The content of the parent object.
#[derive(Clone, Debug)]
pub(crate) struct ApplySetParent {
    pub record: Record,
    pub kinds: BTreeSet<String>,
    /// The reason of a suspension, and its end.
    pub suspend: (Option<String>, Option<String>),
    pub uid: String,
    version: String,
}

/// The parent object as last read or written.
#[derive(Debug, Default)]
pub(crate) struct ParentRecord {
    pub current: Option<ApplySetParent>,
    /// True if this sync knows the object only from its watch.
    is_hearsay: bool,
}

impl ApplySetParent {
    fn parse(identity: &Identity, object: &Json) -> Result<ApplySetParent, BackendError> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Json::as_str);
        let label = object.get("metadata").and_then(|it| it.get("labels")?.get(SET_ID)?.as_str());
        let name = format!("ConfigMap {}/{}", identity.namespace, identity.parent);
        if label != Some(&identity.set) {
            return Err(BackendError::Failed(format!(
                "{name} exists and is not berth's: rename it, or choose another namespace"
            )));
        }
        let damaged = || {
            BackendError::Failed(format!(
                "{name} does not record the last applied folder; remove it, and berth finds its objects \
                 by their labels"
            ))
        };
        let sequence = text("/data/sequence").and_then(|it| it.parse().ok()).ok_or_else(damaged)?;
        let [fleet, cluster, tree] =
            ["/data/fleet", "/data/cluster", "/data/tree"].map(|at| text(at).map(str::to_owned));
        let (Some(fleet), Some(cluster), Some(tree)) = (fleet, cluster, tree) else { return Err(damaged()) };
        let annotations = object.get("metadata").and_then(|it| it.get("annotations"));
        let annotation = |name: &str| annotations?.get(name)?.as_str().map(str::to_owned);
        let kinds = annotation(GROUP_KINDS);
        let kinds =
            kinds.as_deref().unwrap_or_default().split(',').map(str::trim).filter(|kind| !kind.is_empty());
        Ok(ApplySetParent {
            record: Record { fleet, cluster, sequence, tree },
            kinds: kinds.map(str::to_owned).collect(),
            suspend: (annotation(SUSPEND), annotation(SUSPEND_UNTIL)),
            uid: text("/metadata/uid").unwrap_or_default().to_owned(),
            version: text("/metadata/resourceVersion").unwrap_or_default().to_owned(),
        })
    }
}

impl ParentRecord {
    /// Returns the record, from its watch if that has it.
    pub async fn read(
        &mut self,
        cluster: &mut Connection,
        watched: Option<Json>,
    ) -> Result<Option<Record>, BackendError> {
        let known = self.current.as_ref().and_then(|parent| parent.version.parse::<u64>().ok());
        self.is_hearsay = true;
        match watched.as_ref().and_then(version_of) {
            Some(watched) if known.is_some_and(|known| known >= watched) => {}
            Some(_) => {
                let parse = |object: &Json| ApplySetParent::parse(&cluster.api.identity, object);
                self.current = watched.as_ref().map(parse).transpose()?;
            }
            None => return self.ask(cluster).await,
        }
        Ok(self.current.as_ref().map(|parent| parent.record.clone()))
    }

    /// Reads the parent object. Reads the credentials again if the server rejects the present ones.
    async fn ask(&mut self, cluster: &mut Connection) -> Result<Option<Record>, BackendError> {
        let mut found = get(&cluster.api).await;
        let is_unknown = found.as_ref().is_err_and(|failure| failure.code() == 401);
        if is_unknown && cluster.reconnect().await.is_ok() {
            found = get(&cluster.api).await;
        }
        let found = found.map_err(|failure| cluster.api.whole(&failure))?;
        let parse = |object: Json| ApplySetParent::parse(&cluster.api.identity, &object);
        self.current = found.map(parse).transpose()?;
        self.is_hearsay = false;
        Ok(self.current.as_ref().map(|parent| parent.record.clone()))
    }

    /// Returns the kinds that berth may own.
    pub fn kinds(&self) -> impl Iterator<Item = &String> {
        self.current.iter().flat_map(|parent| &parent.kinds)
    }

    /// Writes the parent before any other write, with all kinds that are owned now or about to be.
    pub async fn write(
        &mut self,
        cluster: &mut Connection,
        record: &Record,
        mut kinds: BTreeSet<String>,
    ) -> Result<(), BackendError> {
        if let Some(parent) = &self.current {
            kinds.extend(parent.kinds.iter().cloned());
            if parent.kinds == kinds && parent.record == *record {
                return self.confirm(cluster).await;
            }
        }
        self.put(cluster, record, kinds).await
    }

    /// Reads the record again in a sync that will not write it, so that a suspension takes effect at once. A write
    /// would notice it by the version.
    async fn confirm(&mut self, cluster: &mut Connection) -> Result<(), BackendError> {
        if !self.is_hearsay {
            return Ok(());
        }
        let version = |parent: &Option<ApplySetParent>| parent.as_ref().map(|parent| parent.version.clone());
        let before = version(&self.current);
        self.ask(cluster).await?;
        if version(&self.current) == before {
            return Ok(());
        }
        Err(BackendError::Failed("berth's record was changed meanwhile".to_owned()))
    }

    /// Removes kinds without objects from the parent, after all other writes. Keeps `unsure` ones.
    pub async fn narrow(
        &mut self,
        cluster: &mut Connection,
        mut kinds: BTreeSet<String>,
        unsure: &BTreeSet<String>,
    ) -> Result<(), BackendError> {
        let Some(parent) = self.current.clone() else { return Ok(()) };
        kinds.extend(parent.kinds.intersection(unsure).cloned());
        if kinds == parent.kinds {
            return Ok(());
        }
        self.put(cluster, &parent.record, kinds).await
    }

    async fn put(
        &mut self,
        cluster: &mut Connection,
        record: &Record,
        kinds: BTreeSet<String>,
    ) -> Result<(), BackendError> {
        let list = kinds.iter().cloned().collect::<Vec<_>>().join(",");
        for _ in 0..3 {
            let (api, identity) = (&cluster.api, &cluster.api.identity);
            let version = self.current.as_ref().map(|parent| parent.version.clone());
            let object = identity.parent_object(record, &list, version.as_deref());
            let (path, name) = (identity.parent_path(), &identity.parent);
            let (answer, attempts) = api.apply_own(&path, name, &object).await;
            match answer {
                Ok(answer) => {
                    let object: Json = answer.read().map_err(|failure| api.whole(&failure))?;
                    self.current = Some(ApplySetParent::parse(identity, &object)?);
                    return Ok(());
                }
                Err(failure) if failure.lacks_namespace() => {
                    make_namespace(api).await?;
                    continue;
                }
                Err(failure) if failure.code() == 409 => {}
                Err(failure) => return Err(api.whole(&failure)),
            }
            self.ask(cluster).await?;
            let now = self.current.as_ref();
            // The first attempt may have succeeded, with only its answer lost.
            if attempts > 1 && now.is_some_and(|now| now.record == *record && now.kinds == kinds) {
                return Ok(());
            }
            // Retries only if nobody else has written the object.
            if now.map(|now| &now.version) != version.as_ref() {
                break;
            }
        }
        Err(BackendError::Failed("another syncer uses this cluster".to_owned()))
    }

    /// Removes the parent object in the version that was read.
    pub async fn remove(&mut self, api: &ApiClient) -> Result<(), BackendError> {
        let Some(parent) = self.current.take() else { return Ok(()) };
        let preconditions = Preconditions { resource_version: Some(parent.version), uid: None };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
        let (path, name) = (api.identity.parent_path(), &api.identity.parent);
        match api.send(&path, name, Action::Delete(&params)).await {
            Err(failure) if failure.is_not_found() => Ok(()),
            Err(failure) if failure.code() == 409 => {
                Err(BackendError::Failed("another syncer uses this cluster".to_owned()))
            }
            result => result.map(drop).map_err(|failure| api.whole(&failure)),
        }
    }
}

async fn get(api: &ApiClient) -> Result<Option<Json>, Failure> {
    api.get(&api.identity.parent_path(), &api.identity.parent).await
}

/// Creates berth's namespace. Needs only the right to create it.
async fn make_namespace(api: &ApiClient) -> Result<(), BackendError> {
    let name = &api.identity.namespace;
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    match api.send("/api/v1/namespaces", name, Action::Create(&object)).await {
        // An earlier attempt or another process created it.
        Err(failure) if failure.code() == 409 => Ok(()),
        made => made.map(drop).map_err(|failure| api.whole(&failure)),
    }
}

/// Suspends or resumes a cluster. Returns true if it was suspended before.
pub fn suspend(
    access: &Access,
    fleet: &str,
    namespace: &str,
    suspension: Option<&Suspension>,
) -> Result<bool, BackendError> {
    let session = ApiSession::open(access).map_err(|error| BackendError::Failed(error.to_string()))?;
    let ApiSession { runtime, server } = session;
    let api = ApiClient::new(server, Identity::new(fleet, namespace));
    let (server, identity) = (&api.server.address, &api.identity);
    runtime.block_on(async {
        let failed = |failure: &Failure| BackendError::Failed(format!("{server}: {}", failure.words(false)));
        let path = identity.parent_path();
        let found = api.get(&path, &identity.parent).await.map_err(|failure| failed(&failure))?;
        let ours = found.filter(|object| {
            let labels = object.get("metadata").and_then(|it| it.get("labels"));
            labels.and_then(|labels| labels.get(SET_ID)?.as_str()) == Some(&identity.set)
        });
        let Some(object) = ours else {
            return Err(BackendError::Failed(format!(
                "{server} has no ConfigMap {namespace}/{} of berth: no folder of fleet `{fleet}` was \
                 applied there yet",
                identity.parent
            )));
        };
        let annotations = object.get("metadata").and_then(|it| it.get("annotations"));
        let was =
            annotations.is_some_and(|all| all.get(SUSPEND).is_some() || all.get(SUSPEND_UNTIL).is_some());
        let reason = suspension.map(|suspension| suspension.reason.clone());
        let until = suspension.and_then(|suspension| suspension.until).map(|until| until.to_string());
        let patch = json!({"metadata": {"annotations": {SUSPEND: reason, SUSPEND_UNTIL: until}}});
        let params =
            PatchParams { field_manager: Some("berth-suspend".to_owned()), ..PatchParams::default() };
        let sent = api.send(&path, &identity.parent, Action::Merge(&params, &patch)).await;
        sent.map_err(|failure| failed(&failure))?;
        Ok(was)
    })
}
