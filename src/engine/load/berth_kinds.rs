//! berth's own kinds, read like a dialect's: `ClusterStatus`, `FleetConfig`, `Approval`, `AccessRule`,
//! `PolicyTest`, `RolloutPolicy`, `HelmSource` and `KustomizeSource`, and the roles that accompany access rules.
//!
//! An `Approval` is a person's approval of one removal, in a folder that access rules can protect.

use super::config::{self, CONFIG_KIND, CONFIG_PATH};
use super::{render_sources, rollout_policies};
use crate::access::{self, OWN_GROUP};
use crate::dialects::{Claim, Dialect, Document, Input, Lowered, ReadKind};
use crate::policy_tests;
use berth_base::diag::{Diagnostic, Severity};
use berth_base::model::object::{group_of, version_of};
use berth_base::model::{API_VERSION, Approval, Digest, Timestamp, rollout_policy};
use berth_base::status;
use berth_base::yaml::{Fields, Node, Scope};

/// berth's own part of a fleet.
pub const DIALECT: Dialect =
    Dialect { name: "berth", claim, groups: &["berth.dev"], kinds: KINDS, reads, lower, ..Dialect::BLANK };

const KINDS: &[&str] = &[
    status::KIND,
    CONFIG_KIND,
    APPROVAL_KIND,
    access::KIND,
    policy_tests::KIND,
    rollout_policy::KIND,
    render_sources::HELM_KIND,
    render_sources::KUSTOMIZE_KIND,
    "OverrideList",
    "Template",
];

/// Returns the kinds that people write, and statuses, which other tools may write.
fn reads() -> Vec<ReadKind> {
    let kind = |kind| ReadKind::new(OWN_GROUP, kind, &["v1alpha1"], false);
    vec![
        kind(CONFIG_KIND),
        kind(access::KIND),
        kind(APPROVAL_KIND),
        kind(policy_tests::KIND),
        kind(rollout_policy::KIND),
        kind(render_sources::HELM_KIND),
        kind(render_sources::KUSTOMIZE_KIND),
        kind(status::KIND),
    ]
}

fn claim(documents: &[Document]) -> Vec<Claim> {
    let claim_one = |document: &Document| match &*document.key.kind {
        _ if document.at.file.starts_with(access::FOLDER) && access::is_role(document) => Claim::Policy,
        _ if *document.key.group != *group_of(API_VERSION) => Claim::Foreign,
        // The dialect of Federated objects reads the files that these name.
        "Template" | "OverrideList" => Claim::Foreign,
        status::KIND => Claim::Inventory,
        CONFIG_KIND | APPROVAL_KIND | access::KIND | policy_tests::KIND | rollout_policy::KIND => {
            Claim::Policy
        }
        render_sources::HELM_KIND | render_sources::KUSTOMIZE_KIND => Claim::Policy,
        _ => Claim::Unknown,
    };
    documents.iter().map(claim_one).collect()
}

fn lower(input: &Input<'_>, out: &mut Lowered) {
    for (index, document) in input.documents.iter().enumerate() {
        let is_config = *document.key.kind == *CONFIG_KIND;
        let is_approval = *document.key.kind == *APPROVAL_KIND;
        let is_rule = *document.key.kind == *access::KIND;
        let is_test = *document.key.kind == *policy_tests::KIND;
        let is_rollout = *document.key.kind == *rollout_policy::KIND;
        let is_source = render_sources::is_source(&document.key.group, &document.key.kind);
        let is_own = is_config || is_approval || is_rule || is_test || is_rollout || is_source;
        let is_strict = is_own || access::is_role(document);
        let unknown_fields = if is_strict { Severity::Error } else { input.unknown_fields };
        let scope = input.scope(document, unknown_fields);
        if access::is_role(document) {
            access::Roles::default().read(&scope, document);
        } else if document.version != version_of(API_VERSION) {
            let message = format!("this berth reads `{API_VERSION}` only");
            scope.report(Diagnostic::error(document.at.clone(), message));
        } else if is_config {
            if *document.at.file != *CONFIG_PATH {
                let message = format!("{CONFIG_KIND} has an effect only in `{CONFIG_PATH}` at the root");
                scope.report(Diagnostic::error(document.at.clone(), message));
            }
            config::read(&scope, &document.open(), input.dialects);
        } else if is_rule {
            if !document.at.file.starts_with(access::FOLDER) {
                let message =
                    format!("an {} has an effect only in a file under `{}`", access::KIND, access::FOLDER);
                scope.report(Diagnostic::error(document.at.clone(), message));
            }
            access::read_rule(&scope, &document.open());
        } else if is_test {
            if !document.at.file.starts_with(policy_tests::FOLDER) {
                let (kind, folder) = (policy_tests::KIND, policy_tests::FOLDER);
                let message = format!("a {kind} has an effect only in a file under `{folder}`");
                scope.report(Diagnostic::error(document.at.clone(), message));
            }
            policy_tests::read(&scope, &document.open());
        } else if is_approval {
            if !document.at.file.starts_with(APPROVALS) {
                let message = format!("an {APPROVAL_KIND} has an effect only in a file under `{APPROVALS}`");
                scope.report(Diagnostic::error(document.at.clone(), message));
            }
            out.approvals.extend(read_approval(&scope, &document.open()).filter(|_| !scope.has_errors()));
        } else if is_source {
            // The caller rendered it, and added the rendered files to the tree.
            render_sources::read_source(&scope, &document.open(), &document.key.kind);
        } else if is_rollout {
            let policy = rollout_policies::read(&scope, &document.open(), &document.key);
            out.rollout_policies.extend(policy.filter(|_| !scope.has_errors()));
        } else if let Some(mut status) = status::from_node(&scope, &document.open()) {
            status.keep_what_people_write();
            out.statuses.insert(status.cluster.clone(), status.into());
        }
        if scope.has_errors() {
            out.faulty.insert(index);
        }
        out.diagnostics.extend(scope.into_diagnostics());
    }
    out.diagnostics.extend(access::idle_bindings(input.documents.iter().copied()));
}

const APPROVAL_KIND: &str = "Approval";

/// The folder at the root in which approvals are valid: access rules can name it.
pub const APPROVALS: &str = "approvals/";

/// Reads one approval and reports its faults.
pub(super) fn read_approval(scope: &Scope, root: &Node) -> Option<Approval> {
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
