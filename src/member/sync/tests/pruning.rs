//! Removed objects, held objects, and the order of removals.

use std::fs;

use super::*;
use berth_base::model::annotation::{HELM_POLICY, ORPHAN, PRUNE, TAKE_OVER, WORKLOAD};
use desired::Annotations;
use plan::{Form, Live, Version};

#[test]
fn what_is_no_longer_wanted_goes_with_the_folders_it_leaves_empty() {
    let dir = tempfile::tempdir().unwrap();
    sync(dir.path(), &folder(1, &[map("a", "1"), namespace("x")]));
    fs::create_dir_all(dir.path().join("mine")).unwrap();
    assert_eq!(sync(dir.path(), &folder(2, &[namespace("x")])).pruned, 1);
    assert!(!dir.path().join("shop").exists() && dir.path().join("mine").exists());
}

#[test]
fn namespaces_definitions_and_volume_claims_are_held_without_an_approval() {
    let dir = tempfile::tempdir().unwrap();
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "c", "namespace": "shop" },
    });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.example.com" },
    });
    let risky = [namespace("shop"), claim, definition];
    sync(dir.path(), &folder(1, &[&risky[..], &[map("a", "1")]].concat()));
    let outcome = sync(dir.path(), &folder(2, &[]));
    assert_eq!((outcome.pruned, outcome.held.len()), (1, 3));
    assert_eq!(messages(&outcome).len(), 3, "people have to decide, so they are told");
    assert_eq!(files(dir.path()), expected(&risky));
    let left: Vec<ObjectId> = risky.iter().filter_map(ObjectId::of).collect();
    assert_eq!(sorted(outcome.applied.removing), sorted(left), "the hub hears what is still there");
    let approved = Options { allow_risky_prune: true, ..options() };
    let outcome = sync_with(dir.path(), &folder(2, &[]), &approved).unwrap();
    let kinds: Vec<&str> = outcome.plan.prunes.iter().map(|prune| &*prune.id.kind).collect();
    assert_eq!(kinds, ["PersistentVolumeClaim", "CustomResourceDefinition", "Namespace"]);
    assert!(files(dir.path()).is_empty() && outcome.applied.removing.is_empty());
}

fn sorted(mut ids: Vec<ObjectId>) -> Vec<ObjectId> {
    ids.sort();
    ids
}

#[test]
fn an_object_that_must_not_be_pruned_stays_berths_own() {
    assert_stays(PRUNE, "disabled");
    assert_stays(HELM_POLICY, " Keep");
}

#[track_caller]
fn assert_stays(annotation: &str, value: &str) {
    let dir = tempfile::tempdir().unwrap();
    let kept = annotated(map("a", "1"), annotation, value);
    sync(dir.path(), &folder(1, &[kept.clone(), map("b", "1")]));
    let outcome = sync(dir.path(), &folder(2, &[]));
    assert_eq!((outcome.pruned, outcome.held.len(), messages(&outcome).len()), (1, 1, 0));
    assert_eq!(files(dir.path()), expected(&[kept]));
    assert!(outcome.applied.removing.is_empty(), "nobody waits for what stays for good");
    assert_eq!(sync(dir.path(), &folder(3, &[map("a", "2")])).written, 1, "no conflict with itself");
}

#[test]
fn pruning_waits_for_the_workload_and_only_for_that_one() {
    let dir = tempfile::tempdir().unwrap();
    let of = |object: Json, workload: &str| annotated(object, WORKLOAD, workload);
    sync(dir.path(), &folder(1, &[of(map("old-web", "1"), "web"), of(map("old-db", "1"), "db")]));
    let next = [of(map("new-web", "1"), "web"), of(map("new-db", "1"), "db")];
    fs::write(dir.path().join(place(&next[0])), "in the way").unwrap();
    let outcome = sync(dir.path(), &folder(2, &next));
    assert_eq!((outcome.written, outcome.pruned, outcome.held.len()), (1, 1, 1));
    assert!(dir.path().join(place(&map("old-web", ""))).exists());
    assert_eq!(outcome.applied.removing, [ObjectId::of(&map("old-web", "1")).unwrap()]);
    // The next sync reports the same, even if it has nothing to do.
    assert_eq!(sync(dir.path(), &folder(2, &next)).applied.removing, outcome.applied.removing);
    fs::remove_file(dir.path().join(place(&next[0]))).unwrap();
    let outcome = sync(dir.path(), &folder(2, &next));
    assert_eq!((outcome.written, outcome.pruned, outcome.held.len()), (1, 1, 0));
    assert_eq!(files(dir.path()), expected(&next));
}

