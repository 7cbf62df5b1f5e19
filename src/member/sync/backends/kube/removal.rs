//! Removes or releases one object.
//!
//! Some objects berth must not remove even with an approval: namespaces that the cluster needs, and objects
//! with an owner. A removal would also delete foreign objects, those in a namespace and the objects of a
//! definition: they are found before.

use std::collections::BTreeSet;

use kube::api::{DeleteParams, ListParams, PatchParams, Preconditions, PropagationPolicy};
use kube::core::Request;
use serde_json::{Value as Json, json};

use super::api_client::{Action, ApiClient, patiently};
use super::compare::uid_of;
use super::connection::Connection;
use super::failure::Failure;
use super::identity::part_of;
use super::kinds::ServedKind;
use super::managed_fields;
use crate::live::concurrency::each;
use crate::sync::plan::{HoldReason, is_definition, is_namespace};
use berth_base::model::ObjectId;
use berth_base::model::annotation::{self, DELETE_OPTIONS};
use berth_base::model::status::Problem;
use berth_base::text::some_of;

/// The number of attempts to release an object that others keep writing.
const ATTEMPTS: u32 = 5;

/// Releases an object: removes the label, berth's annotations and its ownership of fields, and nothing else.
pub async fn release(api: &ApiClient, path: &str, id: &ObjectId, uid: Option<&Json>) -> Result<(), Failure> {
    let annotations: serde_json::Map<String, Json> =
        annotation::ALL.iter().map(|name| ((*name).to_owned(), Json::Null)).collect();
    let identity = &api.identity;
    for _ in 0..ATTEMPTS {
        let Some(live) = api.get(path, &id.name).await? else { return Ok(()) };
        if uid.is_some_and(|uid| live.pointer("/metadata/uid") != Some(uid)) {
            return Ok(());
        }
        let patch = json!({"metadata": {
            "uid": live["metadata"]["uid"],
            "resourceVersion": live["metadata"]["resourceVersion"],
            "labels": {super::identity::PART_OF: null},
            "annotations": annotations,
            "managedFields": managed_fields::without(&live, &[&identity.manager, &identity.keeper]),
        }});
        let params = PatchParams { field_manager: Some(identity.keeper.clone()), ..PatchParams::default() };
        match api.send(path, &id.name, Action::Merge(&params, &patch)).await {
            Err(failure) if failure.is_not_found() => return Ok(()),
            // Somebody else wrote the object meanwhile.
            Err(failure) if failure.code() == 409 => {}
            result => return result.map(drop),
        }
    }
    Err(Failure::rule("it changes too often"))
}

/// Returns the options of a removal: in the background by default, and only of the object with this UID.
pub(crate) fn delete_params(options: Option<&str>, uid: String) -> Result<DeleteParams, Failure> {
    let mut params = DeleteParams {
        preconditions: Some(Preconditions { uid: Some(uid), resource_version: None }),
        ..DeleteParams::background()
    };
    let Some(text) = options else { return Ok(params) };
    let unusable =
        || Failure::rule(format!("its annotation `{DELETE_OPTIONS}` is not Kubernetes' DeleteOptions"));
    let options: Json = serde_json::from_str(text).map_err(|_| unusable())?;
    match options.get("propagationPolicy").and_then(Json::as_str) {
        Some("Foreground") => params.propagation_policy = Some(PropagationPolicy::Foreground),
        Some("Orphan") => params.propagation_policy = Some(PropagationPolicy::Orphan),
        Some("Background") | None => {}
        Some(_) => return Err(unusable()),
    }
    if options.get("orphanDependents") == Some(&Json::Bool(true)) {
        params.propagation_policy = Some(PropagationPolicy::Orphan);
    }
    let seconds = options.get("gracePeriodSeconds").and_then(Json::as_u64);
    params.grace_period_seconds = seconds.and_then(|seconds| u32::try_from(seconds).ok());
    let wanted = options.pointer("/preconditions/uid").and_then(Json::as_str);
    let same = |uid: &str| params.preconditions.as_ref().and_then(|it| it.uid.as_deref()) == Some(uid);
    if wanted.is_some_and(|uid| !same(uid)) {
        return Err(Failure::rule("its delete options name another object"));
    }
    Ok(params)
}

/// Names of namespaces; a name that ends with `*` is a prefix.
#[derive(Clone, Debug, Default)]
pub struct Protected(Vec<String>);

impl Protected {
    pub fn new(patterns: &[String], own: &str) -> Protected {
        Protected(patterns.iter().map(|pattern| pattern.trim().to_owned()).chain([own.to_owned()]).collect())
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == pattern,
        })
    }

    /// Returns the reason why berth must not remove an object.
    pub(crate) fn reason_to_stay(&self, id: &ObjectId, has_owner: bool) -> Option<HoldReason> {
        if is_namespace(id) && self.has(&id.name) {
            Some(HoldReason::Protected)
        } else if has_owner {
            Some(HoldReason::HasOwner)
        } else {
            None
        }
    }
}

/// Reports whether the object has an owner, whose removal also removes the object.
pub(crate) fn has_owner(object: &Json) -> bool {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Json::as_array);
    owners.is_some_and(|owners| !owners.is_empty())
}

/// The number of objects that a message names.
const MOST_NAMED: usize = 20;

/// The number of objects read for each kind.
const PAGE: u32 = 500;

