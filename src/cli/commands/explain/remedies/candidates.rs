//! Candidate edits for one placement and cluster: for each rule of the placement, the ways to satisfy it.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::{Act, FileEdit, ObjectPlace, PlacedEdit, place_of, places};
use crate::editing::mark::labels::{self, LabelRequest};
use crate::editing::mark::{ValueEdit, taints};
use berth_base::diag::{Pos, nearest};
use berth_base::edit::{Found, Step, keys, show};
use berth_base::model::placement::{Filter, Rule, Selection};
use berth_base::model::{
    Cluster, Effect, Fleet, Key, Placement, Policy, Requirement, Selector, Source, Taint,
};
use berth_base::source::SourceTree;
use berth_base::yaml::node::Entry;
use berth_base::yaml::{self, Node, Value};
use berth_engine::dialects::{DIALECTS, PlacementFields, SetFields, cluster_kinds};

/// The number of values per label, and of combinations of labels, that are tried.
const VALUES: usize = 3;

/// The ways to satisfy one rule, each a list of edits that belong together.
pub(super) type Ways = Vec<Vec<FileEdit>>;

/// The document that contains a rule.
type RuleDocument = (ObjectPlace, &'static PlacementFields);

/// A cluster that a placement does not pick.
pub(super) struct Question<'a> {
    pub tree: &'a SourceTree,
    pub fleet: &'a Fleet,
    pub cluster: &'a Cluster,
    /// The cluster's rank among those that passed the filters.
    pub rank: Option<usize>,
}

