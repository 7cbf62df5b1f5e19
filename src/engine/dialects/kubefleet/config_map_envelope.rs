//! A ConfigMap of the older documentation, annotated as an envelope → the objects in its data.
//!
//! Each value is YAML with one or more objects: of the ConfigMap's own namespace, or cluster-scoped. Today's
//! KubeFleet no longer unwraps such a ConfigMap; berth does, unless the fleet's settings disable it.

use std::sync::Arc;

use berth_base::diag::Diagnostic;
use berth_base::model::{Object, ObjectId};
use berth_base::packed::{Packed, View};
use berth_base::yaml::{self, Limits, Scope};

const MARK: &str = "/metadata/annotations/kubernetes-fleet.io~1envelope-configmap";

/// Reports whether an object is an envelope of the old form.
pub fn is_one(object: &Object) -> bool {
    let marked = object.content.pointer(MARK).and_then(View::as_str);
    object.id.group.is_empty() && &*object.id.kind == "ConfigMap" && marked == Some("true")
}

/// Warns of an envelope that goes to members as it is.
pub(crate) fn stays_closed(scope: &Scope, envelope: &Object) {
    let message = format!(
        "{} is an envelope of the old form: the ConfigMap is placed, and not its content",
        envelope.id
    );
    let hint = "use a ResourceEnvelope or ClusterResourceEnvelope, or take `spec.kubefleet.unwrapConfigMaps: false` \
                out of berth.yaml";
    scope.report(Diagnostic::warning(envelope.origin.clone(), message).hint(hint));
}

/// The objects inside. Faults go to the scope, at the ConfigMap.
pub fn unwrap(scope: &Scope, envelope: &Object) -> Vec<Arc<Object>> {
    let id = &envelope.id;
    let message = format!("{id} is an envelope of the old form: its content is placed instead");
    let hint = "use a ResourceEnvelope or ClusterResourceEnvelope; today's KubeFleet places such a ConfigMap as it is, and so \
         does berth with `spec.kubefleet.unwrapConfigMaps: false` in berth.yaml";
    scope.report(Diagnostic::warning(envelope.origin.clone(), message).hint(hint));
    let data = envelope.content.get("data");
    let mut objects = Vec::new();
    for (key, value) in data.into_iter().flat_map(View::entries) {
        let at = format!("{id}: data.{key}");
        let fault = |fault: String| {
            scope.report(Diagnostic::error(envelope.origin.clone(), format!("{at}{fault}")));
        };
        let read = yaml::read(value.as_str().unwrap_or_default().as_bytes(), &Limits::of_a_part());
        for one in read.faults.iter().filter(|one| one.severity == berth_base::diag::Severity::Error) {
            fault(format!(", line {}: {}", one.at.line, one.message));
        }
        for document in &read.documents {
            let content = document.root.to_json();
            let Some(inner) = ObjectId::of(&content) else {
                fault(" must hold objects with apiVersion, kind and metadata.name".to_owned());
                continue;
            };
            if !inner.namespace.is_empty() && inner.namespace != id.namespace {
                let namespaces = (&inner.namespace, &id.namespace);
                fault(format!(
                    ": {inner} is in namespace {}, but its envelope is in {}",
                    namespaces.0, namespaces.1
                ));
                continue;
            }
            objects.push(Arc::new(Object {
                id: inner,
                origin: envelope.origin.clone(),
                content: Packed::of(&content),
            }));
        }
    }
    objects
}
