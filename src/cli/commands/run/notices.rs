//! Sends messages to people about passes: to a webhook, a chat, and the commit status of the source.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::time::Duration;

use serde_json::{Value as Json, json};
use tracing::warn;

use super::notice_hook::Hook;
use crate::process::exit::CommandError;
use berth_base::diag::harmless_line;
use berth_base::text::{counted, some_of};
use berth_forge::ci_run::Repository;
use berth_forge::{Client, Forge, State, Status, Token};
use berth_git::CommitId;
use berth_hub::daemon::{PassEnd, PassOutcome, PassResult};
use berth_hub::publish::summary::copies_in_words;

/// The messages of a daemon
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Messages")]
pub(crate) struct NoticeArgs {
    /// File with the address of a webhook that is told what happens. berth reads it for each message
    #[arg(long, value_name = "FILE", env = "BERTH_NOTIFY_FILE")]
    notify_file: Option<PathBuf>,
    /// Form of the messages to the webhook
    #[arg(long, value_name = "FORM", value_enum, default_value = "berth", env = "BERTH_NOTIFY_FORM")]
    notify_form: Form,
    /// Happenings to tell, separated by commas
    #[arg(
        long,
        value_name = "WHAT",
        value_enum,
        value_delimiter = ',',
        default_value = "held,rollouts,failures",
        env = "BERTH_NOTIFY_ON"
    )]
    notify_on: Vec<Topic>,
    /// Set the commit status `berth/run` of source commits in this repository of the forge: `owner/name`, or GitLab's
    /// number of the project
    #[arg(long, value_name = "NAME", env = "BERTH_STATUS_REPOSITORY", requires_all = ["forge", "forge_token_file"])]
    status_repository: Option<String>,
    /// The forge's kind: github, gitlab, gitea or forgejo
    #[arg(long, value_name = "KIND", env = "BERTH_FORGE")]
    forge: Option<Forge>,
    /// Address of the forge's API, such as `https://git.example.com/api/v1`
    #[arg(long, value_name = "URL", env = "BERTH_FORGE_API")]
    api: Option<String>,
    /// File with the token for the forge's API. berth reads it for each status
    #[arg(long, value_name = "FILE", env = "BERTH_FORGE_TOKEN_FILE")]
    forge_token_file: Option<PathBuf>,
}

/// The form of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    /// JSON with all that is known
    Berth,
    /// JSON as Slack, Mattermost and others take it
    Slack,
}

/// The sort of a happening.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Topic {
    /// Each publication that changes objects
    Published,
    /// Removals that wait for an approval
    Held,
    /// Rollouts that halt, go back or continue
    Rollouts,
    /// Passes that fail three times in a row, and the first that does not
    Failures,
}

/// The number of failing passes before a message.
const PATIENCE: u32 = 3;
/// The number of messages that may wait.
const MOST_WAITING: usize = 256;
/// The time that an ending process leaves for unsent messages.
const LAST_CHANCE: Duration = Duration::from_secs(10);
/// The most workloads that a message names.
const SHOWN: usize = 5;

/// A message to people.
#[derive(Clone, Debug, PartialEq)]
struct Notice {
    topic: Topic,
    text: String,
    facts: Json,
}

/// An item to send.
#[derive(Debug)]
enum Message {
    Notice(Notice),
    Status(CommitId, Status),
}

/// The content of the last messages.
#[derive(Debug, Default)]
struct Told {
    held: BTreeSet<String>,
    failures: u32,
    status: Option<(CommitId, Status)>,
}

/// Sends messages until it is dropped.
#[derive(Debug)]
pub(crate) struct Notices {
    topics: Vec<Topic>,
    sets_status: bool,
    told: Told,
    queue: Option<SyncSender<Message>>,
    ended: Receiver<()>,
}

impl NoticeArgs {
    pub(crate) fn are_wanted(&self) -> bool {
        self.notify_file.is_some() || self.status_repository.is_some()
    }

