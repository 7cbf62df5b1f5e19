//! A cluster's replicas and kept fields → operations and an annotation of its copy.
//!
//! A decided number of replicas becomes an override: it replaces one that already sets the field, or follows
//! all others. The member does not keep a field that an override or a number sets.

use std::borrow::Cow;
use std::sync::Arc;

use berth_base::model::{Action, Operation, Override, Pointer, Template, Verb, Workload};

/// Lists the fields that the member's own object keeps.
pub(super) use berth_base::model::annotation::RETAIN;

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
