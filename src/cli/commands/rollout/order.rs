//! Shared by the commands that steer a rollout: finds the workload and its own policy, edits or creates the policy,
//! and commits the edit if requested. Also the staged runs of a workload in a working tree, and the edits that steer
//! them.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use clap_complete::engine::ArgValueCandidates;
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::editing::working_tree::{Edit, WorkingTree, refused, would_be_faulty};
use crate::flags::fleet::RepoArg;
use crate::flags::names::{self, find};
use crate::output::changes::coloured;
use crate::output::results::{Format, NameForm, ResultKind};
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit, Outcome};
use berth_base::diag::harmless_lines;
use berth_base::edit::{self, Found, Step, keys};
use berth_base::model::rollout_policy::{KIND, RolloutPolicy};
use berth_base::model::staged::{Run, RunState, StageGate};
use berth_base::model::{API_VERSION, Key, Timestamp};
use berth_base::yaml::{Value, emit};
use berth_engine::dialects::{DIALECTS, RunApproval, StagedRuns};
use berth_engine::release::runs::by_number;

/// The workload, and what to do with the edit
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct OrderArgs {
    /// NAME, NAMESPACE/NAME, KIND/NAME or KIND/NAMESPACE/NAME
    #[arg(add = ArgValueCandidates::new(names::placements))]
    pub workload: String,
    #[command(flatten)]
    pub repo: RepoArg,
    /// Commit the edit, and nothing else
    #[arg(long)]
    pub commit: bool,
    /// Show the lines that would change, and write nothing
    #[arg(long, conflicts_with = "commit")]
    pub dry_run: bool,
    /// Folder for the policy, where the workload has none of its own yet
    #[arg(long, value_name = "DIR", default_value = "rollouts")]
    pub dir: String,
    #[arg(short, long, value_enum, default_value = "text")]
    pub output: Format,
}

/// The edit of a rollout, for programs.
#[derive(Serialize)]
struct RolloutOrder<'a> {
    workload: WorkloadNameForm<'a>,
    effect: &'a str,
    files: &'a [&'a str],
    notes: &'a [String],
    written: bool,
    commit: Option<&'a str>,
}

#[derive(Serialize)]
struct WorkloadNameForm<'a> {
    group: &'a str,
    #[serde(flatten)]
    name: NameForm,
}

/// A workload of a working tree.
#[derive(Debug)]
pub(super) struct Steered {
    pub tree: WorkingTree,
    pub key: Key,
}

/// A document of a working tree.
pub(super) type Document<'t> = (&'t Arc<str>, &'t Found);

/// An edit with its description.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Empty if nothing changes.
    pub edits: Vec<Edit>,
    /// Such as `paused`.
    pub effect: String,
    /// The commit's subject, and what follows it.
    pub subject: String,
    pub body: String,
    pub notes: Vec<String>,
}

impl Steered {
    pub fn read(args: &OrderArgs, ui: &Ui) -> Result<Steered, CommandError> {
        let tree = WorkingTree::read(&args.repo.path)?;
        ui.diagnostics(&tree.unreadable());
        let keys = find(tree.loaded.fleet.workloads.keys().collect(), &args.workload)?;
        let key = match keys.as_slice() {
            [one] => (*one).clone(),
            several => {
                let names: Vec<String> =
                    several.iter().map(|key| format!("{}/{}", key.kind, key.full_name())).collect();
                let error = CommandError::usage(format!("several workloads are named `{}`", args.workload));
                return Err(error.hint(format!("name one of {}", names.join(", "))));
            }
        };
        Ok(Steered { tree, key })
    }

    /// Returns the policy whose only pattern names exactly this workload, with its document.
    pub fn own_policy(&self) -> Option<(&RolloutPolicy, Document<'_>)> {
        let fleet = &self.tree.loaded.fleet;
        fleet.policies_of(&self.key).into_iter().find_map(|policy| {
            let [pattern] = policy.workloads.as_deref()? else { return None };
            let is_own = pattern.is_exact() && fleet.workloads_of(pattern) == [&self.key];
            is_own.then_some(())?;
            Some((policy, self.document(&policy.key)?))
        })
    }

