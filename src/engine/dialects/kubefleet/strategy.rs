//! `spec.strategy`: checked as a whole; the fields for the syncer, the ways in which members apply a
//! placement's objects, become annotations.

use std::collections::BTreeMap;

use super::disruption::count_or_share;
use berth_base::model::annotation::{APPLY, APPLY_WHEN, CO_OWNERS, COMPARE, ON_CONFLICT, ORPHAN, TAKE_OVER};
use berth_base::model::rollout::{Amount, Rolling, Strategy};
use berth_base::yaml::fields::Fields;

const PERIOD: &str = "unavailablePeriodSeconds";

/// Reads the field `strategy` of a spec; returns the annotations of its objects, and their rollout strategy.
pub fn read(spec: &mut Fields<'_>) -> (BTreeMap<String, String>, Strategy) {
    let Some(mut fields) = spec.fields("strategy") else {
        return (Applying::default().annotations(), Strategy::Rolling(DEFAULT));
    };
    let kind = fields.choice("type", &["RollingUpdate", "External"]);
    let external = kind == Some("External");
    if external && fields.node("rollingUpdate").is_some() {
        let message = format!("{} does not go with type External", fields.path_of("rollingUpdate"));
        fields.error_at("rollingUpdate", message);
    }
    let rolling = rolling_update(&mut fields);
    let mut applying = fields.fields("applyStrategy").map(apply_strategy).unwrap_or_default();
    applying.orphans = delete_strategy(&mut fields) == Some("Abandon");
    report_back(&mut fields);
    fields.finish();
    (applying.annotations(), if external { Strategy::Runs } else { Strategy::Rolling(rolling) })
}

/// The hub's default, which it writes into every placement.
pub(super) const DEFAULT: Rolling = Rolling {
    max_unavailable: Amount::Percent(25),
    max_surge: Amount::Percent(25),
    period_seconds: 60,
    wanted: None,
    asked: false,
};

/// Reads the field `rollingUpdate`. The hub's default counts as no choice, even written out.
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

fn apply_strategy(mut fields: Fields<'_>) -> Applying {
    let kind = fields.choice("type", &["ClientSideApply", "ServerSideApply", "ReportDiff"]);
    let compared = fields.choice("comparisonOption", &["PartialComparison", "FullComparison"]);
    let when = fields.choice("whenToApply", &["Always", "IfNotDrifted"]);
    let take_over = match fields.choice("whenToTakeOver", &["Always", "IfNoDiff", "Never"]) {
        Some("IfNoDiff") => TakeOver::WithoutDifference,
        Some("Never") => TakeOver::Never,
        _ => TakeOver::Always,
    };
    let co_owners = fields.bool("allowCoOwnership") == Some(true);
    let mut force = false;
    if let Some(mut config) = fields.fields("serverSideApplyConfig") {
        force = config.bool("force") == Some(true);
        config.finish();
        if kind != Some("ServerSideApply") {
            let message = format!("{} needs type ServerSideApply", fields.path_of("serverSideApplyConfig"));
            fields.error_at("serverSideApplyConfig", message);
        }
    }
    fields.finish();
    let method = match kind {
        Some("ReportDiff") => Method::Compare,
        Some("ServerSideApply") => Method::ServerSide { force },
        _ => Method::ClientSide,
    };
    let (compares_all, keeps_drift) = (compared == Some("FullComparison"), when == Some("IfNotDrifted"));
    Applying { method, take_over, co_owners, compares_all, keeps_drift, orphans: false }
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

/// The ways in which members apply objects. The default is that of placements without a strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applying {
    pub method: Method,
    pub take_over: TakeOver,
    /// Objects may have further owners.
    pub co_owners: bool,
    /// Fields of a live object that its manifest lacks count as differences.
    pub compares_all: bool,
    /// Changes made in the cluster stay until the manifest changes.
    pub keeps_drift: bool,
    /// Objects stay when they are no longer placed.
    pub orphans: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    ClientSide,
    ServerSide {
        /// Takes over fields that other writers have set.
        force: bool,
    },
    /// Reports differences without writing anything.
    Compare,
}

/// The treatment of existing objects that berth did not create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeOver {
    Always,
    WithoutDifference,
    Never,
}

impl Default for Applying {
    fn default() -> Applying {
        Applying {
            method: Method::ClientSide,
            take_over: TakeOver::Always,
            co_owners: false,
            compares_all: false,
            keeps_drift: false,
            orphans: false,
        }
    }
}

impl Applying {
    /// Returns the annotations. The defaults of a missing strategy are written out, because a member without
    /// annotations would use its own.
    pub fn annotations(self) -> BTreeMap<String, String> {
        let take_over = match self.take_over {
            TakeOver::Always => "true",
            TakeOver::WithoutDifference => "if-no-diff",
            TakeOver::Never => "never",
        };
        let method = match self.method {
            Method::Compare => Some((APPLY, "report-diff")),
            Method::ServerSide { force: false } => None,
            // A three-way merge writes its fields whoever wrote them before.
            Method::ServerSide { force: true } | Method::ClientSide => Some((ON_CONFLICT, "force")),
        };
        let asked = [
            Some((TAKE_OVER, take_over)),
            (!self.co_owners).then_some((CO_OWNERS, "refused")),
            self.compares_all.then_some((COMPARE, "full")),
            self.keeps_drift.then_some((APPLY_WHEN, "if-not-drifted")),
            self.orphans.then_some((ORPHAN, "true")),
            method,
        ];
        let asked = asked.into_iter().flatten();
        asked.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }
}
