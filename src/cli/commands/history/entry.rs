//! One line of a history: a publication, its change of the subject, and the edits behind it.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::flags::state::read_publication;
use crate::output::results::as_text;
use crate::output::ui::Ui;
use crate::planning::published_change::PublishedChange;
use crate::process::exit::CommandError;
use berth_base::diag::{Pos, harmless_line};
use berth_base::model::{Key, Timestamp};
use berth_base::text::{counted, cut, some_of};
use berth_engine::causes::How;
use berth_engine::consequences::folded::{Consequence, Section};
use berth_engine::plan::Counts;
use berth_engine::state::State;
use berth_git::shared_refs::trailers::{ROLLBACK, USED_APPROVAL};
use berth_git::{CommitId, CommitInfo, Repo, read_file_at};
use berth_hub::history::{Event, Subject};
use berth_hub::publish::CurrentState;

/// The number of named clusters, and of causes.
const MOST_CLUSTERS: usize = 4;
const MOST_CAUSES: usize = 3;

/// The length of one part of a line.
const LONGEST_WORDS: usize = 200;

/// A publication that changed the subject.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry {
    pub sequence: u64,
    #[serde(serialize_with = "as_text")]
    pub published: Timestamp,
    pub commit: String,
    pub source: Option<String>,
    joined: Vec<String>,
    left: Vec<String>,
    copies: Counts,
    /// The causes. `None` if they were not traced.
    pub causes: Option<Vec<CauseForm>>,
    /// How several causes relate, in words.
    how: Option<&'static str>,
    /// The source commits that this publication was the first to contain, newest first.
    pub edits: Vec<Edit>,
    /// The approvals that this publication used up, and the commits that gave them.
    pub approvals: Vec<Approval>,
    /// The earlier publication that this one returns to.
    rollback: Option<String>,
    /// The first line of the publication's own message.
    message: String,
}

/// A cause, with the edit that brought it.
#[derive(Debug, Serialize)]
pub(super) struct CauseForm {
    words: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    edit: Option<Edit>,
}

/// A source commit.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Edit {
    commit: String,
    author: String,
    subject: String,
}

#[derive(Debug, Serialize)]
pub(super) struct Approval {
    digest: String,
    edit: Option<Edit>,
}

impl Edit {
    fn of(commit: &CommitInfo) -> Edit {
        Edit {
            commit: commit.id.to_string(),
            author: commit.author.clone(),
            subject: commit.subject().to_owned(),
        }
    }

    fn text(&self) -> String {
        let [author, subject] = [&self.author, &self.subject].map(|text| cut(text, LONGEST_WORDS));
        format!("{} by {author}: {subject}", self.commit.get(..7).unwrap_or_default())
    }
}

/// The changes whose causes are searched for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Traced<'c> {
    No,
    All,
    In(&'c BTreeSet<String>),
}

/// Reads the histories of publications: their sources, and the states around them.
pub(super) struct Entries<'r> {
    pub repo: &'r Repo,
    pub branch: &'r str,
    pub subject: &'r Subject,
    pub ui: &'r Ui,
}

