//! The report ref: the fleet's live status as files, one commit that is replaced.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::error::PublishError;
use super::refs::Refs;
use super::single;
use crate::git::{CommitId, Identity, Repo};

/// Replaces the report.
pub fn write_report(
    repo: &Repo,
    refs: &Refs,
    report: &Json,
    identity: &Identity,
    seconds: i64,
) -> Result<CommitId, PublishError> {
    let files = BTreeMap::from([("report.json", format!("{report:#}\n").into_bytes())]);
    single::replace(repo, &refs.report, &files, "berth: report\n", identity, seconds)
}
