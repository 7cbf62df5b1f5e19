//! `berth explain SOURCE --render`: the merged values of a chart in a cluster, each with the place that sets it.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value as Json;

use super::{ExplainArgs, no_cluster};
use crate::output::results::{Format, ResultKind};
use crate::output::table::table;
use crate::output::ui::{Tone, Ui};
use crate::process::exit::{CommandError, Exit, Outcome};
use berth_base::diag::Diagnostics;
use berth_hub::inputs::{MergedValue, MergedValues, PassInputs, ValuesError};

pub(super) fn cmd_values(args: &ExplainArgs, mut inputs: PassInputs, ui: &Ui) -> Outcome {
    let cluster = args.cluster.as_deref();
    let fleet = inputs.fleet();
    if let Some(name) = cluster.filter(|name| !fleet.clusters.contains_key(*name)) {
        return Err(no_cluster(name, fleet.clusters.keys().map(String::as_str)));
    }
    let found = ui.watching("rendering the chart", || inputs.merged_values(&args.placement, cluster));
    let merged = match found {
        Ok(merged) => merged,
        Err(ValuesError::Faulty(faults)) => {
            let mut diagnostics = Diagnostics::new();
            diagnostics.extend(faults);
            ui.diagnostics(&diagnostics);
            return Ok(Exit::Faulty);
        }
        Err(error) => return Err(failure(error)),
    };
    match args.output {
        Format::Text => ui.out(&text(&merged, cluster, ui)),
        format => format.write(ResultKind::ChartValues, &ChartValues::of(&merged, cluster), ui),
    }
    Ok(Exit::Done)
}

fn failure(error: ValuesError) -> CommandError {
    let message = error.to_string();
    match error {
        ValuesError::NoSource { nearest, .. } => {
            let error = CommandError::usage(message);
            match nearest {
                Some(name) => error.hint(format!("did you mean `{name}`?")),
                None => error.hint("a KustomizeSource has no values; a HelmSource with faults is not read"),
            }
        }
        ValuesError::Input(error) => error.into(),
        ValuesError::Renderer { hint: Some(hint), .. } => {
            CommandError::new(Exit::Unreachable, message).hint(hint)
        }
        _ => CommandError::new(Exit::Unreachable, message),
    }
}

fn text(merged: &MergedValues, cluster: Option<&str>, ui: &Ui) -> String {
    let MergedValues { source, options, values } = merged;
    let name = ui.tint(&source.key().to_string(), Tone::Strong);
    let whose = match (cluster, &source.variant) {
        (Some(cluster), Some(variant)) => format!("{cluster} gets the variant {}", variant.name),
        (Some(cluster), None) => format!("no variant includes {cluster}"),
        (None, _) => "where no variant counts".to_owned(),
    };
    let mut text = format!("{name} ({}): {whose}\n", source.at);
    let _ = writeln!(
        text,
        "chart {}, release {} in {}, for Kubernetes {}\n",
        source.path, options.release, options.namespace, options.kube_version
    );
    let row = |value: &MergedValue| {
        let from = value.from.as_ref();
        let from =
            from.map_or_else(|| "another chart's value".to_owned(), |at| format!("{}:{}", at.file, at.line));
        vec![path(&value.keys), shown(value).to_string(), from]
    };
    text.push_str(&table(&["VALUE", "IS", "FROM"], &values.iter().map(row).collect::<Vec<_>>(), ui));
    text.trim_end().to_owned()
}

/// Words in the names of values that people keep secret.
const SECRET: [&str; 6] = ["password", "passphrase", "secret", "token", "credential", "privatekey"];

/// Returns a value, or words in its place if its name says that it is secret.
fn shown(value: &MergedValue) -> Json {
    let is_secret = value.keys.iter().any(|key| {
        let key: String = key.to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
        SECRET.iter().any(|word| key.contains(word))
    });
    let is_empty = |value: &Json| value.is_null() || value.is_boolean() || value.as_str() == Some("");
    if is_secret && !is_empty(&value.value) { "(hidden)".into() } else { value.value.clone() }
}

/// Writes the path of a value as people write it for Helm.
fn path(keys: &[String]) -> String {
    keys.iter().map(|key| key.replace('.', "\\.")).collect::<Vec<_>>().join(".")
}

/// The merged values of a chart, for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ChartValues<'a> {
    source: &'a str,
    file: &'a str,
    variant: Option<&'a str>,
    cluster: Option<&'a str>,
    chart: &'a str,
    release: &'a str,
    namespace: &'a str,
    kube_version: &'a str,
    values: Vec<ValueForm<'a>>,
}

#[derive(Serialize)]
struct ValueForm<'a> {
    path: String,
    value: Json,
    file: Option<&'a str>,
    line: Option<u32>,
}

impl<'a> ChartValues<'a> {
    fn of(merged: &'a MergedValues, cluster: Option<&'a str>) -> ChartValues<'a> {
        let MergedValues { source, options, values } = merged;
        let value = |one: &'a MergedValue| ValueForm {
            path: path(&one.keys),
            value: shown(one),
            file: one.from.as_ref().map(|at| &*at.file),
            line: one.from.as_ref().map(|at| at.line),
        };
        ChartValues {
            source: &source.name,
            file: &source.at.file,
            variant: source.variant.as_ref().map(|variant| &*variant.name),
            cluster,
            chart: &source.path,
            release: &options.release,
            namespace: &options.namespace,
            kube_version: &options.kube_version,
            values: values.iter().map(value).collect(),
        }
    }
}
