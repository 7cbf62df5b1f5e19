//! The programs that may apply a cluster's folder, and the annotations by which each of them does what berth's own
//! annotations ask. All that rendering knows of such a program is its row in [`APPLIERS`].

use serde_json::{Map, Value as Json};

use super::annotation::{APPLY, DELETE_OPTIONS, ORPHAN, PRUNE, RECREATE, SUSPEND, SUSPEND_UNTIL};
use super::object::ObjectId;

/// The annotation of a cluster that names the program that applies its folder.
pub const ANNOTATION: &str = "berth.dev/applier";

/// A program that applies a cluster's folder.
#[derive(Debug)]
pub struct Applier {
    pub name: &'static str,
    /// Returns the annotations of one object, for this program to read.
    annotations: fn(&Asked<'_>) -> Vec<(&'static str, String)>,
}

impl PartialEq for Applier {
    fn eq(&self, other: &Applier) -> bool {
        self.name == other.name
    }
}

impl Eq for Applier {}

/// berth's own member, which reads berth's annotations.
pub static BERTH: Applier = Applier { name: "berth", annotations: |_| Vec::new() };

/// Flux's kustomize-controller. It looks for them on the object in the cluster before it prunes.
pub static FLUX: Applier = Applier { name: "flux", annotations: for_flux };

/// All programs.
pub static APPLIERS: [&Applier; 2] = [&BERTH, &FLUX];

impl Applier {
    /// Returns the program of this name.
    pub fn named(name: &str) -> Option<&'static Applier> {
        APPLIERS.into_iter().find(|applier| applier.name == name)
    }

    /// Adds the annotations that this program needs to an object's metadata.
    pub fn annotate(&self, id: &ObjectId, metadata: &mut Map<String, Json>) {
        let mut annotations = match metadata.remove("annotations") {
            Some(Json::Object(annotations)) => annotations,
            _ => Map::new(),
        };
        for (name, value) in (self.annotations)(&Asked { id, annotations: &annotations }) {
            annotations.insert(name.to_owned(), value.into());
        }
        if !annotations.is_empty() {
            metadata.insert("annotations".to_owned(), Json::Object(annotations));
        }
    }
}

/// The wishes that an object carries for whoever applies it.
struct Asked<'a> {
    id: &'a ObjectId,
    annotations: &'a Map<String, Json>,
}

impl Asked<'_> {
    fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.get(name).and_then(Json::as_str)
    }

    /// Reports whether only berth may remove the object: because an approval is needed, because it stays, or because
    /// it is to be removed in a manner of its own.
    fn is_guarded(&self) -> bool {
        self.id.takes_more_along()
            || self.annotation(PRUNE) == Some("disabled")
            || self.annotation(ORPHAN) == Some("true")
            || self.annotation(DELETE_OPTIONS).is_some()
    }

    /// Reports whether making the object anew could lose data.
    fn holds_data(&self) -> bool {
        self.id.takes_more_along() || matches!(&*self.id.kind, "PersistentVolume" | "StatefulSet")
    }

    /// Reports whether the object's workload is suspended. Such a program knows no moment at which that ends.
    fn is_suspended(&self) -> bool {
        self.annotation(SUSPEND).is_some() || self.annotation(SUSPEND_UNTIL).is_some()
    }
}