    /// Returns the document with a key.
    pub fn document(&self, key: &Key) -> Option<Document<'_>> {
        let is_meant = |found: &Found| {
            (found.group(), &*found.kind, &*found.namespace, &*found.name)
                == (&*key.group, &*key.kind, &*key.namespace, &*key.name)
        };
        self.tree.objects().find(|(_, found)| is_meant(found))
    }

    /// Sets a field of the workload's own policy, which is created if it is missing.
    pub fn set(&self, args: &OrderArgs, path: &[Step], value: &Json) -> Result<Edit, CommandError> {
        let Some((_, (file, found))) = self.own_policy() else { return self.new_policy(args, path, value) };
        let text = edit::set(self.tree.text(file)?, found.document, &found.path_to(path), value);
        let text = text.map_err(|error| refused(file, found, &error))?;
        Ok(Edit { path: file.to_string(), text: Some(text) })
    }

    /// Removes a field of the workload's own policy, and the policy if it becomes empty.
    pub fn remove(&self, field: &str) -> Result<Vec<Edit>, CommandError> {
        let Some((_, (file, found))) = self.own_policy() else { return Ok(Vec::new()) };
        let spec = found.node.get("spec").map(|node| &node.value);
        let is_last = match spec {
            Some(Value::Map(entries)) => {
                entries.iter().all(|entry| [field, "workloads"].contains(&&*entry.key))
            }
            _ => false,
        };
        if is_last {
            return self.tree.without(&[(file, found)]);
        }
        let path = found.path_to(&keys(["spec", field]));
        let text = edit::remove(self.tree.text(file)?, found.document, &path);
        let text = text.map_err(|error| refused(file, found, &error))?;
        Ok(vec![Edit { path: file.to_string(), text: Some(text) }])
    }

    fn new_policy(&self, args: &OrderArgs, path: &[Step], value: &Json) -> Result<Edit, CommandError> {
        let Key { kind, namespace, name, .. } = &self.key;
        let names = [
            name.to_string(),
            format!("{}-{name}", kind.to_lowercase()),
            format!("{}-{namespace}-{name}", kind.to_lowercase()),
        ];
        let policies = &self.tree.loaded.fleet.rollout_policies;
        let is_free = |one: &&String| {
            let policy = Key::new("berth.dev", KIND, namespace, one);
            let file = format!("{}/{one}.yaml", args.dir.trim_matches('/'));
            !policies.contains_key(&policy) && !self.tree.tree.files.contains_key(&*file)
        };
        let chosen = names.iter().find(is_free).unwrap_or(&names[2]);
        let mut metadata = json!({"name": chosen});
        let mut workload = json!({"kind": kind, "name": name});
        if !namespace.is_empty() {
            metadata["namespace"] = json!(namespace);
            workload["namespace"] = json!(namespace);
        }
        let policy = json!({
            "apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": {"workloads": [workload]},
        });
        let text = edit::set(&emit(&policy), 0, path, value);
        let text = text.map_err(|error| CommandError::usage(format!("a new policy: {error}")))?;
        Ok(Edit { path: self.tree.new_file(&args.dir, chosen)?, text: Some(text) })
    }
}

impl Order {
    /// Checks the edits, writes them, commits them if requested, and reports the effect.
    pub fn carry_out(self, steered: &Steered, args: &OrderArgs, ui: &Ui) -> Outcome {
        let tree = &steered.tree;
        let (_, new_errors) = tree.check(&self.edits);
        if let Some(error) = would_be_faulty(&new_errors) {
            return Err(error);
        }
        if !self.edits.is_empty() {
            ui.diagnostics(&tree.lacking(&self.edits)?);
        }
        let (root, paths): (&Path, Vec<&str>) =
            (&args.repo.path, self.edits.iter().map(|edit| &*edit.path).collect());
        let commits = args.commit && !self.edits.is_empty();
        if commits {
            require_committed(root, &paths)?;
        }
        if !args.dry_run {
            tree.write(&self.edits)?;
        }
        let message = format!("{}\n\n{}", self.subject, self.body);
        let id = if commits { Some(commit(root, &paths, message.trim_end())?) } else { None };
        match args.output {
            Format::Text if args.dry_run => {
                for Edit { path, text } in &self.edits {
                    let before = tree.text(path)?;
                    ui.out(&coloured(before, text.as_deref().unwrap_or_default(), path, ui));
                }
            }
            Format::Text => {
                let files = if paths.is_empty() { String::new() } else { format!(" ({})", paths.join(", ")) };
                ui.out(&format!("{}: {}{files}", steered.key, self.effect));
            }
            format => {
                let result = RolloutOrder {
                    workload: WorkloadNameForm {
                        group: &steered.key.group,
                        name: NameForm::of(&steered.key),
                    },
                    effect: &self.effect,
                    files: &paths,
                    notes: &self.notes,
                    written: !args.dry_run && !self.edits.is_empty(),
                    commit: id.as_deref(),
                };
                format.write(ResultKind::RolloutOrder, &result, ui);
            }
        }
        self.notes.iter().for_each(|note| ui.status(note));
        ui.status(&match (&id, self.edits.is_empty(), args.dry_run) {
            (_, true, _) => "nothing to change".to_owned(),
            (_, _, true) => "nothing was written; run without --dry-run to edit the files".to_owned(),
            (Some(id), ..) => format!("committed {id}: {}\nnext: push", self.subject),
            (None, ..) => "next: commit and push, or run with `--commit`".to_owned(),
        });
        Ok(Exit::Done)
    }
}