/// Objects that exist in every namespace, or are created and removed automatically.
const EVERYWHERE: [(&str, &str); 2] = [("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")];
const SHORT_LIVED: [&str; 3] = ["Endpoints", "EndpointSlice", "Event"];

/// The listing of one kind.
struct KindListing {
    kind: (String, String),
    found: Result<Vec<Json>, Failure>,
    is_cut: bool,
}

impl Connection {
    /// Describes the foreign objects that each removal would delete.
    pub(crate) async fn collateral(&self, ids: &[ObjectId]) -> Vec<Problem> {
        let mut said = Vec::new();
        for id in ids {
            let scopes: Vec<(String, String, ServedKind)> = if is_namespace(id) {
                let in_namespaces =
                    self.kinds.all().filter(|(_, _, served)| served.namespaced && served.managed);
                in_namespaces
                    .map(|(group, kind, served)| (group.into(), kind.into(), served.clone()))
                    .collect()
            } else if is_definition(id) {
                let (plural, group) = id.name.split_once('.').unwrap_or((&id.name, ""));
                let defined =
                    self.kinds.all().filter(|(of, _, served)| *of == group && served.plural == plural);
                defined.map(|(group, kind, served)| (group.into(), kind.into(), served.clone())).collect()
            } else {
                continue;
            };
            let namespace = if is_namespace(id) { id.name.to_string() } else { String::new() };
            let looks = self.look_into(scopes, &namespace).await;
            said.extend(self.words_of(&looks).map(|message| Problem::failed(id.clone(), message)));
        }
        said
    }

    async fn look_into(
        &self,
        scopes: Vec<(String, String, ServedKind)>,
        namespace: &str,
    ) -> Vec<KindListing> {
        let scopes: Vec<_> =
            scopes.into_iter().filter(|(_, kind, _)| !SHORT_LIVED.contains(&kind.as_str())).collect();
        let client = &self.api.server.client;
        let list = async |(group, _, served): &(String, String, ServedKind)| {
            let path = served.path(group, namespace);
            let params = ListParams { limit: Some(PAGE), ..ListParams::default() };
            // Lists metadata only: names suffice, and Secrets should not be read.
            let ask = || async {
                let request = Request::new(&path).list_metadata(&params);
                client.request::<Json>(request.map_err(kube::Error::BuildRequest)?).await
            };
            patiently(ask).await
        };
        let answers = each(self.at_once, scopes.iter().map(list)).await;
        let look = |((group, kind, _), answer): ((String, String, ServedKind), Result<Json, Failure>)| {
            let next =
                |answer: &Json| answer.pointer("/metadata/continue").and_then(Json::as_str) != Some("");
            let is_cut =
                answer.as_ref().is_ok_and(|it| it.pointer("/metadata/continue").is_some() && next(it));
            let items = |mut answer: Json| match answer["items"].take() {
                Json::Array(items) => items,
                _ => Vec::new(),
            };
            KindListing { kind: (group, kind), found: answer.map(items), is_cut }
        };
        scopes.into_iter().zip(answers).map(look).collect()
    }

    fn words_of(&self, looks: &[KindListing]) -> Option<String> {
        let (mut others, mut seen) = (Vec::new(), BTreeSet::new());
        for look in looks {
            for object in look.found.iter().flatten() {
                let text = |at: &str| object.pointer(at).and_then(Json::as_str).unwrap_or_default();
                let name = text("/metadata/name");
                let is_ours = part_of(object) == Some(&self.api.identity.set);
                let is_usual = EVERYWHERE.contains(&(look.kind.1.as_str(), name));
                // A server may serve the same object under two groups.
                if !is_ours && !is_usual && !has_owner(object) && seen.insert(uid_of(object).to_owned()) {
                    let namespace = text("/metadata/namespace");
                    others.push(ObjectId::new(&look.kind.0, &look.kind.1, namespace, name).to_string());
                }
            }
        }
        let unseen = looks.iter().filter(|look| look.found.is_err()).count();
        if others.is_empty() && unseen == 0 {
            return None;
        }
        let more = if looks.iter().any(|look| look.is_cut) { " at least" } else { "" };
        let count = others.len();
        let mut parts = Vec::new();
        if count > 0 {
            let names = some_of(others, MOST_NAMED);
            let objects = if count == 1 { "object" } else { "objects" };
            parts.push(format!("also removes {count} {objects}{more} that berth does not own: {names}"));
        }
        if unseen > 0 {
            parts.push(format!("may also remove more: {unseen} kinds cannot be listed"));
        }
        Some(parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_protected_by_name_and_by_how_they_begin() {
        let protected = Protected::new(&["default".to_owned(), "kube-*".to_owned()], "berth-system");
        let why =
            |kind: &str, name: &str| protected.reason_to_stay(&ObjectId::new("", kind, "", name), false);
        for name in ["default", "kube-system", "kube-", "berth-system"] {
            assert_eq!(why("Namespace", name), Some(HoldReason::Protected), "{name}");
            assert_eq!(why("ConfigMap", name), None);
        }
        assert_eq!(why("Namespace", "default-2"), None);
        let owned = has_owner(&json!({"metadata": {"ownerReferences": [{"name": "x"}]}}));
        let id = ObjectId::new("", "ConfigMap", "a", "b");
        assert_eq!(protected.reason_to_stay(&id, owned), Some(HoldReason::HasOwner));
    }
}
