//! Finds the foreign objects that a removal would delete: those in a namespace, and the objects of a definition.

use std::collections::BTreeSet;

use kube::api::ListParams;
use kube::core::Request;
use serde_json::Value as Json;

use super::api_client::patiently;
use super::compare::uid_of;
use super::connection::Connection;
use super::failure::Failure;
use super::identity::part_of;
use super::protected::has_owner;
use super::served_kinds::ServedKind;
use crate::live::concurrency::each;
use crate::sync::plan::{is_definition, is_namespace};
use berth_base::model::ObjectId;
use berth_base::model::status::Problem;
use berth_base::text::some_of;

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
