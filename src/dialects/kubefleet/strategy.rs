//! `spec.strategy`: checked as a whole; what the syncer must know becomes annotations.

use std::collections::BTreeMap;

use crate::model::annotation::TAKE_OVER;
use crate::yaml::fields::Fields;

use super::guards::count_or_share;

/// What of a strategy has an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strategy {
    pub sync_annotations: BTreeMap<String, String>,
    /// Nothing is to be written to members, only compared.
    pub report_only: bool,
}

/// Reads the field `strategy` of a spec.
pub fn read(spec: &mut Fields<'_>) -> Strategy {
    let mut take_over = "true";
    let mut report_only = false;
    if let Some(mut fields) = spec.fields("strategy") {
        let kind = fields.choice("type", &["RollingUpdate", "External"]);
        if kind == Some("External") {
            if fields.node("rollingUpdate").is_some() {
                let message = format!("{} does not go with type External", fields.path_of("rollingUpdate"));
                fields.error_at("rollingUpdate", message);
            }
            let message =
                format!("{} External is not acted on yet: changes go out at once", fields.path_of("type"));
            fields.scope().warning(fields.place_of("type"), message);
        }
        rolling_update(&mut fields);
        if let Some(apply) = fields.fields("applyStrategy") {
            (take_over, report_only) = apply_strategy(apply);
        }
        delete_strategy(&mut fields);
        report_back(&mut fields);
        fields.finish();
    }
    let sync_annotations = [(TAKE_OVER.to_owned(), take_over.to_owned())].into();
    Strategy { sync_annotations, report_only }
}

fn rolling_update(strategy: &mut Fields<'_>) {
    let Some(mut fields) = strategy.fields("rollingUpdate") else { return };
    count_or_share(&mut fields, "maxUnavailable");
    count_or_share(&mut fields, "maxSurge");
    fields.int_in("unavailablePeriodSeconds", 0..=i64::from(i32::MAX));
    fields.finish();
}

fn apply_strategy(mut fields: Fields<'_>) -> (&'static str, bool) {
    let kind = fields.choice("type", &["ClientSideApply", "ServerSideApply", "ReportDiff"]);
    fields.choice("comparisonOption", &["PartialComparison", "FullComparison"]);
    fields.choice("whenToApply", &["Always", "IfNotDrifted"]);
    let take_over = match fields.choice("whenToTakeOver", &["Always", "IfNoDiff", "Never"]) {
        Some("IfNoDiff") => "if-no-diff",
        Some("Never") => "never",
        _ => "true",
    };
    fields.bool("allowCoOwnership");
    if let Some(mut config) = fields.fields("serverSideApplyConfig") {
        config.bool("force");
        config.finish();
        if kind != Some("ServerSideApply") {
            let message = format!("{} needs type ServerSideApply", fields.path_of("serverSideApplyConfig"));
            fields.error_at("serverSideApplyConfig", message);
        }
    }
    fields.finish();
    (take_over, kind == Some("ReportDiff"))
}

fn delete_strategy(strategy: &mut Fields<'_>) {
    let Some(mut fields) = strategy.fields("deleteStrategy") else { return };
    if fields.choice("propagationPolicy", &["Delete", "Abandon"]) == Some("Abandon") {
        let message = format!(
            "{} Abandon is not acted on yet: members delete what is no longer placed",
            fields.path_of("propagationPolicy")
        );
        fields.scope().warning(fields.place_of("propagationPolicy"), message);
    }
    fields.finish();
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
