//! Judges a live object's health, with the reason if it is not healthy.
//!
//! The rule for each kind is data ([`rules`]). A status of an earlier generation of the object does not count. Kinds
//! without a rule are judged by the conditions that all controllers share.

pub mod custom;
mod rules;

use serde_json::Value as Json;

use rules::{Check, Count, When};

/// The health of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Health {
    #[default]
    Healthy,
    /// Not healthy yet, with the reason.
    Progressing(String),
    /// The object will not become healthy by itself.
    Failed(String),
}

/// Reports whether an object of this kind keeps changing after it was written.
pub(crate) fn is_lively(group: &str, kind: &str) -> bool {
    rules::of(group, kind).is_none_or(|rule| !rule.checks.is_empty())
}

/// Judges an object by its kind's rule.
pub fn of(object: &Json) -> Health {
    let text = |pointer: &str| object.pointer(pointer).and_then(Json::as_str).unwrap_or_default();
    if let Some(leaving) = is_leaving(object) {
        return leaving;
    }
    let (api_version, kind) = (text("/apiVersion"), text("/kind"));
    let group = berth_base::model::object::group_of(api_version);
    let checks = rules::of(group, kind).map_or(rules::GENERIC, |rule| rule.checks);
    checks.iter().find_map(|check| judge(check, object)).unwrap_or_default()
}

fn is_leaving(object: &Json) -> Option<Health> {
    let since = object.pointer("/metadata/deletionTimestamp").and_then(Json::as_str).unwrap_or_default();
    (!since.is_empty()).then(|| Health::Progressing("it is being removed".to_owned()))
}

fn is_behind(object: &Json) -> Option<Health> {
    judge(&Check::ObservedIfAny, object)
}

/// Applies one check. `None` if the check does not decide.
fn judge(check: &Check, object: &Json) -> Option<Health> {
    match check {
        Check::Observed => {
            let generation = number(object, "/metadata/generation")?;
            let observed = number(object, "/status/observedGeneration");
            unobserved(observed.is_none_or(|observed| observed < generation))
        }
        Check::ObservedIfAny => {
            let (generation, observed) =
                (number(object, "/metadata/generation")?, number(object, "/status/observedGeneration")?);
            unobserved(observed < generation)
        }
        Check::Condition { name, when, is, verdict } => {
            let condition = condition(object, name);
            let status = condition.and_then(|it| it.get("status")?.as_str()).unwrap_or_default();
            let reason = condition.and_then(|it| it.get("reason")?.as_str()).unwrap_or_default();
            let holds = match when {
                When::Status => status == *is,
                When::NotStatus => condition.is_some() && status != *is,
                When::NotTrueOrAbsent => status != *is,
                When::Reason => reason == *is,
            };
            holds.then(|| verdict.with(|| describe(name, status, condition)))
        }
        Check::Text { at, is, verdict } => {
            let found = object.pointer(at).and_then(Json::as_str).unwrap_or_default();
            is.contains(&found).then(|| verdict.with(|| describe_text(object, at, found)))
        }
        Check::Flag { at, verdict } => {
            let set = object.pointer(at) == Some(&Json::Bool(true));
            set.then(|| verdict.with(String::new))
        }
        Check::Absent { at, only_if, verdict } => {
            let applies =
                only_if.is_none_or(|(at, is)| object.pointer(at).and_then(Json::as_str) == Some(is));
            let absent = match object.pointer(at) {
                None | Some(Json::Null) => true,
                Some(Json::Array(items)) => items.is_empty(),
                Some(_) => false,
            };
            (applies && absent).then(|| verdict.with(String::new))
        }
        Check::AtLeast(count) => short_of(count, object),
        Check::NoneBeyond { at, of, words } => {
            let (all, some) = (number(object, at).unwrap_or(0), number(object, of).unwrap_or(0));
            (all > some).then(|| Health::Progressing(format!("{} {words}", all - some)))
        }
        Check::Same { at, of, words } => {
            let text = |at: &str| object.pointer(at).and_then(Json::as_str).unwrap_or_default();
            (text(at) != text(of)).then(|| Health::Progressing((*words).to_owned()))
        }
        Check::Partition => judge_partition(object),
    }
}

fn unobserved(is_behind: bool) -> Option<Health> {
    is_behind.then(|| Health::Progressing("its controller has not seen its latest generation".to_owned()))
}

