//! Writes fields as JSON Schema, in the draft that YAML language servers support, with the description of each field
//! in one line, which editors show.
//!
//! A line of descriptions.txt applies to every field whose path ends with the line's path; the longest match counts.
//! A heading names the kinds of the lines below it, where `*` matches any ending.

use serde_json::{Map, Value as Json, json};

use super::field_discovery::{ANY, Field};
use berth_base::yaml::Form;
use berth_engine::dialects::ReadKind;

const DRAFT: &str = "http://json-schema.org/draft-07/schema#";

pub(super) fn of_kind(kind: &ReadKind, root: &Field) -> Json {
    let mut schema = of_field(kind.kind, root, "", false);
    schema.insert("$schema".to_owned(), DRAFT.into());
    schema.insert("title".to_owned(), kind.kind.into());
    let properties = &mut schema["properties"];
    properties["apiVersion"]["enum"] = api_versions(kind).into();
    properties["kind"]["enum"] = json!([kind.kind]);
    let required = schema.remove("required").unwrap_or_else(|| json!([]));
    let identity = ["apiVersion", "kind"].map(Json::from);
    let others = required.as_array().into_iter().flatten().filter(|name| !identity.contains(name)).cloned();
    let required = identity.iter().cloned().chain(others).collect();
    schema.insert("required".to_owned(), required);
    Json::Object(schema)
}

fn api_versions(kind: &ReadKind) -> Vec<String> {
    kind.versions.iter().map(|version| format!("{}/{version}", kind.group)).collect()
}

/// Returns a schema that selects a kind's file by apiVersion and kind.
pub(super) fn choice<'k>(kinds: impl Iterator<Item = (&'k ReadKind, String)>) -> Json {
    let choice = |(kind, file): (&ReadKind, String)| {
        let wanted = json!({
            "required": ["apiVersion", "kind"],
            "properties": {"apiVersion": {"enum": api_versions(kind)}, "kind": {"const": kind.kind}},
        });
        json!({"if": wanted, "then": {"$ref": file}})
    };
    json!({
        "$schema": DRAFT,
        "title": "A document of a fleet repository",
        "description": "Chooses the schema by apiVersion and kind. Documents of other kinds may hold anything.",
        "type": "object",
        "allOf": kinds.map(choice).collect::<Vec<_>>(),
    })
}

fn of_field(kind: &str, field: &Field, path: &str, may_be_null: bool) -> Map<String, Json> {
    let mut schema = Map::new();
    if let Some(text) = description(kind, path) {
        schema.insert("description".to_owned(), text.into());
    }
    let mut types = Vec::new();
    for form in &field.forms {
        types.extend(of_form(kind, field, path, form, &mut schema));
    }
    if may_be_null && !types.is_empty() {
        types.push("null");
        if let Some(words) = schema.get_mut("enum").and_then(Json::as_array_mut) {
            words.push(Json::Null);
        }
    }
    match types.as_slice() {
        [] => {}
        [one] => drop(schema.insert("type".to_owned(), (*one).into())),
        several => drop(schema.insert("type".to_owned(), several.into())),
    }
    schema
}

fn of_mapping(kind: &str, field: &Field, path: &str, schema: &mut Map<String, Json>) {
    let mut set = |key: &str, value: Json| drop(schema.insert(key.to_owned(), value));
    // Null counts as absent, but a field whose name is data must not be absent.
    let inner = |name: &str, inner: &Field| {
        let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        let may_be_absent = !inner.required && !field.refuses_nulls && name != ANY;
        of_field(kind, inner, &path, inner.nullable || may_be_absent)
    };
    let named = field.fields.iter().filter(|(name, _)| *name != ANY);
    let properties: Map<_, _> =
        named.clone().map(|(name, one)| (name.clone(), inner(name, one).into())).collect();
    let required: Vec<&String> = named.filter(|(_, one)| one.required).map(|(name, _)| name).collect();
    if !properties.is_empty() {
        set("properties", properties.into());
    }
    if !required.is_empty() {
        set("required", json!(required));
    }
    match field.fields.get(ANY) {
        Some(any) => set("additionalProperties", inner(ANY, any).into()),
        None if field.closed => set("additionalProperties", false.into()),
        None => {}
    }
}

/// Adds the requirements of a form, and returns the types of its values.
fn of_form(
    kind: &str,
    field: &Field,
    path: &str,
    form: &Form,
    schema: &mut Map<String, Json>,
) -> Vec<&'static str> {
    let mut set = |key: &str, value: Json| drop(schema.insert(key.to_owned(), value));
    match form {
        Form::Text => vec!["string"],
        Form::SomeText => {
            set("minLength", 1.into());
            vec!["string"]
        }
        Form::Bool => vec!["boolean"],
        Form::Word(words) => {
            set("enum", words.clone().into());
            vec!["string"]
        }
        Form::Whole(low, high) => {
            let limits = [("minimum", *low, i64::MIN), ("maximum", *high, i64::MAX)];
            for (key, limit, _) in limits.into_iter().filter(|(_, limit, none)| limit != none) {
                set(key, limit.into());
            }
            vec!["integer"]
        }
        Form::CountOrShare => {
            set("minimum", 0.into());
            set("pattern", "^[0-9]+%?$".into());
            vec!["integer", "string"]
        }
        Form::List => {
            if let Some(item) = &field.item {
                set("items", of_field(kind, item, &format!("{path}[]"), false).into());
            }
            vec!["array"]
        }
        Form::Mapping => {
            of_mapping(kind, field, path, schema);
            vec!["object"]
        }
    }
}

/// A line of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptionLine {
    /// The kinds to which it applies; `*` for all.
    kinds: &'static str,
    /// The end of the path.
    path: &'static str,
    text: &'static str,
}

/// Returns all lines.
pub(super) fn lines() -> Vec<DescriptionLine> {
    let mut kinds = "*";
    let mut all = Vec::new();
    for line in include_str!("descriptions.txt").lines() {
        if let Some(heading) = line.strip_prefix("# ") {
            kinds = heading;
        } else if let Some((path, text)) = line.split_once(": ") {
            all.push(DescriptionLine { kinds, path, text });
        }
    }
    all
}

/// Returns the line for a field.
pub(super) fn line<'l>(lines: &'l [DescriptionLine], kind: &str, path: &str) -> Option<&'l DescriptionLine> {
    let fitting = lines.iter().filter(|line| line.is_for(kind) && line.fits(path));
    fitting.max_by_key(|line| (line.path.len(), line.kinds != "*"))
}

pub(super) fn description(kind: &str, path: &str) -> Option<&'static str> {
    line(&lines(), kind, path).map(|line| line.text)
}

impl DescriptionLine {
    fn is_for(&self, kind: &str) -> bool {
        self.kinds.split(' ').any(|name| match name.strip_suffix('*') {
            Some(start) => kind.starts_with(start),
            None => kind == name,
        })
    }

    fn fits(&self, path: &str) -> bool {
        path.strip_suffix(self.path).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    }
}
