//! Creation, updates, drift and obstacles. For any two folders and any foreign files: berth owns exactly the
//! wanted files, and no foreign file changes.

use std::collections::BTreeSet;
use std::fs;

use plan::WriteAction;
use proptest::prelude::*;

use super::*;
use berth_base::model::annotation::TAKE_OVER;

#[test]
fn a_folder_is_created_then_left_alone_then_updated() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("new/target");
    let first = [namespace("shop"), map("a", "1"), map("b", "1")];
    let outcome = sync(&path, &folder(1, &first));
    assert_eq!((outcome.written, outcome.applied.objects, messages(&outcome).len()), (3, 3, 0));
    assert_eq!(files(&path), expected(&first));

    let inventory = path.join(".berth/inventory.json");
    let before = fs::metadata(&inventory).unwrap().modified().unwrap();
    let outcome = sync(&path, &folder(1, &first));
    assert!(outcome.plan.is_quiet() && outcome.plan.unchanged.len() == 3);
    assert_eq!(fs::metadata(&inventory).unwrap().modified().unwrap(), before, "nothing is written");

    let second = [namespace("shop"), map("a", "2"), map("c", "1")];
    let outcome = sync(&path, &folder(2, &second));
    let actions: Vec<WriteAction> = outcome.plan.writes.iter().map(|write| write.action).collect();
    assert_eq!(actions, [WriteAction::Update, WriteAction::Create]);
    assert_eq!((outcome.pruned, outcome.applied.objects), (1, 3));
    assert_eq!(files(&path), expected(&second));
}

#[test]
fn namespaces_and_definitions_are_written_first() {
    let dir = tempfile::tempdir().unwrap();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.example.com" },
    });
    let outcome = sync(dir.path(), &folder(1, &[map("a", "1"), namespace("shop"), definition]));
    let kinds: Vec<&str> = outcome.plan.writes.iter().map(|write| &*write.id.kind).collect();
    assert_eq!(kinds, ["Namespace", "CustomResourceDefinition", "ConfigMap"]);
}

#[test]
fn a_file_edited_by_hand_is_corrected_and_a_deleted_one_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let wanted = [map("a", "1"), map("b", "1")];
    sync(dir.path(), &folder(1, &wanted));
    fs::write(dir.path().join(place(&wanted[0])), "edited by hand").unwrap();
    fs::remove_file(dir.path().join(place(&wanted[1]))).unwrap();
    assert_eq!(sync(dir.path(), &folder(1, &wanted)).written, 2);
    assert_eq!(files(dir.path()), expected(&wanted));
}

#[test]
fn a_foreign_file_in_the_way_is_a_conflict_and_stays() {
    let dir = tempfile::tempdir().unwrap();
    let wanted = [map("a", "1"), map("b", "1")];
    let foreign = dir.path().join(place(&wanted[0]));
    fs::create_dir_all(foreign.parent().unwrap()).unwrap();
    fs::write(&foreign, "mine").unwrap();
    fs::write(dir.path().join("notes.txt"), "mine too").unwrap();
    for sequence in [1, 2] {
        let outcome = sync(dir.path(), &folder(sequence, &wanted));
        assert_eq!(outcome.applied.objects, 1);
        assert!(messages(&outcome)[0].contains("was not made by berth"), "{:?}", messages(&outcome));
    }
    sync(dir.path(), &folder(3, &[map("b", "1")]));
    assert_eq!(fs::read_to_string(&foreign).unwrap(), "mine");
    assert_eq!(fs::read_to_string(dir.path().join("notes.txt")).unwrap(), "mine too");
}

#[test]
fn a_foreign_file_is_taken_over_only_as_its_annotation_says() {
    let dir = tempfile::tempdir().unwrap();
    let always = annotated(map("a", "1"), TAKE_OVER, "true");
    let if_equal = annotated(map("b", "1"), TAKE_OVER, "if-no-diff");
    let differs = annotated(map("c", "1"), TAKE_OVER, "if-no-diff");
    fs::create_dir(dir.path().join("shop")).unwrap();
    fs::write(dir.path().join(place(&always)), "mine").unwrap();
    fs::write(dir.path().join(place(&if_equal)), text(&if_equal)).unwrap();
    fs::write(dir.path().join(place(&differs)), "mine").unwrap();
    let outcome = sync(dir.path(), &folder(1, &[always.clone(), if_equal.clone(), differs.clone()]));
    assert!(outcome.plan.writes.iter().all(|write| write.action == WriteAction::TakeOver));
    assert_eq!((outcome.written, messages(&outcome).len()), (2, 1));
    assert!(messages(&outcome)[0].contains("differs from the folder"));
    let now = files(dir.path());
    assert_eq!(now[&place(&always)], text(&always));
    assert_eq!(now[&place(&differs)], "mine");
}

#[cfg(unix)]
#[test]
fn symbolic_links_are_never_followed() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    let (path, outside) = (dir.path().join("target"), dir.path().join("outside"));
    fs::create_dir(&path).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("ConfigMap_a.yaml"), "precious").unwrap();
    // The link replaces a whole namespace, or a single file.
    symlink(&outside, path.join("shop")).unwrap();
    let role = json!({ "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": "p" } });
    fs::create_dir(path.join("_cluster")).unwrap();
    symlink(outside.join("ConfigMap_a.yaml"), path.join(place(&role))).unwrap();

    let outcome = sync(&path, &folder(1, &[map("a", "1"), map("b", "1"), role, namespace("x")]));
    assert_eq!((outcome.applied.objects, messages(&outcome).len()), (1, 3));
    assert!(messages(&outcome).iter().all(|message| message.contains("symbolic link")));
    assert_eq!(files(&outside), BTreeMap::from([("ConfigMap_a.yaml".to_owned(), "precious".to_owned())]));
}

