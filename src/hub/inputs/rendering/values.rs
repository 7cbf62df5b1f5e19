//! The merged values of a chart, each with the place that sets it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value as Json;

use super::{InputError, Refusal, Render, may_have_source, odd_answer};
use berth_base::diag::{Diagnostic, Pos, nearest};
use berth_base::model::Fleet;
use berth_base::source::SourceTree;
use berth_base::yaml::Node;
use berth_engine::load::{FileCache, HelmOptions, RenderSource, SourceKind, SourceValues, find_sources};
use berth_sources::{Answer, HelmAnswer, ValueOrigin};

/// The values of a chart for a cluster.
#[derive(Clone, Debug)]
pub struct MergedValues {
    pub source: RenderSource,
    pub options: HelmOptions,
    pub values: Vec<MergedValue>,
}

/// One value that is no table.
#[derive(Clone, Debug)]
pub struct MergedValue {
    pub keys: Vec<String>,
    pub value: Json,
    /// `None` for a value that the chart takes from another one.
    pub from: Option<Pos>,
}

/// The reason why the values of a source are not known.
#[derive(Debug, thiserror::Error)]
pub enum ValuesError {
    #[error("there is no HelmSource `{name}`")]
    NoSource { name: String, nearest: Option<String> },
    /// The faults of its document are reported when the fleet is read.
    #[error("the chart cannot be rendered")]
    Faulty(Vec<Diagnostic>),
    #[error("the renderer failed: {message}")]
    Renderer { message: String, hint: Option<String> },
    #[error(transparent)]
    Input(#[from] InputError),
}

impl From<Refusal> for ValuesError {
    fn from(refusal: Refusal) -> ValuesError {
        match refusal {
            Refusal::Source(faults) => ValuesError::Faulty(faults),
            Refusal::Renderer { message, hint } => ValuesError::Renderer { message, hint },
            Refusal::Input(error) => error.into(),
        }
    }
}

impl Render<'_> {
    /// Merges the values that a source has in a cluster or, without one, where no variant counts.
    pub fn merged_values(
        &self,
        tree: &SourceTree,
        (fleet, name, cluster): (&Fleet, &str, Option<&str>),
        parsed: &mut FileCache,
    ) -> Result<MergedValues, ValuesError> {
        let files = tree.files.values().filter(|file| may_have_source(&file.bytes));
        let found = find_sources(tree, &files.map(|file| file.path.clone()).collect(), parsed);
        let charts = found.sources.iter().filter(|source| matches!(source.kind, SourceKind::Helm(_)));
        let (named, others): (Vec<_>, Vec<_>) = charts.partition(|source| source.name == name);
        let includes = |source: &&&RenderSource| match (&source.variant, cluster) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(variant), Some(cluster)) => {
                variant.clusters.includes(cluster, fleet.clusters.get(cluster).map(|known| &**known))
            }
        };
        // The source itself is for the clusters that no variant includes.
        let wanted: Vec<&&RenderSource> = named.iter().filter(includes).collect();
        let wanted = wanted.iter().find(|source| source.variant.is_some()).or(wanted.first());
        let Some(&&source) = wanted else {
            let nearest = nearest(name, others.iter().map(|source| &*source.name)).map(str::to_owned);
            return Err(ValuesError::NoSource { name: name.to_owned(), nearest });
        };
        let SourceKind::Helm(options) = &source.kind else { return Err(odd_answer().into()) };
        let pass = self.pass(tree, BTreeSet::new());
        let answer = pass.helm(source, options, true)?;
        let Answer::Helm(answer) = &*answer else { return Err(odd_answer().into()) };
        let values = merged(source, options, answer);
        Ok(MergedValues { source: source.clone(), options: options.clone(), values })
    }
}

fn merged(source: &RenderSource, options: &HelmOptions, answer: &HelmAnswer) -> Vec<MergedValue> {
    let origins: BTreeMap<&[String], &ValueOrigin> =
        answer.origins.iter().map(|origin| (&*origin.keys, origin)).collect();
    let mut values = Vec::new();
    leaves(&answer.values, &mut Vec::new(), &mut |keys, value| {
        let from = origins.get(keys).map(|origin| place(source, options, origin));
        // Helm adds empty globals.
        if from.is_none() && value.as_object().is_some_and(serde_json::Map::is_empty) {
            return;
        }
        values.push(MergedValue { keys: keys.to_vec(), value: value.clone(), from });
    });
    values
}

/// Visits each value that is no table, or an empty one.
fn leaves(value: &Json, keys: &mut Vec<String>, visit: &mut dyn FnMut(&[String], &Json)) {
    match value {
        Json::Object(entries) if !entries.is_empty() => {
            for (key, value) in entries {
                keys.push(key.clone());
                leaves(value, keys, visit);
                keys.pop();
            }
        }
        value => visit(keys, value),
    }
}

/// Returns the place of a value in the repository.
fn place(source: &RenderSource, options: &HelmOptions, origin: &ValueOrigin) -> Pos {
    let in_source = options.values.iter().find_map(|values| match values {
        SourceValues::File(path, _) if *path == origin.file => Some(Pos::new(path.as_str(), origin.line, 1)),
        SourceValues::Inline(node, at) if at.to_string() == origin.file => {
            let mark = nearest_node(node, &origin.keys).at;
            Some(Pos::new(Arc::clone(&at.file), mark.line, mark.column))
        }
        _ => None,
    });
    in_source.unwrap_or_else(|| Pos::new(format!("{}/{}", source.path, origin.file), origin.line, 1))
}

/// Returns the value at a path or, where there is none, the nearest one around it.
fn nearest_node<'n>(node: &'n Node, keys: &[String]) -> &'n Node {
    let Some((first, rest)) = keys.split_first() else { return node };
    node.get(first).map_or(node, |child| nearest_node(child, rest))
}
