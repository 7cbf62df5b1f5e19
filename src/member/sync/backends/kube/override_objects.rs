//! Local overrides in the cluster: ConfigMaps and Secrets in berth's namespace.

use kube::api::ListParams;
use serde_json::Value as Json;

use super::api_client::ApiClient;
use super::failure::Failure;
use crate::sync::local_overrides::{BackendOverrides, LastGoodOverrides, ObjectChoice, OverrideObjects};
use berth_base::model::ObjectId;

/// An object, or the reason why it cannot be read.
type FoundObject = (ObjectId, Result<Json, String>);

/// Reads the objects with overrides.
#[derive(Debug)]
pub(crate) struct OverrideReader {
    pub sources: Vec<OverrideObjects>,
    last_good: LastGoodOverrides,
}

impl OverrideReader {
    pub fn new(sources: Vec<OverrideObjects>) -> OverrideReader {
        OverrideReader { sources, last_good: LastGoodOverrides::default() }
    }

    /// Reads all local overrides, in the order of their sources.
    pub async fn read(&mut self, api: &ApiClient) -> BackendOverrides {
        let mut into = BackendOverrides::default();
        for source in &self.sources {
            let path = format!("/api/v1/namespaces/{}/{}", api.identity.namespace, source.plural());
            let found = match &source.which {
                ObjectChoice::Named(name) => vec![named(api, source, &path, name).await],
                ObjectChoice::Labelled(label) => match labelled(api, source, &path, label).await {
                    Ok(found) => {
                        // The missing objects were removed, or lost their label.
                        let ids: Vec<ObjectId> = found.iter().map(|(id, _)| id.clone()).collect();
                        self.last_good.keep(source, &ids);
                        found
                    }
                    Err(why) => {
                        let mut all = self.last_good.of(source);
                        if all.is_empty() {
                            all.push(source.object(&api.identity.namespace, "*"));
                        }
                        all.into_iter().map(|id| (id, Err(why.clone()))).collect()
                    }
                },
            };
            for (id, object) in found {
                self.last_good.take_object(source, &id, object.as_ref().map_err(Clone::clone), &mut into);
            }
        }
        into
    }
}

async fn named(api: &ApiClient, source: &OverrideObjects, path: &str, name: &str) -> FoundObject {
    let object = match api.get(path, name).await {
        Ok(Some(object)) => Ok(object),
        Ok(None) => Err("it does not exist".to_owned()),
        Err(failure) => Err(unreadable(&failure, source.secret)),
    };
    (source.object(&api.identity.namespace, name), object)
}

async fn labelled(
    api: &ApiClient,
    source: &OverrideObjects,
    path: &str,
    label: &str,
) -> Result<Vec<FoundObject>, String> {
    let params = ListParams { label_selector: Some(label.to_owned()), ..ListParams::default() };
    let list: Result<Json, Failure> = api.list_once(path, &params).await;
    let mut list = list.map_err(|failure| unreadable(&failure, source.secret))?;
    let Json::Array(items) = list["items"].take() else { return Ok(Vec::new()) };
    let named = |item: Json| {
        let name = item.pointer("/metadata/name")?.as_str()?;
        Some((source.object(&api.identity.namespace, name), Ok(item)))
    };
    let mut found: Vec<FoundObject> = items.into_iter().filter_map(named).collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(found)
}

fn unreadable(failure: &Failure, secret: bool) -> String {
    format!("it cannot be read: {}", failure.words(secret))
}
