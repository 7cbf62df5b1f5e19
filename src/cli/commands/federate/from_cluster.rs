//! `berth federate --from-cluster`: reads the objects of a live cluster that a command line names.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::editing::working_tree::DocumentsIn;
use crate::flags::kubeconfig::HostArgs;
use crate::process::exit::{CommandError, Exit};
use berth_base::diag::{Diagnostic, Pos, Severity, did_you_mean};
use berth_base::model::ObjectId;
use berth_engine::dialects::kubefed::make::{FederateSubject, KnownTypes};
use berth_member::live::{Host, LiveError, Query, Resource};

/// A request for objects of the cluster.
#[derive(Debug)]
pub struct ClusterRequest<'a> {
    /// The type in kubectl's notation: `deploy`, `deployments.apps`.
    pub kind: &'a str,
    pub name: &'a str,
    pub namespace: Option<&'a str>,
    /// Includes everything in a Namespace.
    pub contents: bool,
    /// Types that are not read.
    pub skip: &'a [String],
    /// The types with a Federated kind. If two groups serve the same objects, the group with one is used.
    pub types: &'a KnownTypes,
}

/// Reports whether the resource is short-lived and never federated: events and metrics.
fn is_passing(resource: &Resource) -> bool {
    resource.kind == "Event" || resource.group == "metrics.k8s.io"
}

pub fn read(host: &HostArgs, wanted: &ClusterRequest<'_>) -> Result<DocumentsIn, CommandError> {
    let cluster = host.connect()?;
    read_from(&cluster, wanted)
}

fn read_from(host: &dyn Host, wanted: &ClusterRequest<'_>) -> Result<DocumentsIn, CommandError> {
    let resources = host.resources()?;
    let resource = find(&resources, wanted.kind, wanted.types)?;
    let namespace = resource.namespaced.then(|| wanted.namespace.unwrap_or("default"));
    let of_namespaces = resource.group.is_empty() && resource.kind == "Namespace";
    if wanted.contents && !of_namespaces {
        let error = CommandError::usage(format!("--contents needs a Namespace, not {resource}"));
        return Err(error.hint(format!("berth federate --from-cluster namespace {} --contents", wanted.name)));
    }
    let one = Query::all(resource.clone()).within(namespace).named(wanted.name);
    let mut queries = vec![one];
    if wanted.contents {
        let skipped = |resource: &&Resource| {
            wanted.skip.iter().any(|word| resource.is_called(word) || *word == resource.group)
        };
        let inside = resources.iter().filter(|one| one.namespaced && !is_passing(one));
        let inside = inside.filter(|one| !skipped(one)).cloned();
        queries.extend(inside.map(|one| Query::all(one).within(Some(wanted.name))));
    }
    let mut read = DocumentsIn::default();
    let mut found = Vec::new();
    for (index, answer) in host.list(&queries).into_iter().enumerate() {
        match answer {
            Ok(objects) if objects.is_empty() && index == 0 => {
                return Err(nothing(wanted, resource, namespace));
            }
            Ok(objects) => found.extend(objects),
            Err(error) if error.is_final() || index == 0 => return Err(error.into()),
            // The server of an aggregated API is down.
            Err(LiveError::NotServed { .. }) => {}
            Err(error) => read.found.push(Diagnostic {
                at: None,
                severity: Severity::Error,
                message: error.to_string(),
                hint: error.hint(),
            }),
        }
    }
    read.subjects.extend(once(found, wanted.types).into_iter().map(|object| {
        let at = ObjectId::of(&object).map_or_else(String::new, |id| id.to_string());
        FederateSubject { object, at: Pos::file(at) }
    }));
    Ok(read)
}

/// Removes duplicates: an object that two groups serve comes twice, with one uid.
fn once(objects: Vec<Json>, types: &KnownTypes) -> Vec<Json> {
    let is_known =
        |object: &Json| ObjectId::of(object).is_some_and(|id| types.of_target(&id.group, &id.kind).is_some());
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut kept: Vec<Json> = Vec::with_capacity(objects.len());
    for object in objects {
        let uid = object.pointer("/metadata/uid").and_then(Json::as_str).filter(|uid| !uid.is_empty());
        let Some(uid) = uid.map(str::to_owned) else {
            kept.push(object);
            continue;
        };
        match places.get(&uid) {
            Some(place) if is_known(&object) && !is_known(&kept[*place]) => kept[*place] = object,
            Some(_) => {}
            None => {
                places.insert(uid, kept.len());
                kept.push(object);
            }
        }
    }
    kept
}

