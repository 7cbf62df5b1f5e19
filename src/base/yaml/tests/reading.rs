use serde_json::{Value as Json, json};

use super::super::*;
use crate::diag::Severity;

fn read_all(text: &str) -> Read {
    read(text.as_bytes(), &Limits::default())
}

/// Returns the value of a text without errors; warnings are allowed.
fn value(text: &str) -> Json {
    let read = read_all(text);
    let errors: Vec<_> = read.faults.iter().filter(|fault| fault.severity == Severity::Error).collect();
    assert!(errors.is_empty(), "{text}: {errors:?}");
    assert_eq!(read.documents.len(), 1, "{text}");
    read.documents[0].root.to_json()
}

/// Returns all faults as `line:column message`.
fn faults(text: &str) -> Vec<String> {
    let said = |fault: Fault| format!("{}:{} {}", fault.at.line, fault.at.column, fault.message);
    read_all(text).faults.into_iter().map(said).collect()
}

fn scalar(text: &str) -> Json {
    value(&format!("a: {text}\n"))["a"].clone()
}

#[test]
fn json_in_a_yaml_file_may_write_a_character_as_two_escapes() {
    assert_eq!(value("{\"a\": \"\\ud83d\\ude00!\", \"b\": \"x\"}")["a"], "😀!");
    // Places refer to the original text.
    let faulty = "{\"a\": \"\\ud83d\\ude00\", \"b\": 1,\n \"b\": \"\\ud83d\\ude00\", \"b\": 2}";
    let found = faults(faulty);
    assert!(found[0].starts_with("2:2 ") && found[1].starts_with("2:23 "), "{found:?}");
    assert!(!faults("a: \"\\ud83d\\ude00\"").is_empty(), "which no YAML reader takes");
}

