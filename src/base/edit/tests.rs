use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;
use crate::yaml::{Limits, emit, emit_flow, read};

/// A file in several styles: comments, quotes, brackets, blocks and dashes.
const MIXED: &str = "\
# The head.
---
# About the first.
kind: Web   # the kind
metadata:
  name: 'web'  # quoted
  labels: {app: web, \"tier\": front, }   # in brackets
  annotations:   # none yet
spec:
  # how many
  replicas: 3
  text: |
    line one

    line two

  folded: >-
    some
    words
  empty: {}
  none: []
  ports:
  - name: http   # plain
    port: 80
  # the second
  -
    name: https
    port: 443
  args:
    - a
    - \"b, c\"  # odd
    - [x, y]
  é: ünïcode # after
  last: plain text
    in two lines
---
kind: Other
items: [{a: 1}, {a: 2}]
...
";

fn json_of(text: &str) -> Vec<Json> {
    read(text.as_bytes(), &Limits::default()).documents.iter().map(|one| one.root.to_json()).collect()
}

/// Collects every path of a value, except the root's.
fn paths(value: &Json, above: &[Step], found: &mut Vec<Vec<Step>>) {
    let below: Vec<(Step, &Json)> = match value {
        Json::Object(fields) => fields.iter().map(|(key, value)| (Step::from(key.as_str()), value)).collect(),
        Json::Array(items) => {
            items.iter().enumerate().map(|(index, value)| (Step::from(index), value)).collect()
        }
        _ => Vec::new(),
    };
    for (step, value) in below {
        let path: Vec<Step> = above.iter().cloned().chain([step]).collect();
        found.push(path.clone());
        paths(value, &path, found);
    }
}

fn all_paths(text: &str, document: usize) -> Vec<Vec<Step>> {
    let mut found = Vec::new();
    paths(&json_of(text)[document], &[], &mut found);
    found
}

#[test]
fn one_number_changes_and_no_other_byte() {
    let after = set(MIXED, 0, &keys(["spec", "replicas"]), &json!(5)).unwrap();
    assert_eq!(after, MIXED.replace("replicas: 3", "replicas: 5"));
    let after = set(MIXED, 0, &keys(["metadata", "name"]), &json!("shop")).unwrap();
    assert_eq!(after, MIXED.replace("'web'  # quoted", "shop  # quoted"));
    let after = set(MIXED, 0, &keys(["metadata", "labels", "tier"]), &json!("a, b")).unwrap();
    assert_eq!(after, MIXED.replace("\"tier\": front", "\"tier\": \"a, b\""));
}

#[test]
fn a_new_key_stands_below_its_neighbours_as_they_are_written() {
    let after = set(MIXED, 0, &keys(["metadata", "annotations", "a.b/c"]), &json!("true")).unwrap();
    assert_eq!(
        after,
        MIXED.replace("annotations:   # none yet\n", "annotations: # none yet\n    a.b/c: \"true\"\n")
    );
    let after = set(MIXED, 0, &keys(["metadata", "labels", "new"]), &json!("x")).unwrap();
    assert_eq!(after, MIXED.replace("front, }", "front, new: x, }"));
    let after = set(MIXED, 0, &keys(["spec", "empty", "a", "b"]), &json!(1)).unwrap();
    assert_eq!(after, MIXED.replace("empty: {}", "empty: {a: {b: 1}}"));
    let after = set(MIXED, 0, &keys(["spec", "more"]), &json!({"a": [1], "b": "x\ny\n"})).unwrap();
    let block = "    in two lines\n  more:\n    a:\n    - 1\n    b: |\n      x\n      y\n";
    assert_eq!(after, MIXED.replace("    in two lines\n", block));
}

#[test]
fn items_are_added_in_front_behind_and_in_brackets() {
    let path = |index: usize| vec![Step::from("spec"), Step::from("ports"), Step::from(index)];
    let after = insert(MIXED, 0, &path(2), &json!({"name": "x", "port": 1})).unwrap();
    assert_eq!(after, MIXED.replace("port: 443\n", "port: 443\n  - name: x\n    port: 1\n"));
    let after = insert(MIXED, 0, &path(0), &json!({"name": "x", "port": 1})).unwrap();
    assert_eq!(after, MIXED.replace("ports:\n", "ports:\n  - name: x\n    port: 1\n"));
    let after = insert(MIXED, 1, &[Step::from("items"), Step::from(1)], &json!({"a": 9})).unwrap();
    assert_eq!(after, MIXED.replace("{a: 2}", "{a: 9}, {a: 2}"));
    let after =
        insert(MIXED, 0, &[Step::from("spec"), Step::from("none"), Step::from(0)], &json!("x")).unwrap();
    assert_eq!(after, MIXED.replace("none: []", "none: [x]"));
}

#[test]
fn what_is_removed_takes_its_lines_along_and_leaves_comments() {
    let after = remove(MIXED, 0, &keys(["spec", "replicas"])).unwrap();
    assert_eq!(after, MIXED.replace("  replicas: 3\n", ""));
    let after = remove(MIXED, 0, &[Step::from("spec"), Step::from("ports"), Step::from(0)]).unwrap();
    assert_eq!(after, MIXED.replace("  - name: http   # plain\n    port: 80\n", ""));
    let name = [Step::from("spec"), Step::from("ports"), Step::from(0), Step::from("name")];
    let after = remove(MIXED, 0, &name).unwrap();
    assert!(after.contains("    port: 80\n") && after.contains("# plain"), "{after}");
    let after = remove(MIXED, 0, &keys(["metadata", "labels", "tier"])).unwrap();
    assert_eq!(after, MIXED.replace("\"tier\": front, }", "}"));
}

#[test]
fn every_path_can_be_set_removed_and_added_to() {
    for (document, values) in [(0, json_of(MIXED)[0].clone()), (1, json_of(MIXED)[1].clone())] {
        for path in all_paths(MIXED, document) {
            for value in [
                json!("new"),
                json!("a: b # c"),
                json!({"k": ["v", {"w": 1}]}),
                json!("x\n\ny\n"),
                json!([]),
                json!(null),
            ] {
                let after = set(MIXED, document, &path, &value);
                assert!(after.is_ok(), "set {} to {value}: {after:?}", show(&path));
            }
            let after = remove(MIXED, document, &path);
            assert!(after.is_ok(), "remove {}: {after:?}", show(&path));
            let there = path.iter().fold(&values, |at, step| match step {
                Step::Key(key) => &at[key.as_str()],
                Step::Index(index) => &at[*index],
            });
            let below = match there {
                Json::Object(_) | Json::Null => Step::from("added"),
                Json::Array(items) => Step::from(items.len()),
                _ => continue,
            };
            let deeper: Vec<Step> = path.iter().cloned().chain([below]).collect();
            for value in [json!(1), json!({"k": {"l": "m"}})] {
                let after = insert(MIXED, document, &deeper, &value);
                assert!(after.is_ok(), "insert {}: {after:?}", show(&deeper));
            }
        }
    }
}

#[test]
fn every_comment_survives_the_removal_of_what_it_is_not_in() {
    for path in all_paths(MIXED, 0).into_iter().filter(|path| path.len() == 1) {
        let after = remove(MIXED, 0, &path).unwrap();
        assert!(after.contains("# The head.") && after.contains("# About the first."), "{}", show(&path));
    }
}

#[test]
fn lines_that_end_as_on_windows_go_on_so() {
    let text = MIXED.replace('\n', "\r\n");
    for path in all_paths(&text, 0) {
        let after = set(&text, 0, &path, &json!({"k": [1]}));
        let after = after.unwrap_or_else(|error| panic!("{}: {error}", show(&path)));
        assert!(!after.replace("\r\n", "").contains('\n'), "{}", show(&path));
        let after = remove(&text, 0, &path).unwrap();
        assert!(!after.replace("\r\n", "").contains('\n'), "{}", show(&path));
    }
}

#[test]
fn lines_that_end_as_on_old_macs_go_on_so() {
    let text = MIXED.replace('\n', "\r");
    for path in all_paths(&text, 0) {
        let after = set(&text, 0, &path, &json!({"k": [1]}));
        let after = after.unwrap_or_else(|error| panic!("{}: {error}", show(&path)));
        assert!(!after.contains('\n'), "{}", show(&path));
    }
}

#[test]
fn a_file_without_a_last_line_break_and_with_a_byte_order_mark_is_edited() {
    let text = "\u{FEFF}a: 1\nb: 2";
    assert_eq!(set(text, 0, &keys(["c"]), &json!(3)).unwrap(), "\u{FEFF}a: 1\nb: 2\nc: 3");
    assert_eq!(remove(text, 0, &keys(["b"])).unwrap(), "\u{FEFF}a: 1");
    assert_eq!(remove(text, 0, &keys(["a"])).unwrap(), "\u{FEFF}b: 2");
}

#[test]
fn the_last_key_leaves_empty_brackets() {
    let text = "metadata:\n  name: a\n  annotations:  # mine\n    # why\n    x: y\nspec: {}\n";
    let after = remove(text, 0, &keys(["metadata", "annotations", "x"])).unwrap();
    assert_eq!(json_of(&after)[0]["metadata"]["annotations"], json!({}));
    assert!(after.contains("# mine") && after.contains("# why"), "{after}");
    assert_eq!(remove("a: 1\n", 0, &keys(["a"])).unwrap(), "{}\n");
}

#[test]
fn what_would_change_more_than_was_asked_is_refused() {
    let shared = "a: &x {n: 1}\nb: *x\n";
    assert!(matches!(set(shared, 0, &keys(["a", "n"]), &json!(2)), Err(EditError::NotInPlace { .. })));
    assert!(matches!(set(shared, 0, &keys(["b", "n"]), &json!(2)), Err(EditError::NotInPlace { .. })));
    let merged = "base: &x {num: 1}\nb:\n  <<: *x\n  m: 1\n";
    assert!(remove(merged, 0, &keys(["b", "num"])).is_err());
    // The mapping's own key hides the merged one, as intended.
    let own = set(merged, 0, &keys(["b", "num"]), &json!(2)).unwrap();
    assert!(own.contains("  m: 1\n  num: 2\n"), "{own}");
    assert_eq!(
        set("a: x\n", 0, &keys(["a", "b"]), &json!(1)).unwrap_err().to_string(),
        "`a` is a string and cannot hold a field"
    );
    assert_eq!(remove("a: x\n", 0, &keys(["b"])), Err(EditError::Missing("b".to_owned())));
    assert_eq!(insert("a: x\n", 0, &keys(["a"]), &json!(1)), Err(EditError::AlreadyThere("a".to_owned())));
    assert_eq!(set("a: x\n", 3, &keys(["a"]), &json!(1)), Err(EditError::NoSuchDocument(3)));
}

#[test]
fn a_document_goes_and_its_neighbours_stay() {
    let text = "a: 1\n---\n# two\nb: 2\n---\nc: 3\n";
    assert_eq!(remove_document(text, 1).unwrap(), "a: 1\n---\nc: 3\n");
    assert_eq!(remove_document(text, 0).unwrap(), "---\n# two\nb: 2\n---\nc: 3\n");
    assert_eq!(remove_document(text, 2).unwrap(), "a: 1\n---\n# two\nb: 2\n");
}

#[test]
fn a_document_that_can_not_be_read_stays_as_it_is() {
    let text = "a: [\n---\nb: 2\n";
    assert_eq!(set(text, 0, &keys(["b"]), &json!(3)).unwrap(), "a: [\n---\nb: 3\n");
}

#[test]
fn objects_are_found_in_documents_and_lists() {
    let text = "x: 1\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n";
    let objects = objects(text.as_bytes());
    let names: Vec<_> = objects
        .found
        .iter()
        .map(|one| (one.document, show(&one.path), one.kind.as_str(), one.group()))
        .collect();
    assert_eq!(
        names,
        [(1, "items[0]".to_owned(), "Deployment", "apps"), (2, String::new(), "Namespace", "")]
    );
    let after = set(text, 1, &objects.found[0].path_to(&keys(["metadata", "name"])), &json!("shop")).unwrap();
    assert!(after.contains("metadata: {name: shop, namespace: shop}"), "{after}");
}

#[test]
fn what_holds_a_key_goes_with_it_unless_something_else_stands_there() {
    let path = keys(["m", "a", "x"]);
    for (text, wanted) in [
        ("m:\n  n: 1\n  a:\n    x: y\ns: 1\n", "m:\n  n: 1\ns: 1\n"),
        ("m: {n: 1, a: {x: y}}\n", "m: {n: 1}\n"),
        ("m: {n: 1, a: {x: y}}  # ours\n", "m: {n: 1}  # ours\n"),
        ("m: {\n  a: {x: y}, # why\n  n: 1}\n", "m: {\n  a: {}, # why\n  n: 1}\n"),
        ("m:\n  a:\n    w: 1\n    x: y\n", "m:\n  a:\n    w: 1\n"),
        ("m:\n  n: 1\n  a:\n    # why\n    x: y\n", "m:\n  n: 1\n  a: {}\n    # why\n"),
        ("m:\n  n: 1\n  a:  # ours\n    x: y\n", "m:\n  n: 1\n  a: {}  # ours\n"),
        ("m:\n  n: 1\n  a:\n    x: y  # until then\n", "m:\n  n: 1\n  a: {}  # until then\n"),
        ("m:\n  n: 1\n  a:\n    x: y\n    # below\ns: 1\n", "m:\n  n: 1\n    # below\ns: 1\n"),
    ] {
        assert_eq!(remove_with_holder(text, 0, &path).unwrap(), wanted, "{text}");
    }
    assert_eq!(remove_with_holder("a: 1\n", 0, &keys(["a"])).unwrap(), "{}\n");
}

#[test]
fn json_stays_json_and_each_value_keeps_a_line_of_its_own() {
    let path = keys(["metadata", "annotations", "a.b/c"]);
    let line = "{\"kind\": \"X\", \"metadata\": {\"name\": \"x\"}}\n";
    let after = set(line, 0, &path, &json!("true")).unwrap();
    let wanted = line.replace("\"x\"}", "\"x\", \"annotations\": {\"a.b/c\": \"true\"}}");
    assert_eq!(after, wanted);
    let lines = "{\n  \"metadata\": {\n    \"name\": \"x\"\n  },\n  \"items\": []\n}\n";
    let after = set(lines, 0, &path, &json!("true")).unwrap();
    let wanted = "\"x\",\n    \"annotations\": {\"a.b/c\": \"true\"}\n";
    assert_eq!(after, lines.replace("\"x\"\n", wanted));
    let after = insert(&after, 0, &[Step::from("items"), Step::from(0)], &json!({"a": [1, null]})).unwrap();
    assert!(after.contains("\"items\": [{\"a\": [1, null]}]"), "{after}");
    serde_json::from_str::<Json>(&after).expect("still JSON");
    assert_eq!(set("{a: 1}\n", 0, &keys(["b"]), &json!("x")).unwrap(), "{a: 1, b: x}\n");
}

#[test]
fn a_refused_edit_names_the_path_and_its_line() {
    let text = "# Both.\na:\n  n: &x {m: 1}\nb:\n  n: *x\n";
    let refused = set(text, 0, &keys(["b", "n", "m"]), &json!(2)).unwrap_err();
    assert_eq!(
        (refused.to_string().as_str(), refused.line()),
        ("`b.n.m` is written in a way that cannot be changed in place", Some(5))
    );
    let refused = remove(text, 0, &keys(["a", "n", "m"])).unwrap_err();
    assert!(refused.to_string().starts_with("`a.n.m` is") && refused.line() == Some(3), "{refused}");
}

#[test]
fn objects_of_typed_lists_are_found_and_edited_where_they_stand() {
    let text = "apiVersion: x.dev/v1\nkind: WebList\nitems:\n- metadata:\n    name: a\n";
    let objects = objects(text.as_bytes());
    let one = &objects.found[0];
    assert_eq!((one.kind.as_str(), one.group(), one.name.as_str()), ("Web", "x.dev", "a"));
    let after = set(text, 0, &one.path_to(&keys(["metadata", "labels"])), &json!({"k": "v"})).unwrap();
    assert_eq!(after, format!("{text}    labels:\n      k: v\n"));
}

/// Generates small values of every shape.
fn value() -> impl Strategy<Value = Json> {
    let text = prop_oneof!["[a-z]{0,3}", "[ a:#,'\"\n{}\\[\\]-]{0,6}"];
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i32>().prop_map(Json::from),
        text.prop_map(Json::from)
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            prop::collection::btree_map("[a-z#: ]{1,3}", inner, 0..4)
                .prop_map(|fields| Json::Object(fields.into_iter().collect())),
        ]
    })
}

