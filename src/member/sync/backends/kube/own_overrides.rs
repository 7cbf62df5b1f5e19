//! The member's own overrides that are kept in the cluster: ConfigMaps and Secrets of berth's namespace.

use kube::api::ListParams;
use serde_json::Value as Json;

use super::Core;
use super::failure::Failure;
use super::wire::Ask;
use crate::sync::override_source::{FromTarget, Source, Which};
use berth_base::model::ObjectId;

impl Core {
    /// All of them as they are now, sources in their order.
    pub async fn local_overrides(&mut self) -> FromTarget {
        let mut into = FromTarget::default();
        for source in self.overrides_from.clone() {
            let path = format!("/api/v1/namespaces/{}/{}", self.identity.namespace, source.plural());
            match &source.which {
                Which::Named(name) => {
                    let id = source.object(&self.identity.namespace, name);
                    let found = match self.wire.get(&path, name).await {
                        Ok(Some(object)) => Ok(object),
                        Ok(None) => Err("it is not there".to_owned()),
                        Err(failure) => Err(unreadable(&failure, source.secret)),
                    };
                    self.good_overrides.heed(&source, &id, found.as_ref().map_err(Clone::clone), &mut into);
                }
                Which::Labelled(label) => self.labelled(&source, &path, label, &mut into).await,
            }
        }
        into
    }

    async fn labelled(&mut self, source: &Source, path: &str, label: &str, into: &mut FromTarget) {
        let params = ListParams { label_selector: Some(label.to_owned()), ..ListParams::default() };
        let answer = self.wire.send(&Ask::List { path: path.to_owned(), params }).await;
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
                // One that is gone, or has lost its label, was taken out by somebody.
                self.good_overrides.keep(source, &there);
                for (id, object) in found {
                    self.good_overrides.heed(source, &id, Ok(object), into);
                }
            }
            Err(failure) => {
                let why = unreadable(&failure, source.secret);
                let mut all = self.good_overrides.of(source);
                if all.is_empty() {
                    all.push(source.object(&namespace, "*"));
                }
                for id in all {
                    self.good_overrides.heed(source, &id, Err(why.clone()), into);
                }
            }
        }
    }
}

fn unreadable(failure: &Failure, secret: bool) -> String {
    format!("it can not be read: {}", failure.words(secret))
}
