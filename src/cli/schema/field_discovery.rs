//! The tree of fields that a reader knows, from its questions, found by letting the reader read samples.
//!
//! The first sample contains little. Each further one contains all known fields and one difference: another word,
//! another form, a missing field, a field alone. So questions that depend on a value are found too. The search ends
//! when a round finds no new question.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use super::Kind;
use berth_base::yaml::{self, Form, Limits, Question, Questions};

/// Stands for fields whose names are data.
pub const ANY: &str = "*";

/// A field, or a whole document, with everything that its reader requires.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Field {
    /// The allowed forms; empty for any.
    pub forms: BTreeSet<Form>,
    pub required: bool,
    pub nullable: bool,
    /// True if only the listed fields are allowed.
    pub closed: bool,
    /// True if its fields must not be null.
    pub refuses_nulls: bool,
    /// The fields of a mapping by name, see [`ANY`].
    pub fields: BTreeMap<String, Field>,
    /// The items of a list.
    pub item: Option<Box<Field>>,
}

impl Field {
    pub(super) fn add(&mut self, path: &str, question: Question) {
        let field = path.split('.').filter(|part| !part.is_empty()).fold(self, |field, part| {
            let name = part.trim_end_matches("[]");
            let depth = (part.len() - name.len()) / 2;
            let field = field.fields.entry(name.to_owned()).or_default();
            (0..depth).fold(field, |list, _| list.item.get_or_insert_default())
        });
        match question {
            Question::Known => {}
            Question::Nullable => field.nullable = true,
            Question::Required => field.required = true,
            Question::Closed { refuses_nulls } => (field.closed, field.refuses_nulls) = (true, refuses_nulls),
            Question::Is(form) => {
                field.forms.insert(form);
            }
        }
    }

    /// Keeps only the narrowest form: a reader may ask for text, and then for one of a few words.
    pub(super) fn narrow(&mut self) {
        let words: BTreeSet<&'static str> = self.forms.iter().flat_map(words_of).collect();
        if !words.is_empty() {
            // In the order of the reader's longest list.
            let longest = self.forms.iter().map(words_of).max_by_key(Vec::len).unwrap_or_default();
            let others = words.into_iter().filter(|word| !longest.contains(word));
            let all = longest.iter().copied().chain(others).collect();
            self.forms = [Form::Word(all)].into();
        }
        if self.forms.contains(&Form::SomeText) {
            self.forms.remove(&Form::Text);
        }
        let bounds = self.forms.iter().filter_map(|form| match form {
            Form::Whole(low, high) => Some((*low, *high)),
            _ => None,
        });
        let bounds = bounds.reduce(|one, other| (one.0.max(other.0), one.1.min(other.1)));
        if let Some((low, high)) = bounds {
            self.forms.retain(|form| !matches!(form, Form::Whole(..)));
            self.forms.insert(Form::Whole(low, high));
        }
        self.fields.values_mut().for_each(Field::narrow);
        if let Some(item) = &mut self.item {
            item.narrow();
        } else if self.forms.contains(&Form::List) {
            self.item = Some(Box::default());
        }
    }

    /// Calls `tell` with the path of every field below.
    pub fn walk<'f>(&'f self, path: &str, tell: &mut dyn FnMut(&str, &'f Field)) {
        for (name, field) in &self.fields {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            tell(&path, field);
            field.walk(&path, tell);
        }
        if let Some(item) = &self.item {
            let path = format!("{path}[]");
            tell(&path, item);
            item.walk(&path, tell);
        }
    }
}

fn words_of(form: &Form) -> Vec<&'static str> {
    match form {
        Form::Word(words) => words.clone(),
        _ => Vec::new(),
    }
}

