//! Reads a list of patch operations as written, and reports every fault at its place.

use serde_json::Value as Json;

use super::variables::{self, Lookalike};
use crate::diag::Diagnostic;
use crate::model::{Operation, Pointer, Verb};
use crate::yaml::Node;
use crate::yaml::fields::{Fields, Scope};

/// The system whose rules apply to the operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// RFC 6902 without changes.
    Plain,
    /// `op` is optional and defaults to `replace`; `replace` may add.
    KubeFed,
    /// Only `add`, `remove` and `replace`, no empty path part, negative list indexes, variables in values.
    KubeFleet,
}

impl Style {
    fn verbs(self) -> &'static [&'static str] {
        match self {
            Style::Plain | Style::KubeFed => &["add", "remove", "replace", "move", "copy", "test"],
            Style::KubeFleet => &["add", "remove", "replace"],
        }
    }
}

/// Reads all operations of a list; `path` names the list in messages. Faulty ones are reported and left out.
/// A patch with a fault must not be applied: the caller sees the scope's errors.
pub fn operations(scope: &Scope, list: &[Node], path: &str, style: Style) -> Vec<Operation> {
    let read = |(index, node): (usize, &Node)| {
        let mut fields = scope.fields(node, &format!("{path}[{index}]"))?;
        let operation = operation(&mut fields, style);
        fields.finish();
        operation
    };
    let mut operations = Vec::with_capacity(list.len());
    operations.extend(list.iter().enumerate().filter_map(read));
    operations
}

fn operation(fields: &mut Fields<'_>, style: Style) -> Option<Operation> {
    fields.accept(&["from"]);
    let verb = verb(fields, style);
    let path = pointer_in(fields, "path", style);
    let value = fields.node_or_null("value").map(Node::to_json);
    let verb = verb?;
    let from = match verb {
        Verb::Move | Verb::Copy => Some(pointer_in(fields, "from", style)),
        _ => None,
    };
    check_value(fields, verb, value.as_ref(), style)?;
    if style == Style::KubeFleet {
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
        replace_may_add: style == Style::KubeFed && verb == Verb::Replace,
        from_the_end: style == Style::KubeFleet,
        variables: style == Style::KubeFleet,
        at: fields.scope().pos(fields.at()),
    })
}

fn verb(fields: &mut Fields<'_>, style: Style) -> Option<Verb> {
    let absent = fields.node("op").is_none_or(|node| node.as_str() == Some(""));
    if absent && style == Style::KubeFed {
        return Some(Verb::Replace);
    }
    if !fields.require("op") {
        return None;
    }
    let word = fields.choice("op", style.verbs())?;
    Verb::ALL.iter().find(|(known, _)| *known == word).map(|(_, verb)| *verb)
}

fn pointer_in(fields: &mut Fields<'_>, key: &'static str, style: Style) -> Option<Pointer> {
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
    if style == Style::KubeFleet && (parts.is_empty() || parts.iter().any(String::is_empty)) {
        fields.error_at(key, format!("{}: `{path}` has an empty part", fields.path_of(key)));
        return None;
    }
    Some(path)
}

/// Warns of a value that looks like a variable but reaches members unchanged.
fn warn_of_lookalike(fields: &Fields<'_>, value: Option<&Json>) {
    let Some(Lookalike { written, meant }) = value.and_then(variables::lookalike) else { return };
    let at = fields.scope().pos(fields.place_of("value"));
    let message =
        format!("{}: `{written}` is no variable, so clusters get it as it is", fields.path_of("value"));
    fields.scope().report(Diagnostic::warning(at, message).hint(format!("did you mean `{meant}`?")));
}

fn check_value(fields: &Fields<'_>, verb: Verb, value: Option<&Json>, style: Style) -> Option<()> {
    let word = verb.word();
    match (verb, value) {
        (Verb::Add | Verb::Replace | Verb::Test, None) => {
            let at = fields.scope().pos(fields.at());
            let message = format!("{} is required for `{word}`", fields.path_of("value"));
            let hint = "write `value: null` where null is meant";
            fields.scope().report(Diagnostic::error(at, message).hint(hint));
            None
        }
        (Verb::Remove, Some(_)) if style == Style::KubeFleet => {
            fields.error_at("value", format!("{} must not be given for `{word}`", fields.path_of("value")));
            None
        }
        _ => Some(()),
    }
}
