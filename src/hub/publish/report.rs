//! The report ref: the fleet's live status as files, one commit that is replaced.

use std::collections::BTreeMap;

use serde::Serialize;

use super::error::PublishError;
use berth_git::protocol::Refs;
use berth_git::protocol::file_ref::{self, RefContent};
use berth_git::{CommitId, Identity, Repo};

/// Replaces the report.
pub fn write_report(
    repo: &Repo,
    refs: &Refs,
    report: &impl Serialize,
    identity: &Identity,
    seconds: i64,
) -> Result<CommitId, PublishError> {
    let mut text = serde_json::to_vec_pretty(report)
        .map_err(|error| PublishError::Report { message: error.to_string() })?;
    text.push(b'\n');
    let files = BTreeMap::from([("report.json", text)]);
    let content = RefContent { files, message: "berth: report\n" };
    Ok(file_ref::replace(repo, &refs.report, &content, identity, seconds)?)
}
