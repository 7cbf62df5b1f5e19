//! Cases with a `works.json`: the next step of rollouts in flight.

use berth_engine::release::next_step::{self, next_steps};
use serde_json::{Map, Value as Json, json};

use crate::archive::Archive;
use crate::run::{decide_fleet, now};

/// Compares, and puts what was found into the case where it differs.
pub fn check(case: &mut Archive) -> Result<(), String> {
    let expected: Json = serde_json::from_str(case.file("expected.json").expect("a file")).expect("JSON");
    let (loaded, decided, diagnostics) = decide_fleet(case, case.file("previous.json"));
    let text = case.file("works.json").expect("a file");
    let (works, faults) = next_step::read_works("works.json", text.as_bytes(), &loaded.fleet);
    let said: String =
        diagnostics.errors().chain(faults.errors()).map(|error| format!("{error}\n")).collect();
    let steps = next_steps(&loaded.fleet, &decided.decisions, &works, now(case));
    let found: Vec<Json> =
        steps.iter().map(|step| serde_json::to_value(step).expect("texts and numbers")).collect();
    let wanted = expected["workloads"].as_array().map(Vec::as_slice).unwrap_or_default();
    let narrowed =
        json!({"workloads": wanted.iter().map(|wanted| narrowed(wanted, &found)).collect::<Vec<_>>()});
    if narrowed == expected && said.is_empty() {
        return Ok(());
    }
    let file = case.files.iter_mut().find(|(path, _)| path == "expected.json").expect("it was read");
    file.1 = format!("{narrowed:#}\n");
    Err(format!("{narrowed:#}\n{said}"))
}

/// The workload that is expected, with the keys that are expected.
fn narrowed(wanted: &Json, found: &[Json]) -> Json {
    let is_same = |found: &&Json| ["kind", "namespace", "name"].iter().all(|key| found[key] == wanted[key]);
    let Some(found) = found.iter().find(is_same) else { return Json::Null };
    let keys = wanted.as_object().into_iter().flatten();
    keys.map(|(key, _)| (key.clone(), found[key].clone())).collect::<Map<_, _>>().into()
}
