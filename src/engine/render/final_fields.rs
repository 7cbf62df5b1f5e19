//! The last changes of every copy, after its overrides: labels that no override may remove, and berth's
//! annotations for the syncer. Empty maps are left out, so that they do not make equal objects differ.
//!
//! Also a cluster's replicas and kept fields. A decided number of replicas becomes an override: it
//! replaces one that already sets the field, or follows all others. The member does not keep a field that
//! an override or a number sets.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use berth_base::model::{
    Action, Applier, Fleet, Key, Operation, Override, Pointer, Template, Verb, Workload, annotation, object,
};
use berth_base::patch::sops;

/// Lists the fields that the member's own object keeps.
pub(super) use berth_base::model::annotation::RETAIN;

/// Returns the patched object with final labels, annotations and its owner's name; the error is the reason
/// why it cannot have them. `retain` lists the fields that the member keeps.
pub(super) fn finished(
    mut object: Json,
    owner: &Key,
    template: &Template,
    retain: Option<String>,
    applier: Option<&Applier>,
) -> Result<Json, String> {
    let metadata = object.get_mut("metadata").and_then(Json::as_object_mut).ok_or("it has no metadata")?;
    merge(metadata, "labels", &template.final_labels)?;
    merge(metadata, "annotations", &template.sync_annotations)?;
    if let Some(retain) = retain {
        merge(metadata, "annotations", &BTreeMap::from([(RETAIN.to_owned(), retain)]))?;
    }
    let name = format!("{}/{}/{}", owner.kind_and_group(), owner.namespace, owner.name);
    merge(metadata, "annotations", &BTreeMap::from([(annotation::WORKLOAD.to_owned(), name)]))?;
    if let Some(applier) = applier {
        applier.annotate(&template.object.id, metadata);
    }
    Ok(object)
}

/// The reason why a copy may not reach a member, and a hint.
pub(super) struct Refusal {
    pub(super) message: String,
    pub(super) hint: &'static str,
}

/// Refuses objects that a member would misread: a list, whose items would be applied unseen; and a value that
/// SOPS encrypted, unless the program that applies the object can decrypt it.
pub(super) fn refusal(object: &Json, fleet: &Fleet, applier: Option<&Applier>) -> Option<Refusal> {
    let fields = object.as_object()?;
    if let Some(key) = object::list_field(object) {
        let message =
            format!("`kubectl apply` would apply the contents of its field `{key}` instead of the object");
        return Some(Refusal { message, hint: "remove the field; place each object by itself" });
    }
    let kind = fields.get("kind").and_then(Json::as_str).unwrap_or_default();
    let group = object::group_of(fields.get("apiVersion").and_then(Json::as_str).unwrap_or_default());
    if kind.ends_with("List") && !fleet.list_kinds.contains(&(group.to_owned(), kind.to_owned())) {
        let message = format!("`{kind}` is a list or an unknown kind");
        let hint = "place each object by itself; for a kind of your own, add its CustomResourceDefinition to the repository";
        return Some(Refusal { message, hint });
    }
    // Without SOPS's metadata, no program can decrypt a value, or detects that it should.
    let is_opened = fields.get("sops").is_some_and(Json::is_object) && applier.is_some_and(|it| it.decrypts);
    if let Some(place) = sops::place_of_cipher(object).filter(|_| !is_opened) {
        let message =
            format!("`{place}` is encrypted by SOPS, and berth has no key: members would apply the cipher");
        return Some(Refusal { message, hint: sops::ADVICE });
    }
    None
}

/// Returns a finished object without its owner's name.
pub(super) fn without_owner(object: &Json) -> Json {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Json::as_object_mut)
        && let Some(annotations) = metadata.get_mut("annotations").and_then(Json::as_object_mut)
    {
        annotations.remove(annotation::WORKLOAD);
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    object
}