/// Finds the only resource with this name.
fn find<'r>(resources: &'r [Resource], word: &str, types: &KnownTypes) -> Result<&'r Resource, CommandError> {
    let mut called: Vec<&Resource> = resources.iter().filter(|one| one.is_called(word)).collect();
    // Old servers also have a kind in the group from which it moved.
    let known = |one: &&Resource| types.of_target(&one.group, &one.kind).is_some();
    let same = called.iter().all(|one| called.iter().all(|other| one.kind == other.kind));
    if same && called.iter().any(known) {
        called.retain(known);
    }
    // As in kubectl, the core group wins.
    let core = called.iter().find(|one| one.group.is_empty()).copied();
    match (core, called.as_slice()) {
        (Some(core), _) => Ok(core),
        (None, [one]) => Ok(one),
        (None, []) => {
            let words = resources.iter().flat_map(|one| std::iter::once(&one.plural).chain(&one.short));
            let error = CommandError::usage(format!("the cluster has no resource type named `{word}`"));
            Err(match did_you_mean(word, words.map(String::as_str)) {
                Some(near) => error.hint(near),
                None => error.hint("`kubectl api-resources` lists them"),
            })
        }
        (None, several) => {
            let names: Vec<String> = several.iter().map(ToString::to_string).collect();
            let error = CommandError::usage(format!("`{word}` may mean {}", names.join(" or ")));
            Err(error.hint("write one of them in full"))
        }
    }
}

fn nothing(wanted: &ClusterRequest<'_>, resource: &Resource, namespace: Option<&str>) -> CommandError {
    let place = namespace.map(|namespace| format!(" in the namespace `{namespace}`")).unwrap_or_default();
    let error = CommandError::new(
        Exit::Unreachable,
        format!("the cluster has no {} `{}`{place}", resource.kind, wanted.name),
    );
    match namespace {
        Some(_) if wanted.namespace.is_none() => error.hint("name its namespace with `-n`"),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    /// An old server: deployments and ingresses are also in their former group.
    struct Old;

    impl Old {
        fn resource(group: &str, version: &str, plural: &str, kind: &str, short: &[&str]) -> Resource {
            let short = short.iter().map(|word| (*word).to_owned()).collect();
            Resource { short, ..Resource::new(group, version, plural, kind, true) }
        }
    }

    impl Host for Old {
        fn server(&self) -> &str {
            "https://host.example.com"
        }
        fn groups(&self) -> Result<BTreeSet<String>, LiveError> {
            Ok(BTreeSet::new())
        }
        fn resources(&self) -> Result<Vec<Resource>, LiveError> {
            Ok(vec![
                Resource::new("", "v1", "namespaces", "Namespace", false),
                Old::resource("extensions", "v1beta1", "deployments", "Deployment", &["deploy"]),
                Old::resource("extensions", "v1beta1", "ingresses", "Ingress", &["ing"]),
                Old::resource("apps", "v1", "deployments", "Deployment", &["deploy"]),
                Old::resource("networking.k8s.io", "v1beta1", "ingresses", "Ingress", &["ing"]),
                Old::resource("one.example.com", "v1", "boats", "Boat", &[]),
                Old::resource("two.example.com", "v1", "boats", "Boat", &[]),
            ])
        }
        fn list(&self, queries: &[Query]) -> Vec<Result<Vec<Json>, LiveError>> {
            let answer = |query: &Query| {
                let (kind, name) = (&query.resource.kind, query.name.as_deref().unwrap_or("web"));
                let metadata = json!({"name": name, "namespace": "shop", "uid": format!("{kind}-{name}")});
                Ok(vec![
                    json!({"apiVersion": query.resource.api_version(), "kind": kind, "metadata": metadata}),
                ])
            };
            queries.iter().map(answer).collect()
        }
    }

    fn wanted<'a>(kind: &'a str, name: &'a str, types: &'a KnownTypes) -> ClusterRequest<'a> {
        ClusterRequest {
            kind,
            name,
            namespace: Some("shop"),
            contents: kind == "namespace",
            skip: &[],
            types,
        }
    }

    fn versions(read: &DocumentsIn) -> Vec<&str> {
        read.subjects.iter().filter_map(|one| one.object["apiVersion"].as_str()).collect()
    }

    #[test]
    fn what_two_groups_serve_comes_once_in_the_group_that_has_a_federated_kind() {
        let types = KnownTypes::default();
        let read = read_from(&Old, &wanted("namespace", "shop", &types)).expect("read");
        // Neither group of boats is known, so the first is used.
        assert_eq!(versions(&read), ["v1", "apps/v1", "networking.k8s.io/v1beta1", "one.example.com/v1"]);
    }

    #[test]
    fn a_word_for_one_kind_in_two_groups_means_the_one_with_a_federated_kind() {
        let types = KnownTypes::default();
        let read = read_from(&Old, &wanted("deploy", "web", &types)).expect("read");
        assert_eq!(versions(&read), ["apps/v1"]);
        let asked = read_from(&Old, &wanted("deployments.extensions", "web", &types)).expect("read");
        assert_eq!(versions(&asked), ["extensions/v1beta1"]);
        let error = read_from(&Old, &wanted("boats", "ferry", &types)).expect_err("ambiguous");
        assert_eq!(error.message, "`boats` may mean boats.one.example.com or boats.two.example.com");
    }
}