    /// Starts sending, if requested.
    pub(crate) fn start(&self) -> Result<Option<Notices>, CommandError> {
        let status = match (&self.status_repository, self.forge, &self.forge_token_file) {
            (Some(name), Some(forge), Some(token)) => {
                read(token)?;
                Some((Repository::new(forge, self.api.as_deref(), name)?, token.clone()))
            }
            _ => None,
        };
        if let Some(file) = &self.notify_file {
            hook(file)?;
        }
        if self.notify_file.is_none() && status.is_none() {
            return Ok(None);
        }
        let (queue, waiting) = sync_channel(MOST_WAITING);
        let (ends, ended) = channel::<()>();
        let sets_status = status.is_some();
        let sender = NoticeSender { hook: self.notify_file.clone(), form: self.notify_form, status };
        let thread = std::thread::Builder::new().name("messages".to_owned()).spawn(move || {
            let _ends = ends;
            waiting.iter().for_each(|message| sender.send(&message));
        });
        thread.map_err(|error| CommandError::io("starting to write messages", &error))?;
        let topics = if self.notify_file.is_some() { self.notify_on.clone() } else { Vec::new() };
        Ok(Some(Notices { topics, sets_status, told: Told::default(), queue: Some(queue), ended }))
    }
}

impl Notices {
    /// Sends messages about the end of a pass.
    pub(crate) fn tell(&mut self, end: PassEnd<'_>) {
        let mut notices = self.told.notices(end);
        notices.retain(|notice| self.topics.contains(&notice.topic));
        let mut messages: Vec<Message> = notices.into_iter().map(Message::Notice).collect();
        if let (true, PassEnd::Done(passed)) = (self.sets_status, end) {
            messages.extend(self.told.status(passed));
        }
        let Some(queue) = &self.queue else { return };
        let dropped = messages.into_iter().filter_map(|message| queue.try_send(message).err()).count();
        if dropped > 0 {
            warn!(dropped, "too many messages wait to be sent");
        }
    }
}

impl Drop for Notices {
    /// Waits a short time for unsent messages.
    fn drop(&mut self) {
        self.queue = None;
        if self.ended.recv_timeout(LAST_CHANCE) == Err(RecvTimeoutError::Timeout) {
            warn!("messages that wait to be sent are dropped");
        }
    }
}

impl Told {
    /// Finds the news at the end of a pass.
    fn notices(&mut self, end: PassEnd<'_>) -> Vec<Notice> {
        let why = match end {
            PassEnd::Done(passed) => {
                let mut notices = self.recovered();
                notices.extend(published(passed));
                notices.extend(passed.rollout_steps.iter().filter_map(|step| {
                    let text = format!("{}: {}", step.key, step.halt.as_ref()?);
                    Some(Notice {
                        topic: Topic::Rollouts,
                        text,
                        facts: json!({"workload": step.key.to_string()}),
                    })
                }));
                notices.extend(self.held(passed));
                return notices;
            }
            PassEnd::Spared => return self.recovered(),
            PassEnd::StoodBy => return Vec::new(),
            PassEnd::Failed(error) => error.to_string(),
            PassEnd::Crashed => "a bug in berth".to_owned(),
        };
        self.failures = self.failures.saturating_add(1);
        if self.failures != PATIENCE {
            return Vec::new();
        }
        let text = format!("nothing is published: {why}");
        vec![Notice { topic: Topic::Failures, text, facts: json!({"failing": true}) }]
    }

    fn recovered(&mut self) -> Vec<Notice> {
        let failures = std::mem::take(&mut self.failures);
        if failures < PATIENCE {
            return Vec::new();
        }
        let text = "passes do their work again".to_owned();
        vec![Notice { topic: Topic::Failures, text, facts: json!({"failing": false}) }]
    }

    fn held(&mut self, passed: &PassResult) -> Option<Notice> {
        let held: BTreeSet<String> =
            passed.held.iter().map(|held| format!("{} {}", held.key, held.approval())).collect();
        let is_new = held.iter().any(|one| !self.held.contains(one));
        self.held = held;
        let first = passed.held.first().filter(|_| is_new)?;
        let names: Vec<String> = passed.held.iter().map(|held| held.key.to_string()).collect();
        let count = counted(names.len(), "workload");
        let text = format!(
            "held for approval: {count} ({}); approve: {}",
            some_of(&names[..names.len().min(SHOWN)], SHOWN),
            first.approval_of_all()
        );
        let facts = json!({"workloads": names, "approve": first.approval_of_all(), "source": passed.source.to_string()});
        Some(Notice { topic: Topic::Held, text, facts })
    }

