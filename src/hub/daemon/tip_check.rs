//! The check that a pass may go on from the rendered branch's tip.

use super::cache::Cache;
use super::error::PassError;
use super::settings::Settings;
use crate::publish::trusted_commits::{IN_FORCE, remembered};
use crate::publish::{self, CurrentState};
use crate::verify::trust::{self, Question, Trust};
use berth_base::model::Timestamp;
use berth_git::{CommitId, Repo};

/// Goes on only from what this machine made or proved, or an allowed key signed. A tip that was refused is not proven
/// again as long as the source stays.
pub(super) fn refuse_untrusted(
    repo: &Repo,
    settings: &Settings,
    current: &CurrentState,
    source: CommitId,
    clock: Timestamp,
    cache: &mut Cache,
) -> Result<Trust, PassError> {
    let tip = current.commit;
    if let Some((_, untrusted)) = cache.refused.as_ref().filter(|(of, _)| *of == (tip, source)) {
        return Err(untrusted.clone().into());
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
    if let Err(untrusted) = &answer {
        cache.refused = Some(((tip, source), untrusted.clone()));
    }
    let trust = answer?;
    if !settings.allow_rewritten {
        // Whoever may push the branch may push `processed` as well, and put old copies of both back.
        let last = remembered(repo, IN_FORCE).first().copied();
        publish::refuse_rewritten(repo, &settings.refs, current, last)?;
    }
    Ok(trust)
}