/// Refuses files with uncommitted changes, which would become part of the commit.
pub(super) fn require_committed(root: &Path, paths: &[&str]) -> Result<(), CommandError> {
    let status = git(root, &[&["status", "--porcelain", "--"], paths].concat())?;
    let changed: Vec<&str> = status.lines().filter_map(|line| line.get(3..)).collect();
    if changed.is_empty() {
        return Ok(());
    }
    let message = format!("{} has changes that are not committed", changed.join(", "));
    Err(CommandError::usage(message).hint("commit them first, or leave `--commit` out"))
}

/// Commits only these files. Returns the commit's short id.
pub(super) fn commit(root: &Path, paths: &[&str], message: &str) -> Result<String, CommandError> {
    let done = git(root, &[&["add", "--"], paths].concat())
        .and_then(|_| git(root, &[&["commit", "-q", "-m", message, "--only", "--"], paths].concat()))
        .and_then(|_| git(root, &["rev-parse", "--short", "HEAD"]));
    done.map_err(|error| error.hint("the files are edited; commit them yourself"))
}

fn git(root: &Path, args: &[&str]) -> Result<String, CommandError> {
    let mut command = Command::new("git");
    command.arg("--literal-pathspecs").arg("-C").arg(root).args(args);
    let Output { status, stdout, stderr } =
        command.output().map_err(|error| CommandError::io("running git", &error))?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).trim_end().to_owned());
    }
    let verb = args.first().copied().unwrap_or_default();
    let said = String::from_utf8_lossy(&stderr);
    let message = format!("`git {verb}` failed: {}", harmless_lines(said.trim()));
    Err(CommandError::new(Exit::Unreachable, message))
}

/// Returns the workload's newest run, by name.
pub(super) fn newest_run(steered: &Steered) -> Option<&Run> {
    let runs = steered.tree.loaded.fleet.runs.values();
    runs.filter(|run| run.workload == steered.key).max_by(|a, b| by_number(&a.key, &b.key))
}

/// Puts a run into a state.
pub(super) fn set_state(steered: &Steered, run: &Run, state: RunState) -> Result<Edit, CommandError> {
    let kinds = staged_runs(&run.key)?;
    let (file, found) = steered.document(&run.key).ok_or_else(|| unknown(&run.key))?;
    let path = found.path_to(&keys(kinds.state));
    let text = edit::set(steered.tree.text(file)?, found.document, &path, &json!((kinds.word)(state)));
    let text = text.map_err(|error| refused(file, found, &error))?;
    Ok(Edit { path: file.to_string(), text: Some(text) })
}

/// Approves a gate of a run, in the existing request or in a new one.
pub(super) fn approve(
    steered: &Steered,
    args: &OrderArgs,
    given: &RunApproval<'_>,
) -> Result<Option<Edit>, CommandError> {
    let kinds = staged_runs(given.run)?;
    let document = (kinds.approval)(given);
    let fleet = &steered.tree.loaded.fleet;
    let existing =
        fleet.stage_approvals.values().find(|one| one.run == *given.run && one.gate == *given.gate);
    let Some(existing) = existing else {
        let name = document["metadata"]["name"].as_str().unwrap_or_default();
        let path = steered.tree.new_file(&args.dir, name)?;
        return Ok(Some(Edit { path, text: Some(emit(&document)) }));
    };
    if existing.approved {
        return Ok(None);
    }
    let (file, found) = steered.document(&existing.key).ok_or_else(|| unknown(&existing.key))?;
    let path = found.path_to(&keys(["status"]));
    let text = edit::set(steered.tree.text(file)?, found.document, &path, &document["status"]);
    let text = text.map_err(|error| refused(file, found, &error))?;
    Ok(Some(Edit { path: file.to_string(), text: Some(text) }))
}

/// An approval by a person.
pub(super) fn approval<'a>(
    run: &'a Run,
    gate: &'a StageGate,
    message: &'a str,
    now: Option<Timestamp>,
) -> RunApproval<'a> {
    RunApproval { run: &run.key, gate, message, now: now.unwrap_or_else(Timestamp::now) }
}

fn staged_runs(run: &Key) -> Result<&'static StagedRuns, CommandError> {
    let mut all = DIALECTS.iter().filter_map(|dialect| dialect.staged_runs);
    all.find(|one| *one.group == *run.group).ok_or_else(|| unknown(run))
}

fn unknown(key: &Key) -> CommandError {
    CommandError::usage(format!("no file of this fleet holds {key}"))
}
