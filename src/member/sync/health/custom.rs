//! Health rules written by users: documents of kind `HealthRule` that define when objects of a kind are healthy.
//!
//! A rule replaces the built-in rule for its kind. Its expressions see the live object as `object` and take a bounded
//! number of steps. If an expression fails, the object is not healthy.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::{Health, is_behind, is_leaving};
use berth_base::diag::{Diagnostic, Diagnostics, Severity};
use berth_base::model::API_VERSION;
use berth_base::model::object::group_of;
use berth_base::yaml::{self, Fields, Limits, Node, Scope};
use berth_cel::{Names, Program, Value, Variable};

/// The kind of the documents.
pub const KIND: &str = "HealthRule";

/// The names available to an expression.
const NAMES: Names<'_> = Names { variables: &[Variable::any("object")], methods: &[] };

/// The longest message from a rule.
const LONGEST: usize = 500;

/// All rules, by group and kind.
#[derive(Debug, Default)]
pub struct HealthRules(BTreeMap<(String, String), CustomRule>);

/// The rule for one kind.
#[derive(Debug)]
struct CustomRule {
    healthy: Program,
    failed: Option<Program>,
    message: Option<Program>,
}

/// Reads a file of rules. An error in one rule makes the whole file invalid.
pub fn read(file: &str, bytes: &[u8]) -> Result<HealthRules, Diagnostics> {
    let read = yaml::read(bytes, &Limits::of_a_part());
    let scope = Scope::new(file.into(), Severity::Error);
    for fault in read.faults {
        let at = scope.pos(fault.at);
        scope.report(Diagnostic::new(fault.severity, at, fault.message).maybe_hint(fault.hint));
    }
    let mut all = HealthRules::default();
    for document in &read.documents {
        let Some(((group, kind), rule)) = from_node(&scope, &document.root) else { continue };
        if all.0.contains_key(&(group.clone(), kind.clone())) {
            scope.error(document.root.at, format!("{kind} of `{group}` already has a rule"));
            continue;
        }
        all.0.insert((group, kind), rule);
    }
    if scope.has_errors() { Err(scope.into_diagnostics()) } else { Ok(all) }
}

/// Reports the faults of one document.
pub fn check(scope: &Scope, root: &Node) {
    from_node(scope, root);
}

fn from_node(scope: &Scope, root: &Node) -> Option<((String, String), CustomRule)> {
    let mut fields = scope.fields(root, "")?;
    fields.accept(&["metadata"]);
    let (version, kind) = (fields.required_str("apiVersion"), fields.required_str("kind"));
    for (key, found, wanted) in [("apiVersion", version, API_VERSION), ("kind", kind, KIND)] {
        if found.is_some_and(|found| found != wanted) {
            fields.error_at(key, format!("{key} must be {wanted}"));
        }
    }
    let spec = fields.required_fields("spec");
    fields.finish();
    let mut spec = spec?;
    let group = spec.str("group").unwrap_or_default().to_owned();
    let kind = spec.required_str("kind").map(str::to_owned);
    spec.require("healthy");
    let [healthy, failed, message] = ["healthy", "failed", "message"].map(|key| program(&mut spec, key));
    spec.finish();
    Some(((group, kind?), CustomRule { healthy: healthy?, failed, message }))
}

fn program(spec: &mut Fields<'_>, key: &'static str) -> Option<Program> {
    let text = spec.str(key)?;
    match Program::compile(text, NAMES) {
        Ok(program) => Some(program),
        Err(fault) => {
            let at = spec.scope().pos(spec.place_of(key));
            let message = format!("{}, {fault}", spec.path_of(key));
            spec.scope().report(Diagnostic::new(Severity::Error, at, message).maybe_hint(fault.hint));
            None
        }
    }
}

impl HealthRules {
    /// Reports whether these rules contain one for a kind.
    pub(crate) fn are_for(&self, group: &str, kind: &str) -> bool {
        !self.0.is_empty() && self.0.contains_key(&(group.to_owned(), kind.to_owned()))
    }

    /// Judges an object by the rule for its kind, or by the built-in rules.
    pub fn judge(&self, object: &Json) -> Health {
        let text = |key: &str| object.get(key).and_then(Json::as_str).unwrap_or_default();
        let key = (group_of(text("apiVersion")).to_owned(), text("kind").to_owned());
        match self.0.get(&key) {
            Some(rule) => {
                is_leaving(object).or_else(|| is_behind(object)).unwrap_or_else(|| rule.judge(object))
            }
            None => super::of(object),
        }
    }
}

