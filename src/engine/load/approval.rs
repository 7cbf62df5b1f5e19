//! `Approval` files: a person's approval of one removal, in a folder that access rules can protect.

use berth_base::model::{Approval, Digest, Timestamp};
use berth_base::yaml::{Fields, Node, Scope};

pub(super) const APPROVAL_KIND: &str = "Approval";

/// The folder at the root in which approvals are valid: access rules can name it.
pub const APPROVALS: &str = "approvals/";

/// Reads one approval and reports its faults.
pub(super) fn read(scope: &Scope, root: &Node) -> Option<Approval> {
    let mut fields = scope.fields(root, "")?;
    fields.accept(&["apiVersion", "kind"]);
    if let Some(mut metadata) = fields.fields("metadata") {
        metadata.accept(&["name", "namespace", "labels", "annotations"]);
        metadata.finish();
    }
    let approval = fields.required_fields("spec").and_then(|mut spec| {
        let digest = digest(&mut spec);
        let expires = expires(&mut spec);
        let reason = spec.required_str("reason").map(str::to_owned);
        spec.finish();
        Some(Approval { origin: scope.pos(root.at), digest: digest?, expires: expires?, reason: reason? })
    });
    fields.finish();
    approval
}

fn digest(spec: &mut Fields<'_>) -> Option<Digest> {
    let text = spec.required_str("digest")?;
    let digest = text.parse().ok();
    if digest.is_none() {
        spec.error_at("digest", "spec.digest must be the 32 digits that berth printed for the removal");
    }
    digest
}

fn expires(spec: &mut Fields<'_>) -> Option<Timestamp> {
    let text = spec.required_str("expires")?;
    let moment = text.parse().ok();
    if moment.is_none() {
        spec.error_at("expires", "spec.expires must be a moment such as `2026-01-31T18:00:00Z`");
    }
    moment
}
