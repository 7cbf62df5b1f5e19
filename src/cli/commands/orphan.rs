//! `berth orphan enable|disable|status KIND NAME`: whether members keep an object when its file is removed.

use std::sync::Arc;

use serde::Serialize;

use crate::editing::working_tree::{Edit, WorkingTree, refused, would_be_faulty};
use crate::flags::fleet::RepoArg;
use crate::output::results::{Format, NameForm, ResultKind};
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit, Outcome};
use berth_base::diag::did_you_mean;
use berth_base::edit::{self, Found, keys};
use berth_base::yaml::Node;
use berth_engine::dialects::kubefed::make::ORPHAN;

/// Say whether members keep an object that is let go
///
/// Sets or removes the annotation kubefed.io/orphan on a Federated object, in its file.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth orphan enable deployment web -n shop\n  berth orphan status FederatedDeployment web\n  berth orphan disable deploy web"
)]
pub(crate) struct OrphanArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Let members keep the object as its only owners
    #[command(after_help = "Example:\n  berth orphan enable deployment web -n shop")]
    Enable(ObjectArgs),
    /// Let members remove the object, which is the default
    #[command(after_help = "Example:\n  berth orphan disable deployment web -n shop")]
    Disable(ObjectArgs),
    /// Show the current setting
    #[command(after_help = "Example:\n  berth orphan status deployment web -n shop -o json")]
    Status(ObjectArgs),
}

#[derive(Debug, clap::Args)]
struct ObjectArgs {
    /// The kind, Federated or of its target, in any of its names
    kind: String,
    name: String,
    /// Namespace of the object, required where several have its name
    #[arg(short, long)]
    namespace: Option<String>,
    #[command(flatten)]
    repo: RepoArg,
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
}

/// Writes the annotation into the object's file, or removes it there.
fn write(tree: &WorkingTree, file: &Arc<str>, found: &Found, orphan: bool) -> Result<(), CommandError> {
    let text = tree.text(file)?;
    let path = found.path_to(&keys(["metadata", "annotations", ORPHAN]));
    let edited = match orphan {
        true => edit::set(text, found.document, &path, &"true".into()),
        // A mapping that becomes empty is removed, too.
        false => edit::remove_with_holder(text, found.document, &path),
    };
    let text = edited.map_err(|error| refused(file, found, &error))?;
    let edits = [Edit { path: file.to_string(), text: Some(text) }];
    let (_, new_errors) = tree.check(&edits);
    if let Some(error) = would_be_faulty(&new_errors) {
        return Err(error);
    }
    tree.write(&edits)
}

pub(crate) fn cmd_orphan(args: &OrphanArgs, ui: &Ui) -> Outcome {
    let (object, wanted) = match &args.action {
        Action::Enable(object) => (object, Some(true)),
        Action::Disable(object) => (object, Some(false)),
        Action::Status(object) => (object, None),
    };
    let tree = WorkingTree::read(&object.repo.path)?;
    ui.diagnostics(&tree.unreadable());
    let (file, found) = find(&tree, object)?;
    let annotations = found.node.get("metadata").and_then(|metadata| metadata.get("annotations"));
    let written = annotations.and_then(|annotations| annotations.get(ORPHAN));
    let is_on = written.and_then(Node::as_str) == Some("true");
    let is_as_wanted = match wanted {
        None => true,
        Some(true) => is_on,
        Some(false) => written.is_none(),
    };
    if !is_as_wanted {
        write(&tree, file, found, wanted == Some(true))?;
    }
    let now = wanted.unwrap_or(is_on);
    match object.output {
        Format::Text => {
            let name = match found.namespace.as_str() {
                "" => found.name.clone(),
                namespace => format!("{namespace}/{}", found.name),
            };
            let (word, already) = (
                if now { "enabled" } else { "disabled" },
                if wanted.is_some() && is_as_wanted { " already" } else { "" },
            );
            ui.out(&format!(
                "{file}:{}: orphaning is {word}{already} for {} {name}",
                found.at.line, found.kind
            ));
        }
        format => {
            let result = OrphanResult {
                object: NameForm::found(found),
                file,
                line: found.at.line,
                orphan: now,
                changed: !is_as_wanted,
            };
            format.write(ResultKind::OrphanResult, &result, ui);
        }
    }
    Ok(Exit::Done)
}

/// The setting of one object, for programs.
#[derive(Serialize)]
struct OrphanResult<'a> {
    object: NameForm,
    file: &'a str,
    line: u32,
    orphan: bool,
    changed: bool,
}

/// The one Federated object that is meant.
fn find<'t>(tree: &'t WorkingTree, args: &ObjectArgs) -> Result<(&'t Arc<str>, &'t Found), CommandError> {
    let (types, _) = tree.types();
    let of_kind: Vec<(&Arc<str>, &Found)> = tree
        .objects()
        .filter(|(_, found)| {
            let known = types.of_federated(found.group(), &found.kind);
            known.is_some_and(|known| known.is_called(&args.kind))
        })
        .collect();
    let in_namespace =
        |found: &Found| args.namespace.as_ref().is_none_or(|namespace| found.namespace == *namespace);
    let meant: Vec<_> =
        of_kind.iter().copied().filter(|(_, found)| found.name == args.name && in_namespace(found)).collect();
    match meant.as_slice() {
        [one] => Ok(*one),
        [] => {
            let (kind, name) = (&args.kind, &args.name);
            let place = args.namespace.as_ref().map(|namespace| format!(" in namespace `{namespace}`"));
            let error = CommandError::usage(format!(
                "no Federated object of kind `{kind}` is named `{name}`{}",
                place.unwrap_or_default()
            ));
            let near = did_you_mean(
                name,
                of_kind.iter().map(|(_, found)| found.name.as_str()).filter(|near| near != name),
            );
            let named = tree
                .objects()
                .filter(|(_, found)| found.name == *name && found.kind.starts_with("Federated"));
            let others: Vec<String> = named
                .map(|(file, found)| {
                    format!("{file}:{}: {} in `{}`", found.at.line, found.kind, found.namespace)
                })
                .collect();
            Err(match (near, others.is_empty()) {
                (Some(near), true) => error.hint(near),
                (_, false) => error.hint(format!("choose one of these\n{}", others.join("\n"))),
                (None, true) => error.hint("list the objects with `berth decide`"),
            })
        }
        several => {
            let places: Vec<String> = several
                .iter()
                .map(|(file, found)| {
                    format!("{file}:{}: {} in `{}`", found.at.line, found.kind, found.namespace)
                })
                .collect();
            let error = CommandError::usage(format!("{} objects match", several.len()));
            Err(error.hint(format!("name one with --namespace and its full kind\n{}", places.join("\n"))))
        }
    }
}
