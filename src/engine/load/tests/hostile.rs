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
