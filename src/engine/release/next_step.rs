//! The next step of every workload on given facts, for commands and tools. A file may list members' copies
//! and their health, in place of statuses: one entry for each workload and cluster.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::policy::{Closed, Orders};
use super::strategies::{self, Step, Turn, Version};
use berth_base::diag::{Diagnostic, Diagnostics, Pos, Severity, did_you_mean};
use berth_base::model::release::Health;
use berth_base::model::rollout::Strategy;
use berth_base::model::{Decision, Fleet, Key, Map, Timestamp, Workload};
use berth_base::text::some_of;
use berth_base::yaml::node::Value;
use berth_base::yaml::{self, Fields, Limits, Mark, Scope};

/// A workload's clusters, and its strategy's answer.
#[derive(Debug)]
pub struct NextStep<'a> {
    pub workload: &'a Workload,
    /// The workload's own strategy, or the one of the policy that applies.
    pub strategy: Cow<'a, Strategy>,
    /// Ascending by name.
    pub turns: Vec<Turn<'a>>,
    pub step: Step<'a>,
}

/// Asks the strategy of each workload.
pub fn next_steps<'a>(
    fleet: &'a Fleet,
    decisions: &'a Map<Key, Decision>,
    works: &'a Works,
    now: Timestamp,
) -> Vec<NextStep<'a>> {
    let of = |workload: &'a Workload| {
        let copies = works.get(&workload.key).into_iter().flatten();
        let copies = copies.map(|(cluster, copy)| copy.turn(cluster));
        let turns = strategies::turns(decisions.get(&workload.key), copies);
        let orders = Orders::of(fleet, &workload.key);
        let strategy = orders.strategy();
        let followed = strategies::followed(fleet, decisions, &workload.key, &strategy);
        let step = strategies::step(&strategy, &turns, &followed, now);
        let step = match orders.closed(now) {
            Some(closed) => step.closed(&turns, &closed),
            None => step,
        };
        NextStep { workload, strategy, turns, step }
    };
    fleet.workloads.values().map(|workload| of(workload)).collect()
}

impl<'a> Step<'a> {
    /// Returns the same step while an order stops the rollout.
    fn closed(self, turns: &[Turn<'a>], closed: &Closed) -> Step<'a> {
        let next = self.next.into_iter().chain(closed.until).min();
        let waits = Step::all_wait(turns, &closed.reason).waits;
        Step { give: BTreeSet::new(), remove: BTreeSet::new(), waits, next, ..self }
    }
}

impl Serialize for NextStep<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (key, step) = (&self.workload.key, &self.step);
        let clusters = |is_meant: &dyn Fn(&Turn<'_>) -> bool| {
            let clusters = self.turns.iter().filter(|turn| turn.picked && is_meant(turn));
            clusters.map(|turn| turn.cluster).collect()
        };
        let is_progressive = matches!(*self.strategy, Strategy::Progressive(_));
        let form = NextStepForm {
            kind: &key.kind,
            namespace: &key.namespace,
            name: &key.name,
            give: &step.give,
            has: clusters(&|turn| turn.has == Version::New),
            wait: clusters(&|turn| turn.wants() && !step.give.contains(turn.cluster)),
            timed_out: is_progressive.then_some(&step.timed_out),
            halted: is_progressive.then_some(step.halted.is_some()),
            remove: matches!(*self.strategy, Strategy::Rolling(_)).then_some(&step.remove),
            reasons: step.waits.iter().map(|(cluster, why)| (*cluster, &**why)).collect(),
            failures: step.halted.as_ref().map(|halted| halted.words()),
            next: step.next,
        };
        form.serialize(serializer)
    }
}

/// The step of a workload, for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NextStepForm<'a> {
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
    give: &'a BTreeSet<&'a str>,
    has: Vec<&'a str>,
    wait: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timed_out: Option<&'a BTreeSet<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    halted: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remove: Option<&'a BTreeSet<&'a str>>,
    reasons: BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failures: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Timestamp>,
}

/// The copies of each workload, by cluster.
pub type Works = BTreeMap<Key, BTreeMap<String, MemberCopies>>;

/// A member's copies of one workload, with their health.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberCopies {
    has: Version,
    health: Health,
    since: Option<Timestamp>,
    measured: bool,
    removing: bool,
}

impl MemberCopies {
    /// Returns the copies as a strategy sees them: copies that are being removed never count as the wanted
    /// ones.
    pub fn turn<'a>(&self, cluster: &'a str) -> Turn<'a> {
        let MemberCopies { has, health, since, measured, removing } = *self;
        let has = if removing { Version::Old } else { has };
        Turn { cluster, has, health, since, measured, removing, ..Turn::default() }
    }
}

/// Reads the file. If a diagnostic is an error, the result must not be used.
pub fn read_works(file: &str, bytes: &[u8], fleet: &Fleet) -> (Works, Diagnostics) {
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

fn entry_of(mut fields: Fields<'_>, fleet: &Fleet) -> Option<(Mark, Key, String, MemberCopies)> {
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
    Some((at, key?, cluster?.to_owned(), MemberCopies { has: has?, health, since, measured, removing }))
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
