//! Variables with known fields, and a work budget that several runs share.

use serde_json::json;

use crate::{Field, Names, Program, Record, Steps, Value, Variable};

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
