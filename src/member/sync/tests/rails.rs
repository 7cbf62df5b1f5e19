//! The faults that stop a whole sync.

use std::fs;

use super::*;

#[test]
fn a_dry_run_plans_and_touches_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("target");
    let dry = Options { dry_run: true, ..options() };
    let outcome = sync_with(&path, &folder(1, &[map("a", "1")]), &dry).unwrap();
    assert_eq!((outcome.plan.writes.len(), outcome.written), (1, 0));
    assert!(!path.exists());
}

#[test]
fn an_older_folder_is_refused_unless_going_back_is_meant() {
    let dir = tempfile::tempdir().unwrap();
    sync(dir.path(), &folder(7, &[map("a", "new")]));
    let older = folder(6, &[map("a", "old")]);
    let error = sync_with(dir.path(), &older, &options()).unwrap_err();
    assert!(matches!(error, ApplyError::Rewound { offered: 6, applied: 7 }), "{error}");
    assert_eq!(files(dir.path()), expected(&[map("a", "new")]));
    let back = Options { allow_rewind: true, ..options() };
    assert_eq!(sync_with(dir.path(), &older, &back).unwrap().written, 1);
}

#[test]
fn an_old_commit_of_the_applied_folder_changes_nothing_and_lets_nothing_go() {
    let dir = tempfile::tempdir().unwrap();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    sync(dir.path(), &folder(7, &[map("a", "1"), namespace]));
    let kept = sync(dir.path(), &folder(8, &[map("a", "1")]));
    assert_eq!(kept.held.len(), 1);
    let mut old = folder(3, &[map("a", "1")]);
    old.allow_prune.insert("_cluster/Namespace_shop.yaml".to_owned());
    let outcome = sync(dir.path(), &old);
    assert_eq!((outcome.applied.sequence, outcome.written, outcome.pruned), (8, 0, 0));
    let error = sync_with(dir.path(), &folder(7, &[map("a", "2")]), &options()).unwrap_err();
    assert!(matches!(error, ApplyError::Rewound { offered: 7, applied: 8 }), "{error}");
    // With the present sequence, the approval is valid.
    old.sequence = 8;
    assert_eq!(sync(dir.path(), &old).pruned, 1);
}

#[test]
fn a_target_of_another_cluster_or_fleet_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    sync(dir.path(), &folder(1, &[map("a", "1")]));
    let mut other = folder(2, &[map("b", "1")]);
    other.cluster = "eu-2".to_owned();
    assert!(matches!(sync_with(dir.path(), &other, &options()), Err(ApplyError::Foreign { .. })));
    let other = Options { fleet: "another".to_owned(), ..options() };
    let error = sync_with(dir.path(), &folder(2, &[map("b", "1")]), &other).unwrap_err();
    assert!(matches!(error, ApplyError::Foreign { .. }) && error.hint().is_some());
    assert_eq!(files(dir.path()), expected(&[map("a", "1")]));
}

#[test]
fn an_empty_folder_counts_only_with_a_sequence_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    sync(dir.path(), &folder(4, &[map("a", "1")]));
    let error = sync_with(dir.path(), &folder(4, &[]), &options()).unwrap_err();
    assert!(matches!(error, ApplyError::Emptied(4)), "{error}");
    assert_eq!(sync(dir.path(), &folder(5, &[])).pruned, 1);
    assert!(files(dir.path()).is_empty());
    assert!(sync(dir.path(), &folder(5, &[])).plan.is_quiet());
}

#[test]
fn a_broken_inventory_stops_everything() {
    let dir = tempfile::tempdir().unwrap();
    sync(dir.path(), &folder(1, &[map("a", "1")]));
    let inventory = dir.path().join(".berth/inventory.json");
    let whole = fs::read_to_string(&inventory).unwrap();
    for broken in
        ["", "{}", &whole[..whole.len() / 2], &whole.replace("\"kind\": \"ConfigMap\"", "\"kind\": 7")]
    {
        fs::write(&inventory, broken).unwrap();
        let error = sync_with(dir.path(), &folder(2, &[]), &options()).unwrap_err();
        assert!(error.to_string().contains("inventory.json"), "{error}");
    }
    assert_eq!(files(dir.path()), expected(&[map("a", "1")]));
}

