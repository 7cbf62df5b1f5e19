//! `rolloutStrategy` of a work set → the order in which clusters get the work. Limits on failures and times
//! are checked and then ignored: they need members' reports, which rollouts do not read.

use super::fields::amount;
use berth_base::model::rollout::{Amount, GroupRef, Pace};
use berth_base::yaml::Fields;

/// The pace, and the groups that go first.
pub(super) fn read(mut fields: Fields<'_>) -> (Pace, Vec<GroupRef>) {
    let kind = fields.choice("type", &["All", "Progressive", "ProgressivePerGroup"]);
    fields.fields("all").map(|inner| read_inner(inner, false, false));
    let by_cluster = fields.fields("progressive").map(|inner| read_inner(inner, true, true));
    let by_group = fields.fields("progressivePerGroup").map(|inner| read_inner(inner, false, true));
    fields.finish();
    match kind {
        Some("Progressive") => {
            let (most, first) = by_cluster.unwrap_or_default();
            (Pace::ByCluster(most), first)
        }
        Some("ProgressivePerGroup") => (Pace::ByGroup, by_group.unwrap_or_default().1),
        _ => (Pace::Together, Vec::new()),
    }
}

fn read_inner(
    mut inner: Fields<'_>,
    has_concurrency: bool,
    has_groups: bool,
) -> (Option<Amount>, Vec<GroupRef>) {
    check_duration(&mut inner, "minSuccessTime");
    check_duration(&mut inner, "progressDeadline");
    amount(&mut inner, "maxFailures");
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
    (most, first)
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
