//! `berth unjoin NAME`: removes a member from the inventory, after showing the effects.

use std::fmt::Write as _;
use std::sync::Arc;

use serde::Serialize;

use clap_complete::engine::ArgValueCandidates;

use crate::editing::working_tree::{Edit, EditForm, WorkingTree, would_be_faulty};
use crate::flags::fleet::RepoArg;
use crate::flags::names;
use crate::output::changes::{PlanForm, plan_text};
use crate::output::results::{Format, MentionForm, ResultKind, mentions_text};
use crate::output::ui::{Tone, Ui};
use crate::process::exit::{CommandError, Exit, Outcome};
use berth_base::edit::Found;
use berth_engine::load::Loaded;
use berth_engine::plan::Plan;

/// Take a member out of the inventory
///
/// Shows what would go: which objects from which cluster, and which other placements change. With --yes the
/// documents that describe the cluster are removed, and files that held nothing else. Nothing
/// leaves the cluster before the edit is committed and published, which the deletion gate watches.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth unjoin oslo\n  berth unjoin oslo --yes && git commit -am 'oslo leaves'"
)]
pub(crate) struct UnjoinArgs {
    /// The cluster's name
    #[arg(add = ArgValueCandidates::new(names::clusters))]
    name: String,
    /// Edit the files; without it, only show the changes
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    repo: RepoArg,
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
}

pub(crate) fn cmd_unjoin(args: &UnjoinArgs, ui: &Ui) -> Outcome {
    let tree = WorkingTree::read(&args.repo.path)?;
    ui.diagnostics(&tree.unreadable());
    let leave = Leave::of(&args.name, &tree)?;
    ui.diagnostics(&tree.lacking(&leave.edits)?);
    if args.yes {
        tree.write(&leave.edits)?;
    }
    match args.output {
        Format::Text => ui.out(&leave.text(ui)),
        format => format.write(ResultKind::UnjoinResult, &leave.form(args.yes), ui),
    }
    ui.status(if args.yes {
        "next: commit, and look at `berth plan`, which shows the removals to approve"
    } else {
        "nothing was written; use --yes to edit the files"
    });
    Ok(Exit::Done)
}

/// The removal of a cluster, with its effects.
struct Leave<'t> {
    cluster: &'t str,
    /// The documents that describe the cluster, each with its file.
    documents: Vec<(&'t Arc<str>, &'t Found)>,
    edits: Vec<Edit>,
    /// The fleet without the cluster.
    after: Loaded,
    plan: Plan,
}

impl<'t> Leave<'t> {
    fn of(name: &'t str, tree: &'t WorkingTree) -> Result<Leave<'t>, CommandError> {
        let documents = tree.documents_of(name)?;
        let edits = tree.without(&documents)?;
        let (after, new_errors) = tree.check(&edits);
        if let Some(error) = would_be_faulty(&new_errors) {
            return Err(error);
        }
        if after.fleet.clusters.contains_key(name) {
            return Err(CommandError::new(Exit::Bug, format!("{name} would still be in the fleet")));
        }
        let plan = tree.plan(&edits)?;
        Ok(Leave { cluster: name, documents, edits, after, plan })
    }

    fn text(&self, ui: &Ui) -> String {
        let name = self.cluster;
        let mut text = format!("{} is described by\n", ui.tint(name, Tone::Strong));
        for (file, found) in &self.documents {
            let whole = |edit: &Edit| *edit.path == ***file && edit.text.is_none();
            let extent = if self.edits.iter().any(whole) { " (the whole file is removed)" } else { "" };
            let _ = writeln!(text, "  {file}:{}:{}: {}{extent}", found.at.line, found.at.column, found.kind);
        }
        let _ = writeln!(text, "\nafter the removal: {}", plan_text(&self.plan, ui).trim_end());
        let named = mentions_text(&self.after.fleet, name);
        if !named.is_empty() {
            let _ = writeln!(
                text,
                "\nstill named by these, which apply again if a cluster `{name}` joins\n{}",
                named.trim_end()
            );
        }
        text
    }

    fn form(&self, is_written: bool) -> UnjoinResult<'_> {
        let document = |(file, found): &'_ (&Arc<str>, &Found)| DocumentForm {
            kind: found.kind.to_string(),
            file: file.to_string(),
            line: found.at.line,
        };
        UnjoinResult {
            cluster: self.cluster,
            documents: self.documents.iter().map(document).collect(),
            files: self.edits.iter().map(EditForm::of).collect(),
            plan: PlanForm::of(&self.plan),
            named: MentionForm::all(&self.after.fleet, self.cluster),
            written: is_written,
        }
    }
}

/// The removal of a cluster, for programs.
#[derive(Serialize)]
struct UnjoinResult<'a> {
    cluster: &'a str,
    documents: Vec<DocumentForm>,
    files: Vec<EditForm<'a>>,
    plan: PlanForm<'a>,
    named: Vec<MentionForm>,
    written: bool,
}

#[derive(Serialize)]
struct DocumentForm {
    kind: String,
    file: String,
    line: u32,
}
