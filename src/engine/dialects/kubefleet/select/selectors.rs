//! Reads `resourceSelectors` and checks each of them.

use crate::dialects::kubefleet::common_mistakes::label_selector;
use berth_base::model::Selector;
use berth_base::yaml::fields::Fields;
use berth_base::yaml::node::Mark;

const MOST: usize = 100;
const LONGEST_NAME: usize = 253;

/// A placement's selectors; at least one of them must match an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Selectors {
    pub at: Mark,
    pub list: Vec<ResourceSelector>,
}

/// Selects objects by kind, and optionally by name or labels.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceSelector {
    pub at: Mark,
    pub path: String,
    pub group: String,
    pub version: String,
    pub kind: String,
    pub name: Option<String>,
    pub labels: Option<Selector>,
    /// The namespace of the selected objects, for cluster-scoped placements of the next API.
    pub namespace: Option<String>,
    pub reach: Reach,
}

/// The objects that a selected namespace brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The namespace and all of its objects.
    Contents,
    /// Only the namespace object.
    Only,
    /// The namespace object; the placement's other selectors select from its contents.
    Chosen,
}

impl ResourceSelector {
    pub fn is_namespace(&self) -> bool {
        self.group.is_empty() && self.version == "v1" && self.kind == "Namespace"
    }

    /// Returns `Kind name` or `Kind`, for messages.
    pub fn words(&self) -> String {
        let kind = if self.group.is_empty() {
            format!("{} {}", self.version, self.kind)
        } else {
            format!("{}/{} {}", self.group, self.version, self.kind)
        };
        self.name.as_ref().map_or(kind.clone(), |name| format!("{kind} `{name}`"))
    }
}

impl Selectors {
    /// Returns the namespace from whose contents the selectors select, if there is one.
    pub(crate) fn chosen_namespace(&self) -> Option<&str> {
        let chosen = |one: &&ResourceSelector| one.is_namespace() && one.reach == Reach::Chosen;
        self.list.iter().find(chosen).and_then(|one| one.name.as_deref())
    }
}

/// Reads the field. `None` if the key is absent: such a placement is a policy for others to use.
pub fn read(spec: &mut Fields<'_>, cluster_scoped: bool) -> Option<Selectors> {
    let at = spec.node("resourceSelectors")?.at;
    let path = spec.path_of("resourceSelectors");
    let count = spec.list("resourceSelectors").map_or(1, <[_]>::len);
    if count == 0 || count > MOST {
        spec.scope().error(at, format!("{path} must have from 1 to {MOST} entries, not {count}"));
    }
    let list: Vec<_> = spec.each("resourceSelectors").into_iter().filter_map(selector).collect();
    let selectors = Selectors { at, list };
    if cluster_scoped {
        check_namespaces(spec, &selectors);
    }
    Some(selectors)
}

fn selector(mut fields: Fields<'_>) -> Option<ResourceSelector> {
    let group = group(&mut fields).to_owned();
    let version = fields.required_str("version");
    let kind = fields.required_str("kind");
    let name = fields.str("name").filter(|name| !name.is_empty());
    let labels = fields.node("labelSelector");
    if name.is_some() && labels.is_some() {
        let message = format!("{} and name exclude each other", fields.path_of("labelSelector"));
        fields.error_at("labelSelector", message);
    }
    if name.is_some_and(|name| name.len() > LONGEST_NAME) {
        let message = format!("{} must not be longer than {LONGEST_NAME} characters", fields.path_of("name"));
        fields.error_at("name", message);
    }
    let path = fields.path_of("labelSelector");
    let labels = labels.map(|node| label_selector(fields.scope(), node, &path));
    let reach = match fields.choice(
        "selectionScope",
        &["NamespaceWithResources", "NamespaceOnly", "NamespaceWithResourceSelectors"],
    ) {
        Some("NamespaceOnly") => Reach::Only,
        Some("NamespaceWithResourceSelectors") => Reach::Chosen,
        _ => Reach::Contents,
    };
    let (at, path) = (fields.at(), fields.path().to_owned());
    fields.finish();
    // A faulty label selector must not become one that matches everything.
    let labels = match labels {
        Some(read) => Some(read?),
        None => None,
    };
    let (version, kind, name) = (version?.to_owned(), kind?.to_owned(), name.map(str::to_owned));
    Some(ResourceSelector { at, path, group, version, kind, name, labels, namespace: None, reach })
}

/// Reads the API group, which must be written even if it is empty.
pub fn group<'a>(fields: &mut Fields<'a>) -> &'a str {
    fields.require_or_hint("group", Some("write `group: \"\"` for the core group".to_owned()));
    fields.str("group").unwrap_or_default()
}

/// Checks that `NamespaceWithResourceSelectors` selects a single namespace, by name.
fn check_namespaces(spec: &Fields<'_>, selectors: &Selectors) {
    let namespaces: Vec<_> = selectors.list.iter().filter(|one| one.is_namespace()).collect();
    let Some(chosen) = namespaces.iter().find(|one| one.reach == Reach::Chosen) else { return };
    let path = format!("{}.selectionScope", chosen.path);
    if namespaces.len() > 1 {
        let message = format!("{path} NamespaceWithResourceSelectors must be the only Namespace selector");
        spec.scope().error(chosen.at, message);
    }
    if chosen.name.is_none() {
        spec.scope().error(chosen.at, format!("{path} NamespaceWithResourceSelectors needs a name"));
    }
}
