//! `berth disable TYPE`: suspends a type's Federated objects, or removes the type.

use std::fmt::Write as _;
use std::sync::Arc;

use serde::Serialize;

use super::enable::{one_called, propagation};
use crate::editing::working_tree::{Edit, EditForm, WorkingTree, would_be_faulty};
use crate::flags::fleet::RepoArg;
use crate::output::changes::{PlanForm, plan_text};
use crate::output::results::{Format, NameForm, ResultKind};
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit, Outcome};
use berth_base::edit::{Found, keys};
use berth_base::text::counted;
use berth_base::yaml::emit;
use berth_engine::dialects::kubefed::make::{FederatedKind, KnownTypes, read_type_config, type_config};
use berth_engine::plan::Plan;

/// Stop the propagation of a type
///
/// Shows first what it does. Sets `propagation: Disabled` in every control plane's config: members keep
/// what they have, and nothing of the type changes until it is enabled again. With --delete the type
/// configs are removed, which needs that no object of the type is left. A type that KubeFed ships needs
/// no config, so that without one it is enabled.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth disable deployments.apps\n  berth disable deployments.apps --yes\n  berth disable widgets.example.com --delete --yes"
)]
pub(crate) struct DisableArgs {
    /// The type: short name, kind, plural, or plural with group; or its Federated kind
    #[arg(value_name = "TYPE")]
    name: String,
    /// Remove the type config; for a type that KubeFed ships, this ends `propagation: Disabled`
    #[arg(long)]
    delete: bool,
    /// Edit the files; without it, only show the changes
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    repo: RepoArg,
    /// Folder for the file, where the type has no config yet
    #[arg(long, value_name = "DIR", default_value = "types")]
    dir: String,
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
}

pub(crate) fn cmd_disable(args: &DisableArgs, ui: &Ui) -> Outcome {
    let tree = WorkingTree::read(&args.repo.path)?;
    ui.diagnostics(&tree.unreadable());
    let disabled = Disabled::of(args, &tree)?;
    ui.diagnostics(&tree.lacking(&disabled.edits)?);
    if args.yes {
        tree.write(&disabled.edits)?;
    }
    match args.output {
        Format::Text => ui.out(&disabled.text(args.delete, ui)),
        format => format.write(ResultKind::DisableResult, &disabled.form(args), ui),
    }
    if !args.yes && !disabled.edits.is_empty() {
        ui.status("nothing was written; use --yes to edit the files");
    }
    Ok(Exit::Done)
}

/// The edits that disable a type, and their effect.
struct Disabled<'t> {
    /// The type's name.
    name: String,
    /// KubeFed ships the type, so it needs no config.
    is_shipped: bool,
    /// The objects of the type.
    of_type: Vec<(&'t Arc<str>, &'t Found)>,
    edits: Vec<Edit>,
    plan: Plan,
}

