//! `syncStrategy` → the annotations that members read.

use crate::dialects::kubefleet::applying::{Applying, Method, TakeOver};
use berth_base::yaml::fields::Fields;

/// Reads the field. Also returns whether objects only go to clusters that have their namespace.
pub fn read(spec: &mut Fields<'_>) -> (Applying, bool) {
    let usual = Applying { take_over: TakeOver::Never, ..Applying::default() };
    let Some(mut fields) = spec.fields("syncStrategy") else { return (usual, false) };
    let on_server =
        fields.choice("applyMethod", &["ClientSideApply", "ServerSideApply"]) == Some("ServerSideApply");
    let mut force = false;
    if let Some(mut options) = fields.fields("serverSideApplyOptions") {
        force = options.bool("forceConflicts") == Some(true);
        options.finish();
        if !on_server {
            let message =
                format!("{} has no effect without ServerSideApply", fields.path_of("serverSideApplyOptions"));
            fields.scope().warning(fields.place_of("serverSideApplyOptions"), message);
        }
    }
    let owned = fields.choice("whenOwnedByOthers", &["ShareOwnership", "ReportError"]);
    let drifted = fields.choice("whenDrifted", &["ApplyAnyway", "ReportError"]);
    let exists = fields.choice("whenAlreadyExists", &["AlwaysTakeOver", "TakeOverIfNoDiff", "ReportError"]);
    let deleted = fields.choice("whenPlacementDeleted", &["CleanUpResources", "OrphanResources"]);
    let namespace = fields.choice("whenNamespaceDoesNotExist", &["CreateNamespace", "ReportError"]);
    let compared = fields.choice("comparisonOption", &["PartialComparison", "FullComparison"]);
    fields.finish();
    let applying = Applying {
        method: if on_server { Method::ServerSide { force } } else { Method::ClientSide },
        take_over: match exists {
            Some("AlwaysTakeOver") => TakeOver::Always,
            Some("TakeOverIfNoDiff") => TakeOver::WithoutDifference,
            _ => TakeOver::Never,
        },
        co_owners: owned == Some("ShareOwnership"),
        compares_all: compared == Some("FullComparison"),
        keeps_drift: drifted == Some("ReportError"),
        orphans: deleted == Some("OrphanResources"),
    };
    (applying, namespace == Some("ReportError"))
}