#[test]
fn pruning_waits_while_a_new_file_can_not_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let old = annotated(map("old", "1"), WORKLOAD, "web");
    sync(dir.path(), &folder(1, &[old.clone(), map("b", "1")]));
    let mut next = folder(2, &[map("b", "1")]);
    next.objects.insert(place(&map("new", "")), Arc::from(&b"{broken"[..]));
    let outcome = sync(dir.path(), &next);
    assert_eq!((outcome.pruned, outcome.held.len()), (0, 1), "it may be the successor");
    assert_eq!(files(dir.path()), expected(&[old, map("b", "1")]));
}

#[test]
fn an_object_may_be_removed_before_its_successor_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let first = annotated(map("a", "1"), PRUNE, "first");
    sync(dir.path(), &folder(1, &[first, map("b", "1")]));
    fs::write(dir.path().join(place(&map("c", ""))), "in the way").unwrap();
    let outcome = sync(dir.path(), &folder(2, &[map("c", "1")]));
    assert_eq!((outcome.pruned, outcome.held.len()), (1, 1), "the one goes first, the other waits");
}

#[test]
fn an_object_deleted_by_hand_that_is_no_longer_wanted_is_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    sync(dir.path(), &folder(1, &[map("a", "1"), map("b", "1")]));
    fs::remove_file(dir.path().join(place(&map("a", "")))).unwrap();
    assert_eq!(sync(dir.path(), &folder(2, &[map("b", "1")])).pruned, 0);
    fs::write(dir.path().join(place(&map("a", ""))), "mine now").unwrap();
    assert!(sync(dir.path(), &folder(3, &[map("b", "1")])).plan.is_quiet());
    assert!(dir.path().join(place(&map("a", ""))).exists());
}

#[test]
fn a_plan_never_touches_what_it_does_not_own() {
    let strange = Live {
        owned: false,
        form: Form::There { version: Version("1".to_owned()), same: true },
        annotations: Annotations::default(),
        stays: None,
    };
    let id = ObjectId::of(&map("a", "1")).unwrap();
    let live = BTreeMap::from([(id, strange)]);
    let plan = plan::plan(&desired::read(&folder(1, &[])), &live, |_| true);
    assert_eq!(plan, SyncPlan::default());
    let wanted = desired::read(&folder(1, &[annotated(map("a", "1"), TAKE_OVER, "no")]));
    assert_eq!(plan::plan(&wanted, &live, |_| true).problems.len(), 1);
}

#[test]
fn an_orphan_stays_and_is_nobodys_from_then_on() {
    let dir = tempfile::tempdir().unwrap();
    let orphans = [annotated(map("a", "1"), ORPHAN, "true"), annotated(namespace("shop"), ORPHAN, "true")];
    sync(dir.path(), &folder(1, &[&orphans[..], &[map("b", "1")]].concat()));
    let outcome = sync(dir.path(), &folder(2, &[]));
    assert_eq!((outcome.pruned, outcome.held.len(), outcome.plan.orphaned().count()), (1, 0, 2));
    assert_eq!(files(dir.path()), expected(&orphans), "what is left needs no approval, as nothing goes");
    assert!(sync(dir.path(), &folder(3, &[])).plan.is_quiet(), "it is forgotten");
    let outcome = sync(dir.path(), &folder(4, &[map("a", "2")]));
    assert_eq!(messages(&outcome).len(), 1, "it would have to be taken over again");
}

#[test]
fn an_object_that_is_no_longer_an_orphan_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    sync(dir.path(), &folder(1, &[annotated(map("a", "1"), ORPHAN, "true")]));
    sync(dir.path(), &folder(2, &[map("a", "1")]));
    assert_eq!(sync(dir.path(), &folder(3, &[])).pruned, 1);
    assert!(files(dir.path()).is_empty());
}
