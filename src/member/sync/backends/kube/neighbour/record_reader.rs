//! The objects that a program keeps for its own work, read from the cluster that has them.

use serde_json::Value as Json;

use super::super::connection::Connection;
use super::standing::RecordPlace;
use crate::sync::backends::BackendError;

/// Reads one object of the program of this name. `None` if it does not exist.
pub(super) async fn read(
    connection: &mut Connection,
    program: &str,
    place: &RecordPlace,
) -> Result<Option<Json>, BackendError> {
    let RecordPlace { group, kind, namespace, name } = place;
    if connection.kinds.preferred(group, kind).is_none() {
        // It may have been installed since.
        connection.ask_kinds().await.map_err(|failure| connection.api.whole(&failure))?;
    }
    let Some(served) = connection.kinds.preferred(group, kind) else {
        return Err(BackendError::Failed(format!(
            "the cluster serves no {kind}.{group}: install {program} there"
        )));
    };
    let api = &connection.api;
    let found = api.get(&served.path(group, namespace), name).await;
    found.map_err(|failure| api.whole(&failure))
}
