//! Documents → those that their folder may not write, each with the missing right, and the error about it.

use std::collections::BTreeSet;

use super::facts::{is_cluster, is_set, object_role};
use super::rule::{Rules, What};
use super::{FOLDER, Facts, KIND, OWN_GROUP, World, cluster_set_rights, roles};
use crate::dialects::{AccessRole, Document};
use berth_base::diag::{Diagnostic, Pos};
use berth_base::model::Key;
use berth_base::packed::View;
use berth_base::yaml::Mark;

/// The verdict of the rules on a commit's documents.
#[derive(Clone, Debug, Default)]
pub struct DocumentVerdicts {
    /// Indexes of the refused documents.
    pub refused: BTreeSet<usize>,
    pub found: Vec<Diagnostic>,
    /// Objects of the earlier commit that are missing now but may not be removed.
    pub stays: BTreeSet<Key>,
    /// The facts of this commit, without refused documents.
    pub facts: Facts,
}

impl World {
    /// Judges documents by the rules. A document's verdict never depends on a refused document.
    pub fn judge(&self, documents: &[&Document]) -> DocumentVerdicts {
        let mut judged = DocumentVerdicts::default();
        if self.is_free() {
            return judged;
        }
        let dialects = self.rules.dialects;
        let (clusters, others): (Vec<_>, Vec<_>) =
            documents.iter().copied().enumerate().partition(|(_, one)| is_cluster(dialects, &one.key));
        // Sets are judged first: their members determine the rights on clusters.
        for (index, document) in &others {
            let lacks = |rules: &Rules| lacks(rules, document);
            self.report(&mut judged, *index, document, &lacks);
        }
        let (refused_sets, sets): (Vec<_>, Vec<_>) = others
            .iter()
            .filter(|(_, one)| is_set(dialects, &one.key))
            .partition(|(index, _)| judged.refused.contains(index));
        let mut now = Facts::of(sets.iter().map(|(_, document)| *document), dialects);
        for (_, set) in refused_sets {
            // A refused change of a set has no effect on the set.
            if now.path(&set.key).is_none()
                && let Some(members) = self.before.by_labels.get(&*set.key.name)
            {
                now.by_labels.insert(set.key.name.to_string(), members.clone());
            }
        }
        let all = Facts::of(clusters.iter().map(|(_, document)| *document), dialects);
        for (index, document) in &clusters {
            let case =
                cluster_set_rights::ClusterCase { document, before: &self.before, now: &now, all: &all };
            self.report(&mut judged, *index, document, &|rules: &Rules| case.lacks(rules));
        }
        let counting = documents.iter().enumerate().filter(|(index, _)| !judged.refused.contains(index));
        let by_labels = std::mem::take(&mut now.by_labels);
        judged.facts = Facts::of(counting.map(|(_, document)| *document), dialects);
        judged.facts.by_labels = by_labels;
        self.check_removed(&mut judged, documents);
        judged
    }

    /// Reports whether a document's folder has the right to hold it.
    pub(crate) fn may_hold(&self, document: &Document) -> bool {
        if self.is_free() {
            return true;
        }
        let dialects = self.rules.dialects;
        let lacking = match is_cluster(dialects, &document.key) {
            true => {
                let all = Facts::of([document].into_iter(), dialects);
                cluster_set_rights::ClusterCase {
                    document,
                    before: &self.before,
                    now: &self.before,
                    all: &all,
                }
                .lacks(&self.rules)
            }
            false => lacks(&self.rules, document),
        };
        lacking.is_empty()
    }

    /// Judges the removal of clusters and sets: their folder must have had the right to remove them.
    fn check_removed(&self, judged: &mut DocumentVerdicts, documents: &[&Document]) {
        let there: BTreeSet<&Key> = documents.iter().map(|document| &document.key).collect();
        let dialects = self.rules.dialects;
        for (key, path) in self.before.kept_apart(dialects).filter(|(key, _)| !there.contains(key)) {
            let (name, is_set) = (&*key.name, is_set(dialects, key));
            let is_described_still = !is_set && self.before.is_described_by_any_of(name, &there);
            let lacks = |rules: &Rules| match is_set {
                true => (!rules.may_define(path, name)).then(|| {
                    let needs = format!("clusterSets: {{admin: [{name}]}}");
                    MissingRight::new(format!("delete the cluster set `{name}`"), needs)
                }),
                false => cluster_set_rights::lacks_to_go(&self.before, rules, path, name, is_described_still),
            };
            let Some(words) = lacks(&self.rules) else { continue };
            let at = Pos::file(path.clone());
            let allowed_next = self.next.enforced && lacks(&self.next).is_none();
            judged.found.push(words.error(&self.rules, at, allowed_next));
            judged.stays.insert(key.clone());
        }
    }

