//! A `PolicyTest` document → a [`PolicyTest`].

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::KIND;
use super::example;
use super::expression::Expression;
use super::policy_test::{Match, Over, PolicyTest};
use berth_base::diag::Severity;
use berth_base::meta::label_selector;
use berth_base::yaml::{Fields, Node, Scope};

/// Reads one test and reports its faults.
pub fn read(scope: &Scope, root: &Node) -> Option<PolicyTest> {
    let mut fields = scope.fields(root, "")?;
    fields.accept(&["apiVersion", "kind"]);
    let metadata = fields.required_fields("metadata");
    let name = metadata.and_then(|mut metadata| {
        metadata.accept(&["labels", "annotations"]);
        let name = metadata.required_str("name").map(str::to_owned);
        metadata.finish();
        name
    });
    let spec = fields.required_fields("spec");
    fields.finish();
    let mut spec = spec?;
    let over = spec.require("for").then(|| spec.choice("for", &Over::WORDS)).flatten().map(Over::of_word);
    let severity = match spec.choice("severity", &["error", "warning"]) {
        Some("warning") => Severity::Warning,
        _ => Severity::Error,
    };
    // The rules of a test for unknown items are not checked, because they could name anything.
    let named = over.unwrap_or(Over::Workloads);
    let matching = spec.fields("match").map(|fields| read_match(fields, named)).unwrap_or_default();
    spec.require("rule");
    let [rule, message_expression] = ["rule", "messageExpression"].map(|key| {
        let text = spec.str(key)?;
        over.and_then(|over| Expression::read(scope, &spec.path_of(key), text, spec.place_of(key), over))
    });
    let message = spec.str("message").map(str::to_owned);
    let holds = spec.bool("holds").unwrap_or(false);
    let examples = spec.each("examples").into_iter().filter_map(|one| example::read(scope, one)).collect();
    spec.finish();
    Some(PolicyTest {
        name: name?,
        at: scope.pos(root.at),
        severity,
        over: over?,
        matching,
        rule: rule?,
        message,
        message_expression,
        holds,
        examples,
        text: text_of(root),
    })
    .filter(|_| !scope.has_errors())
}

fn read_match(mut fields: Fields<'_>, over: Over) -> Match {
    if over == Over::Fleet {
        let at = fields.at();
        let message = format!("a {KIND} for the fleet as a whole has nothing to match");
        fields.scope().error(at, message);
    }
    let mut names = |key: &'static str| -> BTreeSet<String> {
        fields.strings(key).unwrap_or_default().into_iter().map(str::to_owned).collect()
    };
    let (kinds, namespaces) = match over {
        Over::Workloads => (names("kinds"), names("namespaces")),
        _ => (BTreeSet::new(), BTreeSet::new()),
    };
    let names = names("names");
    let labels = fields.node("labels");
    let labels = labels
        .and_then(|node| label_selector(fields.scope(), node, &fields.path_of("labels")))
        .unwrap_or_default();
    fields.finish();
    Match { kinds, namespaces, names, labels }
}

fn text_of(root: &Node) -> Json {
    let mut text = root.get("spec").map(Node::to_json).unwrap_or_default();
    if let Some(spec) = text.as_object_mut() {
        spec.remove("examples");
    }
    text
}
