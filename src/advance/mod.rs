//! One step of the rendered branch: a source commit, the state in force and what is known of the outside
//! → the commit that follows, written but not yet pointed at.
//!
//! The daemon takes the outside as it is now, a proof as an earlier commit recorded it. Both come through
//! here, so that whatever has a say in what is published is proven as well: it must be a function of
//! [`Given`], and what it takes from flags or a clock must be found again in the commit.

use std::collections::BTreeMap;

use crate::diag::Diagnostics;
use crate::git::{CommitId, GitContents, GitError, Identity, Repo};
use crate::model::{ClusterStatus, ContentError, Timestamp};
use crate::pipeline::Built;
use crate::plan::{Plan, plan};
use crate::publish::{self, Previous, PublishError, Published, Refs, Stamp, Summary, Trailers};
use crate::reading::{Reading, ReadingError};

/// All that the next commit is a function of.
#[derive(Debug)]
pub struct Given<'a> {
    pub source: CommitId,
    pub previous: Option<&'a Previous>,
    pub refs: &'a Refs,
    pub identity: &'a Identity,
    pub outside: Outside,
}

/// What neither the source nor the state in force says.
#[derive(Debug)]
pub enum Outside {
    /// As it is now. The clock decides only which reports and deadlines count, and shows in no output by itself.
    Now { clock: Timestamp },
    /// As a commit has it: in its facts, and in its trailers.
    Recorded { facts: BTreeMap<String, ClusterStatus>, trailers: Trailers },
}

/// The next commit and all that led to it.
#[derive(Debug)]
pub struct Advanced {
    pub drafted: Published,
    pub reading: Reading,
    pub built: Built,
    pub plan: Plan,
    /// Everything there is to say, odd reports included.
    pub diagnostics: Diagnostics,
}

/// The next commit could not be made. The fleet's own faults are diagnostics, not this.
#[derive(Debug, thiserror::Error)]
pub enum AdvanceError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error(transparent)]
    Content(#[from] ContentError),
    #[error(transparent)]
    Reading(#[from] ReadingError),
}

/// Makes the commit that follows. Refuses what must not be published, except where it once was.
pub fn advance(repo: &Repo, given: &Given<'_>) -> Result<Advanced, AdvanceError> {
    let mut contents = GitContents::writing(repo)?;
    let (reading, built) = read_and_build(repo, given, &mut contents)?;
    let plan = plan(&reading.previous, &built.state);
    let mut told = reading.diagnostics.clone();
    told.extend(built.diagnostics.iter().cloned());
    told.sort();
    let info = repo.commit(given.source)?;
    let stamp = Stamp {
        identity: given.identity.clone(),
        ..Stamp::new(given.source, info.subject(), info.seconds, reading.now)
    };
    let summary =
        Summary::between(given.previous.map(|previous| &previous.state), &built.state).with_problems(&told);
    if let Outside::Now { .. } = given.outside {
        publish::refuse_loss(repo, given.refs, given.previous, &built.state, &stamp)?;
    }
    let drafted = publish::draft(repo, given.previous, &built.state, &stamp, &summary)?;
    let mut diagnostics = told;
    diagnostics.extend(reading.odd_reports.iter().cloned());
    diagnostics.sort();
    Ok(Advanced { drafted, reading, built, plan, diagnostics })
}

fn read_and_build(
    repo: &Repo,
    given: &Given<'_>,
    contents: &mut GitContents<'_>,
) -> Result<(Reading, Built), AdvanceError> {
    match &given.outside {
        Outside::Now { clock } => {
            let mut reading = Reading::commit(repo, given.source, given.previous, given.refs, *clock)?;
            let built = reading.build_until(*clock, contents)?;
            Ok((reading, built))
        }
        Outside::Recorded { facts, trailers } => {
            let now = trailers.now.unwrap_or(Timestamp::UNIX_EPOCH);
            let reading = Reading::recorded(repo, given.source, given.previous, facts.clone(), now)?;
            let built = reading.build(contents)?;
            Ok((reading, built))
        }
    }
}
