//! `spec.strategy`: checked as a whole; the fields that the syncer needs become annotations.
//!
//! A missing strategy gets the hub's defaults written out, since a member without them would follow its own.

use std::collections::BTreeMap;

use serde_json::json;

use berth_base::model::annotation::{APPLY, APPLY_WHEN, CO_OWNERS, COMPARE, ON_CONFLICT, ORPHAN, TAKE_OVER};
use berth_base::yaml::fields::Fields;

use super::disruption::count_or_share;

const PERIOD: &str = "unavailablePeriodSeconds";

type Annotations = BTreeMap<String, String>;

/// Reads the field `strategy` of a spec; gives the annotations that its objects get, and whether staged update
/// runs roll it out.
pub fn read(spec: &mut Fields<'_>) -> (Annotations, bool) {
    let mut annotations = Annotations::new();
    let Some(mut fields) = spec.fields("strategy") else {
        apply_strategy(None, &mut annotations);
        return (annotations, false);
    };
    let kind = fields.choice("type", &["RollingUpdate", "External"]);
    let external = kind == Some("External");
    if external && fields.node("rollingUpdate").is_some() {
        let message = format!("{} does not go with type External", fields.path_of("rollingUpdate"));
        fields.error_at("rollingUpdate", message);
    }
    rolling_update(&mut fields);
    apply_strategy(fields.fields("applyStrategy"), &mut annotations);
    if delete_strategy(&mut fields) == Some("Abandon") {
        set(&mut annotations, ORPHAN, "true");
    }
    report_back(&mut fields);
    fields.finish();
    (annotations, external)
}

fn set(annotations: &mut Annotations, name: &str, value: &str) {
    annotations.insert(name.to_owned(), value.to_owned());
}

fn rolling_update(strategy: &mut Fields<'_>) {
    let at = strategy.place_of("rollingUpdate");
    let Some(mut fields) = strategy.fields("rollingUpdate") else { return };
    // What a hub fills in by itself is nobody's wish.
    let filled_in = [("maxUnavailable", json!("25%")), ("maxSurge", json!("25%")), (PERIOD, json!(60))];
    let asked =
        filled_in.iter().any(|(key, value)| fields.node(key).is_some_and(|node| node.to_json() != *value));
    count_or_share(&mut fields, "maxUnavailable");
    count_or_share(&mut fields, "maxSurge");
    fields.int_in(PERIOD, 0..=i64::from(i32::MAX));
    if asked {
        let message = format!("{} has no effect yet: changes go to all clusters at once", fields.path());
        fields.scope().warning(at, message);
    }
    fields.finish();
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
