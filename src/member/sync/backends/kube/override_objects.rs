//! The member's own overrides that are kept in the cluster: ConfigMaps and Secrets of berth's namespace.

use kube::api::ListParams;
use serde_json::Value as Json;

use super::ClusterSession;
use super::api_client::ApiRequest;
use super::failure::Failure;
use crate::sync::override_objects::{BackendOverrides, ObjectChoice, OverrideObjects};
use berth_base::model::ObjectId;

impl ClusterSession {
    /// Reads all local overrides, in the order of their sources.
    pub async fn local_overrides(&mut self) -> BackendOverrides {
        let mut into = BackendOverrides::default();
        for source in self.overrides_from.clone() {
            let path = format!("/api/v1/namespaces/{}/{}", self.identity.namespace, source.plural());
            match &source.which {
                ObjectChoice::Named(name) => {
                    let id = source.object(&self.identity.namespace, name);
                    let found = match self.api.get(&path, name).await {
                        Ok(Some(object)) => Ok(object),
                        Ok(None) => Err("it does not exist".to_owned()),
                        Err(failure) => Err(unreadable(&failure, source.secret)),
                    };
                    self.good_overrides.take_object(
                        &source,
                        &id,
                        found.as_ref().map_err(Clone::clone),
                        &mut into,
                    );
                }
                ObjectChoice::Labelled(label) => self.labelled(&source, &path, label, &mut into).await,
            }
        }
        into
    }

    async fn labelled(
        &mut self,
        source: &OverrideObjects,
        path: &str,
        label: &str,
        into: &mut BackendOverrides,
    ) {
        let params = ListParams { label_selector: Some(label.to_owned()), ..ListParams::default() };
        let answer = self.api.send(&ApiRequest::List { path: path.to_owned(), params }).await;
        let list: Result<Json, Failure> = answer.and_then(|answer| answer.read());
        let namespace = self.identity.namespace.clone();
        match list {
            Ok(list) => {
                let items = list.get("items").and_then(Json::as_array).into_iter().flatten();
                let name = |item: &Json| item.pointer("/metadata/name")?.as_str().map(str::to_owned);
                let mut found: Vec<(ObjectId, &Json)> =
                    items.filter_map(|item| Some((source.object(&namespace, &name(item)?), item))).collect();
                found.sort_by(|one, other| one.0.cmp(&other.0));
                let there: Vec<ObjectId> = found.iter().map(|(id, _)| id.clone()).collect();
                // Somebody removed the missing object, or its label.
                self.good_overrides.keep(source, &there);
                for (id, object) in found {
                    self.good_overrides.take_object(source, &id, Ok(object), into);
                }
            }
            Err(failure) => {
                let why = unreadable(&failure, source.secret);
                let mut all = self.good_overrides.of(source);
                if all.is_empty() {
                    all.push(source.object(&namespace, "*"));
                }
                for id in all {
                    self.good_overrides.take_object(source, &id, Err(why.clone()), into);
                }
            }
        }
    }
}

fn unreadable(failure: &Failure, secret: bool) -> String {
    format!("it cannot be read: {}", failure.words(secret))
}