    fn report(
        &self,
        judged: &mut DocumentVerdicts,
        index: usize,
        document: &Document,
        lacks: &dyn Fn(&Rules) -> Vec<Lack>,
    ) {
        let lacking = lacks(&self.rules);
        if lacking.is_empty() {
            return;
        }
        let allowed_next = self.next.enforced && lacks(&self.next).is_empty();
        judged.refused.insert(index);
        judged.found.extend(lacking.into_iter().map(|(at, words)| {
            let at = Pos { file: document.at.file.clone(), line: at.line, column: at.column };
            words.error(&self.rules, at, allowed_next)
        }));
    }
}

/// Returns the rights that a document lacks, except rights on clusters.
fn lacks(rules: &Rules, document: &Document) -> Vec<Lack> {
    let (key, path) = (&document.key, &*document.at.file);
    let (group, kind, name) = (&*key.group, &*key.kind, &*key.name);
    let mut found = Vec::new();
    if is_of_the_repository(document) {
        return found;
    }
    let role = object_role(rules.dialects, key);
    match role {
        AccessRole::ClusterSet => {
            set(rules, document, &mut found);
            return found;
        }
        AccessRole::FleetWide => {
            if !rules.may_place_cluster_kind(path, Some(group), kind) {
                let act = format!("write `{kind}` objects, which hold for the whole fleet");
                found.push((top(document), MissingRight::new(act, format!("clusterKinds: [{kind}]"))));
            }
            return found;
        }
        AccessRole::SetBinding if !rules.may_bind(path, name) => {
            let act = format!("bind the cluster set `{name}`");
            let at = spec_place(document, "clusterSet");
            found.push((at, MissingRight::new(act, format!("clusterSets: {{bind: [{name}]}}"))));
        }
        _ => {}
    }
    let what = match role {
        // The wrapped object goes to the document's namespace, unless its kind has no namespace.
        AccessRole::Wraps(target) => rules.what(None, target, &key.namespace, name),
        _ => rules.what(Some(group), kind, &key.namespace, name),
    };
    let is_in_namespace =
        !key.namespace.is_empty() && (!what.is_of_the_cluster() || role == AccessRole::Wraps("Namespace"));
    if role != AccessRole::Plain && is_in_namespace {
        if !rules.may_use(path, &key.namespace) {
            found.push((namespace_place(document), no_namespace(&key.namespace)));
        }
    } else {
        found.extend(object(rules, path, what).map(|words| (namespace_place(document), words)));
    }
    let home = &*key.namespace;
    let carried = rules.dialects.iter().flat_map(|dialect| (dialect.carried_objects)(document));
    found.extend(carried.filter_map(|one| {
        // Inside a namespace's object, only cluster-scoped objects go elsewhere.
        let what = rules.what(Some(&one.group), &one.kind, &one.namespace, &one.name);
        let repeats = found_already(rules, path, home, &one.namespace);
        object(rules, path, what).filter(|_| !repeats).map(|words| (one.at, words))
    }));
    found
}

/// Reports whether the document itself already lacks the right to this namespace.
fn found_already(rules: &Rules, path: &str, home: &str, namespace: &str) -> bool {
    !home.is_empty() && home == namespace && !rules.may_use(path, home)
}

/// Returns the right that a file lacks to place an object.
pub(super) fn object(rules: &Rules, path: &str, what: What<'_>) -> Option<MissingRight> {
    if rules.may_place(path, what) {
        return None;
    }
    let kind = match what.group {
        None | Some("") => what.kind.to_owned(),
        Some(group) => format!("{}.{group}", what.kind),
    };
    Some(if what.is_of_the_cluster() {
        let mut words = MissingRight::new(
            format!("place {} `{}`, which is in no namespace", what.kind, what.name),
            format!("clusterKinds: [{kind}]"),
        );
        if what.home() == what.name {
            let kinds = if rules.may_use(path, what.name) { ", kinds: [Namespace]" } else { "" };
            words = MissingRight::new(
                format!("place the Namespace `{}`", what.name),
                format!("namespaces: [{}]{kinds}", what.name),
            );
        }
        words
    } else if !rules.may_use(path, what.namespace) {
        no_namespace(what.namespace)
    } else {
        MissingRight::new(
            format!("place a {} into the namespace `{}`", what.kind, what.namespace),
            format!("namespaces: [{}], kinds: [{kind}]", what.namespace),
        )
    })
}

