//! The language itself; variables with known fields, and a work budget that several runs share.

use serde_json::json;

use super::{fails, is_true, run};
use crate::{Field, Names, Program, Record, Steps, Value, Variable};

#[test]
fn operators_bind_as_the_language_says() {
    is_true(&[
        "1 + 2 * 3 == 7",
        "(1 + 2) * 3 == 9",
        "10 - 4 - 3 == 3",
        "7 % 4 == 3 && -7 / 2 == -3",
        "true || false && false",
        "!false && !!true",
        "1 < 2 == true",
        "2 in [1, 2] && !(3 in [1, 2])",
        "true ? 1 < 2 : false",
        "false ? false : true ? true : false",
        "- 5 == 0 - 5 && --5 == 5 && ---5 == -5",
        "-9223372036854775808 < 0",
        "it.name != 'x' && it['name'] == 'ams-1'",
        "it.claims[1].value == \"3\" // and nothing more",
        ".it.name == it.name",
    ]);
}

#[test]
fn literals_are_read_as_written() {
    is_true(&[
        "0x1F == 31 && 0xffu == 255u && 1.5e3 == 1500.0 && .5 == 0.5",
        r#""a\n\t\"\x41\u00e9\101" == 'a
	"AéA'"#
            .replace("'a\n", "'''a\n")
            .replace("AéA'", "AéA'''")
            .as_str(),
        r"r'\d' == '\\d'",
        "'''it's''' == \"it's\"",
        "b'a\\xff' == b'a\\377' && size(b'é') == 2 && size('é') == 1",
        "{'a': 1, 2: 'b'}[2] == 'b'",
        "[1, 'a', null].size() == 3",
        "null == it.nothing",
    ]);
    fails(&[
        ("9223372036854775808", "no whole number"),
        ("'abc", "no closing quote"),
        ("'\\q'", "no escape"),
        ("1e999 > 0.0", "no number"),
        ("{'a': 1, 'a': 2}.a == 1", "there already"),
    ]);
}

#[test]
fn values_of_different_types_are_not_equal_but_numbers_compare() {
    is_true(&[
        "dyn(1) == dyn(1u) && dyn(1) == dyn(1.0) && dyn(2u) > dyn(1.5)",
        "dyn(1) != dyn('1')",
        "dyn(1) < 1.5 && dyn(2u) > 1",
        "dyn(9223372036854775807) < dyn(9223372036854775808.0)",
        "{'a': [1, {'b': 2}]} == {'a': [1, {'b': 2}]}",
        "0.0 / 0.0 != 0.0 / 0.0 && !(0.0 / 0.0 < 1.0)",
        "{1: 'a'}[dyn(1u)] == 'a'",
    ]);
}

#[test]
fn macros_go_over_lists_and_the_keys_of_maps() {
    is_true(&[
        "it.claims.exists(c, c.name == 'cloud' && c.value == 'Amazon')",
        "it.labels.all(key, key.size() > 2)",
        "it.claims.exists_one(c, c.name == 'cloud') && it.claims.existsOne(c, c.name == 'size')",
        "it.claims.filter(c, c.name == 'size').map(c, int(c.value)) == [3]",
        "[1, 2, 3].map(x, x > 1, x * 10) == [20, 30]",
        "[[1, 2], [3]].map(x, x.map(y, y + x.size())) == [[3, 4], [4]]",
        "has(it.labels.env) && !has(it.labels.zone)",
        "[].all(x, false) && ![].exists(x, true)",
        "it.scores('capacity').filter(s, s.name == 'cpu').all(e, e.value > 80)",
        "[1, 2].exists(it, it == 2)",
    ]);
}

#[test]
fn an_error_that_does_not_matter_is_passed_over() {
    is_true(&[
        "it.labels.zone == 'a' || true",
        "true || it.labels.zone == 'a'",
        "!(it.labels.zone == 'a' && false)",
        "it.claims.exists(c, int(c.value) == 3)",
        "!it.claims.all(c, int(c.value) > 5)",
        "true ? true : it.labels.zone == 'a'",
    ]);
    fails(&[
        ("it.labels.zone == 'a' || false", "there is no key `zone`"),
        ("it.claims.all(c, int(c.value) == 3)", "is no int"),
        ("it.claims.exists_one(c, int(c.value) == 3)", "is no int"),
    ]);
}

#[test]
fn optional_values_stand_for_what_may_be_missing() {
    is_true(&[
        "it.?labels.?zone.orValue('none') == 'none'",
        "it.labels[?'env'].orValue('none') == 'prod'",
        "it.claims[?5].hasValue() == false",
        "it.labels.?env.optMap(e, e + '!').value() == 'prod!'",
        "it.labels.?env.optFlatMap(e, optional.of(e)).hasValue()",
        "[?it.labels.?zone, 'a'].size() == 1 && {?'z': it.labels.?zone} == {}",
        "it.?labels.zone == optional.none()",
        "optional.ofNonZeroValue('') == optional.none()",
        "[1, 2].first().value() == 1 && [1, 2].last().value() == 2 && [].first() == optional.none()",
        "optional.unwrap([optional.of(1), optional.none()]) == [1] && [optional.of(2)].unwrapOpt() == [2]",
        "it.labels.?zone.or(optional.of('b')).value() == 'b'",
        "it.labels.?env.orValue(it.labels.zone) == 'prod'",
    ]);
    fails(&[("it.labels.?zone.value() == 'a'", "there is no value")]);
}