impl Question<'_> {
    /// Returns the ways to satisfy each rule of a placement and of the placements that it follows.
    pub fn ways(&self, placement: &Placement) -> Vec<Ways> {
        let mut found = Vec::new();
        match &placement.source {
            Source::Own(policy) => self.of_policy(placement, policy, &mut found),
            Source::Follows(follow) => {
                found.extend(follow.filters.iter().map(|filter| self.of_filter(placement, filter)));
                for followed in follow.placements.iter().filter_map(|wanted| self.fleet.find(wanted)) {
                    if let Source::Own(policy) = &followed.source {
                        self.of_policy(followed, policy, &mut found);
                    }
                }
            }
        }
        found.retain(|ways| !ways.is_empty());
        found
    }

    fn of_policy(&self, placement: &Placement, policy: &Policy, found: &mut Vec<Ways>) {
        let filters = policy.candidates.iter().chain(&policy.filters);
        found.extend(filters.map(|filter| self.of_filter(placement, filter)));
        let Some(document) = self.document(placement, None) else { return };
        found.push(match &policy.selection {
            Selection::First(count) => self.more(&document, *count),
            Selection::Exactly(names) if !names.contains(&*self.cluster.name) => self.named(&document),
            Selection::Exactly(_) | Selection::All | Selection::InTurn(_) => Vec::new(),
        });
        found.push(wider_spread(&document.0));
    }

    fn of_filter(&self, placement: &Placement, filter: &Filter) -> Ways {
        let document = self.document(placement, filter.by.as_ref());
        let document = document.as_ref();
        match &filter.rule {
            Rule::Named(names) if !names.contains(&*self.cluster.name) => {
                document.map(|document| self.named(document)).unwrap_or_default()
            }
            Rule::Labels(selector) => self.with_labels(selector, document),
            Rule::AnyOf(terms) => {
                terms.iter().flat_map(|term| self.with_labels(&term.labels, document)).collect()
            }
            Rule::InSets(sets) => {
                let members = sets.iter().filter_map(|set| set.members.as_ref());
                if members.clone().any(|members| members.matches(&self.cluster.labels)) {
                    return Vec::new();
                }
                let labelled = members.flat_map(|members| self.with_labels(members, None));
                let bound = document.map(|document| self.with_set(placement, document)).unwrap_or_default();
                labelled.chain(bound).collect()
            }
            Rule::Tolerates(_) => self.without_taints(document),
            // No edit of a placement or a cluster satisfies these: a member, its agent or access rules decide them.
            Rule::Named(_)
            | Rule::Nowhere(_)
            | Rule::NotLeaving
            | Rule::Eligible(_)
            | Rule::HoldsNamespace(_)
            | Rule::Ready
            | Rule::Reachable(_) => Vec::new(),
        }
    }

    /// Returns the document that contains a rule: the placement's, or that of the object `by` which the rule comes.
    fn document(&self, placement: &Placement, by: Option<&Key>) -> Option<RuleDocument> {
        let asking = by.and_then(|by| self.fleet.placements.get(by)).map_or(placement, |by| by);
        let fields = DIALECTS.iter().find_map(|dialect| (dialect.shown.placement_fields)(&asking.key))?;
        Some((place_of(self.tree, &asking.origin.file, &asking.key)?, fields))
    }

    /// Returns the documents that describe the cluster.
    fn descriptions(&self) -> Vec<ObjectPlace> {
        let files: BTreeSet<&str> = self.cluster.origins.iter().map(|origin| &*origin.file).collect();
        let is_cluster = |found: &Found| {
            *found.name == *self.cluster.name
                && cluster_kinds().any(|kind| (kind.group, kind.kind) == (found.group(), &*found.kind))
        };
        files.into_iter().flat_map(|file| places(self.tree, file, is_cluster)).collect()
    }

    /// Changes the cluster's labels. If only one is unmatched, also corrects a misspelt key of the selector, which
    /// comes first, or loosens the selector.
    fn with_labels(&self, selector: &Selector, document: Option<&RuleDocument>) -> Ways {
        let unmet: Vec<&Requirement> = selector.unmet(&self.cluster.labels).collect();
        let mut together: Ways = vec![Vec::new()];
        for requirement in &unmet {
            let labels: Ways = self.requests(requirement).iter().map(|request| self.label(request)).collect();
            let with = |way: &Vec<FileEdit>| -> Ways {
                labels.iter().map(|label| [way.clone(), label.clone()].concat()).collect()
            };
            together = together.iter().flat_map(with).take(VALUES).collect();
        }
        together.retain(|way| !way.is_empty());
        let (Some((place, _)), [one]) = (document, unmet.as_slice()) else { return together };
        let alone = |edits: Vec<FileEdit>| edits.into_iter().map(|edit| vec![edit]);
        let corrected = alone(self.corrected(place, one.key()));
        corrected.chain(together).chain(alone(self.loosened(place, one.key()))).collect()
    }

    /// Replaces a key that the cluster's labels lack by the nearest one that they have.
    fn corrected(&self, place: &ObjectPlace, key: &str) -> Vec<FileEdit> {
        let labels = &self.cluster.labels;
        let near = nearest(key, labels.keys().map(String::as_str)).filter(|_| !labels.contains_key(key));
        let Some(near) = near else { return Vec::new() };
        let mut found = Vec::new();
        each_node(&place.found.node, &[], &mut |path, node| match (path, &node.value) {
            ([.., Step::Key(holder)], Value::Map(entries))
                if holder == "matchLabels" && entries.iter().any(|entry| entry.key == key) =>
            {
                let renamed = |entry: &Entry| {
                    let name = if entry.key == key { near } else { &entry.key };
                    (name.to_owned(), entry.value.to_json())
                };
                let labels = ValueEdit::Set(entries.iter().map(renamed).collect());
                let at_key = [path, &keys([key])].concat();
                let mut edit = place.edit(path.to_vec(), labels, format!("{} → {near}", show(&at_key)));
                edit.shown.at = place.position(&at_key);
                found.push(edit);
            }
            ([.., Step::Key(holder), _], _)
                if holder == "matchExpressions" && text(node, "key") == Some(key) =>
            {
                let path = [path, &keys(["key"])].concat();
                let words = format!("{}: {key} → {near}", show(&path));
                found.push(place.edit(path, ValueEdit::Set(json!(near)), words));
            }
            _ => {}
        });
        found
    }

    /// Returns the labels that satisfy a requirement.
    fn requests(&self, requirement: &Requirement) -> Vec<LabelRequest> {
        let set = |key: &str, value: &str| LabelRequest::Set(key.to_owned(), value.to_owned());
        match requirement {
            Requirement::Is(key, value) => vec![set(key, value)],
            Requirement::In(key, values) => values.iter().take(VALUES).map(|value| set(key, value)).collect(),
            Requirement::Exists(key) => {
                let value = self.fleet.clusters.values().find_map(|cluster| cluster.labels.get(key));
                vec![set(key, value.map_or("true", String::as_str))]
            }
            Requirement::NotIn(key, _) | Requirement::DoesNotExist(key) => {
                vec![LabelRequest::Remove(key.clone())]
            }
        }
    }

    /// Changes a label in every document that describes the cluster.
    fn label(&self, request: &LabelRequest) -> Vec<FileEdit> {
        let one = |place: ObjectPlace| {
            let labels = labels::labels_of(&place.found);
            let change = labels::outcome(&labels, std::slice::from_ref(request), true).ok()?.changes.pop()?;
            let key = request.key();
            let words = match (labels.get(key), request) {
                (Some(before), LabelRequest::Set(_, value)) => format!("label {key}: {before} → {value}"),
                (None, LabelRequest::Set(_, value)) => format!("label {key}: {value} added"),
                (before, LabelRequest::Remove(_)) => {
                    format!("label {key}: {} removed", before.map_or("", String::as_str))
                }
            };
            Some(place.edit(change.path, change.what, words))
        };
        self.descriptions().into_iter().filter_map(one).collect()
    }

    /// Removes or extends the requirements of a document on a label.
    fn loosened(&self, place: &ObjectPlace, key: &str) -> Vec<FileEdit> {
        let mut found = Vec::new();
        each_node(&place.found.node, &[], &mut |path, node| {
            let [.., Step::Key(holder), last] = path else { return };
            let removed = |what: String| place.edit(path.to_vec(), ValueEdit::Remove, what);
            match holder.as_str() {
                "matchLabels" if *last == Step::from(key) => {
                    found.push(removed(format!("{} removed", show(path))));
                }
                "matchExpressions" if text(node, "key") == Some(key) => {
                    let is_list = text(node, "operator") == Some("In");
                    found.push(match self.cluster.labels.get(key).filter(|_| is_list) {
                        Some(value) => {
                            let values = [path, &keys(["values"])].concat();
                            place.append(&values, json!(value), format!("{}: {value} added", show(&values)))
                        }
                        None => removed(format!("{} on {key} removed", show(path))),
                    });
                }
                _ => {}
            }
        });
        found
    }

    /// Adds the cluster's name to the placement's names.
    fn named(&self, (place, fields): &RuleDocument) -> Ways {
        if fields.names.is_empty() {
            return Vec::new();
        }
        let (path, name) = (steps(fields.names), &self.cluster.name);
        let item = fields.name_key.map_or_else(|| json!(&**name), |key| json!({key: &**name}));
        vec![vec![place.append(&path, item, format!("{}: {name} added", show(&path)))]]
    }

    /// Raises the number of clusters by one, or to the cluster's rank.
    fn more(&self, (place, fields): &RuleDocument, count: usize) -> Ways {
        if fields.count.is_empty() {
            return Vec::new();
        }
        let path = steps(fields.count);
        let rank = self.rank.filter(|rank| *rank > count);
        let wanted: BTreeSet<usize> = rank.into_iter().chain([count + 1]).collect();
        let one = |wanted: usize| {
            let words = format!("{}: {count} → {wanted}", show(&path));
            vec![place.edit(path.clone(), ValueEdit::Set(json!(wanted)), words)]
        };
        wanted.into_iter().map(one).collect()
    }

    /// Removes or tolerates the cluster's taints: each alone, and all together.
    fn without_taints(&self, document: Option<&RuleDocument>) -> Ways {
        let is_strict = |taint: &&Taint| taint.effect != Effect::Prefer;
        let strict: Vec<&Taint> = self.cluster.taints.iter().filter(is_strict).collect();
        let mut removed = Ways::new();
        for place in self.descriptions() {
            for (index, taint) in taints::taints_of(&place.found).iter().enumerate() {
                if strict.iter().any(|one| one.key == taint.key && one.effect_word == taint.effect) {
                    let path = [keys(["spec", "taints"]), vec![Step::from(index)]].concat();
                    let words = format!("taint {} removed", taint.show());
                    removed.push(vec![place.edit(path, ValueEdit::Remove, words)]);
                }
            }
        }
        let mut tolerated = Ways::new();
        if let Some((place, fields)) = document.filter(|(_, fields)| !fields.tolerations.is_empty()) {
            let path = steps(fields.tolerations);
            for taint in strict {
                let words = format!("{}: a toleration of {} added", show(&path), taint.key);
                tolerated.push(vec![place.append(&path, toleration(taint), words)]);
            }
        }
        for ways in [&mut removed, &mut tolerated] {
            if ways.len() > 1 {
                ways.push(ways.concat());
            }
        }
        removed.into_iter().chain(tolerated).collect()
    }

    /// Lists the cluster's set in the placement, binds it to the placement's namespace, or both.
    fn with_set(&self, placement: &Placement, (place, fields): &RuleDocument) -> Ways {
        let Some(sets) = &fields.sets else { return Vec::new() };
        let (set, path) = ((sets.of)(self.cluster), steps(sets.list));
        let lists_some = place.get(&path).is_some_and(|node| node.what() == "a list");
        let listed = || place.append(&path, json!(set), format!("{}: {set} added", show(&path)));
        let listed: Vec<FileEdit> = lists_some.then(listed).into_iter().collect();
        let bound: Vec<FileEdit> = self.binding(placement, sets, &set).into_iter().collect();
        let both = [listed.clone(), bound.clone()].concat();
        let mut ways = vec![listed, bound, both];
        ways.retain(|way| !way.is_empty());
        ways
    }

    /// Makes a new file that binds a set to the placement's namespace.
    fn binding(&self, placement: &Placement, sets: &SetFields, set: &str) -> Option<FileEdit> {
        let namespace = &*placement.key.namespace;
        let folder =
            placement.origin.file.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
        let file = format!("{folder}{namespace}-{set}-binding.yaml");
        if self.tree.files.contains_key(&*file) {
            return None;
        }
        let document = (sets.binding)(namespace, set);
        let words = format!("{} {namespace}/{set}", document["kind"].as_str().unwrap_or_default());
        let shown = PlacedEdit { at: Pos::file(file), words };
        Some(FileEdit { shown, act: Act::Add { text: yaml::emit(&document) } })
    }
}

