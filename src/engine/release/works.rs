//! A file that lists members' copies and their health, in place of statuses: one entry for each workload and
//! cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::turn::{Turn, Version};
use berth_base::diag::{Diagnostic, Diagnostics, Pos, Severity, did_you_mean};
use berth_base::model::release::Health;
use berth_base::model::{Fleet, Key, Timestamp};
use berth_base::text::some_of;
use berth_base::yaml::node::Value;
use berth_base::yaml::{self, Fields, Limits, Mark, Scope};

/// The copies of each workload, by cluster.
pub type Works = BTreeMap<Key, BTreeMap<String, Copies>>;

/// A member's copies of one workload, with their health.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copies {
    has: Version,
    health: Health,
    since: Option<Timestamp>,
    measured: bool,
    removing: bool,
}

impl Copies {
    /// Returns the copies as a strategy sees them: copies that are being removed never count as the wanted
    /// ones.
    pub fn turn<'a>(&self, cluster: &'a str) -> Turn<'a> {
        let Copies { has, health, since, measured, removing } = *self;
        let has = if removing { Version::Old } else { has };
        Turn { cluster, has, health, since, measured, removing, ..Turn::default() }
    }
}

/// Reads the file. If a diagnostic is an error, the result must not be used.
pub fn read(file: &str, bytes: &[u8], fleet: &Fleet) -> (Works, Diagnostics) {
    let read = yaml::read(bytes, &Limits::default());
    let scope = Scope::new(Arc::from(file), Severity::Error);
    for fault in read.faults {
        let diagnostic = Diagnostic::new(fault.severity, scope.pos(fault.at), fault.message);
        scope.report(diagnostic.maybe_hint(fault.hint));
    }
    if read.documents.is_empty() && !scope.has_errors() {
        let message = "the file of `--works` is empty, but must hold a list";
        scope
            .report(Diagnostic::error(Pos::file(file), message).hint("write `[]` if no member has anything"));
    }
    let mut works = Works::new();
    for document in &read.documents {
        let root = &document.root;
        let Value::List(entries) = &root.value else {
            scope.error(root.at, format!("a works file must hold a list of entries, not {}", root.what()));
            continue;
        };
        for (index, entry) in entries.iter().enumerate() {
            let path = format!("[{index}]");
            let read = scope.fields(entry, &path).and_then(|fields| entry_of(fields, fleet));
            let Some((at, key, cluster, copy)) = read else { continue };
            let copies = works.entry(key.clone()).or_default();
            if copies.insert(cluster.clone(), copy).is_some() {
                scope.error(at, format!("{path}: another entry is about {key} in cluster `{cluster}` too"));
            }
        }
    }
    (works, scope.into_diagnostics())
}

fn entry_of(mut fields: Fields<'_>, fleet: &Fleet) -> Option<(Mark, Key, String, Copies)> {
    let key = workload(&mut fields, fleet);
    let cluster = fields.required_str("cluster");
    fields.require("has");
    let has = fields.choice("has", &["none", "old", "new"]).map(|word| match word {
        "old" => Version::Old,
        "new" => Version::New,
        _ => Version::Nothing,
    });
    let status = fields.choice("status", &Health::WORDS);
    let health = status.and_then(Health::of_word);
    let since = since(&mut fields);
    let available = fields.bool("available");
    let removing = fields.bool("removing") == Some(true);
    check(&mut fields, has, health);
    if available.is_some_and(|available| available != (health == Some(Health::Succeeded))) {
        let (path, word) = (fields.path_of("available"), health.unwrap_or_default().word());
        let value = available == Some(true);
        fields.error_at("available", format!("{path} is {value}, which contradicts the status `{word}`"));
    }
    let at = fields.at();
    fields.finish();
    let health = health.unwrap_or_default();
    let measured = available.is_some();
    Some((at, key?, cluster?.to_owned(), Copies { has: has?, health, since, measured, removing }))
}

/// Checks that the fields belong together.
fn check(fields: &mut Fields<'_>, has: Option<Version>, health: Option<Health>) {
    let Some(has) = has else { return };
    if has == Version::Nothing {
        for key in ["status", "since", "available", "removing"] {
            if fields.node(key).is_some() {
                let message = format!("{} is set, but the cluster has no copy", fields.path_of(key));
                fields.error_at(key, message);
            }
        }
        return;
    }
    fields.require("status");
    if health.is_some_and(|health| health != Health::Applying) {
        fields.require("since");
    }
}

fn since(fields: &mut Fields<'_>) -> Option<Timestamp> {
    let text = fields.str("since")?;
    let moment = text.parse().ok();
    if moment.is_none() {
        let path = fields.path_of("since");
        let message = format!("{path} is `{text}`, but must be a moment such as `2026-01-31T12:00:00Z`");
        fields.error_at("since", message);
    }
    moment
}

/// Finds the workload that an entry names.
fn workload(fields: &mut Fields<'_>, fleet: &Fleet) -> Option<Key> {
    let kind = fields.str("kind");
    let name = fields.required_str("workload")?;
    let named = |key: &&Key| key.full_name() == name && kind.is_none_or(|kind| *key.kind == *kind);
    let found: Vec<&Key> = fleet.workloads.keys().filter(named).collect();
    let path = fields.path_of("workload");
    let (message, hint) = match found.as_slice() {
        [key] => return Some((*key).clone()),
        [] => {
            let names: Vec<String> = fleet.workloads.keys().map(Key::full_name).collect();
            let hint = did_you_mean(name, names.iter().map(String::as_str));
            (format!("{path}: no workload of this fleet is named `{name}`"), hint)
        }
        several => {
            let hint = format!("add a field `kind`: {}", some_of(several.iter().map(|key| &key.kind), 5));
            (format!("{path}: `{name}` names {} workloads", several.len()), Some(hint))
        }
    };
    let scope = fields.scope();
    scope.report(Diagnostic::error(scope.pos(fields.place_of("workload")), message).maybe_hint(hint));
    None
}
