//! The watch of berth's own record: a sync need not ask for it, and a suspension or its end is known at once.

use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use kube::api::{WatchEvent, WatchParams};
use kube::core::Request;
use serde_json::Value as Json;
use tokio::time::{sleep, timeout};

use super::super::api_client::ApiClient;
use super::shared::{Shared, lock};
use berth_base::model::annotation::{SUSPEND, SUSPEND_UNTIL};

/// The pause between two watches.
const PAUSE: Duration = Duration::from_secs(5);

/// The pause if berth may not watch the object: each sync reads it before it writes anyway.
const REFUSED: Duration = Duration::from_secs(300);

/// Follows the record for ever, and asks for a sync where its suspension is another one.
pub async fn follow(api: ApiClient, shared: Arc<Shared>, silence: Duration) {
    let path = api.identity.parent_path();
    let params = WatchParams {
        // Selected by name, so that the right to watch this one object is enough.
        field_selector: Some(format!("metadata.name={}", api.identity.parent)),
        bookmarks: true,
        ..WatchParams::default()
    };
    let mut known: Option<[Option<String>; 2]> = None;
    loop {
        // From version 0 a watch begins with the existing object.
        let Ok(request) = Request::new(&path).watch(&params, "0") else { return };
        let opened = timeout(silence, api.server.client.request_events::<Json>(request)).await;
        match opened {
            Ok(Ok(stream)) => {
                let mut stream = std::pin::pin!(stream);
                while let Ok(Ok(Some(event))) = timeout(silence, stream.try_next()).await {
                    let object = match event {
                        WatchEvent::Added(object) | WatchEvent::Modified(object) => object,
                        // The sync makes the record again.
                        WatchEvent::Deleted(_) => {
                            lock(&shared.record).take();
                            shared.request_sync();
                            continue;
                        }
                        WatchEvent::Bookmark(_) | WatchEvent::Error(_) => continue,
                    };
                    let said = said(&object);
                    lock(&shared.record).replace(object);
                    if known.replace(said.clone()).is_some_and(|before| before != said) {
                        shared.request_sync();
                    }
                }
                lock(&shared.record).take();
                sleep(PAUSE).await;
            }
            Ok(Err(kube::Error::Api(status))) if status.code == 403 => sleep(REFUSED).await,
            Ok(Err(_)) | Err(_) => sleep(PAUSE).await,
        }
    }
}

fn said(object: &Json) -> [Option<String>; 2] {
    let annotations = object.get("metadata").and_then(|metadata| metadata.get("annotations"));
    [SUSPEND, SUSPEND_UNTIL].map(|name| Some(annotations?.get(name)?.as_str()?.to_owned()))
}
