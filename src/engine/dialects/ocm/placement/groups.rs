//! `decisionStrategy.groupStrategy` → decision groups.

use super::predicates::selectors;
use crate::dialects::ocm::fields::text_or_number;
use berth_base::model::placement::{GroupSize, Grouping};
use berth_base::yaml::{Fields, Scope};

/// Returns a grouping with all clusters in one group, the default.
pub(super) fn one() -> Grouping {
    Grouping { size: GroupSize::Percent(100), named: Vec::new() }
}

pub(super) fn read(scope: &Scope, mut fields: Fields<'_>) -> Grouping {
    let mut named = Vec::new();
    for mut group in fields.each("decisionGroups") {
        let name = group.required_str("groupName");
        if let Some(name) = name.filter(|name| !is_group_name(name)) {
            let message = format!(
                "{} is `{name}`, but must be 2 to 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends",
                group.path_of("groupName")
            );
            group.error_at("groupName", message);
        }
        let selector = group.required_fields("groupClusterSelector");
        if let (Some(name), Some(selector)) = (name, selector) {
            named.push((name.to_owned(), selectors(scope, selector, false)));
        }
        group.finish();
    }
    let text = text_or_number(&mut fields, "clustersPerDecisionGroup");
    let size = text.map_or(Some(GroupSize::Percent(100)), |text| {
        let size = size(&text);
        if size.is_none() {
            let message = format!(
                "{} is `{text}`, but must be a number from 1 or a percentage from 1% to 100%",
                fields.path_of("clustersPerDecisionGroup")
            );
            fields.error_at("clustersPerDecisionGroup", message);
        }
        size
    });
    fields.finish();
    Grouping { size: size.unwrap_or(GroupSize::Percent(100)), named }
}

fn size(text: &str) -> Option<GroupSize> {
    let (digits, percent) = match text.strip_suffix('%') {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    if !digits.starts_with(|first: char| ('1'..='9').contains(&first)) {
        return None;
    }
    let number: u32 = digits.parse().ok()?;
    match percent {
        true => (number <= 100).then_some(GroupSize::Percent(number)),
        false => usize::try_from(number).ok().map(GroupSize::Count),
    }
}

fn is_group_name(name: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    (2..=63).contains(&name.len())
        && edge(name.chars().next())
        && edge(name.chars().last())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}
