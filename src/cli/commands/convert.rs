//! `berth convert`: placements of KubeFleet's old API → policies of its next one, in their files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::changes::{plan_json, plan_text};
use super::exit::{CommandError, Exit, Outcome};
use super::fleet::Format;
use super::result_kind::ResultKind;
use super::ui::Ui;
use super::working_tree::{Edit, RepoArg, WorkingTree, refused, would_be_faulty};
use berth_base::diag::did_you_mean;
use berth_base::edit::{self, Found, Step, keys};
use berth_base::model::{Key, ObjectId};
use berth_base::text::counted;
use berth_base::yaml::emit;
use berth_engine::dialects::kubefleet::convert::{Contents, Converted, convert, is_convertible};
use berth_engine::plan::Plan;

/// Convert KubeFleet's placements to its next API
///
/// Each ClusterResourcePlacement and ResourcePlacement becomes a policy of placement.kubefleet.dev, in its file. The
/// policy keeps the placement's decision, releases and copies, so that no cluster changes: the command shows the plan,
/// and writes nothing if the plan has changes that nobody accepted.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth convert --dry-run\n  berth convert web ResourcePlacement/api\n  berth convert --accept-differences"
)]
pub(crate) struct ConvertArgs {
    /// Placements to convert, as NAME or KIND/NAME; default: all
    #[arg(value_name = "PLACEMENT")]
    placements: Vec<String>,
    /// Show the conversion, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Convert also what the next API cannot say in full, and accept the changes of the plan
    #[arg(long)]
    accept_differences: bool,
    #[command(flatten)]
    repo: RepoArg,
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
}

/// A placement, and what becomes of it.
struct One<'t> {
    file: &'t Arc<str>,
    found: &'t Found,
    key: Key,
    /// The reasons in place of a conversion.
    result: Result<Converted, Vec<String>>,
}

pub(crate) fn cmd_convert(args: &ConvertArgs, ui: &Ui) -> Outcome {
    let tree = WorkingTree::read(&args.repo.repo)?;
    ui.diagnostics(&tree.unreadable());
    let all = conversions(args, &tree)?;
    let edits = edits(&tree, &all)?;
    let (_, new_errors) = tree.check(&edits);
    if let Some(error) = would_be_faulty(&new_errors) {
        return Err(error);
    }
    let plan = if edits.is_empty() { Plan::default() } else { tree.plan(&edits)? };
    let is_accepted = plan.is_empty() || args.accept_differences;
    let writes = !args.dry_run && is_accepted && !edits.is_empty();
    if writes {
        tree.write(&edits)?;
    }
    match args.output {
        Format::Text => {
            ui.out(text(&all, &plan, ui).trim_end());
            ui.status(&match (writes, is_accepted, edits.len()) {
                (true, ..) => format!("wrote {}", counted(edits.len(), "file")),
                (false, false, _) => "nothing was written, because the plan has changes; accept them with \
                                      --accept-differences"
                    .to_owned(),
                (false, true, _) => "nothing was written".to_owned(),
            });
        }
        format => format.write(ResultKind::ConversionResult, form(&all, &plan, writes), ui),
    }
    let is_whole = all.iter().all(|one| one.result.is_ok());
    Ok(if !is_accepted {
        Exit::Different
    } else if is_whole {
        Exit::Done
    } else {
        Exit::Faulty
    })
}

fn conversions<'t>(args: &ConvertArgs, tree: &'t WorkingTree) -> Result<Vec<One<'t>>, CommandError> {
    let key = |found: &Found| Key::new(found.group(), &found.kind, &found.namespace, &found.name);
    let here: Vec<_> = tree
        .objects()
        .map(|(file, found)| (file, found, key(found)))
        .filter(|(.., key)| is_convertible(key))
        .collect();
    let is_named = |key: &Key, name: &String| {
        *name == *key.name || *name == format!("{}/{}", key.kind, key.name) || *name == key.full_name()
    };
    for name in &args.placements {
        if !here.iter().any(|(.., key)| is_named(key, name)) {
            let near = did_you_mean(name, here.iter().map(|(.., key)| &*key.name));
            let error = CommandError::usage(format!("no placement of the old API is named `{name}`"));
            return Err(
                error.hint(near.unwrap_or_else(|| "list the placements with `berth decide`".to_owned()))
            );
        }
    }
    let is_wanted =
        |key: &Key| args.placements.is_empty() || args.placements.iter().any(|name| is_named(key, name));
    let objects: Vec<(ObjectId, String)> = tree
        .objects()
        .map(|(_, found)| {
            let id = ObjectId::new(found.group(), &found.kind, &found.namespace, &found.name);
            (id, found.version().to_owned())
        })
        .collect();
    let one = |(file, found, key): (&'t Arc<str>, &'t Found, Key)| {
        let workload = tree.loaded.fleet.workloads.get(&key);
        let templates = workload.into_iter().flat_map(|workload| &workload.templates);
        let contents = Contents {
            objects: objects.clone(),
            carried: templates.map(|one| one.object.id.clone()).collect(),
        };
        let mut result = convert(&key, &found.node.to_json(), &contents);
        if !tree.loaded.fleet.placements.contains_key(&key) {
            result = Err(vec!["it has errors: see `berth validate`".to_owned()]);
        }
        if let Ok(Converted { differences, .. }) = &result
            && !differences.is_empty()
            && !args.accept_differences
        {
            result = Err(differences.iter().map(|one| format!("{one} (--accept-differences)")).collect());
        }
        One { file, found, key, result }
    };
    Ok(here.into_iter().filter(|(.., key)| is_wanted(key)).map(one).collect())
}

