//! A Federated* object → one placement and one workload under the same key.
//!
//! `spec.template` becomes the object before overrides. Name, namespace and kind come from the Federated
//! object and its type, whatever the template contains; apiVersion comes from the template if it has one.
//! Finalizers, status and fields that only a server sets are left out. Unlike KubeFed, berth carries the
//! template's annotations.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value as Json, json};

use super::kinds::FIELDS;
use super::placement::{self, SelectedClusters};
use super::placement::{FederatedNamespace, Namespaces, Narrowing};
use super::preference::{self, DIVIDED};
use super::types::{FederatedType, MemberType};
use super::{FederatedContext, lifecycle, referenced_files};
use crate::dialects::{Document, Lowered};
use berth_base::diag::{Diagnostic, Pos};
use berth_base::meta::{Metadata, SERVER_FIELDS, open};
use berth_base::model::decision::Outcome;
use berth_base::model::named::Named;
use berth_base::model::placement::{Blocked, Filter, Follow, Rule, Wording};
use berth_base::model::rollout::Strategy;
use berth_base::model::workload::ReplicasAt;
use berth_base::model::{
    Condition, Key, Object, ObjectId, Override, Placement, Pointer, Policy, Source, Template, Workload,
};
use berth_base::packed::{Packed, View};
use berth_base::yaml::{Fields, Mark, Node, Scope};

/// The labels of all copies.
static FINAL_LABELS: LazyLock<Arc<BTreeMap<String, String>>> =
    LazyLock::new(|| BTreeMap::from([("kubefed.io/managed".to_owned(), "true".to_owned())]).into());

/// Reads a Federated object; adds a FederatedNamespace to `namespaces` too.
pub(super) fn read(
    scope: &Scope,
    document: &Document,
    context: &FederatedContext,
    namespaces: &mut Namespaces,
    lowered: &mut Lowered,
) {
    let root = document.open();
    let Some((mut fields, metadata)) = open(scope, &root) else { return };
    // SOPS adds this field beside the spec when it encrypts a whole file.
    fields.accept(&["sops"]);
    let spec = fields.required_fields("spec");
    fields.finish();
    let Some(spec) = spec else { return };
    let (group, kind) = (&*document.key.group, &*document.key.kind);
    let Some(federated) = context.types.find(group, kind, &metadata.namespace) else {
        let message = format!("no type config defines the target of `{kind}`");
        let hint = context.types.hint_for(group, kind);
        return scope.report(Diagnostic::error(document.at.clone(), message).hint(hint));
    };
    lifecycle::warn_of_deletion(scope, document, &metadata);
    let target = &federated.target;
    if !check_namespace(scope, &metadata, target) {
        return;
    }
    let object = FederatedObject { scope, document, root: &root, metadata: &metadata, context };
    read_spec(spec, object, &federated, namespaces, lowered);
}

/// Reads the spec of a Federated object of a known type.
fn read_spec(
    mut spec: Fields<'_>,
    federated_object: FederatedObject<'_>,
    federated: &FederatedType,
    namespaces: &mut Namespaces,
    lowered: &mut Lowered,
) {
    let FederatedObject { scope, document, root, metadata, context } = federated_object;
    let target = &federated.target;
    let text =
        document.root.get("spec").and_then(|spec| spec.get("placement")).map_or(Json::Null, View::to_json);
    let wanted = placement::read(&mut spec, &metadata.namespace);
    let named = FIELDS.named(scope, root);
    if target.is_namespace() {
        if metadata.name != metadata.namespace {
            return warn_of_name(scope, metadata);
        }
        let rule = narrowing_rule(scope, &spec, wanted.as_ref());
        let selector = placement::selector_of(root);
        let key = document.key.clone();
        namespaces.insert(&metadata.name, FederatedNamespace { key, rule, text: text.clone(), selector });
    }
    let content = referenced_files::content(&mut spec, document, &context.files, lowered);
    let retains = lifecycle::read_retain_replicas(&mut spec, target);
    spec.finish();
    let sync_annotations =
        lifecycle::annotations(scope, document, metadata, context.planes.adopts(&metadata.namespace));
    let (Some(wanted), Some(content)) = (wanted, content) else { return };
    let Some(object) = object_of_template(content.template, metadata, target) else { return };
    let template = Template {
        retained: lifecycle::retained(&object, &retains),
        object: Arc::new(object),
        final_labels: FINAL_LABELS.clone(),
        sync_annotations,
    };
    let source = source_of(federated_object, federated, wanted, text);
    let (key, origin) = (document.key.clone(), document.at.clone());
    let replicas = replicas_at(federated_object, &source, &content.overrides, retains.any());
    let blocked = matches!(&source, Source::Own(policy) if policy.blocked.is_some());
    let placement = Placement { named, ..Placement::new(key.clone(), origin.clone(), source) };
    lowered.placements.push(placement.into());
    if target.is_namespace() && context.planes.is_system(&metadata.name) {
        // Its placement still limits the namespace's contents.
        return;
    }
    let workload = Workload {
        key,
        origin,
        templates: vec![template],
        overrides: content.overrides.into(),
        replicas,
        // Members keep their copies, with the same content in the same clusters.
        frozen: blocked || content.incomplete,
        strategy: Strategy::AtOnce,
    };
    lowered.workloads.push(workload.into());
}

