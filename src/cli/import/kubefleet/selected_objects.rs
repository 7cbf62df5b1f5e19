//! The queries for the objects that placements select, and the selection among the answers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use berth_member::live::{Query, Resource};

use super::{CLUSTERS, PLACEMENTS};

/// Groups that are never placed: short-lived objects, and the hub's own.
const NEVER: [&str; 5] = [CLUSTERS, PLACEMENTS, "coordination.k8s.io", "events.k8s.io", "metrics.k8s.io"];

/// The objects to request from the hub.
pub(super) struct Wanted<'a> {
    pub(super) queries: Vec<Query>,
    /// Kinds that selectors name and the hub does not serve.
    pub(super) unknown: BTreeSet<String>,
    selectors: Vec<Selector<'a>>,
    /// Namespaces that are placed with all their objects.
    whole: BTreeSet<String>,
}

/// A selector of one placement, and its namespace.
struct Selector<'a> {
    group: &'a str,
    kind: &'a str,
    name: Option<&'a str>,
    labels: Option<&'a Json>,
    within: Option<&'a str>,
}

impl<'a> Wanted<'a> {
    pub(super) fn of(placements: &'a [Json], resources: &[Resource], namespaces: &[Json]) -> Wanted<'a> {
        let mut wanted = Wanted {
            queries: Vec::new(),
            unknown: BTreeSet::new(),
            selectors: Vec::new(),
            whole: BTreeSet::new(),
        };
        let mut asked: BTreeMap<String, Query> = BTreeMap::new();
        for placement in placements {
            let own = text(placement, "/metadata/namespace");
            let list = placement.pointer("/spec/resourceSelectors").and_then(Json::as_array);
            let list: Vec<&Json> = list.into_iter().flatten().collect();
            let chosen = list.iter().find(|one| one["selectionScope"] == "NamespaceWithResourceSelectors");
            let chosen = chosen.and_then(|one| one["name"].as_str());
            for one in list {
                let (group, version, kind) = (text(one, "/group"), text(one, "/version"), text(one, "/kind"));
                let served = resources.iter().find(|served| served.group == group && served.kind == kind);
                let Some(served) = served else {
                    wanted.unknown.insert(if group.is_empty() {
                        kind.to_owned()
                    } else {
                        format!("{kind}.{group}")
                    });
                    continue;
                };
                if NEVER.contains(&group) {
                    continue;
                }
                let within = Some(own).filter(|own| !own.is_empty()).or(chosen).filter(|_| served.namespaced);
                let name = one["name"].as_str().filter(|name| !name.is_empty());
                let selector = Selector { group, kind, name, labels: one.get("labelSelector"), within };
                let is_namespace = group.is_empty() && kind == "Namespace";
                if is_namespace && matches!(text(one, "/selectionScope"), "" | "NamespaceWithResources") {
                    let matching = namespaces.iter().filter(|object| selector.matches(object));
                    wanted.whole.extend(matching.map(|object| text(object, "/metadata/name").to_owned()));
                }
                wanted.selectors.push(selector);
                let resource = Resource { version: version.to_owned(), ..served.clone() };
                let query = Query::all(resource).within(within);
                asked.entry(query.to_string()).or_insert(query);
            }
        }
        wanted.whole.retain(|name| !is_reserved(name));
        let inside = resources.iter().filter(|one| {
            one.namespaced
                && !NEVER.contains(&one.group.as_str())
                && !matches!(one.kind.as_str(), "Event" | "Pod")
        });
        for resource in inside {
            for namespace in &wanted.whole {
                let query = Query::all(resource.clone()).within(Some(namespace));
                asked.entry(query.to_string()).or_insert(query);
            }
        }
        wanted.queries = asked.into_values().collect();
        wanted
    }

    /// Reports whether a placement selects the object.
    pub(super) fn holds(&self, object: &Json) -> bool {
        self.whole.contains(text(object, "/metadata/namespace"))
            || self.selectors.iter().any(|selector| selector.matches(object))
    }
}

impl Selector<'_> {
    fn matches(&self, object: &Json) -> bool {
        let api_version = text(object, "/apiVersion");
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        group == self.group
            && text(object, "/kind") == self.kind
            && self.within.unwrap_or_default() == text(object, "/metadata/namespace")
            && self.name.is_none_or(|name| name == text(object, "/metadata/name"))
            && self.labels.is_none_or(|labels| labels_match(labels, &object["metadata"]["labels"]))
    }
}

/// A Kubernetes label selector over a live object's labels.
fn labels_match(selector: &Json, labels: &Json) -> bool {
    let equal = selector["matchLabels"].as_object();
    let equal = equal.into_iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    let holds = |one: &Json| {
        let value = labels.get(one["key"].as_str().unwrap_or_default());
        let listed = || {
            let values = one["values"].as_array();
            values.is_some_and(|values| value.is_some_and(|value| values.contains(value)))
        };
        match one["operator"].as_str() {
            Some("In") => listed(),
            Some("NotIn") => !listed(),
            Some("Exists") => value.is_some(),
            Some("DoesNotExist") => value.is_none(),
            _ => false,
        }
    };
    equal && selector["matchExpressions"].as_array().into_iter().flatten().all(holds)
}

/// Returns Services by namespace and name: Endpoints of the same name are derived from them.
pub(super) fn services(objects: &[Json]) -> BTreeSet<(String, String)> {
    let of_core = objects.iter().filter(|one| one["kind"] == "Service" && one["apiVersion"] == "v1");
    of_core.map(name_of).collect()
}

fn name_of(object: &Json) -> (String, String) {
    (text(object, "/metadata/namespace").to_owned(), text(object, "/metadata/name").to_owned())
}

/// Reports whether a hub would send the object to members.
pub(super) fn travels(object: &Json, services: &BTreeSet<(String, String)>) -> bool {
    let owned = || {
        object
            .pointer("/metadata/ownerReferences")
            .and_then(Json::as_array)
            .is_some_and(|all| !all.is_empty())
    };
    let managed = "/metadata/labels/endpointslice.kubernetes.io~1managed-by";
    match (text(object, "/kind"), text(object, "/metadata/name")) {
        ("Pod" | "Node" | "Event", _) => false,
        ("ReplicaSet" | "ControllerRevision", _) => !owned(),
        ("ConfigMap", "kube-root-ca.crt") | ("ServiceAccount", "default") => false,
        ("Secret", _) => object["type"] != "kubernetes.io/service-account-token",
        ("Endpoints", _) => !services.contains(&name_of(object)),
        ("EndpointSlice", _) => object.pointer(managed).is_none(),
        _ => true,
    }
}

fn is_reserved(namespace: &str) -> bool {
    namespace == "default" || namespace.starts_with("kube-") || namespace.starts_with("fleet-")
}

fn text<'j>(object: &'j Json, pointer: &str) -> &'j str {
    object.pointer(pointer).and_then(Json::as_str).unwrap_or_default()
}
