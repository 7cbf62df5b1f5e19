//! `spec.stages` of a strategy → stages, checked as the hub does.

use std::collections::BTreeSet;

use super::super::disruption::count_or_share;
use super::LONGEST_NAME;
use berth_base::diag::Diagnostic;
use berth_base::meta;
use berth_base::meta::names::is_label_key;
use berth_base::model::Selector;
use berth_base::model::rollout::{Amount, Stage, StageTask};
use berth_base::yaml::fields::Fields;

const MOST_STAGES: usize = 31;

pub(crate) fn stages(spec: &mut Fields<'_>) -> Vec<Stage> {
    spec.require("stages");
    let found = spec.each("stages");
    if found.len() > MOST_STAGES {
        let path = spec.path_of("stages");
        spec.error_at(
            "stages",
            format!("{path} has {} items, but may have {MOST_STAGES} at most", found.len()),
        );
    }
    let mut names = BTreeSet::new();
    found.into_iter().filter_map(|fields| stage(fields, &mut names)).collect()
}

fn stage<'s>(mut fields: Fields<'s>, names: &mut BTreeSet<&'s str>) -> Option<Stage> {
    let name = fields.required_str("name");
    if let Some(name) = name {
        let fits = name.len() <= LONGEST_NAME
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        if !fits {
            let message = format!(
                "{} is `{name}`, but must have lower-case letters and digits only, at most {LONGEST_NAME}",
                fields.path_of("name")
            );
            fields.error_at("name", message);
        } else if !names.insert(name) {
            let message = format!("{}: another stage has the name `{name}` too", fields.path_of("name"));
            let at = fields.scope().pos(fields.place_of("name"));
            fields.scope().report(Diagnostic::error(at, message).hint("give each stage a name of its own"));
        }
    }
    let selector = selector(&mut fields);
    let sorted_by = fields.str("sortingLabelKey").map(str::to_owned);
    if let Some(key) = sorted_by.as_deref().filter(|key| !is_label_key(key)) {
        let message = format!("{}: `{key}` is not a valid label key", fields.path_of("sortingLabelKey"));
        fields.error_at("sortingLabelKey", message);
    }
    let at_a_time = at_a_time(&mut fields);
    let before = tasks(&mut fields, "beforeStageTasks", 1);
    let after = tasks(&mut fields, "afterStageTasks", 2);
    fields.finish();
    Some(Stage { name: name?.to_owned(), selector: selector?, sorted_by, at_a_time, before, after })
}

/// Reads the selector, which may be absent. The outer `None` means that it has a fault.
fn selector(fields: &mut Fields<'_>) -> Option<Option<Selector>> {
    let (scope, path) = (fields.scope(), fields.path_of("labelSelector"));
    match fields.node("labelSelector") {
        Some(node) => meta::label_selector(scope, node, &path).map(Some),
        None => Some(None),
    }
}

fn at_a_time(fields: &mut Fields<'_>) -> Amount {
    let amount = count_or_share(fields, "maxConcurrency").unwrap_or(Amount::Count(1));
    if matches!(amount, Amount::Count(0) | Amount::Percent(0)) {
        let message =
            format!("{} must be a count from 1 or a share from 1% to 100%", fields.path_of("maxConcurrency"));
        fields.error_at("maxConcurrency", message);
    }
    amount
}

/// Reads tasks, at most `most`. Before a stage, only an approval is allowed.
fn tasks(fields: &mut Fields<'_>, key: &'static str, most: usize) -> Vec<StageTask> {
    let list = fields.each(key);
    if list.len() > most {
        let path = fields.path_of(key);
        fields.error_at(key, format!("{path} has {} items, but may have {most} at most", list.len()));
    }
    let (mut found, mut met) = (Vec::new(), BTreeSet::new());
    for mut task in list {
        task.require("type");
        let kind = task.choice("type", &["TimedWait", "Approval"]);
        let wait = wait_time(&mut task);
        let is_new = kind.is_none_or(|kind| met.insert(kind));
        match kind {
            Some(kind) if !is_new => {
                let message = format!("{}: the list has another task of type {kind}", task.path_of("type"));
                task.error_at("type", message);
            }
            Some("TimedWait") if most == 1 => {
                let message = format!("{} must not be TimedWait before a stage", task.path_of("type"));
                let at = task.scope().pos(task.place_of("type"));
                let hint = "wait after the stage that comes before, under its `afterStageTasks`";
                task.scope().report(Diagnostic::error(at, message).hint(hint));
            }
            Some("TimedWait") if task.node("waitTime").is_none() => {
                task.error_at(
                    "type",
                    format!("{} is required with type TimedWait", task.path_of("waitTime")),
                );
            }
            Some("Approval") if task.node("waitTime").is_some() => {
                let message = format!("{} does not go with type Approval", task.path_of("waitTime"));
                task.error_at("waitTime", message);
            }
            _ => {}
        }
        found.extend(match kind {
            Some("Approval") => Some(StageTask::Approval),
            Some(_) => wait.map(StageTask::Wait),
            None => None,
        });
        task.finish();
    }
    found
}

/// The longest duration that a hub can store, in seconds: about 292 years.
const LONGEST: f64 = 9_223_372_036.0;

/// Reads the field `waitTime`, in whole seconds, rounded up.
pub(super) fn wait_time(task: &mut Fields<'_>) -> Option<i64> {
    let text = task.str("waitTime")?;
    let seconds = seconds(text);
    if seconds.is_none() {
        let message = format!("{} is `{text}`, but must be a time above zero", task.path_of("waitTime"));
        let at = task.scope().pos(task.place_of("waitTime"));
        let hint = "write hours, minutes and seconds, such as `1h30m` or `45s`";
        task.scope().report(Diagnostic::error(at, message).hint(hint));
    }
    seconds
}

/// Returns the seconds of a text such as `1h30m`; `None` for another form, zero, or more than a hub can
/// store.
fn seconds(text: &str) -> Option<i64> {
    let mut rest = text;
    let mut sum = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, unit) = rest.split_at(end);
        let is_number = !number.starts_with('.') && !number.ends_with('.') && number.matches('.').count() < 2;
        let number: f64 = number.parse().ok().filter(|_| is_number)?;
        sum += number
            * match unit.chars().next()? {
                'h' => 3600.0,
                'm' => 60.0,
                's' => 1.0,
                _ => return None,
            };
        rest = &unit[1..];
    }
    (sum > 0.0 && sum <= LONGEST).then(|| sum.ceil() as i64)
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn hours_minutes_and_seconds_add_up() {
        for (text, wanted) in [
            ("1h", Some(3600)),
            ("1h30m", Some(5400)),
            ("1.5h", Some(5400)),
            ("45s", Some(45)),
            ("0.5s", Some(1)),
            ("10s10s", Some(20)),
            ("30m1h", Some(5400)),
        ] {
            assert_eq!(seconds(text), wanted, "{text}");
        }
        for text in
            ["", "0s", "1", "h", "1d", "1H", "-1h", "1h 30m", ".5h", "1.h", "1.2.3s", "500ms", "99999999h"]
        {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
