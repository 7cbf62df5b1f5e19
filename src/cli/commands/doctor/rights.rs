//! The rights that a role needs at the remote, and those that it must not have.

use std::collections::BTreeMap;

use super::finding::{Findings, Level};
use berth_base::model::Timestamp;
use berth_base::model::applier::BERTH;
use berth_engine::load::{self, History};
use berth_git::protocol::Refs;
use berth_git::transport::RefPush;
use berth_git::transport::probe::{Probe, Right};
use berth_git::{CommitId, GitError, Identity, Repo, TreeId, Writer, read_source};
use berth_hub::inputs::current_state::short;

/// The role of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Daemon,
    Member {
        cluster: String,
        /// True if the fleet repository also stores the statuses.
        reports_here: bool,
    },
    /// A member, in a repository that only stores statuses.
    Reporter {
        cluster: String,
    },
    /// A daemon, in a repository that only stores the source.
    SourceReader,
    Reviewer,
}

/// A cluster name that no fleet has, for the ref of another member.
pub(super) const NOBODY: &str = "berth-doctor";

/// The commits of a remote from which probes are made.
#[derive(Debug)]
pub(super) struct Tips<'a> {
    /// All refs of the remote.
    pub listed: &'a BTreeMap<String, CommitId>,
    /// The source branch.
    pub source: Option<String>,
    /// A branch of a cluster whose folder another program applies, if there is one.
    pub cluster_branch: Option<String>,
    pub refs: Refs,
}

/// Returns a branch of a cluster whose folder another program applies: an existing one, or the first to be made.
pub(super) fn cluster_branch(tips: &Tips<'_>, repo: &Repo) -> Option<String> {
    let existing = tips.listed.keys().find(|name| name.starts_with(&tips.refs.cluster_branches));
    if let Some(existing) = existing {
        return Some(existing.clone());
    }
    let source = tips.listed.get(tips.source.as_ref()?)?;
    let loaded = load::load(&read_source(repo, *source).ok()?, History::None);
    let applied =
        loaded.fleet.clusters.iter().find(|(_, cluster)| cluster.applier.is_some_and(|it| *it != BERTH));
    applied.map(|(name, _)| tips.refs.cluster_branch(name))
}

/// A probe of the remote, and the correct answer.
struct Question {
    moved: RefPush,
    /// The end of the message "the account may ...".
    words: String,
    is_needed: bool,
    /// The severity of a wrong answer.
    level: Level,
    hint: &'static str,
}

const NEEDS_MORE: &str = "give the account this right; docs/remotes.md names the rights of each account";
const NEEDS_BRANCHES: &str = "give the account the right to push, force-push and delete `berth/clusters/*`, from which Flux or Argo CD takes folders; docs/neighbours.md";
const PROTECT_SOURCE: &str =
    "protect the branch, so that changes need a review and this account cannot push to it";
const PROTECT_RENDERED: &str = "protect the branch, so that only the daemon's account may push to it";
const NO_REWRITES: &str =
    "protect the branch against force pushes and deletion: its history is the proof of the state";
const FEWER_REFS: &str = "give the account no right to write to this repository: let the member report with `--status-post`, or to a repository of its own with `--status-remote`; or let the server's hooks allow `refs/berth/status/CLUSTER` alone";
const OWN_REPORT: &str = "let the member report with `--status-post`; or let the server's hooks allow `refs/berth/status/CLUSTER` alone";
const READ_ONLY: &str = "give the reviewer's account the right to read, and no other";

impl Tips<'_> {
    fn tip(&self, name: &str) -> Option<CommitId> {
        self.listed.get(name).copied()
    }
}

fn answer(probe: &Probe<'_>, questions: Vec<Question>, to: &mut Findings) {
    for Question { moved, words, is_needed, level, hint } in questions {
        match (probe.ask(&moved), is_needed) {
            (Right::Granted, true) => to.good(format!("the account may {words}")),
            (Right::Refused(_), false) => to.good(format!("the account may not {words}")),
            (Right::Granted, false) => {
                to.push(level, format!("the account may {words}"), Some(hint.to_owned()));
            }
            (Right::Refused(said), true) => {
                to.push(level, format!("the account may not {words}: {said}"), Some(hint.to_owned()));
            }
            (Right::NotKnown(why), _) => to.not_known(format!("whether the account may {words}: {why}")),
        }
    }
}

/// Makes probes from the tips, a repository with the branches' commits, and an identity for new commits.
#[derive(Debug)]
pub(super) struct Asker<'a> {
    pub tips: &'a Tips<'a>,
    pub repo: &'a Repo,
    pub identity: &'a Identity,
}

