//! `resourceSelectors`: objects by kind, and by namespace, name or labels.

use crate::dialects::kubefleet::common_mistakes::label_selector;
use crate::dialects::kubefleet::select::{Reach, ResourceSelector, Selectors};
use berth_base::yaml::fields::Fields;

const MOST: usize = 10;

/// Reads the field. `own` is the namespace of a namespaced policy, which only selects objects there.
pub fn read(spec: &mut Fields<'_>, own: Option<&str>) -> Option<Selectors> {
    if !spec.require("resourceSelectors") {
        return None;
    }
    let at = spec.place_of("resourceSelectors");
    let count = spec.list("resourceSelectors")?.len();
    if count == 0 || count > MOST {
        let message =
            format!("{} must have from 1 to {MOST} entries, not {count}", spec.path_of("resourceSelectors"));
        spec.error_at("resourceSelectors", message);
    }
    let each = spec.each("resourceSelectors").into_iter();
    Some(Selectors { at, list: each.filter_map(|fields| selector(fields, own)).collect() })
}

fn selector(mut fields: Fields<'_>, own: Option<&str>) -> Option<ResourceSelector> {
    let group = fields.str("apiGroup").unwrap_or_default().to_owned();
    let version = fields.required_str("apiVersion");
    if let Some(text) = version.filter(|version| version.contains('/')) {
        let message = format!(
            "{} is `{text}`, but must be the version alone; the group goes into apiGroup",
            fields.path_of("apiVersion")
        );
        fields.error_at("apiVersion", message);
    }
    let kind = fields.required_str("kind");
    let name = fields.str("name").filter(|name| !name.is_empty());
    let labels = fields.node("labelSelector");
    if name.is_some() && labels.is_some() {
        let message = format!("{} and name exclude each other", fields.path_of("labelSelector"));
        fields.error_at("labelSelector", message);
    }
    let path = fields.path_of("labelSelector");
    let labels = labels.map(|node| label_selector(fields.scope(), node, &path));
    let namespace = fields.str("namespace").filter(|namespace| !namespace.is_empty());
    if let (Some(own), Some(asked)) = (own, namespace)
        && own != asked
    {
        let message = format!(
            "{} is `{asked}`, but a PlacementPolicy selects in its own namespace, `{own}`",
            fields.path_of("namespace")
        );
        fields.error_at("namespace", message);
    }
    let (at, path) = (fields.at(), fields.path().to_owned());
    fields.finish();
    // A faulty label selector must not become one that matches everything.
    let labels = match labels {
        Some(read) => Some(read?),
        None => None,
    };
    Some(ResourceSelector {
        at,
        path,
        group,
        version: version?.to_owned(),
        kind: kind?.to_owned(),
        name: name.map(str::to_owned),
        labels,
        namespace: namespace.filter(|_| own.is_none()).map(str::to_owned),
        // The API does not define that a namespace brings its contents.
        reach: Reach::Only,
    })
}