/// Returns the edits of files: each document keeps its place, and its comments outside of `spec`.
fn edits(tree: &WorkingTree, all: &[One<'_>]) -> Result<Vec<Edit>, CommandError> {
    let mut texts: BTreeMap<&Arc<str>, String> = BTreeMap::new();
    let mut edits = Vec::new();
    for one in all {
        let Ok(converted) = &one.result else { continue };
        let before = match texts.get(one.file) {
            Some(text) => text.clone(),
            None => tree.text(one.file)?.to_owned(),
        };
        let after = rewritten(before, one.found, converted);
        texts.insert(one.file, after.map_err(|error| refused(one.file, one.found, &error))?);
        if let Some(policy) = &converted.rollout_policy {
            let folder = one.file.rsplit_once('/').map_or("", |(folder, _)| folder);
            let name = policy["metadata"]["name"].as_str().unwrap_or_default();
            let path = tree.new_file(folder, &berth_base::model::path::encode(name))?;
            edits.push(Edit { path, text: Some(emit(policy)) });
        }
    }
    edits.extend(texts.into_iter().map(|(path, text)| Edit { path: path.to_string(), text: Some(text) }));
    Ok(edits)
}

fn rewritten(mut text: String, found: &Found, converted: &Converted) -> Result<String, edit::EditError> {
    let new = &converted.object;
    let mut set = |path: &[Step], value: &Json| {
        text = edit::set(&text, found.document, &found.path_to(path), value)?;
        Ok::<(), edit::EditError>(())
    };
    for field in ["apiVersion", "kind"] {
        set(&keys([field]), &new[field])?;
    }
    for (name, value) in new["metadata"]["annotations"].as_object().into_iter().flatten() {
        let annotations = found.node.get("metadata").and_then(|metadata| metadata.get("annotations"));
        if annotations.and_then(|all| all.get(name)).is_none() {
            set(&keys(["metadata", "annotations", name]), value)?;
        }
    }
    set(&keys(["spec"]), &new["spec"])?;
    let written = |holder: &berth_base::yaml::Node| match holder.to_json() {
        Json::Object(fields) => fields.into_iter().map(|(name, _)| name).collect::<Vec<String>>(),
        _ => Vec::new(),
    };
    let mut gone: Vec<Vec<Step>> = Vec::new();
    for name in written(&found.node) {
        if new.get(&name).is_none() {
            gone.push(keys([name.as_str()]));
        }
    }
    for name in found.node.get("metadata").map(written).unwrap_or_default() {
        if new["metadata"].get(&name).is_none() {
            gone.push(keys(["metadata", name.as_str()]));
        }
    }
    for path in gone {
        text = edit::remove(&text, found.document, &found.path_to(&path))?;
    }
    Ok(text)
}

fn text(all: &[One<'_>], plan: &Plan, ui: &Ui) -> String {
    let mut text = String::new();
    for One { file, found, key, result } in all {
        let _ = match result {
            Ok(converted) => {
                let kind = converted.object["kind"].as_str().unwrap_or_default();
                writeln!(text, "{file}:{}: {key} becomes a {kind}", found.at.line)
            }
            Err(_) => writeln!(text, "{file}:{}: {key} stays as it is", found.at.line),
        };
        let lines = match result {
            Ok(converted) => converted.notes.iter().chain(&converted.differences).collect::<Vec<_>>(),
            Err(reasons) => reasons.iter().collect(),
        };
        for line in lines {
            let _ = writeln!(text, "  {line}");
        }
    }
    if all.is_empty() {
        text.push_str("the repository has no placement of the old API\n");
    }
    let _ = write!(text, "clusters: {}", plan_text(plan, ui));
    text
}

fn form(all: &[One<'_>], plan: &Plan, written: bool) -> Json {
    let one = |One { file, found, key, result }: &One<'_>| {
        let mut form = json!({
            "kind": &*key.kind, "namespace": &*key.namespace, "name": &*key.name,
            "file": &***file, "line": found.at.line, "converted": result.is_ok(),
        });
        match result {
            Ok(converted) => {
                form["object"] = converted.object.clone();
                form["notes"] = json!(converted.notes);
                form["differences"] = json!(converted.differences);
                if let Some(policy) = &converted.rollout_policy {
                    form["rolloutPolicy"] = policy.clone();
                }
            }
            Err(reasons) => form["reasons"] = json!(reasons),
        }
        form
    };
    json!({
        "placements": all.iter().map(one).collect::<Vec<_>>(),
        "plan": plan_json(plan),
        "written": written,
    })
}
