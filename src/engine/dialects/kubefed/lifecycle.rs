//! KubeFed's treatment of objects over their life → `berth.dev/` annotations for the syncer: take-over,
//! orphaning, delete options, and fields that the member keeps. The annotations outlive the Federated object.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use serde_json::Value as Json;

use super::types::MemberType;
use crate::dialects::Document;
use berth_base::diag::{Diagnostic, did_you_mean};
use berth_base::meta::Metadata;
use berth_base::model::Object;
use berth_base::model::workload::Retained;
use berth_base::packed::View;
use berth_base::yaml::{Fields, Form, Mark, Scope, Value};

pub(super) const ORPHAN: &str = "kubefed.io/orphan";
const DELETE_OPTIONS: &str = "kubefed.io/deleteoption";

const RETAIN: &str = "retainReplicas";

const POLICIES: [&str; 3] = ["Background", "Foreground", "Orphan"];
const OPTIONS: [&str; 7] = [
    "apiVersion",
    "dryRun",
    "gracePeriodSeconds",
    "kind",
    "orphanDependents",
    "preconditions",
    "propagationPolicy",
];

/// The annotations of objects that members take over, without further settings.
static TAKE_OVER: LazyLock<Arc<BTreeMap<String, String>>> =
    LazyLock::new(|| BTreeMap::from([("berth.dev/take-over".to_owned(), "true".to_owned())]).into());

/// Returns the syncer's annotations for every copy of an object.
pub(super) fn annotations(
    scope: &Scope,
    document: &Document,
    metadata: &Metadata,
    adopts: bool,
) -> Arc<BTreeMap<String, String>> {
    let mut annotations = if adopts { TAKE_OVER.clone() } else { Arc::default() };
    let mut set = |name: &str, value: String| {
        Arc::make_mut(&mut annotations).insert(format!("berth.dev/{name}"), value);
    };
    if metadata.annotations.get(ORPHAN).map(String::as_str) == Some("true") {
        set("orphan", "true".to_owned());
    }
    if let Some(written) = metadata.annotations.get(DELETE_OPTIONS) {
        match delete_options(written) {
            Ok(options) => set("delete-options", options),
            Err((message, hint)) => {
                let message = format!("metadata.annotations.{DELETE_OPTIONS} {message}");
                let at = scope.pos(annotation_at(document, metadata, DELETE_OPTIONS));
                scope.report(Diagnostic::error(at, message).maybe_hint(hint));
            }
        }
    }
    annotations
}

fn annotation_at(document: &Document, metadata: &Metadata, name: &str) -> Mark {
    let node = document.root.get("metadata").and_then(|metadata| metadata.get("annotations")?.get(name));
    node.map_or(metadata.at, View::at)
}

/// Warns of an object whose deletion was pending when it was exported: placing it would revive it.
pub(super) fn warn_of_deletion(scope: &Scope, document: &Document, metadata: &Metadata) {
    if !metadata.deleting {
        return;
    }
    let at = document.root.get("metadata").and_then(|metadata| metadata.get("deletionTimestamp"));
    let at = scope.pos(at.map_or(metadata.at, View::at));
    let message = format!("{} was being deleted when it was exported, and is still placed", document.key);
    let hint = "remove the object from its file to delete it, or the deletionTimestamp to keep it";
    scope.report(Diagnostic::warning(at, message).hint(hint));
}

type OptionsFault = (String, Option<String>);

