//! `rolloutStrategy` of a work set → the order in which clusters get the work, and its limits.

use super::fields::amount;
use berth_base::model::rollout::{Amount, GroupRef, Pace, Rollout};
use berth_base::yaml::Fields;

/// Reads a strategy, without its placement.
pub(crate) fn read(mut fields: Fields<'_>) -> Rollout {
    let kind = fields.choice("type", &["All", "Progressive", "ProgressivePerGroup"]);
    let all = fields.fields("all").map(|inner| read_inner(inner, false, false));
    let by_cluster = fields.fields("progressive").map(|inner| read_inner(inner, true, true));
    let by_group = fields.fields("progressivePerGroup").map(|inner| read_inner(inner, false, true));
    fields.finish();
    let (chosen, pace) = match kind {
        Some("Progressive") => (by_cluster, Pace::ByCluster(None)),
        Some("ProgressivePerGroup") => (by_group, Pace::ByGroup),
        _ => (all, Pace::Together),
    };
    let chosen = chosen.unwrap_or(Rollout::TOGETHER);
    let pace = if matches!(pace, Pace::ByCluster(_)) { Pace::ByCluster(chosen.at_a_time()) } else { pace };
    Rollout { pace, ..chosen }
}

fn read_inner(mut inner: Fields<'_>, has_concurrency: bool, has_groups: bool) -> Rollout {
    let soak_seconds = duration(&mut inner, "minSuccessTime").unwrap_or(0);
    let deadline_seconds = duration(&mut inner, "progressDeadline");
    let max_failures = amount(&mut inner, "maxFailures");
    let most = if has_concurrency { concurrency(&mut inner) } else { None };
    let mut first = Vec::new();
    if has_groups {
        for mut group in inner.each("mandatoryDecisionGroups") {
            let name = group.str("groupName").filter(|name| !name.is_empty());
            let index = group.int_in("groupIndex", 0..=i64::from(i32::MAX));
            group.finish();
            first.push(match name {
                Some(name) => GroupRef::Name(name.to_owned()),
                None => GroupRef::Index(index.and_then(|index| usize::try_from(index).ok()).unwrap_or(0)),
            });
        }
    }
    inner.finish();
    Rollout {
        placement: None,
        pace: Pace::ByCluster(most),
        first,
        soak_seconds,
        deadline_seconds,
        max_failures,
    }
}

/// Reads the number of clusters that get the work at a time.
fn concurrency(inner: &mut Fields<'_>) -> Option<Amount> {
    let most = amount(inner, "maxConcurrency");
    if let Some(Amount::Count(0) | Amount::Percent(0)) = most {
        let message = format!("{} 0 sets no limit: all clusters go at once", inner.path_of("maxConcurrency"));
        inner.scope().warning(inner.place_of("maxConcurrency"), message);
    }
    most
}

/// Reads a duration such as `90s` or `1h30m`, in whole seconds, rounded up; a deadline may be `None`.
pub(crate) fn duration(fields: &mut Fields<'_>, key: &'static str) -> Option<i64> {
    let text = fields.str(key)?;
    let is_deadline = key == "progressDeadline";
    if is_deadline && text == "None" {
        return None;
    }
    // The hub's pattern for deadlines checks only their first part.
    let first = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_sound = !is_deadline || first.len() < text.len() && first.starts_with(['h', 'm', 's']);
    let seconds = seconds_of(text).filter(|_| is_sound);
    if seconds.is_none() {
        let or_none = if is_deadline { ", or `None`" } else { "" };
        let path = fields.path_of(key);
        fields.error_at(key, format!("{path} is `{text}`, but must be a duration such as `90s`{or_none}"));
    }
    seconds
}

/// The longest duration that Go can hold, in seconds.
const LONGEST: f64 = 9_223_372_036.0;

/// Reads a duration in Go's form: numbers, each with a unit.
fn seconds_of(text: &str) -> Option<i64> {
    if text == "0" {
        return Some(0);
    }
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let (mut rest, mut seconds) = (text, 0.0);
    while !rest.is_empty() {
        let (number, tail) = rest.split_at(rest.find(|c| !is_number(c))?);
        let (unit, tail) = tail.split_at(tail.find(is_number).unwrap_or(tail.len()));
        let factor = match unit {
            "h" => 3_600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" | "μs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        seconds += number.parse::<f64>().ok()? * factor;
        rest = tail;
    }
    // Removes rounding errors of sums and products: 1.1m is 66 seconds.
    let seconds = (seconds * 1e9_f64).round() / 1e9;
    (!text.is_empty() && seconds <= LONGEST).then_some(seconds.ceil() as i64)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use berth_base::diag::Severity;
    use berth_base::yaml::Scope;
    use serde_json::{Value as Json, json};

    use super::*;

    /// Returns the strategy of these fields, and the diagnostics.
    fn progressive(fields: Json) -> (Rollout, String) {
        let node = crate::testing::node(&json!({"type": "Progressive", "progressive": fields}));
        let scope = Scope::new(Arc::from("work.yaml"), Severity::Error);
        let rollout = read(scope.fields(&node, "rolloutStrategy").expect("a mapping"));
        (rollout, scope.into_diagnostics().iter().map(|one| one.message.clone()).collect())
    }

    #[test]
    fn durations_are_read_as_go_reads_them_and_rounded_up() {
        for (text, seconds) in [
            ("90s", 90),
            ("1h30m", 5_400),
            ("1.5m", 90),
            ("1.1m", 66),
            ("0", 0),
            ("0s", 0),
            ("1500ms", 2),
            ("1m1ns", 61),
        ] {
            let (rollout, said) = progressive(json!({"minSuccessTime": text}));
            assert_eq!((rollout.soak_seconds, said.as_str()), (seconds, ""), "{text}");
        }
        for text in ["", "90", "s", "1x", "-5s", "1.2.3s", "1e3s", "infs", "3000000h"] {
            let (_, said) = progressive(json!({"minSuccessTime": text}));
            assert!(said.ends_with("must be a duration such as `90s`"), "{text}: {said}");
        }
    }

    #[test]
    fn a_deadline_begins_with_a_whole_number_of_hours_minutes_or_seconds() {
        for (text, seconds) in [("10m", Some(600)), ("None", None), ("0s", Some(0)), ("1h0.5s", Some(3_601))]
        {
            let (rollout, said) = progressive(json!({"progressDeadline": text}));
            assert_eq!((rollout.deadline_seconds, said.as_str()), (seconds, ""), "{text}");
        }
        for text in ["0", "1.5h", "20us", "10xNone", "none"] {
            let (_, said) = progressive(json!({"progressDeadline": text}));
            assert!(said.ends_with("must be a duration such as `90s`, or `None`"), "{text}: {said}");
        }
    }

    #[test]
    fn a_concurrency_of_zero_gets_a_warning() {
        for zero in [json!(0), json!("0%")] {
            let (_, said) = progressive(json!({"maxConcurrency": zero}));
            let path = "rolloutStrategy.progressive.maxConcurrency";
            assert_eq!(said, format!("{path} 0 sets no limit: all clusters go at once"));
        }
        assert_eq!(progressive(json!({"maxConcurrency": 1})).1, "");
    }
}
