//! Cases with an `expected.json`: decisions, or the error that stands in their way.

use std::collections::BTreeMap;

use berth_base::diag::{Diagnostics, Severity};
use serde_json::{Value as Json, json};

use crate::archive::Archive;
use crate::run::{decide, render};

/// Compares, and puts what was found into the case where it differs.
pub fn check(case: &mut Archive) -> Result<(), String> {
    let expected: Json =
        serde_json::from_str(case.file("expected.json").expect("an expected.json")).expect("JSON");
    let found = compare(case, &expected);
    found.map_err(|(found, differences)| {
        let file = case.files.iter_mut().find(|(path, _)| path == "expected.json").expect("it was read");
        file.1 = format!("{found:#}\n");
        differences
    })
}

fn compare(case: &Archive, expected: &Json) -> Result<(), (Json, String)> {
    if let Some(part) = expected["render_error"].as_str() {
        let (_, diagnostics) = render(case);
        return expect_error("render_error", part, &diagnostics);
    }
    let (decided, diagnostics) = decide(case, case.file("previous.json"));
    if let Some(part) = expected["error"].as_str() {
        let placeless = diagnostics.errors().find(|error| error.at.as_ref().is_none_or(|at| at.line == 0));
        return match placeless {
            Some(error) => Err((expected.clone(), format!("no line and column: {error}"))),
            None => expect_error("error", part, &diagnostics),
        };
    }
    if diagnostics.has_errors() {
        return Err((first_error("error", &diagnostics), lines(&diagnostics)));
    }
    let differences = differences(expected, &decided);
    if !differences.is_empty() {
        return Err((narrowed(expected, &decided), differences.join("\n")));
    }
    let (again, _) = decide(case, Some(&decided.to_string()));
    if again == decided {
        return Ok(());
    }
    Err((expected.clone(), format!("upon these decisions it decides again, and otherwise:\n{again:#}")))
}

fn lines(diagnostics: &Diagnostics) -> String {
    diagnostics.iter().map(|diagnostic| format!("{diagnostic}\n")).collect()
}

fn expect_error(key: &str, part: &str, diagnostics: &Diagnostics) -> Result<(), (Json, String)> {
    if diagnostics.has_errors() && lines(diagnostics).contains(part) {
        return Ok(());
    }
    Err((first_error(key, diagnostics), format!("no error with `{part}`, but:\n{}", lines(diagnostics))))
}

fn first_error(key: &str, diagnostics: &Diagnostics) -> Json {
    let mut errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    json!({ key: errors.next().map(|error| &error.message) })
}

type Name = (String, String, String);

fn placements(value: &Json) -> BTreeMap<Name, &Json> {
    let field = |placement: &Json, name: &str| placement[name].as_str().unwrap_or_default().to_owned();
    let list = value["placements"].as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().map(|p| ((field(p, "kind"), field(p, "namespace"), field(p, "name")), p)).collect()
}

fn by_name(placement: &Json) -> BTreeMap<&str, &Json> {
    let list = placement["clusters"].as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(|cluster| Some((cluster["name"].as_str()?, cluster))).collect()
}

/// Every expected placement has the same clusters, and equal values of the keys that are expected.
fn differences(expected: &Json, actual: &Json) -> Vec<String> {
    let found = placements(actual);
    let mut wrong = Vec::new();
    for ((kind, namespace, name), want) in placements(expected) {
        let title = format!("{kind} {namespace}/{name}");
        let Some(got) = found.get(&(kind, namespace, name)) else {
            wrong.push(format!("{title} was not decided"));
            continue;
        };
        if want.get("clusters").is_some() {
            let (want, got) = (by_name(want), by_name(got));
            if !want.keys().eq(got.keys()) {
                wrong.push(format!("{title}: clusters {:?}, expected {:?}", got.keys(), want.keys()));
            }
            for (name, want) in want {
                if let Some(got) = got.get(name) {
                    wrong.extend(fields(&format!("{title} on {name}"), want, got));
                }
            }
        }
        wrong.extend(fields(&format!("{title}: condition"), &want["condition"], &got["condition"]));
    }
    wrong
}

fn fields(of: &str, want: &Json, got: &Json) -> Vec<String> {
    let want = want.as_object().into_iter().flatten();
    let differing = want.filter(|(field, value)| got.get(field) != Some(value));
    differing.map(|(field, value)| format!("{of}: {field} is {}, expected {value}", got[field])).collect()
}

/// The decisions with the placements and keys that are expected, and no others.
fn narrowed(expected: &Json, actual: &Json) -> Json {
    let found = placements(actual);
    let both = placements(expected).into_iter().filter_map(|(name, want)| Some((want, found.get(&name)?)));
    let with_keys_of = |want: &Json, got: &Json| match (want.as_object(), got.as_object()) {
        (Some(want), Some(got)) => got
            .iter()
            .filter(|(key, _)| want.contains_key(*key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
        _ => got.clone(),
    };
    let placement = |(want, got): (&Json, &&Json)| {
        let mut placement = with_keys_of(want, got);
        placement["condition"] = with_keys_of(&want["condition"], &got["condition"]);
        if let (Some(first), Some(clusters)) = (want["clusters"].get(0), placement["clusters"].as_array_mut())
        {
            clusters.iter_mut().for_each(|cluster| *cluster = with_keys_of(first, cluster));
        }
        if want.get("condition").is_none() {
            placement.as_object_mut().expect("an object").remove("condition");
        }
        placement
    };
    json!({ "placements": both.map(placement).collect::<Vec<_>>() })
}
