//! `berth unjoin NAME`: a member leaves the inventory, after a look at what goes with it.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use clap_complete::engine::ArgValueCandidates;

use crate::editing::working_tree::{Edit, WorkingTree, would_be_faulty};
use crate::flags::names;
use crate::flags::repo::RepoArg;
use crate::output::changes::{plan_json, plan_text};
use crate::output::results::{Format, ResultKind, mentions_json, mentions_text};
use crate::output::ui::{Tone, Ui};
use crate::process::exit::{CommandError, Exit, Outcome};
use berth_base::diag::did_you_mean;
use berth_base::edit::Found;

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
    let name = &args.name;
    let tree = WorkingTree::read(&args.repo.path)?;
    ui.diagnostics(&tree.unreadable());
    let fleet = &tree.loaded.fleet;
    let Some(cluster) = fleet.clusters.get(name) else {
        let error = CommandError::usage(format!("no cluster `{name}` in this fleet"));
        let near = did_you_mean(name, fleet.clusters.keys().map(String::as_str));
        return Err(error.hint(near.unwrap_or_else(|| "`berth status` lists the clusters".to_owned())));
    };
    let describes = |(file, found): &(&Arc<str>, &Found)| {
        cluster
            .origins
            .iter()
            .any(|at| at.file == **file && (at.line, at.column) == (found.at.line, found.at.column))
    };
    let gone: Vec<(&Arc<str>, &Found)> = tree.objects().filter(describes).collect();
    let edits = tree.without(&gone)?;
    let (after, new_errors) = tree.check(&edits);
    if let Some(error) = would_be_faulty(&new_errors) {
        return Err(error);
    }
    if after.fleet.clusters.contains_key(name) {
        return Err(CommandError::new(Exit::Bug, format!("{name} would still be in the fleet")));
    }
    let plan = tree.plan(&edits)?;
    ui.diagnostics(&tree.lacking(&edits)?);
    if args.yes {
        tree.write(&edits)?;
    }
    let form = || {
        json!({
            "cluster": name,
            "documents": gone.iter().map(|(file, found)| json!({
                "kind": found.kind, "file": &***file, "line": found.at.line,
            })).collect::<Vec<Json>>(),
            "files": edits.iter().map(|edit| json!({
                "file": edit.path, "deleted": edit.text.is_none(),
            })).collect::<Vec<Json>>(),
            "plan": plan_json(&plan),
            "named": mentions_json(&after.fleet, name),
            "written": args.yes,
        })
    };
    match args.output {
        Format::Text => {
            let mut text = format!("{} is described by\n", ui.tint(name, Tone::Strong));
            for (file, found) in &gone {
                let whole = |edit: &&Edit| *edit.path == ***file && edit.text.is_none();
                let extent =
                    if edits.iter().any(|edit| whole(&edit)) { " (the whole file is removed)" } else { "" };
                let _ =
                    writeln!(text, "  {file}:{}:{}: {}{extent}", found.at.line, found.at.column, found.kind);
            }
            let _ = writeln!(text, "\nafter the removal: {}", plan_text(&plan, ui).trim_end());
            let named = mentions_text(&after.fleet, name);
            if !named.is_empty() {
                let _ = writeln!(
                    text,
                    "\nstill named by these, which apply again if a cluster `{name}` joins\n{}",
                    named.trim_end()
                );
            }
            ui.out(&text);
        }
        format => format.write(ResultKind::UnjoinResult, form(), ui),
    }
    ui.status(if args.yes {
        "next: commit, and look at `berth plan`, which shows the removals to approve"
    } else {
        "nothing was written; use --yes to edit the files"
    });
    Ok(Exit::Done)
}
