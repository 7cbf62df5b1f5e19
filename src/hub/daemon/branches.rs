//! The two branches of a pass: the source, which people edit, and the rendered branch, on whose tip a pass
//! may build only after a check.
//!
//! The source is a branch's short name or a ref's full name. A tag or revision of the same name is never used
//! instead.

use super::cache::Cache;
use super::error::PassError;
use super::pass::Attempt;
use super::settings::Settings;
use crate::publish::own_files::{IN_FORCE, remembered};
use crate::publish::{self, CurrentState, Processed};
use crate::verify::trust::{self, Question, Trust, Untrusted};
use berth_base::diag::did_you_mean;
use berth_base::model::Timestamp;
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

/// Refuses a source that only a work tree's HEAD names if it is another branch than the last one: somebody who works on a
/// branch would publish it before it is merged.
pub(super) fn refuse_other_branch(
    settings: &Settings,
    name: &str,
    processed: Option<&Processed>,
) -> Result<(), PassError> {
    let is_named = !matches!(settings.source.as_deref(), None | Some("HEAD"));
    let branch = |name: &str| name.strip_prefix(BRANCHES).map(str::to_owned);
    let last = processed.and_then(|processed| branch(processed.branch.as_deref()?));
    match branch(name).zip(last) {
        Some((name, last)) if name != last && !is_named && !settings.allow_rewind => {
            Err(PassError::OtherBranch { name, last })
        }
        _ => Ok(()),
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

/// The seconds for which a refusal is cached. A date ahead of the clock may pass, and objects may arrive.
const REFUSED_SECONDS: i64 = 600;

/// A refused tip, with the inputs of the decision.
#[derive(Debug)]
pub(super) struct Refusal {
    tip: CommitId,
    source: CommitId,
    /// The commits trusted on this machine.
    trusted: Vec<CommitId>,
    clock: Timestamp,
    why: Untrusted,
}

impl Refusal {
    fn holds(&self, tip: CommitId, source: CommitId, trusted: &[CommitId], clock: Timestamp) -> bool {
        let seconds = clock.as_second().saturating_sub(self.clock.as_second());
        (self.tip, self.source, &*self.trusted) == (tip, source, trusted)
            && (0..REFUSED_SECONDS).contains(&seconds)
    }
}

/// Checks that this machine made or proved the tip, or an allowed key signed it. A refused tip is not proven again
/// for a while, unless the source moves or another commit becomes trusted here.
pub(super) fn refuse_untrusted(
    Attempt { repo, settings, clock }: Attempt<'_>,
    current: &CurrentState,
    source: CommitId,
    cache: &mut Cache,
) -> Result<Trust, PassError> {
    let tip = current.commit;
    let trusted = remembered(repo, &settings.refs.rendered);
    if let Some(refusal) = cache.refused.as_ref().filter(|one| one.holds(tip, source, &trusted, clock)) {
        return Err(refusal.why.clone().into());
    }
    let question = Question {
        tip,
        refs: &settings.refs,
        anchors: &settings.anchors,
        clock,
        source: (!settings.allow_rewind).then_some(source),
        limits: &settings.limits,
        allow_rewritten: settings.allow_rewritten,
    };
    let answer = trust::judge(repo, &question)?;
    cache.refused = answer.as_ref().err().cloned().map(|why| Refusal { tip, source, trusted, clock, why });
    let trust = answer?;
    if !settings.allow_rewritten {
        // Somebody who may push the branch may also push `processed`, and restore old copies of both.
        let last = remembered(repo, IN_FORCE).first().copied();
        publish::refuse_rewritten(repo, &settings.refs, current, last)?;
    }
    Ok(trust)
}
