//! The source branch: the ref that people edit, and its commit.
//!
//! The source is a branch's short name or a ref's full name. A tag or revision of the same name is never used
//! instead.

use super::error::PassError;
use super::settings::Settings;
use berth_base::diag::did_you_mean;
use berth_git::{CommitId, Repo, is_valid_ref};

const BRANCHES: &str = "refs/heads/";

/// The full name of the source and its newest commit.
pub(super) fn find_source(repo: &Repo, settings: &Settings) -> Result<(String, CommitId), PassError> {
    let head = repo.head_branch()?;
    let name = match settings.source.as_deref() {
        None | Some("HEAD") => head.clone().unwrap_or_else(|| "HEAD".to_owned()),
        Some(name) if name.starts_with("refs/") => name.to_owned(),
        Some(name) => format!("{BRANCHES}{name}"),
    };
    if !is_valid_ref(&name) {
        return Err(no_such(repo, settings, &name)?);
    }
    let direct = repo.direct_ref(&name)?;
    if [Some(&name), direct.as_ref()].contains(&Some(&settings.refs.rendered)) {
        return Err(PassError::SourceIsRendered(name));
    }
    match direct.map(|_| repo.resolve(&name)).transpose()?.flatten() {
        Some(commit) => Ok((name, commit)),
        None if head.as_ref() == Some(&name) || branches(repo, settings)?.is_empty() => {
            Err(PassError::NoSource(name))
        }
        None => Err(no_such(repo, settings, &name)?),
    }
}

fn no_such(repo: &Repo, settings: &Settings, name: &str) -> Result<PassError, PassError> {
    let branches = branches(repo, settings)?;
    let short = name.strip_prefix(BRANCHES).unwrap_or(name);
    let near = did_you_mean(short, branches.iter().map(String::as_str));
    let hint = near.unwrap_or_else(|| "name a branch, or a ref in full as `refs/heads/main`".to_owned());
    Ok(PassError::NoSuchSource { name: short.to_owned(), hint })
}

/// Lists the branches that people may edit, by short names.
fn branches(repo: &Repo, settings: &Settings) -> Result<Vec<String>, PassError> {
    let names = repo
        .list_refs(BRANCHES)?
        .into_iter()
        .map(|(name, _)| name)
        .filter(|name| *name != settings.refs.rendered);
    Ok(names.filter_map(|name| name.strip_prefix(BRANCHES).map(str::to_owned)).collect())
}