#[test]
fn what_is_wrong_with_a_text_is_found_when_it_is_read() {
    fails(&[
        ("invalid.expression", "reading: at character 1: there is nothing named `invalid`"),
        ("it.name == 'a' &&", "reading: at character 18: a value is expected, not the end"),
        ("it.name = 'a'", "reading: at character 9: `=` has no meaning here"),
        ("size(1) == 1", "reading: at character 1: `size` is not for (int)"),
        ("it.name.startWith('a')", "there is no method `startWith`"),
        ("foo(1)", "there is no function `foo`"),
        ("1 + 'a' == 2", "`+` is not for (int, string)"),
        ("'a' == 1", "`==` is not for (string, int)"),
        ("1 < 1.5", "`<` is not for (int, double)"),
        ("[1]['a'] == 1", "reading: at character 5: a key of type int is expected"),
        ("it[1] == 1", "a key of type string is expected"),
        ("(true ? 1 : 'a') == 1", "both sides of `:` must have one type, not int and string"),
        ("string([1]) == ''", "`string` is not for (list(int))"),
        ("size('a') == null", "`==` is not for (int, null_type)"),
        ("1 && true", "a boolean is expected, not a value of type int"),
        ("'a'.b", "a value of type string has no fields"),
        ("it.claims.all(c.name, true)", "a plain name"),
        ("has(it)", "`has` is asked about a field"),
        ("if == 1", "reserved"),
        ("it.scores()", "with one text"),
        ("[it].map(c, c.scores('a'))", "a method of `it` alone"),
        ("'a'.matches('[')", "no regular expression"),
        ("Foo{a: 1}", "messages cannot be made"),
        ("c.name == 'x'", "nothing named `c`"),
        ("[1].all(x, x > 0) && x > 0", "nothing named `x`"),
        ("", "a value is expected"),
    ]);
}

#[test]
fn a_result_may_be_of_any_type() {
    assert!(matches!(run("it.labels.env"), Ok(Value::Text(text)) if &*text == "prod"));
    assert!(matches!(run("it.replicas + 1"), Ok(Value::Int(4))));
}

#[test]
fn numbers_that_do_not_fit_are_errors() {
    fails(&[
        ("9223372036854775807 + 1 > 0", "no number of this type"),
        ("1 / 0 == 1", "no number of this type"),
        ("0u - 1u == 0u", "no number of this type"),
        ("int('x') == 1", "`x` is no int"),
        ("int(1e300) == 1", "is no int"),
        ("uint(-1) == 1u", "is no uint"),
    ]);
}

static ITEM: Record = Record { name: "item", fields: &[("name", Field::Text), ("count", Field::Int)] };
static BOX: Record =
    Record { name: "box", fields: &[("labels", Field::Texts), ("items", Field::ListOf(&ITEM))] };

const NAMES: Names<'static> = Names {
    variables: &[
        Variable { name: "now", record: Some(&BOX) },
        Variable { name: "old", record: Some(&BOX) },
        Variable::any("rest"),
    ],
    methods: &[],
};

#[test]
fn fields_of_records_are_checked_before_a_run() {
    for (text, words) in [
        ("now.item", "the box has no field `item`"),
        ("now.items.all(i, i.nam == '')", "the item has no field `nam`"),
        ("has(old.label)", "the box has no field `label`"),
        ("now.items.map(i, i.count)[0] == 'a'", "`==` is not for (int, string)"),
        ("now.labels.a == 1", "`==` is not for (string, int)"),
        ("now.items.filter(i, true)[0].nam", "the item has no field `nam`"),
        ("(true ? now : old).item", "the box has no field `item`"),
        ("new.items", "nothing named `new`, only `now`, `old`, `rest`"),
    ] {
        let fault = Program::compile(text, NAMES).expect_err(text).to_string();
        assert!(fault.contains(words), "{text}: {fault}");
    }
    for text in ["rest.anything.at.all", "now.labels.any == 'a'", "now.?items.orValue([]).size() == 0"] {
        assert!(Program::compile(text, NAMES).is_ok(), "{text}");
    }
}

#[test]
fn a_program_names_the_variables_that_it_reads() {
    let program = Program::compile("old.items.size() > 0", NAMES).expect("sound");
    assert_eq!([0, 1, 2].map(|index| program.reads(index)), [false, true, false]);
    let now = Value::from(&json!({"labels": {}, "items": []}));
    let old = Value::from(&json!({"labels": {}, "items": [{"name": "a", "count": 1}]}));
    let ran = program.run_within(&[now, old, Value::Null], &mut Steps::new(100));
    assert!(matches!(ran, Ok(Value::Bool(true))), "{ran:?}");
}

#[test]
fn runs_share_their_steps() {
    let program = Program::compile("now.items.all(i, i.count == 1)", NAMES).expect("sound");
    let items = vec![json!({"name": "a", "count": 1}); 10];
    let now = [Value::from(&json!({"labels": {}, "items": items}))];
    let mut steps = Steps::new(100);
    assert!(program.run_within(&now, &mut steps).is_ok() && !steps.are_used_up());
    let fault = program.run_within(&now, &mut steps).expect_err("too much").to_string();
    assert!(fault.contains("more than 100 steps") && steps.are_used_up(), "{fault}");
}
