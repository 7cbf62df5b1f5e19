use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::super::{Limits, emit, emit_documents, read};

const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

fn own(text: &str) -> Json {
    let read = read(text.as_bytes(), &Limits::default());
    assert!(read.faults.is_empty(), "{text}\n{:?}", read.faults);
    read.documents.into_iter().next().map_or(Json::Null, |document| document.root.to_json())
}

fn foreign(text: &str) -> Json {
    serde_yaml::from_str(text).unwrap()
}

/// Returns JSON as kubectl would send it: whole floats are integers if an `i64` can hold them.
fn normal(value: &Json) -> Json {
    match value {
        Json::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => whole(float).map_or_else(|| value.clone(), Json::from),
            _ => value.clone(),
        },
        Json::Array(items) => items.iter().map(normal).collect(),
        Json::Object(map) => map.iter().map(|(key, value)| (key.clone(), normal(value))).collect(),
        other => other.clone(),
    }
}

/// Returns the integer of a float's shortest digits, if they form one.
fn whole(float: f64) -> Option<i64> {
    format!("{float}").parse().ok()
}

fn check(value: &Json) {
    let text = emit(value);
    assert_eq!(own(&text), normal(value), "own reader of\n{text}");
    assert_eq!(normal(&foreign(&text)), normal(value), "foreign reader of\n{text}");
}

#[test]
fn keys_stand_in_a_fixed_order() {
    let object = json!({
        "spec": {"z": 1, "a": [{"name": "x", "b": []}, ["y", {}]]},
        "metadata": {"labels": {"b": "1", "a": "2"}, "namespace": "shop", "name": "web", "annotations": {}},
        "kind": "Deployment", "apiVersion": "apps/v1", "data": null,
    });
    let wanted = "\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  annotations: {}
  labels:
    a: \"2\"
    b: \"1\"
data: null
spec:
  a:
  - b: []
    name: x
  - - \"y\"
    - {}
  z: 1
";
    assert_eq!(emit(&object), wanted);
    check(&object);
}

#[test]
fn text_that_some_reader_takes_for_something_else_is_quoted() {
    let doubtful = [
        "",
        "yes",
        "Yes",
        "on",
        "OFF",
        "y",
        "N",
        "null",
        "~",
        "Null",
        "true",
        "012",
        "0x1f",
        "0b1",
        "0o7",
        "1e3",
        "1_000",
        "12:30",
        "12:30:45",
        "2001-01-01",
        "2001-12-14t21:59:43.10-05:00",
        "=",
        "<<",
        ".inf",
        "-.INF",
        ".nan",
        ".5",
        "1.",
        "+1",
        "-1",
        "- a",
        "? a",
        ": a",
        "a: b",
        "a #b",
        "#a",
        "a:",
        " a",
        "a ",
        "'a",
        "\"a",
        "[a",
        "{a",
        "*a",
        "&a",
        "!a",
        "%a",
        "@a",
        "`a",
        "|",
        ">",
        "---",
        "...",
        "--- a",
        "a\tb",
        "a\nb ",
        "\u{1}",
        "\u{85}",
        "\u{2028}x",
        "\u{FEFF}",
        "\u{7F}",
        "é\u{A0}",
        "1,000",
        "0.",
        "1e",
        "0xg",
        "123abc_",
        "nil",
        "-",
    ];
    for text in doubtful {
        let value = json!({"a": text, text: ["b", text]});
        check(&value);
        let line = emit(&json!(text));
        let plain_is_fine = ["123abc_", "0xg"].contains(&text);
        assert!(line.starts_with('"') || plain_is_fine, "{text:?} is written as {line}");
    }
}

#[test]
fn ordinary_text_stays_plain() {
    for text in [
        "web",
        "apps/v1",
        "registry.example.com/front:1.0",
        "a-b_c.d",
        "500m",
        "1.27.3-gke",
        "/etc/x",
        "one two",
    ] {
        assert_eq!(emit(&json!(text)), format!("{text}\n"));
    }
}

#[test]
fn lines_stay_lines_where_that_is_exact() {
    assert_eq!(emit(&json!({"a": "x\n  y\n\nz\n"})), "a: |\n  x\n    y\n\n  z\n");
    assert_eq!(emit(&json!({"a": ["x\ny"]})), "a:\n- |-\n  x\n  y\n");
    for text in [
        "x\ny",
        "x\ny\n",
        "x\ny\n\n",
        " x\ny",
        "\nx",
        "x \ny",
        "x\n\ty",
        "x\ny\u{2028}",
        "#x\n#y",
        "---\nx\n",
        "\n",
        "x\r\ny",
    ] {
        check(&json!({"a": text, "b": [text], "c": {"d": [{"e": text, "f": 1}]}}));
        check(&json!(text));
    }
}

#[test]
fn numbers_read_back_as_the_same_numbers() {
    assert_eq!(
        emit(&json!([1e300, 1.5e-7, 2.5, 1e22, -0.25])),
        "- 1.0e+300\n- 1.5e-7\n- 2.5\n- 1.0e+22\n- -0.25\n"
    );
    for number in [
        json!(0),
        json!(-1),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(1e-300),
        json!(f64::MAX),
        json!(0.1),
        json!(1e20),
        // The limits of the whole floats that an i64 holds, and their neighbours.
        json!(9_209_655_582_044_820_480.0),
        json!(TWO_TO_63.next_down()),
        json!(TWO_TO_63),
        json!(-TWO_TO_63),
        json!((-TWO_TO_63).next_down()),
    ] {
        check(&json!({"a": number}));
    }
}

#[test]
fn documents_are_parted() {
    let text = emit_documents(&[json!({"a": 1}), json!({"b": "x\ny\n"})]);
    assert_eq!(text, "---\na: 1\n---\nb: |\n  x\n  y\n");
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[-+.0-9_:exobTZ ~=<]{0,12}",
        "[ \\t\\n\\r#:'\"a|>-]{0,12}",
        "([a-z #:-]{0,6}\\n){1,4}[a-z]{0,3}",
        "[yYnNoOtTfF][a-zA-Z]{0,4}",
        "\\PC{0,8}",
    ]
}

fn values() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        prop_oneof![
            any::<f64>(),
            -2.0 * TWO_TO_63..2.0 * TWO_TO_63,
            any::<i64>().prop_map(|whole| whole as f64)
        ]
        .prop_filter_map("finite", |float| serde_json::Number::from_f64(float).map(Json::from)),
        texts().prop_map(Json::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Json::from),
            prop::collection::btree_map(texts(), inner, 0..5)
                .prop_map(|map| Json::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn what_is_written_reads_back(value in values()) {
        check(&value);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes, &Limits::default());
    }

    #[test]
    fn any_text_is_read_or_refused(text in "([ \\n\\t]|[-?:,\\[\\]{}#&*!|>'\"%@`<=~.]|[a-e0-3]|---|\\.\\.\\.|\\n){0,60}") {
        let read = read(text.as_bytes(), &Limits::default());
        for document in read.documents {
            prop_assert!(text.get(document.bytes.clone()).is_some());
        }
    }
}
