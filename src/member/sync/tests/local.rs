//! Member-local overrides: applied last, failing independently, refused if they are wrong.

use super::*;

const FILE: &str = "
apiVersion: berth.dev/v1alpha1
kind: LocalOverrides
overrides:
  - target: {kind: ConfigMap, namespace: shop, labelSelector: {matchLabels: {tier: web}}}
    patches:
      - {op: replace, path: /data/key, value: local}
";

fn read(text: &str) -> LocalOverrides {
    local_overrides::read("local.yaml", text.as_bytes()).map_err(|found| format!("{found:?}")).unwrap()
}

fn labelled(mut object: Json) -> Json {
    object["metadata"]["labels"] = json!({ "tier": "web" });
    object
}

fn sync_locally(path: &Path, folder: &ClusterFolder, local: &str) -> SyncOutcome {
    let mut backend = FolderBackend::open(path).unwrap();
    sync_once(folder, &read(local), &mut backend, &options()).unwrap()
}

#[test]
fn an_override_is_applied_to_the_objects_it_is_for_and_undone_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(1, &[labelled(map("a", "git")), map("b", "git")]);
    sync(dir.path(), &folder);
    assert_eq!(sync_locally(dir.path(), &folder, FILE).written, 1);
    assert_eq!(files(dir.path()), expected(&[labelled(map("a", "local")), map("b", "git")]));
    assert!(sync_locally(dir.path(), &folder, FILE).plan.is_quiet());
    assert_eq!(sync(dir.path(), &folder).written, 1);
    assert_eq!(files(dir.path()), expected(&[labelled(map("a", "git")), map("b", "git")]));
}

#[test]
fn a_failing_override_leaves_its_object_as_it_is_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    sync(dir.path(), &folder(1, &[labelled(map("a", "1")), map("b", "1")]));
    let failing = FILE.replace("/data/key", "/data/nothing/here");
    let outcome = sync_locally(dir.path(), &folder(2, &[labelled(map("a", "2")), map("b", "2")]), &failing);
    assert_eq!((outcome.written, outcome.pruned, messages(&outcome).len()), (1, 0, 1));
    assert!(messages(&outcome)[0].contains("local.yaml:7:9"), "{:?}", messages(&outcome));
    assert_eq!(files(dir.path()), expected(&[labelled(map("a", "1")), map("b", "2")]));
}

#[test]
fn an_override_can_not_make_an_object_another_one() {
    let dir = tempfile::tempdir().unwrap();
    for path in ["/metadata/name", "/metadata/namespace", "/kind", "/apiVersion"] {
        let renaming = FILE.replace("/data/key", path).replace("value: local", "value: other/x");
        let outcome = sync_locally(dir.path(), &folder(1, &[labelled(map("a", "1"))]), &renaming);
        assert!(messages(&outcome)[0].contains("makes it another object"), "{path}");
        assert!(files(dir.path()).is_empty());
    }
}

#[test]
fn every_fault_of_an_overrides_file_is_reported_at_its_place() {
    let faulty = "
apiVersion: berth.dev/v1alpha1
kind: LocalOverride
overrides:
  - target: {kinds: ConfigMap}
    patches: []
  - patches: [{op: replace, path: data/key, value: 1}]
";
    let found = local_overrides::read("local.yaml", faulty.as_bytes()).unwrap_err();
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    for (place, words) in [
        ("local.yaml:3:7", "kind must be LocalOverrides"),
        ("local.yaml:5:14", "unknown field `overrides[0].target.kinds`"),
        ("local.yaml:6:14", "must not be empty"),
        ("local.yaml:7:5", "overrides[1].target is required"),
        ("local.yaml:7:", "slash"),
    ] {
        let fits = |line: &String| line.starts_with(place) && line.contains(words);
        assert!(found.iter().any(fits), "{place} {words}: {found:#?}");
    }
}

#[test]
fn a_failing_override_of_a_secret_says_nothing_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s", "namespace": "shop" },
        "stringData": { "password": "hunter2" },
    });
    let local = "
apiVersion: berth.dev/v1alpha1
kind: LocalOverrides
overrides:
  - target: {kind: Secret, name: s}
    patches: [{op: test, path: /stringData/password, value: hunter3}]
";
    let outcome = sync_locally(dir.path(), &folder(1, &[secret]), local);
    let message = &messages(&outcome)[0];
    assert!(message.contains("<redacted>") && !message.contains("hunter"), "{message}");
}