/// The parts that are the same in every sample.
const FIXED: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The difference of a sample.
#[derive(Clone, Copy, Debug)]
enum SampleChange<'p> {
    None,
    Absent(&'p str),
    /// Removes the other fields of its mapping.
    Alone(&'p str),
    /// Replaces the field's value by another of its [`values`].
    Other(&'p str, usize),
}

pub(super) fn fields(kind: &Kind) -> Field {
    let mut learnt = Learnt::default();
    for (index, version) in kind.kind.versions.iter().enumerate() {
        let read = |root: &Field, change: SampleChange<'_>, learnt: &mut Learnt| {
            let mut sample = mapping(root, "", change);
            let mut metadata = json!({"name": kind.kind.sample});
            if kind.kind.namespaced {
                metadata["namespace"] = kind.kind.sample.into();
            }
            let fixed = [
                ("apiVersion", json!(format!("{}/{version}", kind.kind.group))),
                ("kind", json!(kind.kind.kind)),
                ("metadata", metadata),
            ];
            sample.extend(fixed.map(|(key, value)| (key.to_owned(), value)));
            let text = Json::Object(sample).to_string();
            let asked = Arc::new(Questions::default());
            for document in yaml::read(text.as_bytes(), &Limits::default()).documents {
                (kind.read)(Some(asked.clone()), document.root);
            }
            learnt.take(asked.take());
        };
        loop {
            let before = learnt.questions.len();
            // First finds deep fields quickly, before the many changes are tried.
            let mut known = None;
            while known != Some(learnt.questions.len()) {
                known = Some(learnt.questions.len());
                read(&learnt.fields(), SampleChange::None, &mut learnt);
            }
            let root = learnt.fields();
            let mut paths = Vec::new();
            root.walk("", &mut |path, field| paths.push((path.to_owned(), values(field).len())));
            paths.retain(|(path, _)| !path.split('.').next().is_some_and(|first| FIXED.contains(&first)));
            for (path, n_values) in &paths {
                read(&root, SampleChange::Absent(path), &mut learnt);
                // Other versions differ only in single fields.
                if index > 0 {
                    continue;
                }
                if !path.ends_with("[]") {
                    read(&root, SampleChange::Alone(path), &mut learnt);
                }
                (1..*n_values).for_each(|other| read(&root, SampleChange::Other(path, other), &mut learnt));
            }
            if learnt.questions.len() == before {
                break;
            }
        }
    }
    learnt.fields()
}

/// All questions so far, and how often each mapping was read completely and each field required.
#[derive(Debug, Default)]
struct Learnt {
    questions: BTreeSet<(String, Question)>,
    ends: BTreeMap<String, usize>,
    requires: BTreeMap<String, usize>,
}

impl Learnt {
    fn take(&mut self, questions: BTreeSet<(String, Question)>) {
        let ended: BTreeSet<&String> = questions
            .iter()
            .filter(|(_, question)| matches!(question, Question::Closed { .. }))
            .map(|(path, _)| path)
            .collect();
        for (path, question) in &questions {
            if *question == Question::Required && ended.contains(&parent(path)) {
                *self.requires.entry(path.clone()).or_default() += 1;
            }
        }
        for path in ended {
            *self.ends.entry(path.clone()).or_default() += 1;
        }
        self.questions.extend(questions);
    }

    /// Returns the fields. A field is required if every reading required it.
    fn fields(&self) -> Field {
        let mut root = Field::default();
        for (path, question) in &self.questions {
            let always = || self.requires.get(path) == self.ends.get(&parent(path));
            if *question != Question::Required || always() {
                root.add(path, question.clone());
            }
        }
        root.narrow();
        root
    }
}

/// Returns the path of a field's mapping.
fn parent(path: &str) -> String {
    path.rsplit_once('.').map(|(parent, _)| parent).unwrap_or_default().to_owned()
}

/// A value that a sample may have.
enum Sample {
    Plain(Json),
    Mapping,
    List,
}

/// Returns the values to try for a field, the usual one first.
fn values(field: &Field) -> Vec<Sample> {
    let of_form = |form: &Form| match form {
        Form::Mapping => vec![Sample::Mapping],
        Form::List => vec![Sample::List],
        Form::Text | Form::SomeText => vec![Sample::Plain("sample".into())],
        Form::Bool => vec![Sample::Plain(true.into()), Sample::Plain(false.into())],
        Form::Whole(low, high) => vec![Sample::Plain(1.clamp(*low, *high).into())],
        Form::CountOrShare => vec![Sample::Plain(1.into())],
        Form::Word(words) => words.iter().map(|word| Sample::Plain((*word).into())).collect(),
    };
    let values: Vec<Sample> = field.forms.iter().flat_map(of_form).collect();
    // If the reader interprets a value itself, every form is tried.
    if values.is_empty() {
        vec![Sample::Plain("sample".into()), Sample::Mapping, Sample::List]
    } else {
        values
    }
}

fn value(field: &Field, path: &str, change: SampleChange<'_>) -> Option<Json> {
    let number = match change {
        SampleChange::Absent(changed) if changed == path => return None,
        SampleChange::Other(changed, number) if changed == path => number,
        _ => 0,
    };
    Some(match values(field).into_iter().nth(number)? {
        Sample::Plain(value) => value,
        Sample::Mapping => Json::Object(mapping(field, path, change)),
        Sample::List => {
            let item = field.item.as_deref()?;
            Json::Array(value(item, &format!("{path}[]"), change).into_iter().collect())
        }
    })
}

fn mapping(field: &Field, path: &str, change: SampleChange<'_>) -> Map<String, Json> {
    let path_of = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let may_have_any = !field.closed && !field.fields.contains_key(ANY);
    let alone = match change {
        SampleChange::Alone(one) if parent(one) == path => Some(one),
        _ => None,
    };
    let of_name = |(name, field): (&String, &Field)| {
        let path = path_of(name);
        let stays = alone.is_none_or(|one| one == path);
        let value = value(field, &path, change).filter(|_| stays)?;
        Some((name.clone(), value))
    };
    let known = field.fields.iter().filter_map(of_name);
    known.chain(may_have_any.then(|| (ANY.to_owned(), json!({})))).collect()
}