/// Returns the value at a path.
fn at<'j>(root: &'j Json, path: &[Step]) -> &'j Json {
    path.iter().fold(root, |at, step| match step {
        Step::Key(key) => &at[key.as_str()],
        Step::Index(index) => &at[*index],
    })
}

proptest! {
    #[test]
    fn whatever_berth_wrote_can_be_edited_everywhere(
        root in prop::collection::btree_map("[a-z]{1,3}", value(), 1..4),
        new in value(),
        in_brackets in any::<bool>(),
    ) {
        let root = Json::Object(root.into_iter().collect());
        let text = if in_brackets { format!("{}  # end\n", emit_flow(&root)) } else { emit(&root) };
        let mut all = Vec::new();
        paths(&root, &[], &mut all);
        for path in all {
            let after = set(&text, 0, &path, &new);
            prop_assert!(after.is_ok(), "set {} in\n{text}: {after:?}", show(&path));
            let now = json_of(&after.unwrap());
            prop_assert_eq!(at(&now[0], &path), &new);
            let after = remove(&text, 0, &path);
            prop_assert!(after.is_ok(), "remove {} in\n{text}: {after:?}", show(&path));
        }
    }

    #[test]
    fn no_text_makes_the_editor_panic(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "a", "b", ":", " ", "  ", "\n", "- ", "{", "}", "[", "]", ",", "#", "&x ", "*x", "|\n", ">-\n",
                "? ", "'", "\"", "!!str ", "---\n", "...\n", "é", "\r\n", "a: 1\n", "<<: ", "|+\n", "\u{FEFF}",
            ]),
            0..24,
        ),
    ) {
        let text = parts.concat();
        for document in 0..2 {
            let mut all = vec![Vec::new(), keys(["a"]), vec![Step::from(0)]];
            if let Some(root) = json_of(&text).get(document) {
                paths(root, &[], &mut all);
            }
            for path in all {
                let _ = set(&text, document, &path, &json!({"k": "v\nw"}));
                let _ = insert(&text, document, &path, &json!([1]));
                let _ = remove(&text, document, &path);
            }
            let _ = remove_document(&text, document);
        }
    }
}
