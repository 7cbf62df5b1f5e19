//! `rolloutStrategy` of a work set → the order in which clusters get the work, and its limits.

use super::fields::amount;
use berth_base::model::rollout::{GroupRef, Pace, Rollout};
use berth_base::yaml::Fields;

/// Reads a strategy; its placement is left open.
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
    let most = if has_concurrency { amount(&mut inner, "maxConcurrency") } else { None };
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

/// Reads `90s`, `1h30m` and the like, in whole seconds; a deadline may be `None`.
pub(crate) fn duration(fields: &mut Fields<'_>, key: &'static str) -> Option<i64> {
    let text = fields.str(key)?;
    let mut seconds = 0.0;
    let mut sound = !text.is_empty();
    for part in text.split_inclusive(['h', 'm', 's']) {
        let unit = match part.chars().next_back() {
            Some('h') => 3_600.0,
            Some('m') => 60.0,
            Some('s') => 1.0,
            _ => 0.0,
        };
        let number = part.strip_suffix(['h', 'm', 's']).unwrap_or(part);
        match number.parse::<f64>() {
            Ok(number) if number >= 0.0 && (unit > 0.0 || number == 0.0) => seconds += number * unit,
            _ => sound = false,
        }
    }
    if key == "progressDeadline" && text == "None" {
        return None;
    }
    if !sound || !seconds.is_finite() {
        let message = format!("{} is `{text}`, but must be a duration such as `90s`", fields.path_of(key));
        fields.error_at(key, message);
        return None;
    }
    Some(seconds as i64)
}
