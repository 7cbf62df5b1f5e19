//! `berth disable TYPE`: a type's Federated objects rest, or it has none any more.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::Outcome;
use super::enable::one_called;
use super::exit::{CommandError, Exit};
use super::fleet::Format;
use super::plan::{plan_json, plan_text};
use super::ui::{Ui, counted};
use super::working_tree::{Edit, RepoArg, WorkingTree, refused, would_be_faulty};
use crate::dialects::kubefed::make::{FederatedKind, KnownTypes, type_config};
use crate::edit::{self, Found, keys};
use crate::yaml::emit;

/// Stop the propagation of a type
///
/// Shows first what it does. Sets `propagation: Disabled`: members keep what they have, and nothing of
/// the type changes until it is enabled again. With --delete the type config is removed, which needs
/// that no object of the type is left.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth disable deployments.apps\n  berth disable deployments.apps --yes\n  berth disable widgets.example.com --delete --yes"
)]
pub struct DisableArgs {
    /// The type: short name, kind, plural, or plural with group; or its Federated kind
    #[arg(value_name = "TYPE")]
    name: String,
    /// Remove the type config
    #[arg(long)]
    delete: bool,
    /// Edit the files; without it they are only looked at
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    repo: RepoArg,
    /// The folder for the file, where the type has no config yet
    #[arg(long, value_name = "DIR", default_value = "types")]
    dir: String,
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
}

pub fn cmd_disable(args: &DisableArgs, ui: &Ui) -> Outcome {
    let tree = WorkingTree::read(&args.repo.repo)?;
    let (types, resources) = tree.types();
    let resource = one_called(&args.name, &resources, &types)?;
    let name = resource.full_name();
    let Some(known) = types.of_target(&resource.group, &resource.kind) else {
        return Err(CommandError::usage(format!("{name} is not enabled")).hint("no type config names it"));
    };
    let is_config = |found: &Found| found.kind == "FederatedTypeConfig" && found.name == name;
    let config = tree.objects().find(|(_, found)| is_config(found));
    let of_type: Vec<(&Arc<str>, &Found)> = tree
        .objects()
        .filter(|(_, found)| found.kind == known.kind && found.group() == known.group)
        .collect();
    let edits = if args.delete {
        deletion(&tree, config, known, &of_type)?
    } else {
        disabling(args, &tree, config, known)?
    };
    let (_, new_errors) = tree.check(&edits);
    if let Some(error) = would_be_faulty(&new_errors) {
        return Err(error);
    }
    let plan = tree.plan(&edits)?;
    if args.yes {
        tree.write(&edits)?;
    }
    let form = || {
        json!({
            "type": name,
            "propagation": if args.delete { Json::Null } else { "Disabled".into() },
            "files": edits.iter().map(|edit| json!({
                "file": edit.path, "deleted": edit.text.is_none(),
            })).collect::<Vec<Json>>(),
            "objects": of_type.iter().map(|(file, found)| json!({
                "kind": found.kind, "namespace": found.namespace, "name": found.name,
                "file": &***file, "line": found.at.line,
            })).collect::<Vec<Json>>(),
            "plan": plan_json(&plan),
            "written": args.yes && !edits.is_empty(),
        })
    };
    match args.output {
        Format::Json => ui.json(&form()),
        Format::Yaml => ui.yaml(&form()),
        Format::Text => {
            let mut text = String::new();
            for edit in &edits {
                let what = match &edit.text {
                    None => "goes",
                    Some(_) if args.delete => "loses the type config",
                    Some(_) => "says `propagation: Disabled`",
                };
                let _ = writeln!(text, "{} {what}", edit.path);
            }
            if edits.is_empty() {
                let _ = writeln!(text, "{name} is disabled already");
            }
            if !args.delete {
                let _ = writeln!(
                    text,
                    "{} {} as it is in every member",
                    counted(of_type.len(), "object"),
                    if of_type.len() == 1 { "stays" } else { "stay" }
                );
            }
            for (file, found) in &of_type {
                let _ = writeln!(
                    text,
                    "  {file}:{}:{}: {} {}",
                    found.at.line, found.at.column, found.kind, found.name
                );
            }
            let _ = write!(text, "members: {}", plan_text(&plan, ui));
            ui.out(&text);
        }
    }
    if !args.yes && !edits.is_empty() {
        ui.status("nothing was written; --yes edits the files");
    }
    Ok(Exit::Done)
}

/// `propagation: Disabled`, in the config that is there or in a new one. Nothing where it says so already.
fn disabling(
    args: &DisableArgs,
    tree: &WorkingTree,
    config: Option<(&Arc<str>, &Found)>,
    known: &FederatedKind,
) -> Result<Vec<Edit>, CommandError> {
    let Some((file, found)) = config else {
        let path = tree.new_file(&args.dir, &known.target.full_name())?;
        let document = type_config(&FederatedKind { propagates: false, ..known.clone() });
        return Ok(vec![Edit { path, text: Some(emit(&document)) }]);
    };
    if !known.propagates {
        return Ok(Vec::new());
    }
    let path = found.path_to(&keys(["spec", "propagation"]));
    let text = edit::set(tree.text(file)?, found.document, &path, &"Disabled".into());
    let text = text.map_err(|error| refused(file, found, &error))?;
    Ok(vec![Edit { path: file.to_string(), text: Some(text) }])
}

fn deletion(
    tree: &WorkingTree,
    config: Option<(&Arc<str>, &Found)>,
    known: &FederatedKind,
    of_type: &[(&Arc<str>, &Found)],
) -> Result<Vec<Edit>, CommandError> {
    let name = known.target.full_name();
    let Some(config) = config else {
        return Err(
            CommandError::usage(format!("{name} has no type config to delete")).hint("leave --delete out")
        );
    };
    let is_shipped = KnownTypes::default().of_federated(&known.group, &known.kind).is_some();
    if !is_shipped && !of_type.is_empty() {
        let places: Vec<String> = of_type
            .iter()
            .map(|(file, found)| {
                format!("{file}:{}:{}: {} {}", found.at.line, found.at.column, found.kind, found.name)
            })
            .collect();
        let message = format!("{} of {name} would lose their meaning", counted(of_type.len(), "object"));
        let hint = format!("remove them first, or leave --delete out\n{}", places.join("\n"));
        return Err(CommandError::usage(message).hint(hint));
    }
    tree.without(&[config])
}