#[test]
fn plain_scalars_are_what_kubectl_reads() {
    let cases = [
        ("y", json!("y")),
        ("Yes", json!(true)),
        ("on", json!(true)),
        ("TRUE", json!(true)),
        ("n", json!("n")),
        ("NO", json!(false)),
        ("off", json!(false)),
        ("False", json!(false)),
        ("yEs", json!("yEs")),
        ("null", json!(null)),
        ("~", json!(null)),
        ("", json!(null)),
        ("nULL", json!("nULL")),
        ("12", json!(12)),
        ("012", json!(10)),
        ("0o14", json!(12)),
        ("0x1F", json!(31)),
        ("0b11", json!(3)),
        ("1_000", json!(1000)),
        ("+1", json!(1)),
        ("-0x1", json!(-1)),
        ("08", json!(8)),
        ("1e3", json!(1000)),
        ("1.0", json!(1)),
        ("1.5", json!(1.5)),
        (".5", json!(0.5)),
        ("5.", json!(5)),
        ("-.5", json!(-0.5)),
        ("1e-2", json!(0.01)),
        ("1e999", json!("1e999")),
        ("12:30:45", json!("12:30:45")),
        ("2001-01-01", json!("2001-01-01")),
        ("2001-12-14t21:59:43.10-05:00", json!("2001-12-14t21:59:43.10-05:00")),
        ("1.2.3", json!("1.2.3")),
        ("9223372036854775807", json!(i64::MAX)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("18446744073709551615", json!(u64::MAX)),
        ("18446744073709551616", json!(18446744073709551616.0)),
        ("0x", json!("0x")),
        ("-", json!("-")),
        ("+-1", json!("+-1")),
        ("0x+1", json!("0x+1")),
        ("=", json!("=")),
        ("'yes'", json!("yes")),
        ("\"012\"", json!("012")),
        ("1e21", json!(1e21)),
        // The digits that sigs.k8s.io/yaml sends.
        ("-0.0", json!(0)),
        ("9007199254740993.0", json!(9_007_199_254_740_992_i64)),
        ("4.3068338451579116e+18", json!(4_306_833_845_157_911_600_i64)),
        ("9.20965558204482e+18", json!(9_209_655_582_044_820_000_i64)),
        ("9.223372036854774784e18", json!(9_223_372_036_854_775_000_i64)),
        ("-9.223372036854775808e18", json!(-9_223_372_036_854_775_808.0)),
        ("9.3e18", json!(9.3e18)),
    ];
    for (text, wanted) in cases {
        if text == "-" {
            continue;
        }
        assert_eq!(scalar(text), wanted, "{text}");
    }
}

#[test]
fn infinity_has_no_json_form() {
    assert!(faults("a: .inf\n")[0].starts_with("1:4 infinity"));
    assert!(faults("a: .nan\n")[0].starts_with("1:4 infinity"));
}

#[test]
fn what_the_two_versions_read_differently_is_warned_of() {
    for text in ["yes", "off", "y", "012", "1_000", "0b11", "-0x1"] {
        let read = read_all(&format!("a: {text}\n"));
        assert_eq!(read.faults.len(), 1, "{text}");
        assert_eq!(read.faults[0].severity, Severity::Warning);
        assert_eq!(read.documents.len(), 1);
    }
    for text in ["true", "12", "0x1F", "0o14", "1e3", "08", "2001-01-01", "~", "null", "'yes'", "abc", "1.50"]
    {
        assert_eq!(faults(&format!("a: {text}\n")), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn keys_become_text_as_kubectl_does() {
    assert_eq!(
        value("1: a\ntrue: b\nyes_: c\n0x10: d\n1.5: e\n"),
        json!({"1": "a", "true": "b", "yes_": "c", "16": "d", "1.5": "e"})
    );
    assert!(faults("~: a\n")[0].contains("must not be null"));
    assert!(faults("? [a]\n: b\n")[0].contains("must be text"));
}

#[test]
fn a_repeated_key_names_both_lines() {
    assert_eq!(faults("a: 1\nb: 2\na: 3\n"), ["3:1 the key `a` is given twice, first on line 1"]);
    assert_eq!(faults("x:\n  1: a\n  '1': b\n"), ["3:3 the key `1` is given twice, first on line 2"]);
}

#[test]
fn blanks_that_are_no_spaces_are_named_where_they_are() {
    let pasted = "kind: X\nspec:\n\u{a0}\u{a0}containers:\n\u{a0}\u{a0}- name: a\n\u{a0}\u{a0}- name: b\n";
    assert_eq!(faults(pasted), ["3:1 the indentation has a no-break space (U+00A0)"]);
    let twice = "spec:\n  list:\n \u{a0}\u{a0} - name: a\n \u{a0}\u{a0} - name: b\n";
    assert_eq!(faults(twice)[0], "3:2 the indentation has a no-break space (U+00A0)");
    let broken = "spec:\n- name: a\n\u{2003}\u{2003}image: b\n";
    assert_eq!(faults(broken), ["3:1 the indentation has the blank U+2003"]);
    assert_eq!(faults("a:\n  name\u{a0}: x\n"), ["2:3 the key `name` ends with a no-break space (U+00A0)"]);
    // Inside a text they are ordinary characters.
    for good in ["a: |\n  \u{a0}- x: y\n", "a: x\u{a0}y\n", "'\u{a0}a': 1\n", "a b\u{a0}c: 1\n"] {
        assert_eq!(faults(good), Vec::<String>::new(), "{good}");
    }
}

#[test]
fn lost_indentation_is_one_fault_with_its_cause() {
    let lost = "kind: X\nmetadata:\nname: a\nspec:\ntemplate:\nmetadata:\nname: b\n";
    let read = read_all(lost);
    assert_eq!(read.faults.len(), 1);
    let hint = read.faults[0].hint.as_deref().unwrap_or_default();
    assert!(
        hint.contains("indent the lines that belong below `metadata`") && hint.contains("line 2"),
        "{hint}"
    );
}

#[test]
fn a_broken_document_costs_only_itself() {
    let text = "a: 1\n---\nb: [\n---\nc: 3\n--- \nd: {\n...\ne: 5\n";
    let read = read_all(text);
    let roots: Vec<Json> = read.documents.iter().map(|document| document.root.to_json()).collect();
    assert_eq!(roots, [json!({"a": 1}), json!({"c": 3}), json!({"e": 5})]);
    let broken: Vec<&str> =
        read.faults.iter().filter_map(|fault| fault.unreadable.clone()).map(|range| &text[range]).collect();
    assert_eq!(broken, ["---\nb: [\n", "--- \nd: {\n"]);
}

#[test]
fn places_are_those_of_the_file() {
    let read = read_all("# head\n---\na: 1\n---\nkey:\n  - é: x\n    b: y\n");
    let document = &read.documents[1];
    assert_eq!((document.line, document.root.at), (4, Mark { line: 5, column: 1 }));
    let Value::List(items) = &document.root.get("key").unwrap().value else { panic!("a list") };
    let Value::Map(entries) = &items[0].value else { panic!("a mapping") };
    assert_eq!(entries[0].value.at, Mark { line: 6, column: 8 });
    assert_eq!(entries[1].at, Mark { line: 7, column: 5 });
}

#[test]
fn byte_order_marks_and_line_ends_of_other_systems_are_fine() {
    let read = read_all("\u{FEFF}a: 1\r\nb: |\r\n  x\r\n  y\r\n---\r\nc: yes\r\n");
    assert_eq!(read.documents[0].root.to_json(), json!({"a": 1, "b": "x\ny\n"}));
    assert_eq!(read.documents[0].bytes.start, 3);
    assert_eq!(read.faults[0].at, Mark { line: 6, column: 4 });
}

#[test]
fn what_is_not_utf_8_names_its_line() {
    let read = read(b"a: 1\nb: \xFF\n", &Limits::default());
    assert_eq!((read.faults[0].at.line, read.faults[0].message.as_str()), (2, "the file is not UTF-8 text"));
    let read = super::super::read(b"\xFF\xFEa\0", &Limits::default());
    assert!(read.faults[0].message.contains("UTF-16"));
}

#[test]
fn control_characters_and_disputed_line_breaks_are_refused() {
    assert!(faults("a: x\u{7}\n")[0].starts_with("1:5 the control character U+0007"));
    assert!(faults("a: 1\nb: x\u{2028}y\n")[0].starts_with("2:5 the character U+2028"));
    assert_eq!(value("a: \"x\\u2028y\\0\"\n"), json!({"a": "x\u{2028}y\0"}));
}

#[test]
fn directives_and_json_are_read() {
    assert_eq!(value("%YAML 1.1\n%TAG !e! tag:yaml.org,2002:\n---\na: !e!str 12\n"), json!({"a": "12"}));
    assert_eq!(
        value("{\n\t\"a\": [1, 2.5, true, null, \"x\\/y\\u00e9\"],\n\t\"b\":{\"c\":\"d\"}\n}"),
        json!({"a": [1, 2.5, true, null, "x/yé"], "b": {"c": "d"}})
    );
}

#[test]
fn tags_change_what_a_scalar_is() {
    assert_eq!(scalar("!!str 12"), json!("12"));
    assert_eq!(scalar("!!int \"12\""), json!(12));
    assert_eq!(scalar("!!float 3"), json!(3));
    assert_eq!(scalar("!!bool yes"), json!(true));
    assert_eq!(scalar("!!null ''"), json!(null));
    assert_eq!(scalar("!!binary aGVsbG8="), json!("hello"));
    assert_eq!(scalar("! 12"), json!("12"));
    assert_eq!(scalar("!!map {b: !!seq [c]}"), json!({"b": ["c"]}));
    assert!(faults("a: !!int x\n")[0].contains("does not fit"));
    assert!(faults("a: !!binary x\n")[0].contains("base64"));
    assert!(faults("a: !Ref b\n")[0].contains("unknown tag `!Ref`"));
    assert!(faults("a: !!set {b}\n")[0].contains("unknown tag `!!set`"));
}

#[test]
fn anchors_and_merge_keys_are_expanded() {
    assert_eq!(
        value("a: &x {b: 1, c: [2]}\nd: *x\n"),
        json!({"a": {"b": 1, "c": [2]}, "d": {"b": 1, "c": [2]}})
    );
    assert_eq!(value("a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  c: 3\n")["d"], json!({"b": 1, "c": 3}));
    assert_eq!(value("- &x {b: 1}\n- &y {b: 2, c: 2}\n- <<: [*x, *y]\n")[2], json!({"b": 1, "c": 2}));
    assert_eq!(value("a: {'<<': 1}\n"), json!({"a": {"<<": 1}}));
    assert_eq!(value("&k a: 1\nb: *k\n"), json!({"a": 1, "b": "a"}));
    assert_eq!(value("- &k a\n- *k : 1\n"), json!(["a", {"a": 1}]));
    assert!(faults("a: {<<: 3}\n")[0].contains("merges mappings"));
    assert!(faults("a: &x [*x]\n")[0].contains("inside the value"));
    assert!(faults("a: *x\n")[0].contains("unknown anchor"));
    assert!(faults("x: &x {b: 1}\na:\n  b: 2\n  <<: *x\n")[0].contains("comes after"));
}

#[test]
fn nothing_comes_of_nothing() {
    for text in ["", "\n\n", "# words\n", "---\n---\n", "---\n...\n---\n# x\n", "~\n"] {
        let read = read_all(text);
        assert!(read.documents.is_empty() && read.faults.is_empty(), "{text:?}");
    }
}

#[test]
fn hostile_files_are_refused_and_not_suffered() {
    let bomb: String =
        (1..30).map(|n| format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 10].join(","))).collect();
    let cases = [
        ("[".repeat(100_000), "recursion"),
        (format!("{}x", "- ".repeat(100_000)), "nest deeper"),
        ((0..500).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect(), "nest deeper"),
        (format!("a0: &a0 [x, x, x]\n{bomb}"), "more values"),
        (format!("[{}]", "1,".repeat(1_100_000)), "more values"),
        (format!("a: &a {}\n{}", "x".repeat(1 << 20), "- *a\n".repeat(20)), "not YAML"),
        (format!("- &a {}\n{}", "x".repeat(1 << 20), "- *a\n".repeat(20)), "repeat more text"),
        ("x".repeat(50 << 20), "at most"),
        ("a: [\n---\n".repeat(5000), "not YAML"),
    ];
    for (text, wanted) in cases {
        let read = read_all(&text);
        assert!(read.faults[0].message.contains(wanted), "{}", read.faults[0].message);
        assert!(read.faults.len() <= 1001, "{wanted}");
    }
}

#[test]
fn what_is_not_read_for_its_many_faults_is_named_as_unreadable() {
    let text = "a: [\n---\n".repeat(5000);
    let read = read_all(&text);
    let covered: usize =
        read.faults.iter().filter_map(|fault| fault.unreadable.clone()).map(|range| range.len()).sum();
    assert!(covered >= text.len() - 4, "{covered} of {}", text.len());
}

#[test]
fn a_packed_document_is_little_more_than_its_text_and_unpacks_as_it_was() {
    let text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, labels: {app: web}}\nspec:\n  replicas: 3\n  \
                template:\n    spec:\n      containers:\n      - name: main\n        image: registry.example.com/web:1.0\n        \
                args: [--listen=:8080, --log-level=info]\n        ports: [{name: http, containerPort: 8080}]\n";
    let root = read(text.as_bytes(), &Limits::default()).documents.remove(0).root;
    let packed = root.pack();
    assert_eq!(Node::unpack(packed.view()), root);
    assert_eq!(packed.to_json(), root.to_json());
    assert!(packed.bytes().len() < 3 * text.len() / 2, "{} bytes of {}", packed.bytes().len(), text.len());
}