impl Entries<'_> {
    /// Makes the line of an event. Its causes are those of the changes in some clusters, or in all; with
    /// [`Traced::No`], they are not searched for.
    pub fn entry(&self, event: &Event, traced: Traced<'_>) -> Result<Entry, CommandError> {
        let Event { publication, before, change } = event;
        let trailers = &publication.trailers;
        let of_other = |name: &str| {
            let named = trailers.others.iter().filter(move |(known, _)| known == name);
            named.map(|(_, value)| value.clone()).collect::<Vec<String>>()
        };
        let from = before.as_ref().and_then(|before| before.trailers.source);
        let commits = self.new_commits(from, trailers.source)?;
        let (causes, how) = match traced {
            Traced::No => (None, None),
            Traced::All => self.causes(event, &commits, None)?,
            Traced::In(clusters) => self.causes(event, &commits, Some(clusters))?,
        };
        let is_loss = !change.left.is_empty() || change.copies.removed > 0;
        let used = if is_loss { of_other(USED_APPROVAL) } else { Vec::new() };
        let approvals = used.into_iter().map(|digest| self.approval(event, &commits, digest));
        let message = publication.commit.subject().trim_start_matches("berth: ").to_owned();
        Ok(Entry {
            sequence: trailers.seq,
            published: Timestamp::from_second(publication.commit.seconds).unwrap_or_default(),
            commit: publication.commit.id.to_string(),
            source: trailers.source.map(|source| source.to_string()),
            joined: change.joined.iter().cloned().collect(),
            left: change.left.iter().cloned().collect(),
            copies: change.copies,
            causes,
            how,
            edits: commits.iter().map(Edit::of).collect(),
            approvals: approvals.collect::<Result<_, CommandError>>()?,
            rollback: of_other(ROLLBACK).into_iter().next(),
            message,
        })
    }

    /// Returns the source commits that a publication was the first to contain, without merges.
    fn new_commits(
        &self,
        from: Option<CommitId>,
        to: Option<CommitId>,
    ) -> Result<Vec<CommitInfo>, CommandError> {
        let Some(to) = to.filter(|to| self.repo.has_commit(*to)) else { return Ok(Vec::new()) };
        match from {
            Some(from) if from == to => Ok(Vec::new()),
            Some(from) if self.repo.has_commit(from) => {
                let between = self.repo.commits_between(from, to)?;
                Ok(between.into_iter().filter(|commit| commit.parents.len() < 2).collect())
            }
            _ => Ok(vec![self.repo.commit(to)?]),
        }
    }

    fn causes(
        &self,
        event: &Event,
        commits: &[CommitInfo],
        clusters: Option<&BTreeSet<String>>,
    ) -> Result<(Option<Vec<CauseForm>>, Option<&'static str>), CommandError> {
        let Some(before) = &event.before else { return Ok((None, None)) };
        let has_source = event.publication.trailers.source.is_some_and(|source| self.repo.has_commit(source));
        if !has_source {
            return Ok((None, None));
        }
        let read = |commit| read_publication(self.repo, self.branch, commit);
        let states = [read(before.commit.id)?, read(event.publication.commit.id)?];
        let [before, after] = states.each_ref();
        let change = PublishedChange::between([before, after], self.repo, None, self.ui)?;
        let wanted = Wanted { clusters, ..Wanted::of(self.subject, [before, after]) };
        let sections: Vec<&Section> = change
            .folded
            .sections
            .iter()
            .filter(|section| section.consequences.iter().any(|one| wanted.is_in(one)))
            .collect();
        let mut causes = Vec::new();
        for cause in sections.iter().flat_map(|section| &section.causes) {
            let at = cause.places.first();
            let edit = at.map(|at| self.edit_of(at, commits)).transpose()?.flatten();
            causes.push(CauseForm { words: cause.words.clone(), at: at.map(Pos::to_string), edit });
        }
        let how = sections.iter().find_map(|section| section.how).and_then(words_of);
        Ok((Some(causes), how))
    }

    /// Returns the newest of some commits that changed a file.
    fn edit_of(&self, at: &Pos, commits: &[CommitInfo]) -> Result<Option<Edit>, CommandError> {
        if let [only] = commits {
            return Ok(Some(Edit::of(only)));
        }
        for commit in commits {
            let now = read_file_at(self.repo, commit.id, &at.file)?;
            let parent = commit.parents.first().filter(|parent| self.repo.has_commit(**parent));
            let before =
                parent.map(|parent| read_file_at(self.repo, *parent, &at.file)).transpose()?.flatten();
            if now != before {
                return Ok(Some(Edit::of(commit)));
            }
        }
        Ok(None)
    }

    /// Finds the commit that gave an approval: in the record before, or among the new commits.
    fn approval(
        &self,
        event: &Event,
        commits: &[CommitInfo],
        digest: String,
    ) -> Result<Approval, CommandError> {
        let before =
            event.before.as_ref().map(|before| read_publication(self.repo, self.branch, before.commit.id));
        let ledger = before.transpose()?.map(|before| before.state.ledger);
        let given =
            ledger.and_then(|ledger| Some(ledger.approvals.get(&digest.parse().ok()?)?.commit.clone()));
        let given: Option<CommitId> = given.and_then(|commit| commit.parse().ok());
        let edit = match given.filter(|commit| self.repo.has_commit(*commit)) {
            Some(commit) => Some(Edit::of(&self.repo.commit(commit)?)),
            None => commits.iter().find(|commit| commit.message.contains(&digest)).map(Edit::of),
        };
        Ok(Approval { digest, edit })
    }
}

/// The parts of a plan that are about the subject.
struct Wanted<'s> {
    /// The placements; `None` for all of a cluster.
    keys: Option<Vec<&'s Key>>,
    cluster: Option<&'s str>,
    clusters: Option<&'s BTreeSet<String>>,
}