#[cfg(unix)]
#[test]
fn objects_wait_for_the_namespace_or_definition_that_is_not_there_and_for_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.example.com" }, "spec": { "names": { "kind": "Widget" } },
    });
    let custom = |kind: &str| json!({ "apiVersion": "example.com/v1", "kind": kind, "metadata": { "name": "w", "namespace": "x" } });
    fs::create_dir(dir.path().join("_cluster")).unwrap();
    for blocked in [namespace("shop"), definition.clone()] {
        std::os::unix::fs::symlink("/nowhere", dir.path().join(place(&blocked))).unwrap();
    }
    let wanted =
        [namespace("shop"), namespace("x"), definition, map("a", "1"), custom("Widget"), custom("Gadget")];
    let outcome = sync(dir.path(), &folder(1, &wanted));
    let waiting: Vec<String> = messages(&outcome).into_iter().filter(|m| m.contains("waits for")).collect();
    assert_eq!(
        waiting,
        [
            "ConfigMap shop/a: waits for Namespace shop, which is missing",
            "Widget.example.com x/w: waits for CustomResourceDefinition.apiextensions.k8s.io widgets.example.com, which is missing",
        ]
    );
    assert_eq!(outcome.written, 2);
}

#[cfg(unix)]
#[test]
fn a_link_in_place_of_an_owned_folder_does_not_let_pruning_escape() {
    let dir = tempfile::tempdir().unwrap();
    let (path, outside) = (dir.path().join("target"), dir.path().join("outside"));
    sync(&path, &folder(1, &[map("a", "1"), map("b", "1")]));
    fs::rename(path.join("shop"), &outside).unwrap();
    std::os::unix::fs::symlink(&outside, path.join("shop")).unwrap();
    let outcome = sync(&path, &folder(2, &[namespace("x")]));
    assert_eq!((outcome.pruned, messages(&outcome).len()), (0, 2));
    assert_eq!(files(&outside).len(), 2);
}

#[cfg(unix)]
#[test]
fn the_inventory_is_not_reached_through_a_link() {
    let dir = tempfile::tempdir().unwrap();
    let (path, outside) = (dir.path().join("target"), dir.path().join("outside"));
    fs::create_dir(&path).unwrap();
    fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, path.join(".berth")).unwrap();
    assert!(sync_with(&path, &folder(1, &[map("a", "1")]), &options()).is_err());
    assert!(files(&outside).is_empty() && !path.join("shop").exists());
}

#[cfg(unix)]
#[test]
fn secrets_are_readable_by_their_owner_only_and_never_shown() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s", "namespace": "shop" },
        "stringData": { "password": "hunter2" },
    });
    let secrets = folder(1, std::slice::from_ref(&secret));
    let planned = sync_with(dir.path(), &secrets, &Options { dry_run: true, ..options() }).unwrap();
    let outcome = sync(dir.path(), &secrets);
    let pruned = sync(dir.path(), &folder(2, &[]));
    sync(dir.path(), &folder(3, std::slice::from_ref(&secret)));
    let mode = fs::metadata(dir.path().join(place(&secret))).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let read = desired::read(&secrets);
    let shown = format!("{planned:?} {outcome:?} {pruned:?} {} {secrets:?} {read:?}", planned.plan.to_json());
    let hash = backends::hash_of(text(&secret).as_bytes());
    assert!(!shown.contains("hunter2") && !shown.contains(&hash), "{shown}");
}

/// Names with values: one folder's ConfigMaps.
fn maps() -> impl Strategy<Value = BTreeMap<u8, u8>> {
    proptest::collection::btree_map(0..8_u8, 0..3_u8, 0..8)
}

fn objects(maps: &BTreeMap<u8, u8>) -> Vec<Json> {
    maps.iter().map(|(name, value)| map(&format!("m{name}"), &value.to_string())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn what_is_owned_becomes_what_is_wanted(
        first in maps(),
        second in maps(),
        foreign in proptest::collection::btree_set(0..8_u8, 0..3),
        edited in proptest::collection::btree_set(0..8_u8, 0..3),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &u8| dir.path().join(place(&map(&format!("m{name}"), "")));
        fs::create_dir(dir.path().join("shop")).unwrap();
        for name in &foreign {
            fs::write(at(name), "foreign").unwrap();
        }
        sync(dir.path(), &folder(1, &objects(&first)));
        for name in edited.iter().filter(|name| first.contains_key(name) && !foreign.contains(name)) {
            fs::write(at(name), "edited").unwrap();
        }
        let outcome = sync(dir.path(), &folder(2, &objects(&second)));

        // A conflict blocks all removals, so the rest of the first folder may stay.
        let conflicts: BTreeSet<u8> = second.keys().copied().filter(|name| foreign.contains(name)).collect();
        let kept = first.keys().filter(|name| !second.contains_key(name) && !foreign.contains(name)).count();
        let said = conflicts.len() + if conflicts.is_empty() { 0 } else { kept };
        prop_assert_eq!(messages(&outcome).len(), said);
        let now = files(dir.path());
        for name in 0..8 {
            let found = now.get(&place(&map(&format!("m{name}"), ""))).map(String::as_str);
            if foreign.contains(&name) {
                prop_assert_eq!(found, Some("foreign"));
            } else if let Some(value) = second.get(&name) {
                let wanted = text(&map(&format!("m{name}"), &value.to_string()));
                prop_assert_eq!(found, Some(wanted.as_str()));
            } else if conflicts.is_empty() {
                prop_assert_eq!(found, None);
            } else {
                prop_assert_eq!(found.is_some(), first.contains_key(&name));
            }
        }
        prop_assert_eq!(outcome.applied.objects, second.len() - conflicts.len());
    }
}
