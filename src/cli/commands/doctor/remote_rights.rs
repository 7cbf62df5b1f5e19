//! The rights that a role needs at the remote, and those that it must not have; and the forge's rules for the branches.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::finding::{Findings, Level};
use crate::process::exit::CommandError;
use berth_base::model::Timestamp;
use berth_base::model::applier::BERTH;
use berth_base::text::some_quoted;
use berth_engine::load::{self, History};
use berth_forge::{Client, Forge, ForgeError, Protection, Pushers, Repository, Token};
use berth_git::shared_refs::Refs;
use berth_git::transport::RefPush;
use berth_git::transport::probe::{Probe, Right};
use berth_git::{CommitId, GitError, Identity, Repo, TreeId, Writer, read_source};
use berth_hub::inputs::current_state::short;

/// The role of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AccountRole {
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

impl AccountRole {
    /// Returns the ref that the account's process follows: a member its cluster's, others the rendered branch.
    pub(super) fn followed(&self, refs: &Refs) -> String {
        match self {
            AccountRole::Member { cluster, .. } => refs.cluster(cluster),
            _ => refs.rendered.clone(),
        }
    }
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
struct RightProbe {
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

fn answer(probe: &Probe<'_>, questions: Vec<RightProbe>, to: &mut Findings) {
    for RightProbe { moved, words, is_needed, level, hint } in questions {
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
    pub fn check(&self, role: &AccountRole, probe: &Probe<'_>, to: &mut Findings) -> Result<(), GitError> {
        let questions = self.questions(role)?;
        answer(probe, questions, to);
        Ok(())
    }

    fn questions(&self, role: &AccountRole) -> Result<Vec<RightProbe>, GitError> {
        let refs = &self.tips.refs;
        let rendered = || self.push(&refs.rendered, "which the daemon writes");
        let mut questions = Vec::new();
        match role {
            AccountRole::Daemon => {
                questions.push(RightProbe { is_needed: true, hint: NEEDS_MORE, ..rendered()? });
                questions.push(RightProbe {
                    is_needed: true,
                    hint: NEEDS_MORE,
                    ..self.replace(&refs.processed)?
                });
                let clusters = self.tips.listed.keys().find(|name| name.starts_with(&refs.clusters));
                let cluster = clusters.cloned().unwrap_or_else(|| refs.cluster(NOBODY));
                questions.push(RightProbe { is_needed: true, hint: NEEDS_MORE, ..self.replace(&cluster)? });
                if let Some(branch) = &self.tips.cluster_branch {
                    let question = self.replace(branch)?;
                    questions.push(RightProbe { is_needed: true, hint: NEEDS_BRANCHES, ..question });
                }
                if let Some(source) = self.source()? {
                    questions.push(RightProbe { level: Level::Warning, ..source });
                }
                questions.extend(self.rewrites()?);
            }
            AccountRole::Member { cluster, reports_here } => {
                questions.push(RightProbe { hint: PROTECT_RENDERED, ..rendered()? });
                questions.extend(self.source()?);
                questions.push(RightProbe { hint: FEWER_REFS, ..self.replace(&refs.cluster(cluster))? });
                questions.push(self.other_status(cluster)?);
                if *reports_here {
                    questions.push(self.own_status(cluster)?);
                }
            }
            AccountRole::Reporter { cluster } => {
                questions.push(self.own_status(cluster)?);
                let other = self.other_status(cluster)?;
                questions.push(RightProbe { level: Level::Warning, hint: OWN_REPORT, ..other });
            }
            AccountRole::SourceReader => {
                let source = self.source()?;
                questions.extend(source.map(|source| RightProbe { level: Level::Warning, ..source }));
            }
            AccountRole::Reviewer => {
                questions.push(RightProbe { hint: READ_ONLY, ..rendered()? });
                questions.extend(self.source()?.map(|source| RightProbe { hint: READ_ONLY, ..source }));
                questions.push(RightProbe { hint: READ_ONLY, ..self.replace(&refs.processed)? });
            }
        }
        Ok(questions)
    }

    fn own_status(&self, cluster: &str) -> Result<RightProbe, GitError> {
        let question = self.replace(&self.tips.refs.status_of(cluster))?;
        Ok(RightProbe { is_needed: true, hint: NEEDS_MORE, ..question })
    }

    fn other_status(&self, cluster: &str) -> Result<RightProbe, GitError> {
        let refs = &self.tips.refs;
        let own = refs.status_of(cluster);
        let mut others =
            self.tips.listed.keys().filter(|name| name.starts_with(&refs.status) && **name != own);
        let other = others.next().cloned().unwrap_or_else(|| refs.status_of(NOBODY));
        let question = self.replace(&other)?;
        let words = format!("replace `{other}`, the report of another member");
        Ok(RightProbe { words, hint: FEWER_REFS, ..question })
    }

    fn source(&self) -> Result<Option<RightProbe>, GitError> {
        let Some(source) = self.tips.source.as_ref() else { return Ok(None) };
        let question = self.push(source, "which people edit, without a review")?;
        Ok(Some(RightProbe { hint: PROTECT_SOURCE, ..question }))
    }

    /// Makes the probe of a fast-forward of a branch, or of its first commit.
    fn push(&self, name: &str, about: &str) -> Result<RightProbe, GitError> {
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
    fn replace(&self, name: &str) -> Result<RightProbe, GitError> {
        let new = Some(self.commit(TreeId::EMPTY, &[])?);
        let moved = RefPush { name: name.to_owned(), old: self.tips.tip(name), new };
        Ok(question(moved, format!("replace `{}`", short(name))))
    }

    /// Makes the probes of moves of the rendered branch that nobody needs.
    fn rewrites(&self) -> Result<Vec<RightProbe>, GitError> {
        let name = &self.tips.refs.rendered;
        let Some(tip) = self.tips.tip(name) else { return Ok(Vec::new()) };
        let deleted = RefPush { name: name.clone(), old: Some(tip), new: None };
        let deleted = question(deleted, format!("delete `{}`", short(name)));
        let both = [self.replace(name)?, deleted];
        Ok(both.map(|one| RightProbe { level: Level::Warning, hint: NO_REWRITES, ..one }).into())
    }

    fn commit(&self, tree: TreeId, parents: &[CommitId]) -> Result<CommitId, GitError> {
        let message = "berth doctor asks whether this push is allowed. No ref leads here.\n";
        let seconds = Timestamp::now().as_second();
        Writer::new(self.repo)?.commit(tree, parents, message, self.identity, seconds)
    }
}

fn question(moved: RefPush, words: String) -> RightProbe {
    RightProbe { moved, words, is_needed: false, level: Level::Fault, hint: "" }
}

/// The flags for the forge's API
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Forge")]
pub(super) struct ForgeApiArgs {
    /// The forge's kind, to check its rules for branches: github, gitlab, gitea or forgejo
    #[arg(long, value_name = "KIND", env = "BERTH_FORGE", requires = "forge_token_file")]
    forge: Option<Forge>,
    /// Address of the forge's API, such as `https://git.example.com/api/v1`
    #[arg(long, value_name = "URL", env = "BERTH_FORGE_API")]
    api: Option<String>,
    /// The repository at the forge: `owner/name`, or GitLab's number of the project
    #[arg(long, value_name = "NAME", requires = "forge")]
    repository: Option<String>,
    /// File with a token for the forge's API that may read the rules for branches, which takes an administrator's
    /// on most forges
    #[arg(long, value_name = "FILE", env = "BERTH_FORGE_TOKEN_FILE")]
    forge_token_file: Option<PathBuf>,
}

/// The number of pushers that a message names.
const SHOWN: usize = 5;

impl ForgeApiArgs {
    pub fn secret_file(&self) -> Option<&Path> {
        self.forge_token_file.as_deref()
    }

    /// Checks the rules for the rendered and the source branch.
    pub fn check(&self, rendered: &str, source: Option<&str>, to: &mut Findings) -> Result<(), CommandError> {
        let (Some(forge), Some(name), Some(file)) = (self.forge, &self.repository, &self.forge_token_file)
        else {
            to.not_known(
                "the forge's rules for branches: `--forge`, `--repository` and `--forge-token-file` name none",
            );
            return Ok(());
        };
        let token = std::fs::read_to_string(file)
            .map_err(|error| CommandError::usage(format!("`{}` cannot be read: {error}", file.display())))?;
        let place = Repository::new(forge, self.api.as_deref(), name)?;
        let client = Client::of_repository(&place, Token::new(&token));
        let rendered = short(rendered);
        match client.protection(rendered) {
            Ok(found) => judge_rendered(rendered, found.as_ref(), to),
            Err(error) => report_unknown_rules(rendered, &error, to),
        }
        let Some(source) = source.map(short) else { return Ok(()) };
        match client.protection(source) {
            Ok(found) => judge_source(source, found.as_ref(), to),
            Err(error) => report_unknown_rules(source, &error, to),
        }
        to.not_known(format!(
            "whether {forge} protects `refs/berth/*`: no forge has rules for refs other than branches and tags, so \
             every account that may write can replace them"
        ));
        Ok(())
    }
}

fn report_unknown_rules(branch: &str, error: &ForgeError, to: &mut Findings) {
    let message = format!("the forge's rules for `{branch}`: {error}");
    match error {
        ForgeError::BadToken { .. } | ForgeError::Moved { .. } | ForgeError::Unreachable { .. } => {
            to.push(Level::Fault, message, Some("check `--api`, `--repository` and the token".to_owned()));
        }
        _ => to.not_known(message),
    }
}

fn judge_rendered(branch: &str, found: Option<&Protection>, to: &mut Findings) {
    let hint =
        format!("protect `{branch}` at the forge: only the daemon's account pushes, nobody force-pushes");
    let Some(found) = found else {
        to.fault(
            format!("the forge has no rules for `{branch}`: anyone who may write can change the state"),
            hint,
        );
        return;
    };
    match &found.pushers {
        Pushers::Writers => to.fault(format!("everybody who may write may push to `{branch}`"), hint.clone()),
        Pushers::Only(names) if names.is_empty() => {
            to.fault(format!("nobody may push to `{branch}`, not even the daemon"), hint.clone());
        }
        Pushers::Only(names) if names.len() == 1 => {
            to.good(format!("only {} may push to `{branch}`", some_quoted(names, SHOWN)));
        }
        Pushers::Only(names) => {
            let names = some_quoted(names, SHOWN);
            to.warning(format!("several may push to `{branch}`: {names}"), hint.clone());
        }
        Pushers::Excepted => {
            to.good(format!(
                "only accounts exempt from the rules may push to `{branch}`: check that only the daemon is exempt"
            ));
        }
        Pushers::NotKnown => {
            to.not_known(format!("the accounts that may push to `{branch}`: this token may not read them"));
        }
    }
    for (allowed, what) in [(found.force_push, "force-pushed"), (found.deletion, "deleted")] {
        match allowed {
            Some(true) => to.fault(format!("`{branch}` may be {what}"), hint.clone()),
            Some(false) => to.good(format!("`{branch}` may not be {what}")),
            None => to.not_known(format!("whether `{branch}` may be {what}: this token may not read it")),
        }
    }
    if found.approvals.is_some_and(|approvals| approvals > 0) && found.pushers == Pushers::Excepted {
        to.warning(
            format!("changes of `{branch}` need a review, which the daemon's do not have"),
            "except the daemon's account from the rule",
        );
    }
}

fn judge_source(branch: &str, found: Option<&Protection>, to: &mut Findings) {
    let hint =
        format!("protect `{branch}` at the forge: changes need a review, and nobody pushes without one");
    let Some(found) = found else {
        to.fault(
            format!(
                "the forge has no rules for `{branch}`: anyone who may write can change what clusters run"
            ),
            hint,
        );
        return;
    };
    match &found.pushers {
        Pushers::Writers => {
            to.fault(
                format!("everybody who may write may push to `{branch}` without a review"),
                hint.clone(),
            );
        }
        Pushers::Only(names) if names.is_empty() => {
            to.good(format!("nobody may push to `{branch}` without a review"));
        }
        Pushers::Only(names) => {
            let names = some_quoted(names, SHOWN);
            to.warning(format!("some may push to `{branch}` without a review: {names}"), hint.clone());
        }
        Pushers::Excepted => {
            to.good(format!("only accounts exempt from the rules may push to `{branch}` without a review"));
        }
        Pushers::NotKnown => {
            to.not_known(format!("the accounts that may push to `{branch}`: this token may not read them"));
        }
    }
    match found.approvals {
        Some(0) => to.warning(format!("changes of `{branch}` need no approval"), hint),
        Some(number) => to.good(format!("changes of `{branch}` need approvals: {number}")),
        None => {
            to.not_known(format!("the approvals that changes of `{branch}` need: the forge does not tell"));
        }
    }
}
