//! `rolloutStrategy` of a work set: checked. Only the strategy All is acted on so far.

use super::common::check_amount;
use crate::yaml::{Fields, Scope};

pub(super) fn check(scope: &Scope, mut fields: Fields<'_>) {
    let kind = fields.choice("type", &["All", "Progressive", "ProgressivePerGroup"]);
    if let Some(kind) = kind.filter(|kind| *kind != "All") {
        let at = fields.place_of("type");
        scope.warning(
            at,
            format!("rollout strategy `{kind}` is not acted on: all clusters get the work at once"),
        );
    }
    for (key, has_concurrency) in [("all", false), ("progressive", true), ("progressivePerGroup", false)] {
        let Some(mut inner) = fields.fields(key) else { continue };
        check_duration(&mut inner, "minSuccessTime");
        check_duration(&mut inner, "progressDeadline");
        check_amount(&mut inner, "maxFailures");
        if has_concurrency {
            check_amount(&mut inner, "maxConcurrency");
        }
        if key != "all" {
            for mut group in inner.each("mandatoryDecisionGroups") {
                group.str("groupName");
                group.int("groupIndex");
                group.finish();
            }
        }
        inner.finish();
    }
    fields.finish();
}

/// `90s`, `1h30m` and the like; a deadline may be `None`.
fn check_duration(fields: &mut Fields<'_>, key: &'static str) {
    let Some(text) = fields.str(key) else { return };
    let parts = text.split_inclusive(['h', 'm', 's']);
    let is_part = |part: &str| {
        let digits = part.strip_suffix(['h', 'm', 's']).unwrap_or_default();
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    let none = key == "progressDeadline" && text == "None";
    if !none && text != "0" && (text.is_empty() || !parts.into_iter().all(is_part)) {
        let message = format!("{} is `{text}`, but must be a duration such as `90s`", fields.path_of(key));
        fields.error_at(key, message);
    }
}
