//! Reads a mapping field by field and reports every fault at its place.
//!
//! A reader asks for its known fields and ends with [`Fields::finish`], which reports all other fields, with
//! the nearest known name. So one pass finds all problems of a document, and no separate list of allowed
//! fields can become outdated. The JSON Schemas of the kinds come from the same calls, see [`super::questions`].
//!
//! `null` counts as absent everywhere except in [`Fields::node_or_null`]. A scope can report nulls in a spec,
//! see [`Scope::refuse_nulls`].

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::node::{Entry, Mark, Node, Value};
use super::questions::{Form, Question, Questions};
use crate::diag::{Diagnostic, Diagnostics, Pos, Severity, did_you_mean};

/// The collector of a document's faults.
#[derive(Debug)]
pub struct Scope {
    file: Arc<str>,
    /// The severity of an unknown field: an error, or a warning by the fleet's settings.
    unknown_fields: Cell<Severity>,
    refuse_nulls: bool,
    asked: Option<Arc<Questions>>,
    found: RefCell<Diagnostics>,
}

impl Scope {
    pub fn new(file: Arc<str>, unknown_fields: Severity) -> Scope {
        let unknown_fields = Cell::new(unknown_fields);
        Scope { file, unknown_fields, refuse_nulls: false, asked: None, found: RefCell::default() }
    }

    /// Reports known fields of the spec that are null, as API servers do if a schema forbids null.
    pub fn refuse_nulls(self) -> Scope {
        Scope { refuse_nulls: true, ..self }
    }

    /// Records the questions of the readers.
    pub fn asking(self, asked: Option<Arc<Questions>>) -> Scope {
        Scope { asked, ..self }
    }

    fn note(&self, path: impl FnOnce() -> String, question: impl FnOnce() -> Question) {
        if let Some(asked) = &self.asked {
            asked.note(&path(), question());
        }
    }

    pub fn pos(&self, at: Mark) -> Pos {
        Pos { file: self.file.clone(), line: at.line, column: at.column }
    }

    pub fn error(&self, at: Mark, message: impl Into<String>) {
        self.report(Diagnostic::error(self.pos(at), message));
    }

    pub fn warning(&self, at: Mark, message: impl Into<String>) {
        self.report(Diagnostic::warning(self.pos(at), message));
    }

    pub fn report(&self, diagnostic: Diagnostic) {
        self.found.borrow_mut().push(diagnostic);
    }

    pub fn has_errors(&self) -> bool {
        self.found.borrow().has_errors()
    }

    pub fn into_diagnostics(self) -> Diagnostics {
        self.found.into_inner()
    }

    /// Opens a node as a mapping. Any other value is reported, under the name `what`.
    pub fn fields<'a>(&'a self, node: &'a Node, what: &str) -> Option<Fields<'a>> {
        self.note(|| what.to_owned(), || Question::Is(Form::Mapping));
        match &node.value {
            Value::Map(entries) => {
                let path = what.to_owned();
                let (known, nullable) = (Vec::new(), Vec::new());
                Some(Fields { scope: self, path, at: node.at, entries, known, nullable })
            }
            _ => {
                self.error(node.at, format!("{what} must be a mapping, not {}", node.what()));
                None
            }
        }
    }
}