/// Checks Kubernetes' DeleteOptions and writes them in one form.
fn delete_options(written: &str) -> Result<String, OptionsFault> {
    let plain = |message: &str| Err((message.to_owned(), None));
    let Ok(options) = serde_json::from_str::<Json>(written) else {
        let hint = r#"such as {"gracePeriodSeconds":30,"propagationPolicy":"Foreground"}"#;
        return Err(("must be DeleteOptions as JSON".to_owned(), Some(hint.to_owned())));
    };
    let Some(fields) = options.as_object() else { return plain("must be a JSON mapping") };
    if let Some(key) = fields.keys().find(|key| !OPTIONS.contains(&key.as_str())) {
        return Err((format!("has the unknown field `{key}`"), did_you_mean(key, OPTIONS)));
    }
    match fields.get("gracePeriodSeconds") {
        None | Some(Json::Null) => {}
        Some(seconds) if seconds.as_u64().is_some() => {}
        Some(_) => return plain("gracePeriodSeconds must be a whole number from 0"),
    }
    match fields.get("propagationPolicy") {
        None | Some(Json::Null) => {}
        Some(policy) if policy.as_str().is_some_and(|policy| POLICIES.contains(&policy)) => {}
        Some(_) => {
            let message = format!("propagationPolicy must be one of {}", POLICIES.join(", "));
            return Err((message, None));
        }
    }
    match fields.get("preconditions").map(Json::as_object) {
        None => {}
        Some(Some(conditions)) => {
            let known = |(key, value): (&String, &Json)| {
                matches!(key.as_str(), "uid" | "resourceVersion") && value.is_string()
            };
            if !conditions.iter().all(known) {
                return plain("preconditions may hold uid and resourceVersion, as text");
            }
        }
        Some(None) => return plain("preconditions must be a mapping"),
    }
    Ok(options.to_string())
}

/// The clusters whose members keep their own number of replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RetainReplicas {
    Nowhere,
    Everywhere,
    In(BTreeSet<String>),
}

impl RetainReplicas {
    pub(super) fn any(&self) -> bool {
        *self != RetainReplicas::Nowhere
    }
}

/// Reads `retainReplicas`: true or false, or, as berth's extension, a list of clusters.
pub(super) fn read_retain_replicas(spec: &mut Fields<'_>, target: &MemberType) -> RetainReplicas {
    let wanted = read_wanted(spec);
    if !wanted.any() || target.may_have_replicas() {
        return wanted;
    }
    let message = format!("{} has no effect: a {} has no replicas", spec.path_of(RETAIN), target.kind);
    spec.scope().warning(spec.place_of(RETAIN), message);
    RetainReplicas::Nowhere
}

fn read_wanted(spec: &mut Fields<'_>) -> RetainReplicas {
    spec.takes(RETAIN, Form::List);
    spec.takes(&format!("{RETAIN}[0]"), Form::Text);
    let is_list = spec.node(RETAIN).is_some_and(|node| matches!(node.value, Value::List(_)));
    if is_list {
        let names = spec.strings(RETAIN).unwrap_or_default();
        let names: BTreeSet<String> = names.into_iter().map(str::to_owned).collect();
        return if names.is_empty() { RetainReplicas::Nowhere } else { RetainReplicas::In(names) };
    }
    match spec.bool(RETAIN) {
        Some(true) => RetainReplicas::Everywhere,
        _ => RetainReplicas::Nowhere,
    }
}

/// Returns the fields that KubeFed does not change in a member's object.
pub(super) fn retained(object: &Object, replicas: &RetainReplicas) -> Vec<Retained> {
    let everywhere = |path: &str| Retained { path: path.to_owned(), clusters: None };
    let mut retained = vec![everywhere("/metadata/annotations"), everywhere("/metadata/finalizers")];
    match (&*object.id.group, &*object.id.kind) {
        ("", "Service") => {
            let fields = [
                "/spec/clusterIP",
                "/spec/clusterIPs",
                "/spec/healthCheckNodePort",
                "/spec/ports/*/nodePort",
            ];
            retained.extend(fields.map(everywhere));
        }
        ("", "ServiceAccount") => {
            let given = object.content.get("secrets");
            if given.is_none_or(|secrets| secrets.items().next().is_none()) {
                retained.push(everywhere("/secrets"));
            }
        }
        _ => match replicas {
            RetainReplicas::Nowhere => {}
            RetainReplicas::Everywhere => retained.push(everywhere("/spec/replicas")),
            RetainReplicas::In(clusters) => {
                let clusters = Some(clusters.clone());
                retained.push(Retained { path: "/spec/replicas".to_owned(), clusters });
            }
        },
    }
    retained
}