pub(super) fn no_namespace(namespace: &str) -> MissingRight {
    MissingRight::new(format!("place into the namespace `{namespace}`"), format!("namespaces: [{namespace}]"))
}

fn set(rules: &Rules, document: &Document, found: &mut Vec<Lack>) {
    let (path, name) = (&*document.at.file, &*document.key.name);
    if !rules.may_define(path, name) {
        let act = format!("make or change the cluster set `{name}`");
        found.push((top(document), MissingRight::new(act, format!("clusterSets: {{admin: [{name}]}}"))));
        return;
    }
    let selector = document.root.get("spec").and_then(|spec| spec.get("clusterSelector"));
    let by = selector.and_then(|selector| selector.get("selectorType"));
    if let Some(node) = by.filter(|node| node.as_str() == Some("LabelSelector"))
        && !rules.may_define_every(path)
    {
        let act = "make a set that picks clusters by their labels, since it can reach any cluster";
        found.push((node.at(), MissingRight::new(act, "clusterSets: {admin: [\"*\"]}")));
    }
}

/// Reports whether a document concerns the repository itself: settings, an access rule, a role, or a source, whose
/// rendered objects are judged in its place.
fn is_of_the_repository(document: &Document) -> bool {
    let (group, kind, file) = (&*document.key.group, &*document.key.kind, &*document.at.file);
    let own = group == OWN_GROUP && ["FleetConfig", "HelmSource", "KustomizeSource", KIND].contains(&kind);
    own || (file.starts_with(FOLDER) && roles::is_role(document))
}

fn namespace_place(document: &Document) -> Mark {
    let metadata = document.root.get("metadata");
    let place = |key| metadata.and_then(|metadata| metadata.get(key)).map(View::at);
    place("namespace").unwrap_or_else(|| top(document))
}

fn spec_place(document: &Document, key: &str) -> Mark {
    document.root.get("spec").and_then(|spec| spec.get(key)).map_or_else(|| top(document), View::at)
}

/// The forbidden action, and the grant that a rule would need.
#[derive(Debug)]
pub struct MissingRight {
    /// The forbidden action, as `may not …` after the folder's name.
    pub act: String,
    /// The missing grant, as a rule would write it.
    pub needs: String,
}

impl MissingRight {
    pub(super) fn new(act: impl Into<String>, needs: impl Into<String>) -> MissingRight {
        MissingRight { act: act.into(), needs: needs.into() }
    }

    /// Returns the error at a place. `allowed_next`: the rules of the same commit would allow the action.
    pub fn error(self, rules: &Rules, at: Pos, allowed_next: bool) -> Diagnostic {
        let folder = folder_of(&at.file);
        let hint = if allowed_next {
            "merge the access rules first: a rule applies only to later changes".to_owned()
        } else {
            let names: BTreeSet<&str> = rules.of(&at.file).map(|rule| rule.name.as_str()).collect();
            let named = match names.len() {
                0 => "no AccessRule names that folder".to_owned(),
                _ => format!("it has the rights of {}", names.into_iter().collect::<Vec<_>>().join(", ")),
            };
            format!("an AccessRule would have to grant it `{}`; {named}", self.needs)
        };
        Diagnostic::error(at, format!("{folder} may not {}", self.act)).hint(hint)
    }
}

/// Returns the folder of a file, as messages name it.
pub(super) fn folder_of(path: &str) -> String {
    match path.rsplit_once('/') {
        Some((folder, _)) => format!("the folder `{folder}`"),
        None => format!("the file `{path}` at the root"),
    }
}

/// A place, and the right that is missing there.
pub(super) type Lack = (Mark, MissingRight);

/// Returns the place where a document begins.
pub(super) fn top(document: &Document) -> Mark {
    Mark { line: document.at.line, column: document.at.column }
}
