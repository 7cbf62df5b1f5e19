//! Tests of patches through [`apply`] and [`operations`].

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;
use crate::diag::Severity;
use crate::meta::testing::node;
use crate::model::Pointer;
use crate::model::selector::Labels;
use crate::yaml::{Scope, Value};

/// A missing operation is `replace`, which may add.
const LENIENT: PatchRules =
    PatchRules { default_verb: Some(Verb::Replace), replace_may_add: true, ..PatchRules::RFC_6902 };

/// Few operations, no empty part, and variables.
const STRICT: PatchRules = PatchRules {
    verbs: &["add", "remove", "replace"],
    from_the_end: true,
    allows_empty_parts: false,
    remove_may_have_value: false,
    variables: true,
    ..PatchRules::RFC_6902
};

fn read(list: &Json, rules: &PatchRules) -> (Vec<Operation>, Vec<String>) {
    let scope = Scope::new("a.yaml".into(), Severity::Error);
    let root = node(list);
    let Value::List(items) = &root.value else { panic!("a list is needed") };
    let read = operations(&scope, items, "patch", rules);
    (read, scope.into_diagnostics().iter().map(ToString::to_string).collect())
}

fn patched(object: Json, patch: Json, rules: &PatchRules) -> Result<Patched, PatchError> {
    let (read, found) = read(&patch, rules);
    assert!(found.is_empty(), "{found:?}");
    apply(&object, &read, Target { cluster: "oslo", labels: &Labels::new() })
}

fn object(object: Json, patch: Json) -> Json {
    patched(object, patch, &PatchRules::RFC_6902).expect("the patch applies").object
}

fn fault(object: Json, patch: Json) -> String {
    patched(object, patch, &PatchRules::RFC_6902).expect_err("the patch fails").message
}

#[test]
fn the_whole_object_can_be_replaced_added_tested_and_copied_from() {
    assert_eq!(object(json!({"a": 1}), json!([{"op": "replace", "path": "", "value": [1]}])), json!([1]));
    assert_eq!(object(json!({"a": 1}), json!([{"op": "add", "path": "", "value": 2}])), json!(2));
    assert_eq!(
        object(json!({"a": 1}), json!([{"op": "test", "path": "", "value": {"a": 1.0}}])),
        json!({"a": 1})
    );
    let copied = object(json!({"a": 1}), json!([{"op": "copy", "from": "", "path": "/b"}]));
    assert_eq!(copied, json!({"a": 1, "b": {"a": 1}}));
    assert!(fault(json!({}), json!([{"op": "remove", "path": ""}])).contains("whole object"));
}

#[test]
fn a_message_names_the_missing_part_and_what_is_there() {
    let web = json!({"spec": {"replicas": 1, "items": ["x"], "name": "n"}});
    for (operation, expected) in [
        (
            json!({"op": "remove", "path": "/spec/replica"}),
            "there is no `replica` in `/spec`, which has `items`, `name`, `replicas`",
        ),
        (
            json!({"op": "add", "path": "/nope/x", "value": 1}),
            "there is no `nope` in the object, which has `spec`",
        ),
        (
            json!({"op": "replace", "path": "/spec/items/1", "value": 1}),
            "there is no item 1 in `/spec/items`, which has 1 item",
        ),
        (
            json!({"op": "add", "path": "/spec/items/2", "value": 1}),
            "there is no item 2 in `/spec/items`, which has 1 item",
        ),
        (json!({"op": "remove", "path": "/spec/items/-"}), "after the last item"),
        (json!({"op": "add", "path": "/spec/items/-1", "value": 1}), "`-1` is a negative list index"),
        (
            json!({"op": "add", "path": "/spec/items/00", "value": 1}),
            "the list index `00` has a leading zero",
        ),
        (json!({"op": "add", "path": "/spec/items/1e0", "value": 1}), "`1e0` is not a list index"),
        (json!({"op": "remove", "path": "/spec/items/99999999999999999999999"}), "too large"),
        (
            json!({"op": "add", "path": "/spec/name/x", "value": 1}),
            "`/spec/name` is a string, so there is no `x` in it",
        ),
        (json!({"op": "move", "from": "/spec", "path": "/spec/items/0"}), "cannot be moved into itself"),
        (json!({"op": "copy", "from": "/x", "path": "/y"}), "there is no `x` in the object"),
        (
            json!({"op": "move", "from": "/spec", "path": "/spec2/x"}),
            "there is no `spec2` in the object, which is empty",
        ),
    ] {
        let message = fault(web.clone(), json!([operation]));
        assert!(message.contains(expected), "{operation}: {message}");
    }
}