impl Asker<'_> {
    /// Runs all probes for a role.
    pub fn check(&self, role: &Role, probe: &Probe<'_>, to: &mut Findings) -> Result<(), GitError> {
        let questions = self.questions(role)?;
        answer(probe, questions, to);
        Ok(())
    }

    fn questions(&self, role: &Role) -> Result<Vec<Question>, GitError> {
        let refs = &self.tips.refs;
        let rendered = || self.push(&refs.rendered, "which the daemon writes");
        let mut questions = Vec::new();
        match role {
            Role::Daemon => {
                questions.push(Question { is_needed: true, hint: NEEDS_MORE, ..rendered()? });
                questions.push(Question {
                    is_needed: true,
                    hint: NEEDS_MORE,
                    ..self.replace(&refs.processed)?
                });
                let clusters = self.tips.listed.keys().find(|name| name.starts_with(&refs.clusters));
                let cluster = clusters.cloned().unwrap_or_else(|| refs.cluster(NOBODY));
                questions.push(Question { is_needed: true, hint: NEEDS_MORE, ..self.replace(&cluster)? });
                if let Some(branch) = &self.tips.cluster_branch {
                    let question = self.replace(branch)?;
                    questions.push(Question { is_needed: true, hint: NEEDS_BRANCHES, ..question });
                }
                if let Some(source) = self.source()? {
                    questions.push(Question { level: Level::Warning, ..source });
                }
                questions.extend(self.rewrites()?);
            }
            Role::Member { cluster, reports_here } => {
                questions.push(Question { hint: PROTECT_RENDERED, ..rendered()? });
                questions.extend(self.source()?);
                questions.push(Question { hint: FEWER_REFS, ..self.replace(&refs.cluster(cluster))? });
                questions.push(self.other_status(cluster)?);
                if *reports_here {
                    questions.push(self.own_status(cluster)?);
                }
            }
            Role::Reporter { cluster } => {
                questions.push(self.own_status(cluster)?);
                let other = self.other_status(cluster)?;
                questions.push(Question { level: Level::Warning, hint: OWN_REPORT, ..other });
            }
            Role::SourceReader => {
                let source = self.source()?;
                questions.extend(source.map(|source| Question { level: Level::Warning, ..source }));
            }
            Role::Reviewer => {
                questions.push(Question { hint: READ_ONLY, ..rendered()? });
                questions.extend(self.source()?.map(|source| Question { hint: READ_ONLY, ..source }));
                questions.push(Question { hint: READ_ONLY, ..self.replace(&refs.processed)? });
            }
        }
        Ok(questions)
    }

    fn own_status(&self, cluster: &str) -> Result<Question, GitError> {
        let question = self.replace(&self.tips.refs.status_of(cluster))?;
        Ok(Question { is_needed: true, hint: NEEDS_MORE, ..question })
    }

    fn other_status(&self, cluster: &str) -> Result<Question, GitError> {
        let refs = &self.tips.refs;
        let own = refs.status_of(cluster);
        let mut others =
            self.tips.listed.keys().filter(|name| name.starts_with(&refs.status) && **name != own);
        let other = others.next().cloned().unwrap_or_else(|| refs.status_of(NOBODY));
        let question = self.replace(&other)?;
        let words = format!("replace `{other}`, the report of another member");
        Ok(Question { words, hint: FEWER_REFS, ..question })
    }

    fn source(&self) -> Result<Option<Question>, GitError> {
        let Some(source) = self.tips.source.as_ref() else { return Ok(None) };
        let question = self.push(source, "which people edit, without a review")?;
        Ok(Some(Question { hint: PROTECT_SOURCE, ..question }))
    }

    /// Makes the probe of a fast-forward of a branch, or of its first commit.
    fn push(&self, name: &str, about: &str) -> Result<Question, GitError> {
        let old = self.tips.tip(name);
        let (tree, parents) = match old {
            Some(tip) => (self.repo.commit(tip)?.tree, vec![tip]),
            None => (TreeId::EMPTY, Vec::new()),
        };
        let new = Some(self.commit(tree, &parents)?);
        let words = format!("push to `{}`, {about}", short(name));
        Ok(question(RefPush { name: name.to_owned(), old, new }, words))
    }

    /// Makes the probe of replacing a ref, or of its first value.
    fn replace(&self, name: &str) -> Result<Question, GitError> {
        let new = Some(self.commit(TreeId::EMPTY, &[])?);
        let moved = RefPush { name: name.to_owned(), old: self.tips.tip(name), new };
        Ok(question(moved, format!("replace `{}`", short(name))))
    }

    /// Makes the probes of moves of the rendered branch that nobody needs.
    fn rewrites(&self) -> Result<Vec<Question>, GitError> {
        let name = &self.tips.refs.rendered;
        let Some(tip) = self.tips.tip(name) else { return Ok(Vec::new()) };
        let deleted = RefPush { name: name.clone(), old: Some(tip), new: None };
        let deleted = question(deleted, format!("delete `{}`", short(name)));
        let both = [self.replace(name)?, deleted];
        Ok(both.map(|one| Question { level: Level::Warning, hint: NO_REWRITES, ..one }).into())
    }

    fn commit(&self, tree: TreeId, parents: &[CommitId]) -> Result<CommitId, GitError> {
        let message = "berth doctor asks whether this push is allowed. No ref leads here.\n";
        let seconds = Timestamp::now().as_second();
        Writer::new(self.repo)?.commit(tree, parents, message, self.identity, seconds)
    }
}

fn question(moved: RefPush, words: String) -> Question {
    Question { moved, words, is_needed: false, level: Level::Fault, hint: "" }
}