/// Describes the text of a field, with the message of the status.
fn describe_text(object: &Json, at: &str, found: &str) -> String {
    let last = at.rsplit('/').next().unwrap_or_default();
    let found = if found.is_empty() { "not set" } else { found };
    match object.pointer("/status/message").and_then(Json::as_str).unwrap_or_default() {
        "" => format!("its {last} is {found}"),
        message => format!("its {last} is {found}: {message}"),
    }
}

/// Judges a StatefulSet with a partition by the replicas above it.
fn judge_partition(object: &Json) -> Option<Health> {
    let partition = number(object, "/spec/updateStrategy/rollingUpdate/partition").filter(|it| *it > 0)?;
    let wanted = number(object, "/spec/replicas").unwrap_or(1).saturating_sub(partition).max(0);
    let updated = number(object, "/status/updatedReplicas").unwrap_or(0);
    Some(if updated >= wanted {
        Health::Healthy
    } else {
        Health::Progressing(format!("{updated} of {wanted} replicas are updated"))
    })
}

fn short_of(count: &Count, object: &Json) -> Option<Health> {
    let wanted = match number(object, count.of) {
        Some(wanted) => wanted,
        None => count.or,
    };
    let found = number(object, count.at).unwrap_or(0);
    (found < wanted).then(|| Health::Progressing(format!("{found} of {wanted} {}", count.words)))
}

fn number(object: &Json, at: &str) -> Option<i64> {
    object.pointer(at)?.as_i64()
}

fn condition<'a>(object: &'a Json, name: &str) -> Option<&'a Json> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|one| one.get("type").and_then(Json::as_str) == Some(name))
}

/// Describes a condition: its status, and the controller's reason.
fn describe(name: &str, status: &str, condition: Option<&Json>) -> String {
    let Some(condition) = condition else { return format!("it has no condition {name}") };
    let text = |key: &str| condition.get(key).and_then(Json::as_str).unwrap_or_default();
    let said = [text("reason"), text("message")].into_iter().filter(|text| !text.is_empty());
    let said = said.collect::<Vec<_>>().join(": ");
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    if said.is_empty() { format!("{name} is {status}") } else { format!("{name} is {status}: {said}") }
}

#[cfg(test)]
mod tests {
    //! Runs every case under `fixtures/health/`, and checks that every kind with checks has one.

    use std::collections::BTreeSet;

    use super::rules::RULES;
    use super::*;
    use berth_base::yaml::{self, Limits};

    fn cases() -> Vec<Json> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/health");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut cases = Vec::new();
        for file in files {
            let read = yaml::read(&std::fs::read(&file).unwrap(), &Limits::default());
            assert!(read.faults.is_empty(), "{}: {:?}", file.display(), read.faults);
            cases.extend(read.documents.iter().map(|document| document.root.to_json()));
        }
        cases
    }

    #[test]
    fn every_case_is_judged_as_it_says() {
        for case in cases() {
            let judged = of(&case["object"]);
            let (word, why) = match &judged {
                Health::Healthy => ("healthy", ""),
                Health::Progressing(why) => ("progressing", why.as_str()),
                Health::Failed(why) => ("failed", why.as_str()),
            };
            assert_eq!(case["expect"], word, "{judged:?} of {case}");
            let says = case["says"].as_str().unwrap_or_default();
            assert!(why.contains(says), "`{why}` does not say `{says}`: {case}");
        }
    }

    #[test]
    fn every_kind_that_is_waited_for_has_a_case_of_each_end() {
        let seen: BTreeSet<(String, String, String)> = cases()
            .iter()
            .map(|case| {
                let text = |at: &str| case.pointer(at).and_then(Json::as_str).unwrap_or_default().to_owned();
                let group = berth_base::model::object::group_of(&text("/object/apiVersion")).to_owned();
                (group, text("/object/kind"), text("/expect"))
            })
            .collect();
        for (group, kind) in RULES
            .iter()
            .flat_map(|rule| rule.kinds)
            .copied()
            .filter(|(group, kind)| is_lively(group, kind) && *kind != "Namespace")
        {
            for end in ["healthy", "progressing"] {
                let wanted = (group.to_owned(), kind.to_owned(), end.to_owned());
                assert!(seen.contains(&wanted) || kind == "ReplicaSet", "{kind} has no case that is {end}");
            }
        }
    }
}
