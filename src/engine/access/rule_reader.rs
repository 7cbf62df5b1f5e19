//! An `AccessRule` document → a rule. A faulty rule is reported, and grants nothing.

use super::patterns::{Folder, Kinds, Names};
use super::rule::{Grants, Rule, Subject};
use berth_base::meta;
use berth_base::yaml::{Fields, Node, Scope};

/// The kinds of subjects that roles are bound to.
pub(super) const SUBJECT_KINDS: [&str; 3] = ["Group", "User", "ServiceAccount"];

/// Reads one rule and reports its faults.
pub fn rule(scope: &Scope, root: &Node) -> Option<Rule> {
    let (mut fields, metadata) = meta::open(scope, root)?;
    let spec = fields.required_fields("spec");
    fields.finish();
    let mut spec = spec?;
    let folders = folders(&mut spec);
    let subjects = spec.each("subjects").into_iter().filter_map(subject).collect();
    let grants = grants(&mut spec);
    spec.finish();
    (!scope.has_errors()).then_some(Rule { name: metadata.name, folders, subjects, grants })
}

fn folders(spec: &mut Fields<'_>) -> Vec<Folder> {
    let at = spec.place_of("folders");
    if !spec.require("folders") {
        return Vec::new();
    }
    let texts = spec.strings("folders").unwrap_or_default();
    if texts.is_empty() {
        spec.scope().error(at, "spec.folders must name a folder; `/` is the whole repository");
    }
    let folder = |text: &str| match Folder::new(text) {
        Ok(folder) => Some(folder),
        Err(reason) => {
            spec.scope().error(at, format!("spec.folders holds `{text}`, which {reason}"));
            None
        }
    };
    texts.into_iter().filter_map(folder).collect()
}

fn subject(mut fields: Fields<'_>) -> Option<Subject> {
    fields.accept(&["apiGroup"]);
    fields.require("kind");
    let kind = fields.choice("kind", &SUBJECT_KINDS);
    let name = fields.required_str("name").map(str::to_owned);
    let namespace = fields.str("namespace").unwrap_or_default().to_owned();
    fields.finish();
    Some(Subject { kind: kind?.to_owned(), namespace, name: name? })
}

fn grants(spec: &mut Fields<'_>) -> Grants {
    let mut grants = Grants::default();
    if let Some(mut sets) = spec.fields("clusterSets") {
        grants.bind = names(&mut sets, "bind");
        grants.join = names(&mut sets, "join");
        grants.admin = names(&mut sets, "admin");
        sets.finish();
    }
    if let Some(mut clusters) = spec.fields("clusters") {
        grants.place = names(&mut clusters, "place");
        grants.edit = names(&mut clusters, "edit");
        clusters.finish();
    }
    grants.namespaces = names(spec, "namespaces");
    let at = spec.place_of("kinds");
    grants.kinds = kinds(spec, "kinds");
    if grants.kinds.is_some() && grants.namespaces.is_empty() {
        spec.scope().warning(at, "spec.kinds has no effect without spec.namespaces");
    }
    grants.cluster_kinds = kinds(spec, "clusterKinds").unwrap_or_default();
    grants
}

fn names(fields: &mut Fields<'_>, key: &'static str) -> Names {
    Names::of(words(fields, key).unwrap_or_default())
}

fn kinds(fields: &mut Fields<'_>, key: &'static str) -> Option<Kinds> {
    words(fields, key).map(Kinds::of)
}

fn words<'a>(fields: &mut Fields<'a>, key: &'static str) -> Option<Vec<&'a str>> {
    let words = fields.strings(key)?;
    if words.iter().any(|word| word.is_empty() || word.contains('/')) {
        let message = format!(
            "{} must list names, without `/` and not empty; `*` stands for any text",
            fields.path_of(key)
        );
        fields.error_at(key, message);
    }
    Some(words)
}
