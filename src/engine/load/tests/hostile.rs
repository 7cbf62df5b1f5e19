use proptest::prelude::*;

use super::*;

fn pieces() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("---\n".to_owned()),
        Just("...\n".to_owned()),
        Just("%YAML 1.2\n".to_owned()),
        (
            "(apiVersion|kind|metadata|items|spec|rule|labels)",
            "(v1|List|\\[|\\{|test.dev/v1|berth.dev/v1alpha1|App|Member|x)"
        )
            .prop_map(|(key, value)| format!("{key}: {value}\n")),
        ("(Member|Machine|Rule|App|Trace|Other)", "[a-c]", "(rule: a|labels: \\{x: [yz]\\}|bad: 1|)")
            .prop_map(|(kind, name, rest)| doc(&kind, &name, &rest)),
        "[ \\-\\[\\]{}:,&*!|>'\"%@#a-c\\n]{0,12}",
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(pieces(), 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_bytes_load(bytes in prop::collection::vec(any::<u8>(), 0..300), before in text()) {
        let mut files = tree(&[]);
        files.files.put(SourceFile::new("a.yaml", bytes));
        load_after(&[("a.yaml", &before)], &files);
    }

    #[test]
    fn no_cluster_or_workload_of_a_broken_file_goes_missing(before in text(), objects in text()) {
        let then = load(&[("a.yaml", &before)]);
        let broken = objects + "\n---\nx: [\n";
        let now = load_after(&[("a.yaml", &before)], &tree(&[("a.yaml", &broken)]));
        for name in then.fleet.clusters.keys() {
            prop_assert!(now.fleet.clusters.contains_key(name), "{name}");
        }
        for key in then.fleet.workloads.keys() {
            prop_assert!(now.fleet.workloads.contains_key(key), "{key}");
        }
    }

    #[test]
    fn loading_is_a_function_of_the_files_and_not_of_their_order(a in text(), b in text()) {
        let one = load(&[("a.yaml", &a), ("b.yaml", &b)]);
        let other = load(&[("b.yaml", &b), ("a.yaml", &a)]);
        prop_assert_eq!(said(&one), said(&other));
        prop_assert_eq!(&one.fleet.clusters, &other.fleet.clusters);
    }
}

#[test]
fn a_file_for_which_a_tree_has_no_room_is_not_read_and_the_others_are() {
    use super::super::documents::{FileSize, Room};
    use super::super::{FileCache, load_with_cache};
    let member = |name: &str| {
        format!(
            "{{apiVersion: cluster.kubernetes-fleet.io/v1, kind: MemberCluster, metadata: {{name: {name}}}, spec: {{identity: {{kind: User, name: a}}}}}}"
        )
    };
    let many = (0..5).map(|number| format!("---\n{}\n", member(&format!("m{number}")))).collect::<String>();
    let (a, z) = (member("a"), member("z"));
    let files = [("a.yaml", &*a), ("b.yaml", &*many), ("z.yaml", &*z)];
    let mut cache = FileCache::default();
    cache.room = Room(FileSize { documents: 4, values: 1_000 });
    let names = |files: &[(&str, &str)], cache: &mut FileCache| {
        let loaded = load_with_cache(&tree(files), History::None, cache);
        let said: Vec<String> = loaded.diagnostics.errors().map(ToString::to_string).collect();
        (loaded.fleet.clusters.keys().cloned().collect::<Vec<_>>(), said)
    };
    for _ in 0..2 {
        let (clusters, said) = names(&files, &mut cache);
        assert_eq!(clusters, ["a", "z"]);
        assert!(
            matches!(said.as_slice(), [one] if one.starts_with("b.yaml: error: with this file the fleet has more"))
        );
    }
    cache.room = Room::default();
    assert_eq!(names(&files, &mut cache).0.len(), 7, "once there is room, it is read");
    cache.room = Room(FileSize { documents: 100, values: 40 });
    assert_eq!(names(&files, &mut cache).0, ["a", "z"], "values count as well");
}