fn merge(
    metadata: &mut Map<String, Json>,
    key: &str,
    added: &BTreeMap<String, String>,
) -> Result<(), String> {
    let mut fields = match metadata.remove(key) {
        None | Some(Json::Null) => Map::new(),
        Some(Json::Object(fields)) => fields,
        Some(_) => return Err(format!("metadata.{key} is not a mapping")),
    };
    fields.extend(added.iter().map(|(name, value)| (name.clone(), value.clone().into())));
    if !fields.is_empty() {
        metadata.insert(key.to_owned(), Json::Object(fields));
    }
    Ok(())
}

/// Returns the cluster's overrides, with the number of replicas if one was decided.
pub(super) fn with_replicas<'a>(
    workload: &Workload,
    overrides: impl Iterator<Item = &'a Override>,
    replicas: Option<i64>,
) -> Vec<Cow<'a, Override>> {
    let mut all: Vec<Cow<'a, Override>> = overrides.map(Cow::Borrowed).collect();
    let (Some(at), Some(replicas)) = (&workload.replicas, replicas) else { return all };
    let mut there = false;
    for one in &mut all {
        let Action::Patch(operations) = &one.action else { continue };
        if !operations.iter().any(|operation| sets_number(operation, &at.path)) {
            continue;
        }
        there = true;
        if let Action::Patch(operations) = &mut one.to_mut().action {
            let ours =
                Arc::make_mut(operations).iter_mut().filter(|operation| sets_number(operation, &at.path));
            ours.for_each(|operation| operation.value = Some(replicas.into()));
        }
    }
    if !there {
        let operation = Operation {
            verb: Verb::Add,
            path: at.path.clone(),
            from: None,
            value: Some(replicas.into()),
            replace_may_add: false,
            from_the_end: false,
            variables: false,
            at: at.origin.clone(),
        };
        all.push(Cow::Owned(Override {
            by: Arc::new(at.by.clone()),
            origin: at.origin.clone(),
            clusters: berth_base::model::Applies::AnyOf(Vec::new()),
            objects: None,
            action: Action::Patch([operation].into()),
        }));
    }
    all
}

/// Reports whether the operation sets the number, so that only its value is replaced.
fn sets_number(operation: &Operation, path: &Pointer) -> bool {
    operation.path == *path && matches!(operation.verb, Verb::Add | Verb::Replace | Verb::Remove)
}

/// Returns the annotation's text for one cluster: JSON pointers, separated by commas. `None` for no field.
pub(super) fn retain(template: &Template, cluster: &str, overrides: &[Cow<'_, Override>]) -> Option<String> {
    let is_set = |path: &str| {
        overrides.iter().any(|one| match &one.action {
            Action::Patch(operations) => operations
                .iter()
                .any(|operation| operation.verb != Verb::Test && reaches(&operation.path, path)),
            Action::Delete => false,
        })
    };
    let kept = template.retained.iter().filter(|one| {
        one.clusters.as_ref().is_none_or(|clusters| clusters.contains(cluster)) && !is_set(&one.path)
    });
    let paths: Vec<&str> = kept.map(|one| one.path.as_str()).collect();
    (!paths.is_empty()).then(|| paths.join(","))
}

/// Reports whether an operation on `path` sets `field` or a field that contains it.
fn reaches(path: &Pointer, field: &str) -> bool {
    let mut fields = field.split('/').skip(1);
    path.parts().iter().all(|part| fields.next().is_some_and(|field| field == "*" || field == part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_set_by_its_own_path_and_by_those_that_hold_it() {
        for (path, field, sets) in [
            ("/spec/replicas", "/spec/replicas", true),
            ("/spec", "/spec/replicas", true),
            ("", "/spec/replicas", true),
            ("/spec/ports/0/nodePort", "/spec/ports/*/nodePort", true),
            ("/spec/ports", "/spec/ports/*/nodePort", true),
            ("/spec/ports/0/port", "/spec/ports/*/nodePort", false),
            ("/metadata/annotations/a", "/metadata/annotations", false),
            ("/spec/replicasOther", "/spec/replicas", false),
        ] {
            assert_eq!(reaches(&Pointer::parse(path).unwrap(), field), sets, "{path} {field}");
        }
    }
}