impl<'s> Wanted<'s> {
    fn of(subject: &'s Subject, states: [&'s CurrentState; 2]) -> Wanted<'s> {
        let with = |object, state: &'s State| {
            let decisions =
                state.decisions.iter().filter(move |(_, decision)| decision.objects.contains(object));
            decisions.map(|(key, _)| key).collect::<Vec<&Key>>()
        };
        match subject {
            Subject::Placement { key, cluster } => {
                Wanted { keys: Some(vec![key]), cluster: cluster.as_deref(), clusters: None }
            }
            Subject::Cluster(cluster) => Wanted { keys: None, cluster: Some(cluster), clusters: None },
            Subject::Object { object, cluster } => {
                let keys = states.into_iter().flat_map(|one| with(object, &one.state)).collect();
                Wanted { keys: Some(keys), cluster: cluster.as_deref(), clusters: None }
            }
        }
    }

    fn is_in(&self, consequence: &Consequence) -> bool {
        consequence.places.iter().any(|(keys, clusters)| {
            self.keys.as_ref().is_none_or(|wanted| keys.iter().any(|key| wanted.contains(&key)))
                && self.cluster.is_none_or(|wanted| clusters.iter().any(|cluster| cluster == wanted))
                && self.clusters.is_none_or(|wanted| clusters.iter().any(|cluster| wanted.contains(cluster)))
        })
    }
}

fn words_of(how: How) -> Option<&'static str> {
    match how {
        How::Alone => None,
        How::Together => Some("only together"),
        How::Parts => Some("each makes a part"),
        How::Each => Some("each alone is enough"),
        How::Earlier => Some("an earlier edit, which had waited"),
        How::First => Some("the first publication"),
        How::Imported => Some("imported from a hub"),
        How::Untraced => Some("one of these"),
    }
}

impl Entry {
    /// Describes the change of the subject.
    pub fn change_text(&self) -> String {
        let named = |sign: &str, names: &[String]| match names {
            [] => None,
            names => Some(some_of(names.iter().map(|name| format!("{sign}{name}")), MOST_CLUSTERS)),
        };
        let Counts { removed, changed, added, clusters } = self.copies;
        let kinds = [(added, "added"), (changed, "changed"), (removed, "removed")];
        let kinds: Vec<String> = kinds
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{} {word}", counted(count, "copy")))
            .collect();
        let copies =
            (!kinds.is_empty()).then(|| format!("{} in {}", kinds.join(", "), counted(clusters, "cluster")));
        let parts = [named("+", &self.joined), named("-", &self.left), copies];
        let text = parts.into_iter().flatten().collect::<Vec<String>>().join("; ");
        if text.is_empty() {
            "its decision, with the same clusters".to_owned()
        } else {
            harmless_line(&text).into_owned()
        }
    }

    /// Describes the reason of the change.
    pub fn why_text(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        let causes = self.causes.iter().flatten();
        let cause = |cause: &CauseForm| match &cause.at {
            Some(at) => format!("{at}: {}", cut(&cause.words, LONGEST_WORDS)),
            None => cut(&cause.words, LONGEST_WORDS),
        };
        parts.extend(causes.clone().take(MOST_CAUSES).map(cause));
        let more = causes.count().saturating_sub(MOST_CAUSES);
        parts.extend((more > 0).then(|| format!("and {}", counted(more, "other cause"))));
        parts.extend(self.how.map(|how| format!("({how})")).filter(|_| !parts.is_empty()));
        parts.extend(self.rollback.as_ref().map(|to| format!("a rollback to {}", to.get(..7).unwrap_or(to))));
        if parts.is_empty() {
            parts.push(match self.edits.as_slice() {
                [] => cut(&self.message, LONGEST_WORDS),
                [only] => cut(&only.subject, LONGEST_WORDS),
                [first, others @ ..] => {
                    let subject = cut(&first.subject, LONGEST_WORDS);
                    format!("{subject} and {}", counted(others.len(), "other commit"))
                }
            });
        }
        harmless_line(&parts.join("; ")).into_owned()
    }

    /// Describes who made the change, and who approved it.
    pub fn who_text(&self) -> String {
        let of_causes = self.causes.iter().flatten().filter_map(|cause| cause.edit.as_ref());
        let mut edits: Vec<&Edit> = of_causes.collect();
        if edits.is_empty() {
            edits.extend(&self.edits);
        }
        let mut names: Vec<String> = Vec::new();
        for edit in edits {
            let author = cut(&edit.author, LONGEST_WORDS);
            let name = format!("{author} ({})", edit.commit.get(..7).unwrap_or_default());
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let mut text = some_of(names, MOST_CAUSES);
        for approval in &self.approvals {
            let by = approval.edit.as_ref().map_or_else(|| approval.digest.clone(), Edit::text);
            let comma = if text.is_empty() { "" } else { "; " };
            text.push_str(&format!("{comma}approved in {by}"));
        }
        harmless_line(&text).into_owned()
    }
}
