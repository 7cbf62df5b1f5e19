//! Suspends and resumes a cluster's syncer, by annotations of the parent object.

use kube::api::PatchParams;
use serde_json::json;

use super::super::BackendError;
use super::api_client::{Action, ApiClient};
use super::failure::Failure;
use super::identity::{Identity, SET_ID};
use crate::live::Access;
use crate::live::session::ApiSession;
use berth_base::model::annotation::{SUSPEND, SUSPEND_UNTIL};
use berth_base::model::status::Suspension;

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