    /// Returns the status of the source commit, if it changed. The number of synced members counts only at a
    /// publication and when all are in sync, because forges keep a limited number of statuses.
    fn status(&mut self, passed: &PassResult) -> Option<Message> {
        let standing = &passed.standing;
        let (in_sync, clusters) = (standing.in_sync, standing.clusters);
        let number = standing.sequence.map_or("nothing published".to_owned(), |seq| format!("number {seq}"));
        let (state, text) = match (passed.errors(), passed.held.len()) {
            (0, 0) => {
                (State::Success, format!("{number}: {in_sync} of {} in sync", counted(clusters, "cluster")))
            }
            (0, held) => {
                (State::Pending, format!("{number}: {} held for approval", counted(held, "workload")))
            }
            (errors, _) => (State::Failure, format!("{number}: {}", counted(errors, "error"))),
        };
        let status = Status { context: "berth/run".to_owned(), ..Status::new(state, &text) };
        let is_published = matches!(passed.outcome, PassOutcome::Published { .. });
        let is_due = match &self.status {
            Some((source, last)) if *source == passed.source && last.state == state => {
                *last != status && (is_published || in_sync == clusters || state != State::Success)
            }
            _ => true,
        };
        is_due.then(|| {
            self.status = Some((passed.source, status.clone()));
            Message::Status(passed.source, status)
        })
    }
}

fn published(passed: &PassResult) -> Option<Notice> {
    let PassOutcome::Published { commit, seq } = passed.outcome else { return None };
    let counts = passed.plan.counts();
    let text = format!("published number {seq} of {}: {}", passed.source.short(), copies_in_words(&counts)?);
    let facts = json!({
        "sequence": seq, "commit": commit.to_string(), "source": passed.source.to_string(),
        "removed": counts.removed, "changed": counts.changed, "added": counts.added, "clusters": counts.clusters,
    });
    Some(Notice { topic: Topic::Published, text, facts })
}

impl Notice {
    fn in_form(&self, form: Form) -> Json {
        let text = harmless_line(&self.text);
        match form {
            // Text between these characters would become a link or a mention.
            Form::Slack => {
                let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                json!({"text": format!("berth: {text}")})
            }
            Form::Berth => {
                let topic = match self.topic {
                    Topic::Published => "published",
                    Topic::Held => "held",
                    Topic::Rollouts => "rollouts",
                    Topic::Failures => "failures",
                };
                let mut message = json!({"version": 1, "topic": topic, "text": text});
                if let (Some(all), Some(facts)) = (message.as_object_mut(), self.facts.as_object()) {
                    all.extend(facts.clone());
                }
                message
            }
        }
    }
}

/// The sending thread.
struct NoticeSender {
    hook: Option<PathBuf>,
    form: Form,
    status: Option<(Repository, PathBuf)>,
}

impl NoticeSender {
    fn send(&self, message: &Message) {
        let sent = match message {
            Message::Notice(notice) => self.post(notice),
            Message::Status(commit, status) => self.set(*commit, status),
        };
        if let Err(error) = sent {
            warn!(error = error.message, hint = error.hint, "a message cannot be sent");
        }
    }

    fn post(&self, notice: &Notice) -> Result<(), CommandError> {
        let Some(file) = &self.hook else { return Ok(()) };
        Ok(hook(file)?.post(&notice.in_form(self.form))?)
    }

    fn set(&self, commit: CommitId, status: &Status) -> Result<(), CommandError> {
        let Some((place, token)) = &self.status else { return Ok(()) };
        let client = Client::of_repository(place, Token::new(&read(token)?));
        Ok(client.set_status(&commit.to_string(), status)?)
    }
}

fn read(file: &Path) -> Result<String, CommandError> {
    std::fs::read_to_string(file)
        .map_err(|error| CommandError::io(format!("reading {}", file.display()), &error))
}

fn hook(file: &Path) -> Result<Hook, CommandError> {
    Hook::new(&read(file)?).ok_or_else(|| {
        let message = format!("`{}` holds no address of a webhook", file.display());
        CommandError::usage(message).hint("write one `https://…` address into it")
    })
}
