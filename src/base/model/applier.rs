//! The programs that may apply a cluster's folder, and the annotations by which each of them follows berth's
//! annotations. Rendering knows only the rows of these programs in [`APPLIERS`].

use serde_json::{Map, Value as Json};

use super::annotation::{
    APPLY, DELETE_OPTIONS, HELM_POLICY, ORPHAN, PRUNE, RECREATE, SUSPEND, SUSPEND_UNTIL, WAVE, stays,
};
use super::object::ObjectId;

/// The annotation of a cluster with the name of the program that applies its folder.
pub const ANNOTATION: &str = "berth.dev/applier";

/// A program that applies a cluster's folder.
#[derive(Debug)]
pub struct Applier {
    pub name: &'static str,
    /// True if the program can have keys for values that SOPS encrypted.
    pub decrypts: bool,
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
pub static BERTH: Applier = Applier { name: "berth", decrypts: false, annotations: |_| Vec::new() };

/// Flux's kustomize-controller. Without a key, it applies nothing that SOPS encrypted. Before it prunes, it
/// looks for guards on the object in the cluster.
pub static FLUX: Applier = Applier { name: "flux", decrypts: true, annotations: for_flux };

/// Argo CD's application-controller. It looks for guards on the object in the cluster, and for the rest on the copy.
pub static ARGOCD: Applier = Applier { name: "argocd", decrypts: false, annotations: for_argocd };

/// All programs.
pub static APPLIERS: [&Applier; 3] = [&BERTH, &FLUX, &ARGOCD];

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

/// The requests that an object's annotations make to its applier.
struct Asked<'a> {
    id: &'a ObjectId,
    annotations: &'a Map<String, Json>,
}

impl Asked<'_> {
    fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.get(name).and_then(Json::as_str)
    }

    /// Reports whether only berth may remove the object: it needs an approval, it stays, or it has special
    /// delete options.
    fn is_guarded(&self) -> bool {
        self.id.takes_more_along()
            || self.annotation(PRUNE) == Some("disabled")
            || self.annotation(HELM_POLICY).is_some_and(stays)
            || self.annotation(ORPHAN) == Some("true")
            || self.annotation(DELETE_OPTIONS).is_some()
    }

    /// Reports whether objects of any workload may need the object to exist first.
    fn waits_for_nothing(&self) -> bool {
        matches!(
            (&*self.id.group, &*self.id.kind),
            ("", "Namespace") | ("apiextensions.k8s.io", "CustomResourceDefinition")
        )
    }

    /// Reports whether recreating the object could lose data.
    fn holds_data(&self) -> bool {
        self.id.takes_more_along() || matches!(&*self.id.kind, "PersistentVolume" | "StatefulSet")
    }

    /// Reports whether the object's workload is suspended. Other appliers know no end of a suspension.
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
    // Flux would not ask before it removes the contents of such an object.
    if asked.annotation(RECREATE) == Some("allowed") && !asked.holds_data() {
        set("kustomize.toolkit.fluxcd.io/force", "enabled");
    }
    annotations
}

/// Argo CD's annotation with options for one object, separated by commas.
const ARGOCD_OPTIONS: &str = "argocd.argoproj.io/sync-options";
/// The wave of objects that wait for nothing: below every wave that people use.
const ARGOCD_FIRST_WAVE: &str = "-1000000000";

fn for_argocd(asked: &Asked<'_>) -> Vec<(&'static str, String)> {
    let mut annotations = Vec::new();
    let mut set = |name, value: &str| annotations.push((name, value.to_owned()));
    if asked.is_guarded() {
        let written = asked.annotation(ARGOCD_OPTIONS).unwrap_or_default();
        let is_kept = |option: &&str| {
            !option.is_empty() && !option.starts_with("Prune=") && !option.starts_with("Delete=")
        };
        let kept = written.split(',').map(str::trim).filter(is_kept);
        let options: Vec<&str> = kept.chain(["Prune=false", "Delete=false"]).collect();
        set(ARGOCD_OPTIONS, &options.join(","));
        // Without this, an object that waits for berth to remove it would keep its Application out of sync.
        set("argocd.argoproj.io/compare-options", "IgnoreExtraneous");
    }
    // Argo CD orders the objects of all workloads together, so a low wave could precede the object's
    // namespace.
    if asked.waits_for_nothing() {
        set("argocd.argoproj.io/sync-wave", ARGOCD_FIRST_WAVE);
    } else if let Some(wave) = asked.annotation(WAVE) {
        set("argocd.argoproj.io/sync-wave", wave);
    }
    // Argo CD cannot create an object and then leave it alone, so an object that must not be overwritten is
    // skipped.
    if asked.annotation(APPLY).is_some() || asked.is_suspended() {
        set("argocd.argoproj.io/hook", "Skip");
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
            // Only berth decides about these objects.
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

    fn for_argocd(id: &ObjectId, annotations: Json) -> Json {
        let mut metadata = Map::from_iter([("annotations".to_owned(), annotations)]);
        ARGOCD.annotate(id, &mut metadata);
        let all = metadata.remove("annotations").and_then(|all| all.as_object().cloned()).unwrap_or_default();
        all.into_iter()
            .filter(|(name, _)| name.starts_with("argocd.argoproj.io/"))
            .collect::<Map<_, _>>()
            .into()
    }

    #[test]
    fn argo_cd_leaves_what_only_berth_may_remove() {
        let guards = json!({"argocd.argoproj.io/sync-options": "Prune=false,Delete=false",
            "argocd.argoproj.io/compare-options": "IgnoreExtraneous"});
        let claim = ObjectId::new("", "PersistentVolumeClaim", "shop", "data");
        assert_eq!(for_argocd(&claim, json!({})), guards);
        let web = ObjectId::new("apps", "Deployment", "shop", "web");
        assert_eq!(for_argocd(&web, json!({})), json!({}));
        assert_eq!(for_argocd(&web, json!({PRUNE: "disabled"})), guards);
        let written =
            json!({PRUNE: "disabled", "argocd.argoproj.io/sync-options": "Prune=true, Replace=true"});
        let options = &for_argocd(&web, written)["argocd.argoproj.io/sync-options"];
        assert_eq!(options, "Replace=true,Prune=false,Delete=false");
    }

    #[test]
    fn argo_cd_keeps_the_order_and_writes_no_more_than_berth_would() {
        let web = ObjectId::new("apps", "Deployment", "shop", "web");
        let of = |name: &str, value: &str| json!({format!("argocd.argoproj.io/{name}"): value});
        assert_eq!(for_argocd(&web, json!({WAVE: "-3"})), of("sync-wave", "-3"));
        let namespace = ObjectId::new("", "Namespace", "", "shop");
        let first = for_argocd(&namespace, json!({WAVE: "7"}));
        assert_eq!(first["argocd.argoproj.io/sync-wave"], "-1000000000");
        for apply in ["create-only", "read-only", "report-diff"] {
            assert_eq!(for_argocd(&web, json!({APPLY: apply})), of("hook", "Skip"), "{apply}");
        }
        assert_eq!(for_argocd(&web, json!({SUSPEND: "an incident"})), of("hook", "Skip"));
    }
}
