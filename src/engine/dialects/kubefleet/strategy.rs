//! `spec.strategy`: checked as a whole; the fields that the syncer needs become annotations.
//!
//! A missing strategy gets the hub's defaults written out, since a member without them would follow its own.

use std::collections::BTreeMap;

use berth_base::model::annotation::{APPLY, APPLY_WHEN, CO_OWNERS, COMPARE, ON_CONFLICT, ORPHAN, TAKE_OVER};
use berth_base::model::rollout::{Amount, Rolling, Strategy};
use berth_base::yaml::fields::Fields;

use super::disruption::count_or_share;

const PERIOD: &str = "unavailablePeriodSeconds";

type Annotations = BTreeMap<String, String>;

/// Reads the field `strategy` of a spec; gives the annotations that its objects get, and how changes roll out.
pub fn read(spec: &mut Fields<'_>) -> (Annotations, Strategy) {
    let mut annotations = Annotations::new();
    let Some(mut fields) = spec.fields("strategy") else {
        apply_strategy(None, &mut annotations);
        return (annotations, Strategy::Rolling(DEFAULT));
    };
    let kind = fields.choice("type", &["RollingUpdate", "External"]);
    let external = kind == Some("External");
    if external && fields.node("rollingUpdate").is_some() {
        let message = format!("{} does not go with type External", fields.path_of("rollingUpdate"));
        fields.error_at("rollingUpdate", message);
    }
    let rolling = rolling_update(&mut fields);
    apply_strategy(fields.fields("applyStrategy"), &mut annotations);
    if delete_strategy(&mut fields) == Some("Abandon") {
        set(&mut annotations, ORPHAN, "true");
    }
    report_back(&mut fields);
    fields.finish();
    (annotations, if external { Strategy::Runs } else { Strategy::Rolling(rolling) })
}

fn set(annotations: &mut Annotations, name: &str, value: &str) {
    annotations.insert(name.to_owned(), value.to_owned());
}

/// The hub's default, which it writes into every placement.
const DEFAULT: Rolling = Rolling {
    max_unavailable: Amount::Percent(25),
    max_surge: Amount::Percent(25),
    period_seconds: 60,
    wanted: None,
    asked: false,
};

/// Reads the field `rollingUpdate`. The hub's default written out is nobody's wish.
pub(crate) fn rolling_update(strategy: &mut Fields<'_>) -> Rolling {
    let Some(mut fields) = strategy.fields("rollingUpdate") else { return DEFAULT };
    let max_unavailable = count_or_share(&mut fields, "maxUnavailable").unwrap_or(DEFAULT.max_unavailable);
    let max_surge = count_or_share(&mut fields, "maxSurge").unwrap_or(DEFAULT.max_surge);
    let period = fields.int_in(PERIOD, 0..=i64::from(i32::MAX));
    fields.finish();
    let period_seconds = period.unwrap_or(DEFAULT.period_seconds);
    let rolling = Rolling { max_unavailable, max_surge, period_seconds, ..DEFAULT };
    Rolling { asked: rolling != DEFAULT, ..rolling }
}

fn apply_strategy(fields: Option<Fields<'_>>, annotations: &mut Annotations) {
    let (mut kind, mut take_over, mut co_owners, mut force) = (None, "true", false, None);
    if let Some(mut fields) = fields {
        kind = fields.choice("type", &["ClientSideApply", "ServerSideApply", "ReportDiff"]);
        if fields.choice("comparisonOption", &["PartialComparison", "FullComparison"])
            == Some("FullComparison")
        {
            set(annotations, COMPARE, "full");
        }
        if fields.choice("whenToApply", &["Always", "IfNotDrifted"]) == Some("IfNotDrifted") {
            set(annotations, APPLY_WHEN, "if-not-drifted");
        }
        take_over = match fields.choice("whenToTakeOver", &["Always", "IfNoDiff", "Never"]) {
            Some("IfNoDiff") => "if-no-diff",
            Some("Never") => "never",
            _ => "true",
        };
        co_owners = fields.bool("allowCoOwnership") == Some(true);
        if let Some(mut config) = fields.fields("serverSideApplyConfig") {
            force = config.bool("force");
            config.finish();
            if kind != Some("ServerSideApply") {
                let message =
                    format!("{} needs type ServerSideApply", fields.path_of("serverSideApplyConfig"));
                fields.error_at("serverSideApplyConfig", message);
            }
        }
        fields.finish();
    }
    set(annotations, TAKE_OVER, take_over);
    if !co_owners {
        set(annotations, CO_OWNERS, "refused");
    }
    match kind {
        Some("ReportDiff") => set(annotations, APPLY, "report-diff"),
        Some("ServerSideApply") if force != Some(true) => {}
        // A three-way merge writes its fields whoever has written them before.
        _ => set(annotations, ON_CONFLICT, "force"),
    }
}

fn delete_strategy<'s>(strategy: &mut Fields<'s>) -> Option<&'s str> {
    let mut fields = strategy.fields("deleteStrategy")?;
    let policy = fields.choice("propagationPolicy", &["Delete", "Abandon"]);
    fields.finish();
    policy
}

fn report_back(strategy: &mut Fields<'_>) {
    let Some(mut fields) = strategy.fields("reportBackStrategy") else { return };
    let mirror = fields.choice("type", &["Disabled", "Mirror"]) == Some("Mirror");
    let destination = fields.choice("destination", &["OriginalResource", "WorkAPI"]);
    if mirror && destination.is_none() && fields.node("destination").is_none() {
        fields.error_at(
            "destination",
            format!("{} is required with type Mirror", fields.path_of("destination")),
        );
    }
    fields.finish();
}
