mod hostile;
mod language;
mod libraries;
mod shapes;

use serde_json::json;

use super::{Names, Program, Value, Variable};

const NAMES: Names<'_> = Names { variables: &[Variable::any("it")], methods: &["scores"] };

/// Evaluates an expression and returns its result as `string(…)` or JSON, or its fault with the place.
fn run(text: &str) -> Result<Value, String> {
    let program = Program::compile(text, NAMES).map_err(|fault| format!("reading: {fault}"))?;
    let it = Value::from(&json!({
        "name": "ams-1",
        "labels": {"env": "prod", "version": "v1.30.2"},
        "claims": [{"name": "cloud", "value": "Amazon"}, {"name": "size", "value": "3"}],
        "cpu": "12500m",
        "replicas": 3,
        "share": 0.5,
        "nothing": null,
    }));
    let answer = |_: usize, resource: &str| match resource {
        "capacity" => Ok(Value::from(&json!([{"name": "cpu", "value": 90}]))),
        other => Err(format!("no {other}")),
    };
    program.run(&it, &answer).map_err(|fault| fault.to_string())
}

fn is_true(texts: &[&str]) {
    let wrong: Vec<_> = texts
        .iter()
        .map(|text| (text, run(text)))
        .filter(|(_, given)| !matches!(given, Ok(Value::Bool(true))))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Checks that each expression fails with an error that contains the given words.
fn fails(texts: &[(&str, &str)]) {
    for (text, words) in texts {
        match run(text) {
            Err(fault) => assert!(fault.contains(words), "{text}: {fault}"),
            Ok(value) => panic!("{text} gives {value:?}"),
        }
    }
}