/// A mapping being read. See the module's description.
#[derive(Debug)]
pub struct Fields<'a> {
    scope: &'a Scope,
    path: String,
    at: Mark,
    entries: &'a [Entry],
    known: Vec<&'static str>,
    /// The fields that may be null.
    nullable: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    pub fn scope(&self) -> &'a Scope {
        self.scope
    }

    /// Returns the start of the mapping.
    pub fn at(&self) -> Mark {
        self.at
    }

    /// Returns the mapping's own path, such as `spec.placement`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the path of one of its fields.
    pub fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Returns the field's value, with `null` as absent. Marks the field as known.
    pub fn node(&mut self, key: &'static str) -> Option<&'a Node> {
        self.look_up(key).filter(|node| !node.is_null())
    }

    /// Returns the field's value, including `null`. Marks the field as known.
    pub(crate) fn node_or_null(&mut self, key: &'static str) -> Option<&'a Node> {
        self.accept(&[key]);
        self.look_up(key)
    }

    /// Returns a field that is not allowed here, for a reader that reports it in its own words.
    pub fn misplaced(&mut self, key: &'static str) -> Option<&'a Node> {
        self.known.push(key);
        self.entries
            .iter()
            .find(|entry| entry.key == key)
            .map(|entry| &entry.value)
            .filter(|node| !node.is_null())
    }

    /// Records the form of a field that its reader checks itself.
    pub fn takes(&self, key: &str, form: Form) {
        self.scope.note(|| self.path_of(key), || Question::Is(form));
    }

    fn look_up(&mut self, key: &'static str) -> Option<&'a Node> {
        self.scope.note(|| self.path_of(key), || Question::Known);
        self.known.push(key);
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// Marks fields as known without reading them.
    pub fn accept(&mut self, keys: &[&'static str]) {
        for key in keys {
            self.scope.note(|| self.path_of(key), || Question::Nullable);
        }
        self.known.extend(keys);
        self.nullable.extend(keys);
    }

    /// Returns the entries unchanged, for mappings whose keys are data.
    pub fn entries(&self) -> &'a [Entry] {
        self.entries
    }

    pub fn fields(&mut self, key: &'static str) -> Option<Fields<'a>> {
        let path = self.path_of(key);
        let scope = self.scope;
        self.takes(key, Form::Mapping);
        self.node(key).and_then(|node| scope.fields(node, &path))
    }

    pub fn required_fields(&mut self, key: &'static str) -> Option<Fields<'a>> {
        self.require(key);
        self.fields(key)
    }

    pub fn list(&mut self, key: &'static str) -> Option<&'a [Node]> {
        let path = self.path_of(key);
        self.takes(key, Form::List);
        let node = self.node(key)?;
        match &node.value {
            Value::List(items) => Some(items),
            _ => {
                self.scope.error(node.at, format!("{path} must be a list, not {}", node.what()));
                None
            }
        }
    }

    /// Returns every item of a list of mappings, with its path and place.
    pub fn each(&mut self, key: &'static str) -> Vec<Fields<'a>> {
        let path = self.path_of(key);
        let scope = self.scope;
        scope.note(|| format!("{path}[0]"), || Question::Is(Form::Mapping));
        let items = self.list(key).unwrap_or_default();
        items
            .iter()
            .enumerate()
            .filter_map(|(index, node)| scope.fields(node, &format!("{path}[{index}]")))
            .collect()
    }

    pub fn str(&mut self, key: &'static str) -> Option<&'a str> {
        let path = self.path_of(key);
        self.takes(key, Form::Text);
        let node = self.node(key)?;
        match &node.value {
            Value::String(text) => Some(text),
            _ => {
                let hint = matches!(node.value, Value::Bool(_) | Value::Number(_))
                    .then(|| "put it in quotes if it is text".to_owned());
                let message = format!("{path} must be a string, not {}", node.what());
                self.scope.report(Diagnostic::error(self.scope.pos(node.at), message).maybe_hint(hint));
                None
            }
        }
    }

    /// Returns a required string that must not be empty.
    pub fn required_str(&mut self, key: &'static str) -> Option<&'a str> {
        self.takes(key, Form::SomeText);
        if !self.require(key) {
            return None;
        }
        let text = self.str(key)?;
        if text.is_empty() {
            let at = self.place_of(key);
            self.scope.error(at, format!("{} must not be empty", self.path_of(key)));
            return None;
        }
        Some(text)
    }

    /// Reads a field whose value must be among a few words.
    pub fn choice(&mut self, key: &'static str, words: &[&'static str]) -> Option<&'static str> {
        self.scope.note(|| self.path_of(key), || Question::Is(Form::Word(words.to_vec())));
        let text = self.str(key)?;
        let found = words.iter().copied().find(|word| *word == text);
        if found.is_none() {
            let message =
                format!("{} is `{text}`, but must be one of {}", self.path_of(key), words.join(", "));
            let hint = did_you_mean(text, words.iter().copied());
            self.scope
                .report(Diagnostic::error(self.scope.pos(self.place_of(key)), message).maybe_hint(hint));
        }
        found
    }

    pub fn bool(&mut self, key: &'static str) -> Option<bool> {
        let path = self.path_of(key);
        self.takes(key, Form::Bool);
        let node = self.node(key)?;
        match node.value {
            Value::Bool(value) => Some(value),
            _ => {
                self.scope.error(node.at, format!("{path} must be true or false, not {}", node.what()));
                None
            }
        }
    }

    pub fn int(&mut self, key: &'static str) -> Option<i64> {
        let path = self.path_of(key);
        self.takes(key, Form::Whole(i64::MIN, i64::MAX));
        let node = self.node(key)?;
        let whole = match &node.value {
            Value::Number(number) => number.as_i64(),
            _ => None,
        };
        if whole.is_none() {
            self.scope.error(node.at, format!("{path} must be a whole number, not {}", node.what()));
        }
        whole
    }

    /// Returns an integer within bounds.
    pub fn int_in(&mut self, key: &'static str, bounds: std::ops::RangeInclusive<i64>) -> Option<i64> {
        self.takes(key, Form::Whole(*bounds.start(), *bounds.end()));
        let value = self.int(key)?;
        if bounds.contains(&value) {
            return Some(value);
        }
        let message = format!(
            "{} is {value}, but must be from {} to {}",
            self.path_of(key),
            bounds.start(),
            bounds.end()
        );
        self.scope.error(self.place_of(key), message);
        None
    }

    pub fn strings(&mut self, key: &'static str) -> Option<Vec<&'a str>> {
        let path = self.path_of(key);
        self.scope.note(|| format!("{path}[0]"), || Question::Is(Form::Text));
        let items = self.list(key)?;
        let text = |(index, node): (usize, &'a Node)| {
            let text = node.as_str();
            if text.is_none() {
                self.scope.error(node.at, format!("{path}[{index}] must be a string, not {}", node.what()));
            }
            text
        };
        Some(items.iter().enumerate().filter_map(text).collect())
    }

    /// Returns a mapping from text to text, such as labels.
    pub fn string_map(&mut self, key: &'static str) -> Option<BTreeMap<String, String>> {
        self.scope.note(|| format!("{}.*", self.path_of(key)), || Question::Is(Form::Text));
        let fields = self.fields(key)?;
        let text = |entry: &Entry| match entry.value.as_str() {
            Some(text) => Some((entry.key.clone(), text.to_owned())),
            None => {
                let message =
                    format!("{} must be a string, not {}", fields.path_of(&entry.key), entry.value.what());
                let at = self.scope.pos(entry.value.at);
                self.scope.report(Diagnostic::error(at, message).hint("put the value in quotes"));
                None
            }
        };
        Some(fields.entries.iter().filter_map(text).collect())
    }

    /// Reports a required field that is missing; true if it exists.
    pub fn require(&mut self, key: &'static str) -> bool {
        self.require_or_hint(key, None)
    }

    /// Requires a field like [`Fields::require`], with a hint.
    pub fn require_or_hint(&mut self, key: &'static str, hint: Option<String>) -> bool {
        self.scope.note(|| self.path_of(key), || Question::Required);
        let there = self.node(key).is_some();
        if !there {
            let message = format!("{} is required", self.path_of(key));
            let at = self.scope.pos(self.place_of(key));
            self.scope.report(Diagnostic::error(at, message).maybe_hint(hint));
        }
        there
    }

    /// Returns the place of a field's value, or of the mapping if the field is absent.
    pub fn place_of(&self, key: &str) -> Mark {
        self.entries.iter().find(|entry| entry.key == key).map_or(self.at, |entry| entry.value.at)
    }

    /// Reports an error at a field.
    pub fn error_at(&self, key: &str, message: impl Into<String>) {
        self.scope.error(self.place_of(key), message);
    }

    /// Reports every field that no reader asked for.
    pub fn finish(self) {
        let is_of_spec = self.path == "spec" || self.path.starts_with("spec.");
        let refuses_nulls = self.scope.refuse_nulls && is_of_spec;
        self.scope.note(|| self.path.clone(), || Question::Closed { refuses_nulls });
        let severity = self.scope.unknown_fields.get();
        for entry in self.entries {
            if self.known.contains(&entry.key.as_str()) {
                if refuses_nulls {
                    self.check_null(entry);
                }
                continue;
            }
            let message = format!("unknown field `{}`", self.path_of(&entry.key));
            let hint = did_you_mean(&entry.key, self.known.iter().copied());
            let at = self.scope.pos(entry.at);
            self.scope.report(Diagnostic::new(severity, at, message).maybe_hint(hint));
        }
    }

    fn check_null(&self, entry: &Entry) {
        if entry.value.is_null() && !self.nullable.contains(&entry.key.as_str()) {
            let message = format!("{} is null", self.path_of(&entry.key));
            let at = self.scope.pos(entry.at);
            self.scope.report(Diagnostic::error(at, message).hint("give it a value, or leave the field out"));
        }
    }
}