impl CustomRule {
    fn judge(&self, object: &Json) -> Health {
        let object = Value::from(object);
        match self.verdict(&object) {
            Ok(health) => health,
            Err(why) => Health::Progressing(why),
        }
    }

    fn verdict(&self, object: &Value) -> Result<Health, String> {
        if let Some(failed) = &self.failed
            && holds(failed, "failed", object)?
        {
            return Ok(Health::Failed(self.words("`failed` of its health rule is true", object)?));
        }
        if holds(&self.healthy, "healthy", object)? {
            return Ok(Health::Healthy);
        }
        Ok(Health::Progressing(self.words("`healthy` of its health rule is false", object)?))
    }

    fn words(&self, otherwise: &str, object: &Value) -> Result<String, String> {
        let Some(message) = &self.message else { return Ok(otherwise.to_owned()) };
        match run(message, "message", object)? {
            Value::Text(text) => {
                let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
                Ok(line.chars().filter(|it| !it.is_control()).take(LONGEST).collect())
            }
            _ => Err(format!("{otherwise}; `message` of its health rule must evaluate to a text")),
        }
    }
}

fn holds(program: &Program, key: &str, object: &Value) -> Result<bool, String> {
    match run(program, key, object)? {
        Value::Bool(value) => Ok(value),
        _ => Err(format!("`{key}` of its health rule must evaluate to true or false")),
    }
}

fn run(program: &Program, key: &str, object: &Value) -> Result<Value, String> {
    let none = |_: usize, _: &str| Err("there are no methods".to_owned());
    program
        .run(object, &none)
        .map_err(|fault| format!("`{key}` of its health rule cannot be evaluated, {fault}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(healthy: &str, failed: &str, message: &str) -> HealthRules {
        let text = json!({"apiVersion": "berth.dev/v1alpha1", "kind": "HealthRule", "metadata": {"name": "boats"},
            "spec": {"group": "example.com", "kind": "Boat", "healthy": healthy, "failed": failed, "message": message}});
        read("rules.yaml", text.to_string().as_bytes()).unwrap()
    }

    fn boat(status: Json) -> Json {
        json!({"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"generation": 2}, "status": status})
    }

    #[test]
    fn a_rule_says_when_an_object_is_well_and_why_not() {
        let rules = rule(
            "object.status.phase == 'Afloat'",
            "object.status.phase == 'Sunk'",
            "'it is ' + object.status.phase",
        );
        let judge = |phase: &str| rules.judge(&boat(json!({ "phase": phase })));
        assert_eq!(judge("Afloat"), Health::Healthy);
        assert_eq!(judge("Docked"), Health::Progressing("it is Docked".to_owned()));
        assert_eq!(judge("Sunk"), Health::Failed("it is Sunk".to_owned()));
        let old = rules.judge(&boat(json!({"phase": "Afloat", "observedGeneration": 1})));
        assert!(matches!(old, Health::Progressing(_)), "a status of an earlier form counts for nothing");
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap"});
        assert_eq!(rules.judge(&map), Health::Healthy, "other kinds go by what is built in");
    }

    #[test]
    fn what_can_not_be_evaluated_is_not_well_and_says_so() {
        for (healthy, status, words) in [
            (
                "object.status.phase == 'Afloat'",
                json!({}),
                "`healthy` of its health rule cannot be evaluated, at character",
            ),
            ("object.status.phase", json!({"phase": "Afloat"}), "must evaluate to true or false"),
            (
                "object.status.l.all(a, object.status.l.all(b, object.status.l.all(c, a + b + c >= 0)))",
                json!({"l": (0..300).collect::<Vec<_>>()}),
                "takes more than",
            ),
        ] {
            let rules = rule(healthy, "false", "'x'");
            let Health::Progressing(why) = rules.judge(&boat(status)) else { panic!("{healthy}") };
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn all_faults_of_a_file_are_reported_at_their_places() {
        let text = "apiVersion: berth.dev/v1alpha1\nkind: HealthRule\nspec:\n  kind: Boat\n  healthy: objekt.status\n  \
                    failed: 'object.status =='\n---\napiVersion: berth.dev/v1\nkind: HealthRule\nspec: {helthy: 'true'}\n";
        let found = read("rules.yaml", text.as_bytes()).unwrap_err();
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        for part in [
            "rules.yaml:5:12: error: spec.healthy, at character 1",
            "rules.yaml:6:11: error: spec.failed, at",
            "rules.yaml:8:13: error: apiVersion must be berth.dev/v1alpha1",
            "spec.kind is required",
            "`spec.helthy`",
        ] {
            assert!(found.iter().any(|one| one.contains(part)), "{part}\n{found:#?}");
        }
    }
}