#[test]
fn a_test_that_fails_shows_no_values() {
    let message =
        fault(json!({"data": {"k": "secret"}}), json!([{"op": "test", "path": "/data/k", "value": "guess"}]));
    assert_eq!(message, "`test` of `/data/k` failed: the value there is another one");
}

#[test]
fn replace_sets_an_absent_key_only_where_the_dialect_lets_it() {
    let patch = json!([{"path": "/spec/paused", "value": true}]);
    let done = patched(json!({"spec": {}}), patch.clone(), &LENIENT).expect("it applies");
    assert_eq!(done.object, json!({"spec": {"paused": true}}));
    assert_eq!(done.warnings[0].message, "`replace` of `/spec/paused` sets a key that was not there");
    let fails = |object: Json, patch: Json, rules: &PatchRules| patched(object, patch, rules).is_err();
    assert!(fails(json!({}), patch.clone(), &LENIENT), "its parent is missing");
    assert!(fails(json!({"spec": []}), patch, &LENIENT), "a list has no keys");
    assert!(fails(json!({"a": []}), json!([{"path": "/a/0", "value": 1}]), &LENIENT), "an index is no key");
    assert!(fails(json!({}), json!([{"op": "replace", "path": "/a", "value": 1}]), &PatchRules::RFC_6902));
}

#[test]
fn the_error_knows_which_operation_failed_and_where_it_stands() {
    let patch = json!([{"op": "add", "path": "/a", "value": 1}, {"op": "remove", "path": "/b"}]);
    let error = patched(json!({}), patch, &PatchRules::RFC_6902).expect_err("there is no b");
    assert_eq!(error.index, 1);
    assert_eq!((error.at.file.as_ref(), error.at.line), ("a.yaml", 6));
}

#[test]
fn copies_cannot_grow_without_bound() {
    let bigger: Vec<Json> =
        (0..60).map(|n| json!({"op": "copy", "from": "/a", "path": format!("/a/k{n}")})).collect();
    let message = fault(json!({"a": {"text": "x".repeat(1000)}}), Json::Array(bigger));
    assert!(message.contains("3 MiB"), "{message}");
    let deeper: Vec<Json> = (0..40).map(|_| json!({"op": "copy", "from": "/a", "path": "/a/a"})).collect();
    let deep = object(json!({"a": {}}), Json::Array(deeper.clone()));
    assert!(deep.is_object());
    let nested: Vec<Json> = (0..200).map(|_| json!({"op": "copy", "from": "", "path": "/a"})).collect();
    let message = fault(json!({}), Json::Array(nested));
    assert!(message.contains("90 levels"), "{message}");
}

#[test]
fn encrypted_values_are_refused_and_their_neighbours_are_not() {
    let secret = json!({"data": {"open": "x", "shut": "ENC[AES256_GCM,data:abc]"}, "sops": {"mac": "m"}, "kind": "Secret"});
    for operation in [
        json!({"op": "replace", "path": "/data/shut", "value": "x"}),
        json!({"op": "remove", "path": "/data"}),
        json!({"op": "copy", "from": "/data/shut", "path": "/data/new"}),
        json!({"op": "add", "path": "/sops/mac", "value": "x"}),
        json!({"op": "replace", "path": "", "value": {}}),
    ] {
        let message = fault(secret.clone(), json!([operation]));
        assert!(message.contains("encrypted by SOPS"), "{operation}: {message}");
    }
    let done = object(secret, json!([{"op": "replace", "path": "/data/open", "value": "y"}]));
    assert_eq!(done["data"]["open"], "y");
}

#[test]
fn faulty_operations_are_all_reported() {
    let (read, found) = read(
        &json!([
            {"op": "replce", "path": "/a", "value": 1},
            {"op": "add", "path": "/a"},
            {"op": "add", "path": "a/b", "value": 1},
            {"op": "add", "path": "/a~2", "value": 1},
            {"op": "move", "path": "/a"},
            {"op": "remove", "value": 1},
            {"op": "add", "path": "/a", "valeu": 1, "value": null},
            {"path": "/a", "value": 1},
            "x",
        ]),
        &PatchRules::RFC_6902,
    );
    assert_eq!(read.len(), 1, "{read:?}");
    for (fault, hint) in [
        ("patch[0].op is `replce`", "did you mean `replace`?"),
        ("patch[1].value is required for `add`", "value: null"),
        ("patch[2].path: the path `a/b` does not begin with a slash", "write `/a/b`"),
        ("patch[3].path: in the path `/a~2`", "`~1` for `/`"),
        ("patch[4].from is required", ""),
        ("patch[5].path is required", ""),
        ("unknown field `patch[6].valeu`", "did you mean `value`?"),
        ("patch[7].op is required", ""),
        ("patch[8] must be a mapping", ""),
    ] {
        assert!(
            found.iter().any(|one| one.contains(fault) && one.contains(hint)),
            "{fault} is not in {found:?}"
        );
    }
}

