//! Removes or releases one object.

use kube::api::{DeleteParams, PatchParams, Preconditions, PropagationPolicy};
use serde_json::{Value as Json, json};

use super::api_client::{Action, ApiClient};
use super::failure::Failure;
use super::managed_fields;
use berth_base::model::ObjectId;
use berth_base::model::annotation::{self, DELETE_OPTIONS};

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
