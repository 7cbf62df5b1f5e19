//! The source commit processed last, and its result, even if nothing was published.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::error::PublishError;
use berth_base::model::Timestamp;
use berth_git::shared_refs::Refs;
use berth_git::shared_refs::file_ref::{self, RefContent};
use berth_git::{CommitId, Identity, Repo};

/// The contents of the `processed` ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processed {
    pub source: CommitId,
    /// The source's full name, if it is a branch.
    pub branch: Option<String>,
    /// The tip of the rendered branch after the pass.
    pub rendered: Option<CommitId>,
    pub errors: usize,
    pub warnings: usize,
    /// The result as one word, such as `published`, `unchanged`, `held` or `refused`.
    pub result: String,
    /// The held removals, one per line.
    pub held: Vec<String>,
    /// The commit whose access rules applied.
    pub rules: Option<CommitId>,
    /// The moment of the pass, stored as the date of the ref's commit.
    pub moment: Timestamp,
}

const FILE: &str = "processed.json";

#[derive(Serialize, Deserialize)]
struct Form {
    source: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    rendered: Option<String>,
    errors: usize,
    warnings: usize,
    result: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    held: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rules: Option<String>,
}

/// Replaces the ref's commit.
pub fn write_processed(
    repo: &Repo,
    refs: &Refs,
    processed: &Processed,
    identity: &Identity,
) -> Result<CommitId, PublishError> {
    let form = Form {
        source: processed.source.to_string(),
        branch: processed.branch.clone(),
        rendered: processed.rendered.map(|commit| commit.to_string()),
        errors: processed.errors,
        warnings: processed.warnings,
        result: processed.result.clone(),
        held: processed.held.clone(),
        rules: processed.rules.map(|commit| commit.to_string()),
    };
    let mut text = serde_json::to_string_pretty(&form).expect("texts and numbers always are JSON");
    text.push('\n');
    let files = BTreeMap::from([(FILE, text.into_bytes())]);
    let message = format!("berth: processed {}\n", processed.source.short());
    let content = RefContent { files, message: &message };
    let seconds = processed.moment.as_second();
    Ok(file_ref::replace(repo, &refs.processed, &content, identity, seconds)?)
}

/// Reads the ref. `None` if the ref is missing or unreadable.
pub fn read_processed(repo: &Repo, refs: &Refs) -> Result<Option<Processed>, PublishError> {
    let Some(commit) = repo.read_ref(&refs.processed)?.filter(|commit| repo.has_commit(*commit)) else {
        return Ok(None);
    };
    let Some(bytes) = file_ref::file(repo, commit, FILE)? else { return Ok(None) };
    Ok(parse(&bytes, repo.commit(commit)?.seconds))
}

fn parse(bytes: &[u8], seconds: i64) -> Option<Processed> {
    let form: Form = serde_json::from_slice(bytes).ok()?;
    Some(Processed {
        source: form.source.parse().ok()?,
        branch: form.branch,
        rendered: form.rendered.map(|commit| commit.parse()).transpose().ok()?,
        errors: form.errors,
        warnings: form.warnings,
        result: form.result,
        held: form.held,
        rules: form.rules.map(|commit| commit.parse()).transpose().ok()?,
        moment: Timestamp::from_second(seconds).ok()?,
    })
}
