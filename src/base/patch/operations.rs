//! Reads a list of patch operations as written, and reports every fault at its place.

use serde_json::Value as Json;

use super::variables::{self, Lookalike};
use crate::diag::Diagnostic;
use crate::model::{Operation, Pointer, Verb};
use crate::yaml::Node;
use crate::yaml::fields::{Fields, Scope};

/// The rules by which a system reads patches.
#[derive(Clone, Copy, Debug)]
pub struct PatchRules {
    /// The operations that it knows.
    pub verbs: &'static [&'static str],
    /// The operation of an entry without `op`.
    pub default_verb: Option<Verb>,
    /// `replace` sets a missing key, with a warning.
    pub replace_may_add: bool,
    /// A negative list index counts from the end.
    pub from_the_end: bool,
    /// A path may be empty, and have empty parts.
    pub allows_empty_parts: bool,
    /// `remove` may have a value, which has no effect.
    pub remove_may_have_value: bool,
    /// `${...}` in a value stands for the cluster's name or labels.
    pub variables: bool,
}

impl PatchRules {
    /// The rules of RFC 6902.
    pub const RFC_6902: PatchRules = PatchRules {
        verbs: &["add", "remove", "replace", "move", "copy", "test"],
        default_verb: None,
        replace_may_add: false,
        from_the_end: false,
        allows_empty_parts: true,
        remove_may_have_value: true,
        variables: false,
    };
}

/// Reads all operations of a list; `path` names the list in messages. Faulty ones are reported and left out.
/// A patch with a fault must not be applied: the caller sees the scope's errors.
pub fn operations(scope: &Scope, list: &[Node], path: &str, rules: &PatchRules) -> Vec<Operation> {
    let read = |(index, node): (usize, &Node)| {
        let mut fields = scope.fields(node, &format!("{path}[{index}]"))?;
        let operation = operation(&mut fields, rules);
        fields.finish();
        operation
    };
    let mut operations = Vec::with_capacity(list.len());
    operations.extend(list.iter().enumerate().filter_map(read));
    operations
}

fn operation(fields: &mut Fields<'_>, rules: &PatchRules) -> Option<Operation> {
    fields.accept(&["from"]);
    let verb = verb(fields, rules);
    let path = pointer_in(fields, "path", rules);
    let value = fields.node_or_null("value").map(Node::to_json);
    let verb = verb?;
    let from = match verb {
        Verb::Move | Verb::Copy => Some(pointer_in(fields, "from", rules)),
        _ => None,
    };
    check_value(fields, verb, value.as_ref(), rules)?;
    if rules.variables {
        warn_of_lookalike(fields, value.as_ref());
    }
    let from = match from {
        Some(from) => Some(from?),
        None => None,
    };
    Some(Operation {
        verb,
        path: path?,
        from,
        value,
        replace_may_add: rules.replace_may_add && verb == Verb::Replace,
        from_the_end: rules.from_the_end,
        variables: rules.variables,
        at: fields.scope().pos(fields.at()),
    })
}

fn verb(fields: &mut Fields<'_>, rules: &PatchRules) -> Option<Verb> {
    let absent = fields.node("op").is_none_or(|node| node.as_str() == Some(""));
    if let Some(verb) = rules.default_verb.filter(|_| absent) {
        return Some(verb);
    }
    if !fields.require("op") {
        return None;
    }
    let word = fields.choice("op", rules.verbs)?;
    Verb::ALL.iter().find(|(known, _)| *known == word).map(|(_, verb)| *verb)
}

fn pointer_in(fields: &mut Fields<'_>, key: &'static str, rules: &PatchRules) -> Option<Pointer> {
    if !fields.require(key) {
        return None;
    }
    let path = match Pointer::parse(fields.str(key)?) {
        Ok(path) => path,
        Err(fault) => {
            let at = fields.scope().pos(fields.place_of(key));
            let message = format!("{}: {}", fields.path_of(key), fault.message);
            fields.scope().report(Diagnostic::error(at, message).hint(fault.hint));
            return None;
        }
    };
    let parts = path.parts();
    if !rules.allows_empty_parts && (parts.is_empty() || parts.iter().any(String::is_empty)) {
        fields.error_at(key, format!("{}: `{path}` has an empty part", fields.path_of(key)));
        return None;
    }
    Some(path)
}

/// Warns of a value that looks like a variable but reaches members unchanged.
fn warn_of_lookalike(fields: &Fields<'_>, value: Option<&Json>) {
    let Some(Lookalike { written, meant }) = value.and_then(variables::lookalike) else { return };
    let at = fields.scope().pos(fields.place_of("value"));
    let message = format!(
        "{}: `{written}` is not a variable; clusters get this text unchanged",
        fields.path_of("value")
    );
    fields.scope().report(Diagnostic::warning(at, message).hint(format!("did you mean `{meant}`?")));
}

fn check_value(fields: &Fields<'_>, verb: Verb, value: Option<&Json>, rules: &PatchRules) -> Option<()> {
    let word = verb.word();
    match (verb, value) {
        (Verb::Add | Verb::Replace | Verb::Test, None) => {
            let at = fields.scope().pos(fields.at());
            let message = format!("{} is required for `{word}`", fields.path_of("value"));
            let hint = "write `value: null` if you mean null";
            fields.scope().report(Diagnostic::error(at, message).hint(hint));
            None
        }
        (Verb::Remove, Some(_)) if !rules.remove_may_have_value => {
            fields.error_at("value", format!("{} must not be given for `{word}`", fields.path_of("value")));
            None
        }
        _ => Some(()),
    }
}