#[test]
fn an_entry_without_an_operation_has_the_default_one_and_null_is_a_value() {
    let (read, found) = read(
        &json!([{"op": "", "path": "/a", "value": null}, {"op": null, "path": "", "value": 0}]),
        &LENIENT,
    );
    assert!(found.is_empty(), "{found:?}");
    assert_eq!((read[0].verb, &read[0].value), (Verb::Replace, &Some(Json::Null)));
    assert_eq!((read[1].verb, &read[1].path), (Verb::Replace, &Pointer::default()));
}

#[test]
fn rules_may_know_fewer_operations_and_fill_in_variables() {
    let (_, found) = read(
        &json!([{"op": "move", "from": "/a", "path": "/b"}, {"op": "remove", "path": "/a//b"}, {"op": "remove", "path": "/a", "value": 1}]),
        &STRICT,
    );
    assert_eq!(found.len(), 3, "{found:?}");
    let done =
        patched(json!({}), json!([{"op": "add", "path": "/n", "value": "${MEMBER-CLUSTER-NAME}"}]), &STRICT);
    assert_eq!(done.expect("it applies").object, json!({"n": "oslo"}));
}

fn some_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        "[a-c~/0-]{0,3}".prop_map(Json::from)
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            prop::collection::btree_map("[a-c]{0,1}", inner, 0..4)
                .prop_map(|fields| fields.into_iter().collect()),
        ]
    })
}

fn some_operation() -> impl Strategy<Value = Operation> {
    let path = || {
        "(/([a-c]|[0-3]|-|-1|01|~0|~1|ä|)){0,4}".prop_map(|text| Pointer::parse(&text).expect("a pointer"))
    };
    let from = prop::option::weighted(0.9, path());
    let value = prop::option::weighted(0.9, some_json());
    (0..6_usize, path(), from, value, any::<bool>(), any::<bool>()).prop_map(
        |(verb, path, from, value, may_add, variables)| Operation {
            verb: Verb::ALL[verb].1,
            path,
            from,
            value,
            replace_may_add: may_add,
            from_the_end: false,
            variables,
            at: Pos::file("a.yaml"),
        },
    )
}

proptest! {
    /// A patch has the same result as its operations one by one; it fails at the first failing operation.
    #[test]
    fn patches_never_panic_and_are_all_or_nothing(start in some_json(), patch in prop::collection::vec(some_operation(), 0..8)) {
        let labels = Labels::new();
        let target = Target { cluster: "oslo", labels: &labels };
        let untouched = start.clone();
        let whole = apply(&start, &patch, target);
        prop_assert_eq!(&start, &untouched);
        let mut object = start;
        let mut failed_at = None;
        for (index, operation) in patch.iter().enumerate() {
            match apply(&object, std::slice::from_ref(operation), target) {
                Ok(done) => object = done.object,
                Err(_) => {
                    failed_at = Some(index);
                    break;
                }
            }
        }
        match whole {
            Ok(done) => {
                prop_assert_eq!(failed_at, None);
                prop_assert_eq!(done.object, object);
            }
            Err(error) => prop_assert_eq!(failed_at, Some(error.index)),
        }
    }
}

proptest! {
    #[test]
    fn the_operations_between_two_objects_make_one_from_the_other(before in some_json(), after in some_json()) {
        let labels = Labels::new();
        let target = Target { cluster: "oslo", labels: &labels };
        let made = apply(&before, &operations_between(&before, &after), target);
        prop_assert_eq!(made.map(|made| made.object), Ok(after));
    }
}

#[test]
fn numbers_are_compared_by_value_at_any_depth() {
    assert!(equal(&json!({"a": [1, {"b": 2.0}]}), &json!({"a": [1.0, {"b": 2}]})));
    assert!(equal(&json!(0), &json!(-0.0)));
    assert!(!equal(&json!(1), &json!(1.5)) && !equal(&json!(1), &json!("1")));
}

#[test]
fn large_neighbours_stay_apart() {
    assert!(!equal(&json!(9_007_199_254_740_993_u64), &json!(9_007_199_254_740_992.0)));
    assert!(equal(&json!(u64::MAX), &json!(u64::MAX)) && !equal(&json!(u64::MAX), &json!(-1)));
    assert!(!equal(&json!(1e300), &json!(1)));
}

#[test]
fn lists_and_mappings_must_hold_the_same() {
    assert!(!equal(&json!([1, 2]), &json!([1])) && !equal(&json!({"a": 1}), &json!({"b": 1})));
    assert!(!equal(&json!({"a": null}), &json!({})));
}
