//! `resourceSelectors`: the next API selects a namespace without what is in it, so its content is listed by kind.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json, json};

use super::{Work, words};
use crate::dialects::kubefleet::kinds::PLACEMENT_GROUP;
use berth_base::model::ObjectId;

/// The most selectors of a policy.
const MOST: usize = 10;

/// The objects that a placement's selectors are about.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// The objects of the repository, each with its version.
    pub objects: Vec<(ObjectId, String)>,
    /// The objects that the placement carries.
    pub carried: BTreeSet<ObjectId>,
}

impl Contents {
    /// Returns the kinds of the objects that a namespace brings, each with its group and version.
    fn kinds_in(&self, namespace: &str) -> BTreeSet<(String, String, String)> {
        let is_brought = |id: &ObjectId| {
            self.carried.contains(id)
                // The content of an envelope is carried, the envelope is not.
                || *id.group == *PLACEMENT_GROUP && &*id.kind == "ResourceEnvelope"
                || id.group.is_empty() && &*id.kind == "ConfigMap"
        };
        let here = self.objects.iter().filter(|(id, _)| *id.namespace == *namespace && is_brought(id));
        here.map(|(id, version)| (id.group.to_string(), version.clone(), id.kind.to_string())).collect()
    }

    /// Reports whether the repository has objects of a kind in a namespace.
    fn has_in_namespace(&self, group: &str, kind: &str, namespace: &str) -> bool {
        let is_one = |id: &ObjectId| *id.group == *group && *id.kind == *kind && *id.namespace == *namespace;
        self.objects.iter().any(|(id, _)| is_one(id))
    }
}

pub(super) fn convert(
    spec: &Json,
    cluster_scoped: bool,
    contents: &Contents,
    work: &mut Work,
) -> Option<Json> {
    let Some(old) = spec["resourceSelectors"].as_array() else {
        work.refuse(
            "it selects no objects and is a policy for others to follow, which the next API does not have",
        );
        return None;
    };
    let text = |selector: &Json, key: &str| selector[key].as_str().unwrap_or_default().to_owned();
    let is_namespace = |selector: &Json| {
        cluster_scoped && selector["kind"] == "Namespace" && text(selector, "group").is_empty()
    };
    let chosen = old
        .iter()
        .find(|one| is_namespace(one) && one["selectionScope"] == "NamespaceWithResourceSelectors")
        .map(|one| text(one, "name"));
    let mut new: Vec<Json> = Vec::new();
    for selector in old {
        let mut one = Map::new();
        one.insert("apiGroup".to_owned(), json!(text(selector, "group")));
        one.insert("apiVersion".to_owned(), json!(text(selector, "version")));
        one.insert("kind".to_owned(), json!(text(selector, "kind")));
        for key in ["name", "labelSelector"] {
            if let Some(value) = selector.get(key).filter(|value| !value.is_null() && *value != "") {
                one.insert(key.to_owned(), value.clone());
            }
        }
        if let Some(chosen) = chosen.as_ref().filter(|_| !is_namespace(selector))
            && contents.has_in_namespace(&text(selector, "group"), &text(selector, "kind"), chosen)
        {
            one.insert("namespace".to_owned(), json!(chosen));
        }
        new.push(Json::Object(one));
        if is_namespace(selector)
            && matches!(selector["selectionScope"].as_str(), None | Some("NamespaceWithResources"))
        {
            new.extend(content(selector, contents, work));
        }
    }
    let mut seen: Vec<Json> = Vec::new();
    new.retain(|one| {
        let is_new = !seen.contains(one);
        seen.push(one.clone());
        is_new
    });
    if new.len() > MOST {
        let message = format!(
            "it needs {} selectors, and a policy has at most {MOST}: split the placement, or select fewer kinds",
            new.len()
        );
        work.refuse(message);
    }
    Some(Json::Array(new))
}

/// Selects the kinds in the namespaces of a selector that brings their content.
fn content(selector: &Json, contents: &Contents, work: &mut Work) -> Vec<Json> {
    let named = selector["name"].as_str().filter(|name| !name.is_empty()).map(str::to_owned);
    let carried = contents.carried.iter().filter(|id| id.group.is_empty() && &*id.kind == "Namespace");
    let namespaces: Vec<String> = match named {
        Some(name) => vec![name],
        None => carried.map(|id| id.name.to_string()).collect(),
    };
    if selector["name"].as_str().is_none_or(str::is_empty) {
        work.note("namespaces that match a selector later come without their content: add selectors for it");
    }
    let mut found = Vec::new();
    for namespace in namespaces {
        let kinds = contents.kinds_in(&namespace);
        let listed: Vec<String> =
            kinds.iter().map(|(group, _, kind)| words(&ObjectId::new(group, kind, "", ""))).collect();
        if !listed.is_empty() {
            work.note(format!(
                "the content of namespace `{namespace}` is selected by kind ({}); other kinds do not come along by \
                 themselves",
                listed.join(", ")
            ));
        }
        found.extend(kinds.into_iter().map(|(group, version, kind)| {
            json!({"apiGroup": group, "apiVersion": version, "kind": kind, "namespace": namespace})
        }));
    }
    found
}