/// Returns the field for a preference's number, if the kind has one.
fn replicas_at(
    object: FederatedObject<'_>,
    source: &Source,
    overrides: &[Override],
    retains: bool,
) -> Option<ReplicasAt> {
    let FederatedObject { scope, document, metadata, context, .. } = object;
    let kind = &*document.key.kind;
    if !DIVIDED.contains(&kind) {
        return None;
    }
    let preference = context.preferences.find(kind, &metadata.namespace, &metadata.name);
    let divides = matches!(source, Source::Own(policy) if policy.division.is_some());
    if let Some(preference) = preference.filter(|_| divides) {
        preference::warn_of_rivals(scope, preference, &document.key, overrides, retains);
    }
    let (by, origin) = match preference {
        Some(preference) => (&preference.key, &preference.origin),
        None => (&document.key, &document.at),
    };
    Some(ReplicasAt { path: Pointer::of(preference::REPLICAS), by: by.clone(), origin: origin.clone() })
}

fn check_namespace(scope: &Scope, metadata: &Metadata, target: &MemberType) -> bool {
    let needed = target.namespaced || target.is_namespace();
    if needed && metadata.namespace.is_empty() {
        scope.error(metadata.at, "metadata.namespace is required");
    }
    if !needed && !metadata.namespace.is_empty() {
        let message = format!("metadata.namespace must not be given: a {} has no namespace", target.kind);
        scope.error(metadata.namespace_at, message);
    }
    needed != metadata.namespace.is_empty()
}

fn warn_of_name(scope: &Scope, metadata: &Metadata) {
    let (name, namespace) = (&metadata.name, &metadata.namespace);
    let message = format!(
        "a FederatedNamespace must have its namespace's name; `{name}` in namespace `{namespace}` is \
         ignored"
    );
    let hint = format!("write `name: {namespace}`");
    scope.report(Diagnostic::warning(scope.pos(metadata.name_at), message).hint(hint));
}

/// Returns the rule that narrows the objects in the namespace.
fn narrowing_rule(scope: &Scope, spec: &Fields<'_>, wanted: Option<&SelectedClusters>) -> Option<Rule> {
    match wanted? {
        SelectedClusters::Clusters(rule) => Some(rule.clone()),
        SelectedClusters::Follow(_) => {
            let at = spec.place_of("placement");
            let message = "spec.placement.placementRef is not possible in a FederatedNamespace";
            let hint = "select its clusters here, with `clusters` or `clusterSelector`: they limit every object in the namespace";
            scope.report(Diagnostic::error(scope.pos(at), message).hint(hint));
            None
        }
    }
}

fn source_of(
    object: FederatedObject<'_>,
    federated: &FederatedType,
    wanted: SelectedClusters,
    text: Json,
) -> Source {
    let FederatedObject { document, metadata, context, .. } = object;
    let target = &federated.target;
    // No condition: KubeFed's describes the propagation, which no decision knows.
    let mut policy = Policy::BLANK;
    let mut namespace_text = Json::Null;
    policy.filters.extend(out_of_reach(context, target, &metadata.namespace));
    if target.namespaced {
        match context.namespaces.narrowing(&metadata.namespace, &context.planes) {
            Narrowing::None => {}
            Narrowing::By { filter, text } => {
                policy.filters.push(filter);
                namespace_text = text;
            }
            Narrowing::NotFederated(filter) => {
                policy.filters.push(filter);
                policy.condition = NOT_FEDERATED;
            }
            Narrowing::Unreadable(key) => policy.blocked = Some(unreadable(&key)),
        }
    }
    if !federated.propagates {
        policy.blocked = Some(disabled(target));
    }
    match wanted {
        SelectedClusters::Follow(placement) if policy.blocked.is_none() => {
            let wanted = SelectedClusters::Follow(placement.clone());
            preference::division_of(object, &wanted, &[]);
            let placements = vec![placement];
            Source::Follows(Follow { placements, filters: policy.filters, condition: policy.condition })
        }
        wanted => {
            if policy.blocked.is_none() {
                let division = preference::division_of(object, &wanted, &policy.filters);
                policy.division = division.map(Box::new);
            }
            if let SelectedClusters::Clusters(rule) = wanted {
                policy.filters.insert(0, Filter { rule, by: None });
            }
            let mut text = json!({ "placement": text, "namespace": namespace_text });
            if policy.division.is_some() {
                let found = context.preferences.find(&document.key.kind, &metadata.namespace, &metadata.name);
                text["preference"] = found.map_or(Json::Null, |preference| preference.text.clone());
            }
            policy.text = Packed::of(&text);
            Source::Own(Box::new(policy))
        }
    }
}