/// Widens the spread wherever the placement limits it.
fn wider_spread(place: &ObjectPlace) -> Ways {
    let mut ways = Ways::new();
    each_node(&place.found.node, &[], &mut |path, node| {
        let (Some(step), Value::Number(number)) = (path.last(), &node.value) else { return };
        if let Some(skew) = number.as_i64().filter(|_| *step == Step::from("maxSkew")) {
            let words = format!("{}: {skew} → {}", show(path), skew + 1);
            ways.push(vec![place.edit(path.to_vec(), ValueEdit::Set(json!(skew + 1)), words)]);
        }
    });
    ways
}

fn toleration(taint: &Taint) -> Json {
    match taint.value.as_str() {
        "" => json!({"key": taint.key, "operator": "Exists", "effect": taint.effect_word}),
        value => json!({"key": taint.key, "operator": "Equal", "value": value, "effect": taint.effect_word}),
    }
}

fn text<'n>(node: &'n Node, key: &str) -> Option<&'n str> {
    node.get(key).and_then(Node::as_str)
}

fn steps(path: &[&str]) -> Vec<Step> {
    path.iter().map(|key| Step::from(*key)).collect()
}

/// Visits a value and all values in it.
fn each_node(node: &Node, path: &[Step], visit: &mut impl FnMut(&[Step], &Node)) {
    visit(path, node);
    let below = |step: Step| [path, &[step]].concat();
    match &node.value {
        Value::Map(entries) => {
            for entry in entries {
                each_node(&entry.value, &below(Step::from(entry.key.as_str())), visit);
            }
        }
        Value::List(items) => {
            for (index, item) in items.iter().enumerate() {
                each_node(item, &below(Step::from(index)), visit);
            }
        }
        _ => {}
    }
}