fn for_flux(asked: &Asked<'_>) -> Vec<(&'static str, String)> {
    let mut annotations = Vec::new();
    let mut set = |name, value: &str| annotations.push((name, value.to_owned()));
    if asked.is_guarded() {
        set("kustomize.toolkit.fluxcd.io/prune", "disabled");
    }
    match asked.annotation(APPLY) {
        Some("create-only") => set("kustomize.toolkit.fluxcd.io/ssa", "IfNotPresent"),
        Some("read-only" | "report-diff") => set("kustomize.toolkit.fluxcd.io/ssa", "Ignore"),
        _ => {}
    }
    if asked.is_suspended() {
        set("kustomize.toolkit.fluxcd.io/reconcile", "disabled");
    }
    // Flux would not ask before it removes what one of these holds.
    if asked.annotation(RECREATE) == Some("allowed") && !asked.holds_data() {
        set("kustomize.toolkit.fluxcd.io/force", "enabled");
    }
    annotations
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn for_flux(id: &ObjectId, annotations: Json) -> Json {
        let mut metadata = json!({"name": "a", "annotations": annotations}).as_object().unwrap().clone();
        FLUX.annotate(id, &mut metadata);
        let mut added = metadata.remove("annotations").unwrap_or_else(|| json!({}));
        if let (Some(added), Some(before)) = (added.as_object_mut(), annotations.as_object()) {
            added.retain(|name, _| !before.contains_key(name));
        }
        added
    }

    #[test]
    fn flux_keeps_what_only_berth_may_remove() {
        let guard = json!({"kustomize.toolkit.fluxcd.io/prune": "disabled"});
        let [namespace, claim] =
            ["Namespace", "PersistentVolumeClaim"].map(|kind| ObjectId::new("", kind, "", "a"));
        let definition = ObjectId::new("apiextensions.k8s.io", "CustomResourceDefinition", "", "a.b");
        let settings = ObjectId::new("", "ConfigMap", "shop", "a");
        for id in [&namespace, &claim, &definition] {
            assert_eq!(for_flux(id, json!({})), guard, "{id}");
            // Nobody but berth decides about them.
            let annotations = json!({"kustomize.toolkit.fluxcd.io/prune": "enabled"});
            let mut metadata = json!({ "annotations": annotations }).as_object().unwrap().clone();
            FLUX.annotate(id, &mut metadata);
            assert_eq!(metadata["annotations"], guard, "{id}");
        }
        assert_eq!(for_flux(&settings, json!({})), json!({}));
        for (name, value) in [(PRUNE, "disabled"), (ORPHAN, "true"), (DELETE_OPTIONS, "{}")] {
            assert_eq!(for_flux(&settings, json!({ name: value })), guard, "{name}");
        }
        assert_eq!(for_flux(&settings, json!({PRUNE: "first", ORPHAN: "false"})), json!({}));
    }

    #[test]
    fn flux_writes_no_more_than_berth_would() {
        let web = ObjectId::new("apps", "Deployment", "shop", "web");
        let of = |name: &str, value: &str| json!({format!("kustomize.toolkit.fluxcd.io/{name}"): value});
        assert_eq!(for_flux(&web, json!({APPLY: "create-only"})), of("ssa", "IfNotPresent"));
        assert_eq!(for_flux(&web, json!({APPLY: "read-only"})), of("ssa", "Ignore"));
        assert_eq!(for_flux(&web, json!({APPLY: "report-diff"})), of("ssa", "Ignore"));
        assert_eq!(for_flux(&web, json!({SUSPEND: "later"})), of("reconcile", "disabled"));
        assert_eq!(
            for_flux(&web, json!({SUSPEND_UNTIL: "2026-01-01T00:00:00Z"})),
            of("reconcile", "disabled")
        );
        assert_eq!(for_flux(&web, json!({RECREATE: "allowed"})), of("force", "enabled"));
        for (group, kind) in [("", "Namespace"), ("", "PersistentVolume"), ("apps", "StatefulSet")] {
            let id = ObjectId::new(group, kind, "", "a");
            for value in ["allowed", "data-loss-accepted"] {
                let added = for_flux(&id, json!({RECREATE: value}));
                assert_eq!(added.get("kustomize.toolkit.fluxcd.io/force"), None, "{id}");
            }
        }
    }

    #[test]
    fn berth_s_own_member_needs_nothing() {
        let mut metadata = json!({"name": "a"}).as_object().unwrap().clone();
        BERTH.annotate(&ObjectId::new("", "Namespace", "", "a"), &mut metadata);
        assert_eq!(Json::Object(metadata), json!({"name": "a"}));
    }
}
