//! `berth federate --from-cluster`: the objects of a live cluster that a command line names.

use super::documents_in::DocumentsIn;
use super::exit::{CommandError, Exit};
use super::host::HostArgs;
use crate::diag::{Diagnostic, Pos, Severity, did_you_mean};
use crate::dialects::kubefed::make::Subject;
use crate::live::{Host, LiveError, Query, Resource};
use crate::model::ObjectId;

/// What of the cluster is wanted.
#[derive(Debug)]
pub struct Wanted<'a> {
    /// As kubectl takes it: `deploy`, `deployments.apps`.
    pub kind: &'a str,
    pub name: &'a str,
    pub namespace: Option<&'a str>,
    /// A Namespace with everything in it.
    pub contents: bool,
    /// Types that need not be asked for.
    pub skip: &'a [String],
}

/// What nobody federates, and there can be much of: events, and numbers that are measured anew each time.
fn is_passing(resource: &Resource) -> bool {
    resource.kind == "Event" || resource.group == "metrics.k8s.io"
}

pub fn read(host: &HostArgs, wanted: &Wanted<'_>) -> Result<DocumentsIn, CommandError> {
    let cluster = host.connect()?;
    read_from(&cluster, wanted)
}

fn read_from(host: &dyn Host, wanted: &Wanted<'_>) -> Result<DocumentsIn, CommandError> {
    let resources = host.resources()?;
    let resource = find(&resources, wanted.kind)?;
    let namespace = resource.namespaced.then(|| wanted.namespace.unwrap_or("default"));
    let of_namespaces = resource.group.is_empty() && resource.kind == "Namespace";
    if wanted.contents && !of_namespaces {
        let error = CommandError::usage(format!("--contents goes with a Namespace, not with {resource}"));
        return Err(error.hint(format!("berth federate --from-cluster namespace {} --contents", wanted.name)));
    }
    let one = Query::all(resource.clone()).within(namespace).named(wanted.name);
    let mut queries = vec![one];
    if wanted.contents {
        let skipped = |resource: &&Resource| {
            wanted.skip.iter().any(|word| resource.is_called(word) || *word == resource.group)
        };
        let inside = resources.iter().filter(|one| one.namespaced && !is_passing(one));
        let inside = inside.filter(|one| !skipped(one)).cloned();
        queries.extend(inside.map(|one| Query::all(one).within(Some(wanted.name))));
    }
    let mut read = DocumentsIn::default();
    for (index, answer) in host.list(&queries).into_iter().enumerate() {
        match answer {
            Ok(objects) if objects.is_empty() && index == 0 => {
                return Err(nothing(wanted, resource, namespace));
            }
            Ok(objects) => read.subjects.extend(objects.into_iter().map(|object| {
                let at = ObjectId::of(&object).map_or_else(String::new, |id| id.to_string());
                Subject { object, at: Pos::file(at) }
            })),
            Err(error) if error.is_final() || index == 0 => return Err(error.into()),
            // Listed, and gone or never there: an aggregated API that is down.
            Err(LiveError::NotServed { .. }) => {}
            Err(error) => read.found.push(Diagnostic {
                at: None,
                severity: Severity::Error,
                message: error.to_string(),
                hint: error.hint(),
            }),
        }
    }
    Ok(read)
}

/// The one resource that a word means.
fn find<'r>(resources: &'r [Resource], word: &str) -> Result<&'r Resource, CommandError> {
    let called: Vec<&Resource> = resources.iter().filter(|one| one.is_called(word)).collect();
    // As for kubectl, the core group goes before others.
    let core = called.iter().find(|one| one.group.is_empty()).copied();
    match (core, called.as_slice()) {
        (Some(core), _) => Ok(core),
        (None, [one]) => Ok(one),
        (None, []) => {
            let words = resources.iter().flat_map(|one| std::iter::once(&one.plural).chain(&one.short));
            let error = CommandError::usage(format!("the cluster has no resources called `{word}`"));
            Err(match did_you_mean(word, words.map(String::as_str)) {
                Some(near) => error.hint(near),
                None => error.hint("`kubectl api-resources` lists them"),
            })
        }
        (None, several) => {
            let names: Vec<String> = several.iter().map(ToString::to_string).collect();
            let error = CommandError::usage(format!("`{word}` may mean {}", names.join(" or ")));
            Err(error.hint("write one of them in full"))
        }
    }
}

fn nothing(wanted: &Wanted<'_>, resource: &Resource, namespace: Option<&str>) -> CommandError {
    let place = namespace.map(|namespace| format!(" in the namespace `{namespace}`")).unwrap_or_default();
    let error = CommandError::new(
        Exit::Unreachable,
        format!("the cluster has no {} `{}`{place}", resource.kind, wanted.name),
    );
    match namespace {
        Some(_) if wanted.namespace.is_none() => error.hint("name its namespace with `-n`"),
        _ => error,
    }
}
