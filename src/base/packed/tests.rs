use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        ".{0,9}".prop_map(Json::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::from),
            prop::collection::btree_map("[a-c/~é]{0,3}", inner, 0..6)
                .prop_map(|map| Json::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn a_value_is_unpacked_as_it_was(value in any_json()) {
        let packed = Packed::of(&value);
        prop_assert_eq!(packed.to_json(), value);
    }
}

#[test]
fn one_field_is_read_without_the_others() {
    let packed = Packed::of(&json!({"a": [1, {"b": "x"}], "c/d": {"e~": -7}, "f": {"g": null}}));
    assert_eq!(packed.pointer("/c~1d/e~0").and_then(View::as_i64), Some(-7));
    assert!(packed.pointer("/f/g").is_some_and(View::is_null));
    assert_eq!(packed.pointer("/a/1/b").and_then(View::as_str), Some("x"));
    assert!(["/a/01/b", "/a/+1/b", "/a/2", "/a/b"].iter().all(|path| packed.pointer(path).is_none()));
    assert!(packed.pointer("/f/h").is_none() && packed.pointer("f").is_none());
    assert_eq!(packed.get("a").map(|list| list.items().count()), Some(2));
    assert_eq!(packed.get("f").map(|map| map.entries().count()), Some(1));
    assert_eq!(packed.get("f").and_then(View::as_str), None);
}

#[test]
fn values_and_keys_have_their_places() {
    let mark = |line, column| Mark { line, column };
    let mut writer = Writer::with_places();
    writer.map(mark(1, 1), [3_u32, 400].into_iter(), |writer, line| {
        writer.key(mark(line, 1), &format!("k{line}"));
        writer.text(mark(line, 5), "x");
    });
    let packed = writer.finish();
    assert_eq!(packed.get("k400").map(View::at), Some(mark(400, 5)));
    let Content::Map(entries) = packed.view().content() else { panic!("a mapping") };
    assert_eq!(entries.map(|(_, at, _)| at).collect::<Vec<_>>(), [mark(3, 1), mark(400, 1)]);
}