#[test]
fn a_broken_file_fails_alone_and_keeps_its_live_form() {
    let dir = tempfile::tempdir().unwrap();
    sync(dir.path(), &folder(1, &[map("a", "1"), map("b", "1")]));
    let mut next = folder(2, &[map("b", "2")]);
    next.objects.insert(place(&map("a", "")), Arc::from(&b"{broken"[..]));
    let outcome = sync(dir.path(), &next);
    assert_eq!((outcome.written, outcome.pruned, messages(&outcome).len()), (1, 0, 1));
    assert_eq!(files(dir.path()), expected(&[map("a", "1"), map("b", "2")]));
}

#[test]
fn what_is_no_folder_where_a_namespace_was_removes_none_of_it() {
    let dir = tempfile::tempdir().unwrap();
    sync(dir.path(), &folder(1, &[map("a", "1"), namespace("x")]));
    let mut next = folder(2, &[namespace("x")]);
    next.strange.insert("shop".to_owned(), "it is not a plain file".to_owned());
    let outcome = sync(dir.path(), &next);
    assert_eq!((outcome.pruned, messages(&outcome).len()), (0, 1));
}

#[test]
fn two_syncers_do_not_work_on_one_folder_at_once() {
    let dir = tempfile::tempdir().unwrap();
    sync(dir.path(), &folder(1, &[map("a", "1")]));
    let lock = fs::File::open(dir.path().join(".berth/lock")).unwrap();
    lock.lock().unwrap();
    let error = sync_with(dir.path(), &folder(2, &[map("a", "2")]), &options()).unwrap_err();
    assert!(error.to_string().contains("another syncer"), "{error}");
    drop(lock);
    assert_eq!(sync(dir.path(), &folder(2, &[map("a", "2")])).written, 1);
}

#[test]
fn a_dry_run_shows_the_problems_of_the_sync_and_no_write_that_they_prevent() {
    let dir = tempfile::tempdir().unwrap();
    let needs = |name: &str, other: &str| annotated(map(name, "1"), "berth.dev/depends-on", other);
    let faulty = folder(
        1,
        &[
            needs("a", "ConfigMap/shop/lost"),
            needs("b", "ConfigMap/shop/c"),
            needs("c", "ConfigMap/shop/b"),
            needs("d", "ConfigMap/shop/a"),
            needs("e", "ConfigMap/shop/f"),
            map("f", "1"),
        ],
    );
    let dry = sync_with(dir.path(), &faulty, &Options { dry_run: true, ..options() }).unwrap();
    let wet = sync(dir.path(), &faulty);
    assert_eq!(messages(&dry), messages(&wet));
    assert_eq!(dry.plan.writes, wet.plan.writes);
    let names: Vec<&str> = wet.plan.writes.iter().map(|write| &*write.id.name).collect();
    assert_eq!((names, messages(&dry).len()), (vec!["e", "f"], 4));
}

#[test]
fn a_dry_run_keeps_what_the_sync_keeps_beside_a_faulty_object() {
    let dir = tempfile::tempdir().unwrap();
    let of_work = |object: Json| annotated(object, "berth.dev/workload", "F/shop/app");
    sync(dir.path(), &folder(1, &[of_work(map("old", "1"))]));
    let faulty = of_work(annotated(map("new", "1"), "berth.dev/depends-on", "ConfigMap/shop/lost"));
    let faulty = folder(2, &[faulty, map("other", "1")]);
    let dry = sync_with(dir.path(), &faulty, &Options { dry_run: true, ..options() }).unwrap();
    let wet = sync(dir.path(), &faulty);
    assert_eq!((messages(&dry), &dry.held), (messages(&wet), &wet.held));
    assert!(dry.plan.prunes.is_empty() && wet.plan.prunes.is_empty() && dry.held.len() == 1);
}