impl<'t> Disabled<'t> {
    fn of(args: &DisableArgs, tree: &'t WorkingTree) -> Result<Disabled<'t>, CommandError> {
        let (types, resources) = tree.types();
        let resource = one_called(&args.name, &resources, &types)?;
        let name = resource.full_name();
        let Some(known) = types.of_target(&resource.group, &resource.kind) else {
            let error = CommandError::usage(format!("{name} is not enabled"));
            return Err(error.hint("no type config names it"));
        };
        let configs = tree.type_configs(&name);
        // Two control planes may have different names for the Federated kind.
        let mut kinds: Vec<FederatedKind> =
            configs.iter().filter_map(|(_, found)| read_type_config(&found.node.to_json())).collect();
        kinds.push(known.clone());
        let is_of_type =
            |found: &Found| kinds.iter().any(|one| found.kind == one.kind && found.group() == one.group);
        let of_type: Vec<_> = tree.objects().filter(|(_, found)| is_of_type(found)).collect();
        let is_shipped = KnownTypes::is_shipped(&known.group, &known.kind);
        let edits = if args.delete {
            deletion(tree, &configs, &name, is_shipped, &of_type)?
        } else {
            disabling(args, tree, &configs, known)?
        };
        let (_, new_errors) = tree.check(&edits);
        if let Some(error) = would_be_faulty(&new_errors) {
            return Err(error);
        }
        let plan = tree.plan(&edits)?;
        Ok(Disabled { name, is_shipped, of_type, edits, plan })
    }

    fn form(&self, args: &DisableArgs) -> DisableResult<'_> {
        let object = |(file, found): &'_ (&Arc<str>, &Found)| DisabledObjectForm {
            name: NameForm::found(found),
            file: file.to_string(),
            line: found.at.line,
        };
        DisableResult {
            name: self.name.to_string(),
            propagation: match (args.delete, self.is_shipped) {
                (true, true) => Some("Enabled"),
                (true, false) => None,
                (false, _) => Some("Disabled"),
            },
            files: self.edits.iter().map(EditForm::of).collect(),
            objects: self.of_type.iter().map(object).collect(),
            plan: PlanForm::of(&self.plan),
            written: args.yes && !self.edits.is_empty(),
        }
    }

    fn text(&self, deletes: bool, ui: &Ui) -> String {
        let (name, mut text) = (&self.name, String::new());
        for edit in &self.edits {
            let what = match &edit.text {
                None => "goes",
                Some(_) if deletes => "loses the type config",
                Some(_) => "says `propagation: Disabled`",
            };
            let _ = writeln!(text, "{} {what}", edit.path);
        }
        if self.edits.is_empty() {
            let _ = writeln!(text, "{name} is already disabled");
        }
        let _ = match (deletes, self.of_type.len()) {
            (true, _) if self.is_shipped => {
                writeln!(text, "{name} is a type that KubeFed ships: it is enabled without a config")
            }
            (true, _) => Ok(()),
            (false, 0) => writeln!(text, "it has no objects"),
            (false, 1) => writeln!(text, "1 object stays unchanged in every member"),
            (false, n) => writeln!(text, "{n} objects stay unchanged in every member"),
        };
        for one in &self.of_type {
            let _ = writeln!(text, "  {}", place(one));
        }
        let _ = write!(text, "members: {}", plan_text(&self.plan, ui));
        text
    }
}

/// An object with its place.
fn place((file, found): &(&Arc<str>, &Found)) -> String {
    format!("{file}:{}:{}: {} {}", found.at.line, found.at.column, found.kind, found.name)
}

/// Sets `propagation: Disabled` in the existing configs or in a new one. No edits if it is set already.
fn disabling(
    args: &DisableArgs,
    tree: &WorkingTree,
    configs: &[(&Arc<str>, &Found)],
    known: &FederatedKind,
) -> Result<Vec<Edit>, CommandError> {
    if configs.is_empty() {
        let path = tree.new_file(&args.dir, &known.target.full_name())?;
        let document = type_config(&FederatedKind { propagates: false, ..known.clone() });
        return Ok(vec![Edit { path, text: Some(emit(&document)) }]);
    }
    let going: Vec<_> =
        configs.iter().copied().filter(|(_, found)| propagation(found) != Some("Disabled")).collect();
    tree.set(&going, &keys(["spec", "propagation"]), &"Disabled".into())
}

fn deletion(
    tree: &WorkingTree,
    configs: &[(&Arc<str>, &Found)],
    name: &str,
    is_shipped: bool,
    of_type: &[(&Arc<str>, &Found)],
) -> Result<Vec<Edit>, CommandError> {
    if configs.is_empty() {
        return Err(CommandError::usage(format!("{name} has no type config to delete")).hint(
            "disable it without \
                --delete",
        ));
    }
    if of_type.is_empty() {
        return tree.without(configs);
    }
    let places: Vec<String> = of_type.iter().map(place).collect();
    let (objects, places) = (counted(of_type.len(), "object"), places.join("\n"));
    let (message, hint) = if is_shipped {
        (
            format!(
                "--delete would leave {name} enabled, with {objects}: KubeFed ships the type, which needs no config"
            ),
            format!("disable it without --delete, or run `berth enable {name}`"),
        )
    } else {
        let their = if of_type.len() == 1 { "its" } else { "their" };
        (
            format!("{objects} of {name} would lose {their} type config"),
            "remove them first, or disable it without --delete".to_owned(),
        )
    };
    Err(CommandError::usage(message).hint(format!("{hint}\n{places}")))
}

/// A type that is no longer propagated, for programs.
#[derive(Serialize)]
struct DisableResult<'a> {
    #[serde(rename = "type")]
    name: String,
    propagation: Option<&'static str>,
    files: Vec<EditForm<'a>>,
    objects: Vec<DisabledObjectForm>,
    plan: PlanForm<'a>,
    written: bool,
}

#[derive(Serialize)]
struct DisabledObjectForm {
    #[serde(flatten)]
    name: NameForm,
    file: String,
    line: u32,
}