/// Returns a filter that refuses every cluster for an object that no control plane handles.
fn out_of_reach(context: &FederatedContext, target: &MemberType, namespace: &str) -> Option<Filter> {
    if !context.planes.all_namespaced() || context.planes.is_namespaced(namespace) {
        return None;
    }
    let reason = if target.namespaced || target.is_namespace() {
        format!("every control plane is namespace-scoped, and none is for the namespace `{namespace}`")
    } else {
        "a namespace-scoped control plane places no cluster-scoped objects".to_owned()
    };
    Some(Filter { rule: Rule::Nowhere(reason), by: None })
}

fn disabled(target: &MemberType) -> Blocked {
    let kind = &target.kind;
    Blocked {
        condition: propagation(
            "PropagationDisabled",
            format!(
                "the type config of {kind} sets `propagation: Disabled`; members keep their objects unchanged"
            ),
        ),
        keep_earlier: true,
    }
}

fn unreadable(namespace: &Key) -> Blocked {
    Blocked {
        condition: propagation("ComputePlacementFailed", format!("{namespace} has a faulty placement")),
        keep_earlier: true,
    }
}

const NOT_FEDERATED: Wording = Named { name: "NamespaceNotFederated", function: not_federated };

fn not_federated(_: &Outcome) -> Option<Condition> {
    let message = "the namespace has no FederatedNamespace of its name";
    Some(propagation("NamespaceNotFederated", message.to_owned()))
}

fn propagation(reason: &str, message: String) -> Condition {
    Condition { kind: "Propagation".to_owned(), status: false, reason: reason.to_owned(), message }
}

/// A Federated object and its context.
#[derive(Clone, Copy)]
pub(super) struct FederatedObject<'a> {
    pub(super) scope: &'a Scope,
    pub(super) document: &'a Document,
    /// The document, opened.
    pub(super) root: &'a Node,
    pub(super) metadata: &'a Metadata,
    pub(super) context: &'a FederatedContext,
}

/// A template as written, for objects of any name.
#[derive(Clone, Debug)]
pub(super) struct WrittenTemplate {
    object: Map<String, Json>,
    at: Pos,
}

/// Reads the field `template`.
pub(super) fn read_template(fields: &mut Fields<'_>) -> Option<WrittenTemplate> {
    let (scope, path) = (fields.scope(), fields.path_of("template"));
    let node = fields.node("template");
    let at = scope.pos(node.map_or(fields.at(), |node| node.at));
    let object = match node {
        None => Map::new(),
        Some(node) => {
            check_metadata(scope, node, &path)?;
            match node.to_json() {
                Json::Object(fields) => fields,
                _ => Map::new(),
            }
        }
    };
    Some(WrittenTemplate { object, at })
}

/// Returns the object of a Federated object's template.
fn object_of_template(written: WrittenTemplate, metadata: &Metadata, target: &MemberType) -> Option<Object> {
    let WrittenTemplate { mut object, at } = written;
    object.remove("status");
    let api_version = match object.get("apiVersion").and_then(Json::as_str) {
        Some(given) if !given.is_empty() => given.trim_start_matches('/').to_owned(),
        _ => target.api_version(),
    };
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), target.kind.clone().into());
    let inner = object.remove("metadata").unwrap_or_default();
    object.insert("metadata".to_owned(), member_metadata(inner, metadata, target));
    let content = Json::Object(object);
    let id = ObjectId::of(&content)?;
    Some(Object { id, origin: at, content: Packed::of(&content) })
}

fn member_metadata(inner: Json, metadata: &Metadata, target: &MemberType) -> Json {
    let mut fields = match inner {
        Json::Object(fields) => fields,
        _ => Map::new(),
    };
    fields.remove("finalizers");
    for key in SERVER_FIELDS {
        fields.remove(key);
    }
    fields.insert("name".to_owned(), metadata.name.clone().into());
    fields.remove("namespace");
    if target.namespaced {
        fields.insert("namespace".to_owned(), metadata.namespace.clone().into());
    }
    Json::Object(fields)
}

/// Reports parts that any member's API server would refuse, and parts that are left out.
fn check_metadata(scope: &Scope, template: &Node, path: &str) -> Option<()> {
    let mut fields = scope.fields(template, path)?;
    fields.str("apiVersion");
    fields.str("kind");
    if let Some(mut metadata) = fields.fields("metadata") {
        metadata.string_map("labels");
        metadata.string_map("annotations");
        let finalizers = metadata.list("finalizers").unwrap_or_default();
        if !finalizers.is_empty() {
            warn(scope, metadata.place_of("finalizers"), &metadata.path_of("finalizers"));
        }
    }
    Some(())
}

fn warn(scope: &Scope, at: Mark, path: &str) {
    let message = format!("{path} does not reach the members");
    let hint = "set the finalizer in the member, where its controller removes it";
    scope.report(Diagnostic::warning(scope.pos(at), message).hint(hint));
}
